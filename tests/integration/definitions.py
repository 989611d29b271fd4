"""Definitions of kinds, as files of charts have them."""

import pathlib
import textwrap
from typing import Final

_THINGS: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: things, singular: thing, kind: Thing}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object}}}}
"""


def things(group: str) -> str:
    """A definition of ``Thing`` in a group, with nothing in it."""
    return _THINGS.format(group=group)


_TEMPLATE: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.{group}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: {plural}, singular: {singular}, kind: {kind}}}
  versions:
"""
_VERSION: Final = """\
- name: {name}
  served: true
  storage: {storage}
  schema:
    openAPIV3Schema:
      type: object
      x-examples: [1]
      properties:
        size: {{type: integer, x-doc: how large}}
"""


def definition(group: str, plural: str, *versions: str) -> str:
    """A definition whose last version is the stored one."""
    kind = plural[:-1].capitalize()
    head = _TEMPLATE.format(group=group, plural=plural, singular=plural[:-1], kind=kind)
    entries = (_VERSION.format(name=name, storage=str(name == versions[-1]).lower()) for name in versions)
    return head + textwrap.indent("".join(entries), "  ")


def custom_object(group: str, version: str, kind: str, name: str) -> str:
    return f"apiVersion: {group}/{version}\nkind: {kind}\nmetadata: {{name: {name}}}\nsize: 3\n"


def write(module: pathlib.Path, name: str, text: str) -> None:
    (module / "crds").mkdir(exist_ok=True)
    (module / "crds" / name).write_text(text)

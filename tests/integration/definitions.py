"""Definitions of kinds, as files of charts have them."""

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

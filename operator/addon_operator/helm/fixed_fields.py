"""Fields that never change: whether an upgrade failed over one, and what people do about it, by kind.

The words are those of the API server. What is advised never takes data, or objects of others, with it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from addon_operator.documents import text_parts

_UNCHANGEABLE: Final = re.compile(
    r"\bimmutable\b|(?:may|can) ?not (?:be )?change|updates to \S+(?: \S+){0,3} (?:for fields|are forbidden)"
    # What server-side apply cannot take away from an object: nobody owns a default.
    r"|may not be specified when strategy"
)
_INVALID: Final = re.compile(
    r'(?<![\w./-])([A-Z][A-Za-z0-9]{1,62})(?:\.[a-z0-9.-]{1,253})? "([^"]{1,253})" is invalid: '
)
"""Begins what the API server says of an object."""
_OF_STRATEGY: Final = "may not be specified when strategy"
_MOST: Final = 3
"""How many objects are told of one error."""
_DELETE: Final = "{kubectl} delete {target}"
_AGAIN: Final = "and Helm creates it again"
_TAKE_BACK: Final = "take the change back"
_BY_KIND: Final[Mapping[str, str]] = {
    "StatefulSet": f"delete it with '{_DELETE} --cascade=orphan', {_AGAIN}; its pods and volumes stay",
    "PersistentVolumeClaim": f"{_TAKE_BACK}: its data goes with it if somebody deletes it",
    "PersistentVolume": f"{_TAKE_BACK}: its data may go with it if somebody deletes it",
    "CustomResourceDefinition": f"{_TAKE_BACK}: all objects of the kind go with it if somebody deletes it",
    "Namespace": f"{_TAKE_BACK}: all that is in it goes with it if somebody deletes it",
    "Service": f"delete it with '{_DELETE}', {_AGAIN}, with another address",
    "Secret": f"copy what nobody can make again, delete it with '{_DELETE}', {_AGAIN}",
    "ConfigMap": f"delete it with '{_DELETE}', {_AGAIN}",
}
_OTHERS: Final = _BY_KIND["ConfigMap"]
_STRATEGY: Final = (
    "run: {kubectl} patch {target} --type=json "
    '-p \'[{{"op":"replace","path":"/spec/strategy","value":{{"type":"Recreate"}}}}]\''
)


def is_told(said: str) -> bool:
    """Say whether a text of the API server is about a field that never changes."""
    return _UNCHANGEABLE.search(said) is not None


def advice(text: str, namespace: str) -> str:
    """Say what to do about objects that an error names for such a field, to be put behind it; else nothing.

    ``namespace`` is that of the release: Helm 3 does not say in which one an object is.
    """
    told = dict.fromkeys(_of_objects(text, namespace))
    return "".join(f"; {each}" for each in list(told)[:_MOST])


def _of_objects(text: str, namespace: str) -> Iterator[str]:
    parts = text_parts.after_each(_INVALID, text)
    for start, said in parts:
        kind, name = start[1], start[2]
        if is_told(said):
            form = _STRATEGY if _OF_STRATEGY in said else _BY_KIND.get(kind, _OTHERS)
            advised = form.format(kubectl=f"kubectl -n {namespace}", target=f"{kind.lower()} {name}")
            yield f"{kind} {name}: {advised}" if len(parts) > 1 else advised

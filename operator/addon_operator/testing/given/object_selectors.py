"""Label and field selectors as the API server reads them, over given objects."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "pods": frozenset(
        {
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
        }
    ),
    "secrets": frozenset({"type"}),
    "services": frozenset({"spec.clusterIP", "spec.type"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "jobs": frozenset({"status.successful"}),
    "replicasets": frozenset({"status.replicas"}),
    "certificatesigningrequests": frozenset({"spec.signerName"}),
    "events": frozenset(
        {
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
}
"""By which fields the API server selects, beside name and namespace."""
_PLACES: Final[Mapping[str, str]] = {"source": "source.component"}
"""Where the value of a field stands that is called otherwise."""
_OF_ALL: Final = frozenset({"metadata.name", "metadata.namespace"})


class SelectorError(ValueError):
    """The API server would refuse the selector; the text is what it says."""


def has_labels(selector: str, labels: Mapping[str, str]) -> bool:
    """Say whether labels match a selector in the API server's syntax."""
    return all(_has(each, labels) for each in _requirements(selector))


def has_fields(selector: str, plural: str, body: Mapping[str, Any]) -> bool:
    """Say whether an object of this kind matches a field selector.

    Raises :class:`SelectorError` for a field by which the API server does not select.
    """
    for requirement in filter(None, selector.split(",")):
        is_unequal = "!=" in requirement
        field, _, value = requirement.partition("!=" if is_unequal else "=")
        field, value = field.strip(), value.removeprefix("=").strip()
        if field not in _OF_ALL | _FIELDS.get(plural, frozenset()):
            raise SelectorError(f"field label not supported: {field}")
        if (_text(body, field) == value) is is_unequal:
            return False
    return True


def _text(body: Mapping[str, Any], field: str) -> str:
    value: Any = body
    for part in (_PLACES.get(field, field)).split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _requirements(selector: str) -> Iterator[str]:
    """Yield the parts of a selector: commas within parentheses belong to a part."""
    part, depth = "", 0
    for character in selector:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += character
    if part.strip():
        yield part.strip()


def _has(requirement: str, labels: Mapping[str, str]) -> bool:
    words = requirement.replace("(", " ( ").split()
    if len(words) > 1 and words[1] in ("in", "notin"):
        values = {each.strip() for each in requirement.partition("(")[2].rstrip(") ").split(",")}
        return (labels.get(words[0]) in values) is (words[1] == "in")
    if "!=" in requirement:
        key, _, value = requirement.partition("!=")
        return labels.get(key.strip()) != value.strip()
    if "=" in requirement:
        key, _, value = requirement.partition("=")
        return labels.get(key.strip()) == value.removeprefix("=").strip()
    if requirement.startswith("!"):
        return requirement[1:].strip() not in labels
    return requirement in labels

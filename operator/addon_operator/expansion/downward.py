"""The downward API: what a pod knows of itself.

A value that is known only after scheduling, or once the object is stored, is shown as a placeholder:
``<status.podIP>``.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from addon_operator.expansion import fields
from addon_operator.kernel import names, quantities

_SUBSCRIPTED = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>.*)'\]", re.DOTALL)
_RESOURCE = re.compile(
    r"(?P<list>limits|requests)\.(?P<resource>cpu|memory|ephemeral-storage|hugepages-.+)", re.DOTALL
)
# Sent by old clients; the API still takes it.
_ALIASES: Final = {"spec.host": "spec.nodeName"}
_OVERCOMMITTED: Final = ("cpu", "memory", "ephemeral-storage")
_POD_LEVEL: Final = ("cpu", "memory")
_NOTHING: Final = Fraction(0)


def placeholder(what: str) -> str:
    """Say how a value is shown that nobody can know yet."""
    return f"<{what}>"


def field_value(pod: fields.Node, ref: fields.Node) -> str:
    """Return the value of a ``fieldRef``; a label or annotation that the pod lacks is empty.

    Raises :class:`MalformedObjectError` for a path that the kubelet does not support.
    """
    if ref.text("apiVersion") not in ("", "v1"):
        raise ref.problem("apiVersion", f"must be v1, not {ref.text('apiVersion')!r}")
    path = ref.required_text("fieldPath")
    if match := _SUBSCRIPTED.fullmatch(path):
        return _subscript(pod, ref, match["map"], match["key"])
    if path in _MAPS:
        return _format_map(pod.child("metadata").child(_MAPS[path]).text_map())
    name = _ALIASES.get(path, path)
    if name not in _FIELDS:
        raise ref.problem("fieldPath", f"is {path!r}, which a container cannot see; use one of {_SUPPORTED}")
    return _FIELDS[name](pod) or placeholder(name)


def resource_value(pod: fields.Node, container: fields.Node, ref: fields.Node) -> str:
    """Return the value of a ``resourceFieldRef`` in units of its divisor, rounded up.

    A container without a limit has that of the pod, else what its node can give, which is known only after
    scheduling. Raises :class:`MalformedObjectError` for an unknown resource or container, or a bad quantity.
    """
    match = _RESOURCE.fullmatch(ref.required_text("resource"))
    if match is None:
        raise ref.problem("resource", f"is {ref.text('resource')!r}; use one of {_RESOURCES}")
    # 0 is what a client that leaves the divisor out may send.
    divisor = ref.quantity("divisor") or Fraction(1)
    selected, shares_node = _selected(pod, container, ref)
    if match["list"] == "requests":
        return quantities.ratio(_request(selected, match["resource"]), divisor)
    limit = _final_limit(pod, selected, match["resource"], shares_node=shares_node)
    return placeholder(match[0]) if limit is None else quantities.ratio(limit, divisor)


def _service_account(pod: fields.Node) -> str:
    spec = pod.child("spec")
    # The API server fills in the same when it admits the pod.
    return spec.text("serviceAccountName") or spec.text("serviceAccount") or "default"


def _addresses(pod: fields.Node, key: str) -> str:
    return ",".join(each.text("ip") for each in pod.child("status").children(key))


_MAPS: Final = {"metadata.labels": "labels", "metadata.annotations": "annotations"}
_FIELDS: Final[Mapping[str, Callable[[fields.Node], str]]] = {
    "metadata.name": lambda pod: pod.child("metadata").text("name"),
    "metadata.namespace": lambda pod: pod.child("metadata").text("namespace"),
    "metadata.uid": lambda pod: pod.child("metadata").text("uid"),
    "spec.nodeName": lambda pod: pod.child("spec").text("nodeName"),
    "spec.serviceAccountName": _service_account,
    "status.hostIP": lambda pod: pod.child("status").text("hostIP"),
    "status.hostIPs": lambda pod: _addresses(pod, "hostIPs"),
    "status.podIP": lambda pod: pod.child("status").text("podIP"),
    "status.podIPs": lambda pod: _addresses(pod, "podIPs"),
}
"""The fields that are known later if they are not there yet."""
_SUPPORTED: Final = ", ".join([*_FIELDS, *_MAPS, *(f"{each}['KEY']" for each in _MAPS)])
_RESOURCES: Final = "limits or requests, a dot, and cpu, memory, ephemeral-storage or hugepages-SIZE"


def _subscript(pod: fields.Node, ref: fields.Node, which: str, key: str) -> str:
    # Keys of annotations are checked without regard to case.
    if not names.is_label_key(key.lower() if which == "annotations" else key):
        raise ref.problem("fieldPath", f"has the key {key!r}, which can be no key of {which}")
    return pod.child("metadata").child(which).text(key)


def _format_map(values: Mapping[str, str]) -> str:
    def quoted(text: str) -> str:
        return '"' + "".join(_ESCAPES.get(each) or _printable(each) for each in text) + '"'

    return "\n".join(f"{key}={quoted(values[key])}" for key in sorted(values))


_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def _printable(character: str) -> str:
    code = ord(character)
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _selected(pod: fields.Node, container: fields.Node, ref: fields.Node) -> tuple[fields.Node, bool]:
    """Return the container that is meant, and whether what its node can give stands in for a missing limit.

    The kubelet fills that in for the container itself and for all that are not init containers.
    """
    name = ref.text("containerName")
    if not name:
        return container, True
    for key in ("containers", "initContainers"):
        for each in pod.child("spec").children(key):
            if each.text("name") == name:
                return each, key == "containers"
    raise ref.problem("containerName", f"names the container {name!r}, which the pod does not have")


def _limit(resources: fields.Node, resource: str) -> Fraction:
    return resources.child("limits").quantity(resource) or _NOTHING


def _request(container: fields.Node, resource: str) -> Fraction:
    resources = container.child("resources")
    request = resources.child("requests").quantity(resource)
    # The API server fills in the limit for a request that is not there.
    return _limit(resources, resource) if request is None else request


def _final_limit(
    pod: fields.Node, container: fields.Node, resource: str, *, shares_node: bool
) -> Fraction | None:
    limit = _limit(container.child("resources"), resource)
    if limit or not shares_node or resource not in _OVERCOMMITTED:
        return limit
    of_pod = _limit(pod.child("spec").child("resources"), resource) if resource in _POD_LEVEL else None
    return of_pod or None

"""What a failed run waits for, by its error: the one thing in the cluster whose change may cure it.

The texts are those of the API server and of Helm. What they say nothing of is waited for by time alone.
"""

import enum
import re
from collections.abc import Iterator
from typing import Final

import msgspec

MOST_CAUSES: Final = 5
"""How many causes of one error are watched."""
_LONGEST: Final = 20_000
"""Characters of an error that are searched."""
_OF_THE_CHART: Final = "execution error at ("
"""Behind it stands what a template says with ``fail``: it sends nobody anywhere."""
SAID_BY_THE_CHART: Final = ", says the chart at "
"""Stands behind what a template says with ``fail``, where that is told first."""
_NAME: Final = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"


class CauseKind(enum.Enum):
    """What has to happen."""

    ENDPOINTS = enum.auto()
    """A Service gets endpoints that are ready."""
    NAMESPACE_ENDS = enum.auto()
    """A namespace is gone for good."""
    NAMESPACE = enum.auto()
    """A namespace comes."""
    QUOTA = enum.auto()
    """A quota is raised, or less of it is used."""
    DEFINITION = enum.auto()
    """A kind is served."""
    OBJECT = enum.auto()
    """A Secret or ConfigMap comes."""
    REPOSITORY = enum.auto()
    """A registry or repository takes connections; nobody tells of that, so it is tried."""


class Cause(msgspec.Struct, frozen=True):
    """One thing that a run waits for."""

    kind: CauseKind
    name: str
    namespace: str = ""
    resource: str = ""
    """The kind of the object, or of the definition."""
    group: str = ""
    """The API group of the definition's kind."""
    limits: tuple[tuple[str, str], ...] = ()
    """What the quota allowed of each resource when it refused the run."""

    def __str__(self) -> str:
        """Say it behind "waits for"."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return _WORDS[self.kind].format(place=place, resource=self.resource, name=self.name)


_WORDS: Final = {
    CauseKind.ENDPOINTS: "endpoints of Service {place}",
    CauseKind.NAMESPACE_ENDS: "the end of namespace {name}",
    CauseKind.NAMESPACE: "namespace {name}",
    CauseKind.QUOTA: "room in ResourceQuota {place}",
    CauseKind.DEFINITION: "the kind {resource}",
    CauseKind.OBJECT: "{resource} {place}",
    CauseKind.REPOSITORY: "the repository at {name}",
}
_WEBHOOK: Final = re.compile(r"failed calling webhook.{0,300}?https://([a-z0-9.-]{1,600})[:/]", re.DOTALL)
_SERVICE: Final = re.compile(rf"({_LABEL})\.({_LABEL})\.svc(?:\..*)?")
"""The host of a Service, as the API server calls webhooks."""
_TERMINATING: Final = re.compile(rf"in namespace ({_NAME}) because it is being terminated")
_NO_NAMESPACE: Final = re.compile(rf'namespaces "({_NAME})" not found')
_QUOTA: Final = re.compile(
    # The operator's own dry runs name the namespace, Helm does not.
    rf'(?:in namespace "({_NAME})": [^":]{{0,100}}"[^":]{{0,300}}" is forbidden: )?'
    rf"exceeded quota: ({_NAME})[,\s]"
    r"(?: ?requested: \S{1,2000} used: \S{1,2000} limited: (\S{1,2000}))?"
)
_NO_KIND: Final = re.compile(r'no matches for kind "([A-Za-z0-9]{1,63})" in version "([a-z0-9.-]{1,253})/')
_NO_OBJECT: Final = re.compile(rf'(secret|configmap)s? "({_NAME})" not found', re.IGNORECASE)
_AWAY: Final = re.compile(
    r"cannot pull chart \S+ \S+ of (oci|https?)://(\[[0-9a-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253})(:[0-9]{1,5})?[/:\s]"
    r".{0,1000}?(?:refuses connections|does not answer|cannot resolve|there is no way to)",
    re.DOTALL,
)
_PORTS: Final = {"http": ":80"}
_OBJECTS: Final = {"secret": "Secret", "configmap": "ConfigMap"}


def causes(text: str, namespace: str) -> tuple[Cause, ...]:
    """Return what an error names, each once; ``namespace`` is that of the release."""
    if SAID_BY_THE_CHART in text:
        return ()
    of_helm = text[:_LONGEST].partition(_OF_THE_CHART)[0]
    found = dict.fromkeys(_found(of_helm, namespace))
    return tuple(found)[:MOST_CAUSES]


def _found(text: str, namespace: str) -> Iterator[Cause]:
    for match in _WEBHOOK.finditer(text):
        if service := _SERVICE.fullmatch(match[1]):
            yield Cause(CauseKind.ENDPOINTS, service[1], service[2])
    for match in _TERMINATING.finditer(text):
        yield Cause(CauseKind.NAMESPACE_ENDS, match[1])
    for match in _NO_NAMESPACE.finditer(text):
        yield Cause(CauseKind.NAMESPACE, match[1])
    for match in _QUOTA.finditer(text):
        limits = tuple(_amounts(match[3] or ""))
        yield Cause(CauseKind.QUOTA, match[2], match[1] or namespace, limits=limits)
    for match in _NO_KIND.finditer(text):
        yield Cause(CauseKind.DEFINITION, match[1], resource=match[1], group=match[2])
    for match in _AWAY.finditer(text):
        port = match[3] or _PORTS.get(match[1], ":443")
        yield Cause(CauseKind.REPOSITORY, f"{match[2]}{port}")
    for match in _NO_OBJECT.finditer(text):
        yield Cause(CauseKind.OBJECT, match[2], namespace, _OBJECTS[match[1].lower()])


def _amounts(text: str) -> Iterator[tuple[str, str]]:
    """Read ``pods=1,requests.cpu=2``."""
    for part in text.rstrip(".;:\"')").split(","):
        resource, sign, amount = part.partition("=")
        if sign:
            yield resource, amount

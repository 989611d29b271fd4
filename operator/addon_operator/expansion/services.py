"""The variables that say where the Services of its namespace are."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from addon_operator.expansion import fields
from addon_operator.kernel.json_types import KubernetesObject

MASTER_SERVICE: Final = "kubernetes"
"""The Service of the API server in the namespace ``default``: every container gets its variables."""


class _Port(NamedTuple):
    name: str
    number: int
    protocol: str


class _Service(NamedTuple):
    name: str
    address: str
    ports: list[_Port]


def service_environment(services: Iterable[KubernetesObject]) -> dict[str, str]:
    """Return the variables of Services by name, like ``FOO_BAR_SERVICE_HOST`` for the Service ``foo-bar``.

    Services without an address of their own (headless, without clusterIP, ExternalName) have none. Where the
    variables of two Services have the same name, the Service that comes later in the order of names wins.
    Raises :class:`MalformedObjectError` for a Service that the API would not take.
    Source: "Environment variables" of the Kubernetes documentation of Services, and the kubelet.
    """
    return _environment(_addressed(services))


def pod_service_environment(
    services: Iterable[KubernetesObject], masters: Iterable[KubernetesObject], *, links: bool
) -> dict[str, str]:
    """Return what a pod gets: the Service of the API server, and with ``links`` those of its own namespace.

    A Service called ``kubernetes`` in the pod's namespace stands in for that of the API server.
    """
    chosen = {each.name: each for each in _addressed(masters) if each.name == MASTER_SERVICE}
    if links:
        chosen |= {each.name: each for each in _addressed(services)}
    return _environment(chosen.values())


def visible_names(own: Collection[str], masters: Collection[str]) -> tuple[Collection[str], ...]:
    """Return names of variables that a pod gets of Services: those of its namespace, and the API server's.

    As in :func:`pod_service_environment`, a Service called ``kubernetes`` in the namespace stands in.
    """
    return (own,) if f"{_variable(MASTER_SERVICE)}_SERVICE_HOST" in own else (own, masters)


def _environment(services: Iterable[_Service]) -> dict[str, str]:
    env: dict[str, str] = {}
    for service in sorted(services, key=lambda each: each.name):
        env.update(_variables(service))
    return env


def _addressed(services: Iterable[KubernetesObject]) -> list[_Service]:
    nodes = (fields.named("Service", each) for each in services)
    specs = ((each, each.child("spec")) for each in nodes)
    return [
        _read(each)
        for each, spec in specs
        if spec.text("clusterIP") not in ("", "None") and spec.text("type") != "ExternalName"
    ]


def _read(service: fields.Node) -> _Service:
    spec = service.child("spec")
    ports = [
        _Port(each.text("name"), each.required_whole_number("port"), each.text("protocol") or "TCP")
        for each in spec.children("ports")
    ]
    return _Service(service.child("metadata").required_text("name"), spec.text("clusterIP"), ports)


def _variables(service: _Service) -> Iterator[tuple[str, str]]:
    prefix = _variable(service.name)
    yield f"{prefix}_SERVICE_HOST", service.address
    for first in service.ports[:1]:
        yield f"{prefix}_SERVICE_PORT", str(first.number)
    for port in service.ports:
        if port.name:
            yield f"{prefix}_SERVICE_PORT_{_variable(port.name)}", str(port.number)
    for first in service.ports[:1]:
        yield f"{prefix}_PORT", _url(service.address, first)
    for port in service.ports:
        yield from _link_variables(prefix, service.address, port)


def _link_variables(prefix: str, address: str, port: _Port) -> Iterator[tuple[str, str]]:
    name = f"{prefix}_PORT_{port.number}_{port.protocol.upper()}"
    yield name, _url(address, port)
    yield f"{name}_PROTO", port.protocol.lower()
    yield f"{name}_PORT", str(port.number)
    yield f"{name}_ADDR", address


def _url(address: str, port: _Port) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{port.protocol.lower()}://{host}:{port.number}"


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")

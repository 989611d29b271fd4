"""Variables of Services."""

import random
from typing import Any

import pytest

from addon_operator import expansion
from addon_operator.expansion import services
from tests.support import rows


def service(
    name: str, address: str | None = "1.2.3.4", *ports: dict[str, Any], **spec: object
) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"clusterIP": address, "ports": list(ports) or [{"port": 80}], **spec},
    }


def test_a_service_gives_all_its_variables() -> None:
    foo_bar = service(
        "foo-bar",
        "1.2.3.4",
        {"name": "http-web", "port": 8080, "protocol": "TCP", "targetPort": "web", "nodePort": 30080},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    )
    assert expansion.service_environment([foo_bar]) == {
        "FOO_BAR_SERVICE_HOST": "1.2.3.4",
        "FOO_BAR_SERVICE_PORT": "8080",
        "FOO_BAR_SERVICE_PORT_HTTP_WEB": "8080",
        "FOO_BAR_SERVICE_PORT_DNS": "53",
        "FOO_BAR_PORT": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP_PROTO": "tcp",
        "FOO_BAR_PORT_8080_TCP_PORT": "8080",
        "FOO_BAR_PORT_8080_TCP_ADDR": "1.2.3.4",
        "FOO_BAR_PORT_53_UDP": "udp://1.2.3.4:53",
        "FOO_BAR_PORT_53_UDP_PROTO": "udp",
        "FOO_BAR_PORT_53_UDP_PORT": "53",
        "FOO_BAR_PORT_53_UDP_ADDR": "1.2.3.4",
    }


@rows.each("port", [{"port": 80}, {"port": 80, "name": "", "protocol": None}], ids=["absent", "empty"])
def test_a_port_without_name_and_protocol_is_unnamed_tcp(port: dict[str, Any]) -> None:
    env = expansion.service_environment([service("a", "1.2.3.4", port)])
    assert env["A_PORT"] == "tcp://1.2.3.4:80"
    assert "A_PORT_80_TCP" in env
    assert [name for name in env if name.startswith("A_SERVICE")] == ["A_SERVICE_HOST", "A_SERVICE_PORT"]


def test_sctp_is_upper_case_in_names_and_lower_case_in_values() -> None:
    env = expansion.service_environment([service("a", "1.2.3.4", {"port": 9, "protocol": "SCTP"})])
    assert (env["A_PORT_9_SCTP"], env["A_PORT_9_SCTP_PROTO"]) == ("sctp://1.2.3.4:9", "sctp")


def test_an_ipv6_address_is_in_brackets_in_urls_only() -> None:
    env = expansion.service_environment([service("a", "::1")])
    assert {value for name, value in env.items() if name in {"A_PORT", "A_PORT_80_TCP"}} == {"tcp://[::1]:80"}
    assert env["A_SERVICE_HOST"] == env["A_PORT_80_TCP_ADDR"] == "::1"


def test_one_number_with_two_protocols_gives_two_groups() -> None:
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]
    env = expansion.service_environment([service("kube-dns", "1.2.3.4", *ports)])
    assert env["KUBE_DNS_PORT"] == env["KUBE_DNS_PORT_53_UDP"] == "udp://1.2.3.4:53"
    assert env["KUBE_DNS_PORT_53_TCP"] == "tcp://1.2.3.4:53"
    assert env["KUBE_DNS_SERVICE_PORT_DNS_TCP"] == "53"


@rows.each(
    "unaddressed",
    [
        service("a", "None"),
        service("a", ""),
        service("a", None),
        service("a", "1.2.3.4", type="ExternalName", externalName="example.org"),
        {"metadata": {"name": "a"}},
    ],
    ids=["headless", "empty", "absent", "ExternalName", "no spec"],
)
def test_a_service_without_an_address_of_its_own_is_skipped(unaddressed: dict[str, Any]) -> None:
    assert expansion.service_environment([unaddressed]) == {}


def test_a_service_without_ports_has_a_host() -> None:
    portless = {"metadata": {"name": "a"}, "spec": {"clusterIP": "1.2.3.4"}}
    assert expansion.service_environment([portless]) == {"A_SERVICE_HOST": "1.2.3.4"}


def test_of_colliding_services_the_later_name_wins_whatever_their_order() -> None:
    colliding = [service("foo", "1.1.1.1"), service("foo-service", "2.2.2.2"), service("zoo", "3.3.3.3")]
    random.Random(7).shuffle(colliding)
    for order in (colliding, colliding[::-1]):
        assert expansion.service_environment(order)["FOO_SERVICE_PORT"] == "tcp://2.2.2.2:80"


def test_without_links_a_pod_gets_the_api_server_alone() -> None:
    masters = [service("kubernetes", "10.0.0.1"), service("other", "10.0.0.2")]
    env = services.pod_service_environment([service("a")], masters, links=False)
    assert {name.split("_")[0] for name in env} == {"KUBERNETES"}


def test_with_links_a_pod_gets_its_namespace_too() -> None:
    env = services.pod_service_environment([service("a")], [service("kubernetes", "10.0.0.1")], links=True)
    assert (env["A_SERVICE_HOST"], env["KUBERNETES_SERVICE_HOST"]) == ("1.2.3.4", "10.0.0.1")


def test_a_service_called_kubernetes_in_the_namespace_stands_in_for_the_api_server() -> None:
    own = service("kubernetes", "1.2.3.4", {"port": 1})
    masters = [service("kubernetes", "10.0.0.1", {"port": 443, "name": "https"})]
    env = services.pod_service_environment([own], masters, links=True)
    assert env["KUBERNETES_SERVICE_HOST"] == "1.2.3.4"
    assert "KUBERNETES_SERVICE_PORT_HTTPS" not in env


def test_a_headless_service_called_kubernetes_hides_nothing() -> None:
    masters = [service("kubernetes", "10.0.0.1")]
    env = services.pod_service_environment([service("kubernetes", "None")], masters, links=True)
    assert env["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"


@rows.each(
    ("malformed", "text"),
    [
        (service("a", "1.2.3.4", {"port": "80"}), "Service a: spec.ports[0].port must be a whole number"),
        (service("a", "1.2.3.4", {"port": True}), "Service a: spec.ports[0].port must be a whole number"),
        (service("a", "1.2.3.4", {"name": "x"}), "Service a: spec.ports[0].port must be a whole number"),
        (service("a", "1.2.3.4", {"port": 1, "name": 5}), "Service a: spec.ports[0].name must be a string"),
        (service("a", ports={"port": 1}), "Service a: spec.ports must be a list, not an object"),
        ({"metadata": {"name": "a"}, "spec": {"clusterIP": 5}}, "Service a: spec.clusterIP must be a string"),
        ({"spec": {"clusterIP": "1.2.3.4"}}, "Service: metadata.name is required"),
        (
            {"metadata": "a", "spec": {"clusterIP": "1.2.3.4"}},
            "Service: metadata must be an object, not a string",
        ),
        ("a", "Service must be an object, not a string"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_malformed_service_is_named_with_the_field(malformed: dict[str, Any], text: str) -> None:
    with pytest.raises(expansion.MalformedObjectError) as caught:
        expansion.service_environment([malformed])
    assert text in str(caught.value)

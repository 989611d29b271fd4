"""References of a pod that is being created."""

import asyncio
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.admission.pods import env_sources_reader, expansion_check
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from tests.support.api_server import ApiServer, Pauses, status
from tests.unit.admission.objects import Object, container, pod

MASTER = "/api/v1/namespaces/default/services/kubernetes"
SERVICES = "/api/v1/namespaces/shop/services"
CONFIG = "/api/v1/namespaces/shop/configmaps/c"
SECRET = "/api/v1/namespaces/shop/secrets/s"


def service(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}}


@pytest.fixture
def check(kube: client.KubeClient, pauses: Pauses, server: ApiServer) -> expansion_check.ExpansionCheck:
    server.on("GET", SERVICES, {"items": [service("db")]})
    server.on("GET", MASTER, service("kubernetes"))
    return expansion_check.ExpansionCheck(env_sources_reader.EnvSources(kube, pauses, lambda _: None))


async def messages(check: expansion_check.ExpansionCheck, given: Object) -> list[str]:
    return [each.message for each in await check.check("shop", given)]


async def test_each_container_has_its_own_sentence(check: expansion_check.ExpansionCheck) -> None:
    given = pod(
        container("a", args=["$(ONE)", "$(TWO)"]),
        container("b", env=[{"name": "X", "value": "$(THREE)"}]),
        container("c", args=["fine"]),
        initContainers=[container("i", command=["$(FOUR)"])],
    )
    found = await check.check("shop", given)
    assert [(each.message, each.count) for each in found] == [
        ("Container a: cannot expand $(ONE) in args[0], $(TWO) in args[1]", 2),
        ("Container b: cannot expand $(THREE) in env X", 1),
        ("Container i: cannot expand $(FOUR) in command[0]", 1),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"args": ["$(A)"], "env": [{"name": "A", "value": "1"}]},
        {"args": ["$(DB_SERVICE_HOST) $(KUBERNETES_SERVICE_HOST)"]},
        {"args": ["$(FROM_CONFIG)"], "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "FROM_"}]},
        {
            "args": ["$(P)"],
            "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "p"}}}],
        },
        {"args": ["$(N)"], "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
        {"args": ["$(LATER)"], "envFrom": [{"configMapRef": {"name": "missing"}}]},
        {"args": ["$(date +%s) $() $$(ESCAPED)"]},
        {"command": ["/bin/bash", "-ec"], "args": ["f=$(mktemp); id=$(whoami)"]},
    ],
    ids=[
        "env",
        "services",
        "ConfigMap",
        "Secret",
        "field",
        "waits for its source",
        "no references",
        "a script",
    ],
)
async def test_what_the_kubelet_will_resolve_is_not_reported(
    check: expansion_check.ExpansionCheck, server: ApiServer, fields: dict[str, Any]
) -> None:
    server.on("GET", CONFIG, {"data": {"CONFIG": "1"}})
    server.on("GET", SECRET, {"data": {"p": "MQ=="}})
    assert await messages(check, pod(container(**fields))) == []


async def test_services_are_not_asked_for_when_the_pod_does_not_want_them(
    check: expansion_check.ExpansionCheck, server: ApiServer
) -> None:
    given = pod(container(args=["$(DB_SERVICE_HOST)"]), enableServiceLinks=False)
    assert await messages(check, given) == ["Container app: cannot expand $(DB_SERVICE_HOST) in args[0]"]
    assert server.requests == [f"GET {MASTER}"]


async def test_a_container_whose_sources_cannot_be_read_is_skipped(
    check: expansion_check.ExpansionCheck, server: ApiServer
) -> None:
    server.on("GET", SECRET, status(403, "Forbidden"))
    given = pod(
        container("a", args=["$(X)"], envFrom=[{"secretRef": {"name": "s", "optional": True}}]),
        container("b", args=["$(X)"]),
    )
    assert await messages(check, given) == ["Container b: cannot expand $(X) in args[0]"]


async def test_the_name_of_a_single_key_is_enough_where_secrets_are_not_read(
    check: expansion_check.ExpansionCheck, server: ApiServer
) -> None:
    server.on("GET", SECRET, status(403, "Forbidden"))
    password = {"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "p"}}}
    given = pod(container("a", args=["$(P) $(X)"], env=[password]))
    assert await messages(check, given) == ["Container a: cannot expand $(X) in args[0]"]


@pytest.mark.parametrize(
    ("value", "told"), [("true", False), ("True", True), ("", True)], ids=["true", "True", "empty"]
)
async def test_a_pod_can_opt_out(check: expansion_check.ExpansionCheck, value: str, told: bool) -> None:
    given = pod(container(args=["$(X)"]), annotations={expansion_check.IGNORE: value})
    assert bool(await messages(check, given)) is told


async def test_nothing_is_asked_for_a_pod_without_references(
    check: expansion_check.ExpansionCheck, server: ApiServer
) -> None:
    given = pod(container(args=["$HOME"], env=[{"name": "A"}, {"name": "B", "valueFrom": {}}]))
    assert await messages(check, given) == []
    assert server.asked == []


async def test_without_the_right_to_list_services_there_is_an_error(
    check: expansion_check.ExpansionCheck, server: ApiServer
) -> None:
    server.on("GET", SERVICES, status(403, "Forbidden"))
    with pytest.raises(api_errors.Forbidden):
        await messages(check, pod(container(args=["$(X)"])))


async def test_a_container_with_more_sources_than_are_read_for_a_pod_is_skipped(
    check: expansion_check.ExpansionCheck, server: ApiServer
) -> None:
    names = [f"c{number}" for number in range(env_sources_reader.SOURCES_MAX + 1)]
    given = pod(
        container("a", args=["$(X)"], envFrom=[{"configMapRef": {"name": name}} for name in names]),
        container("b", args=["$(X)"]),
    )
    assert await messages(check, given) == ["Container b: cannot expand $(X) in args[0]"]
    assert [request for request in server.requests if "configmaps" in request] == []


async def test_all_containers_of_a_pod_share_one_read_of_each_source(
    check: expansion_check.ExpansionCheck, server: ApiServer, pauses: Pauses
) -> None:
    server.on("GET", CONFIG, status(404, "NotFound"))
    sources = [{"configMapRef": {"name": "c", "optional": True}}]
    given = pod(*(container(f"c{number}", args=["$(X)"], envFrom=sources) for number in range(50)))
    assert len(await messages(check, given)) == 50
    assert server.requests.count(f"GET {CONFIG}") == 1


async def test_services_that_do_not_come_in_time_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, kube: client.KubeClient, pauses: Pauses
) -> None:
    class Silent(env_sources_reader.EnvSources):
        @override
        async def service_variables(self, namespace: str) -> frozenset[str]:
            await asyncio.Event().wait()
            raise AssertionError("nobody sets it")

    monkeypatch.setattr(expansion_check, "SECONDS", 0.01)
    with pytest.raises(api_errors.Unreachable, match="not read in time"):
        await messages(
            expansion_check.ExpansionCheck(Silent(kube, pauses, lambda _: None)),
            pod(container(args=["$(X)"])),
        )


async def test_others_have_their_turns_between_the_containers_of_a_pod(
    check: expansion_check.ExpansionCheck,
) -> None:
    turns: list[None] = []

    async def others() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    given = pod(*(container(f"c{number}", args=["$(X)"]) for number in range(100)))
    await messages(check, given)
    task.cancel()
    assert len(turns) >= 100


async def test_references_to_references_are_reported_without_expanding_them(
    check: expansion_check.ExpansionCheck,
) -> None:
    env = [{"name": "V0", "value": "0123456789"}]
    env += [{"name": f"V{number + 1}", "value": f"$(V{number})" * 10} for number in range(30)]
    # Expanded, these would be 10^31 characters.
    given = pod(container(env=env, args=["$(V30) $(X)"]))
    assert await messages(check, given) == ["Container app: cannot expand $(X) in args[0]"]

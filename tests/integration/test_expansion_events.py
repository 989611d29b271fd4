"""Events about references that nothing resolves."""

from collections.abc import Iterator

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_site
from tests.integration.admitting import Shop, container

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def shop(devcluster: handle.DevCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    namespace = devcluster.namespace("operator")
    site = operator_site.Site(devcluster, namespace, tmp_path_factory.mktemp("operator"))
    with admitting.opened(site, devcluster) as found:
        yield found
    site.close()
    devcluster.delete_namespace(namespace)


def messages(shop: Shop, pod: str) -> list[str]:
    found = shop.events("UnresolvedVariable")
    return sorted(each["message"] for each in found if each["involvedObject"]["name"] == pod)


def wait_messages(shop: Shop, pod: str, count: int) -> list[str]:
    return shop.operator.wait_until(
        lambda: found if len(found := messages(shop, pod)) >= count else None, f"{count} Events about {pod}"
    )


def test_each_container_has_one_event(shop: Shop) -> None:
    shop.pod(
        container("web", env=[{"name": "FOO", "value": "$(A)"}], args=["ok", "$(B) $(date +%s) $$(C)"]),
        container("fine", args=["$(KUBERNETES_SERVICE_HOST)"]),
        initContainers=[container("init", command=["$(D)"])],
        metadata={"name": "each"},
    )
    assert wait_messages(shop, "each", 2) == [
        "Container init: cannot expand $(D) in command[0]",
        "Container web: cannot expand $(A) in env FOO, $(B) in args[1]",
    ]


def test_what_presets_and_sources_define_is_resolved(shop: Shop) -> None:
    data = {"FROM_MAP": "1"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
    shop.request("POST", f"/api/v1/namespaces/{shop.namespace}/configmaps", body)
    shop.preset()
    shop.pod(
        container(
            args=["$(DB_PORT) $(FROM_MAP) $(NOT_THERE)"], envFrom=[{"configMapRef": {"name": "settings"}}]
        ),
        metadata={"name": "resolved"},
    )
    assert wait_messages(shop, "resolved", 1) == ["Container app: cannot expand $(NOT_THERE) in args[0]"]
    shop.operator.wait_metric(1, "expansion_unresolved_total")


def test_own_references_and_paths_of_mounts_find_what_presets_define(shop: Shop) -> None:
    ca = {"name": "ca", "configMap": {"name": "ca", "optional": True}}
    mounts = [{"name": "ca", "mountPath": path} for path in ("/etc/ca", "/etc/ssl/ca")]
    lists = {"env": [{"name": "SHARD", "value": "7"}], "volumes": [ca], "volumeMounts": mounts}
    labels = {"role": "sharded"}
    shop.preset("sharded", selector={"matchLabels": labels}, **lists)
    own = [{"name": "DIRECTORY", "value": "shard-$(SHARD)"}]
    paths = [
        {"name": "data", "mountPath": "/data", "subPathExpr": "$(DIRECTORY)"},
        {"name": "data", "mountPath": "/lost", "subPathExpr": "$(NOT_THERE)/x"},
    ]
    made = shop.pod(
        container(env=own, volumeMounts=[*paths, {"name": "ca", "mountPath": "/own"}], args=["$(DIRECTORY)"]),
        metadata={"name": "sharded", "labels": labels},
        volumes=[{"name": "data", "emptyDir": {}}, ca],
    )
    (app,) = made["spec"]["containers"]
    assert [each["name"] for each in app["env"]] == ["SHARD", "DIRECTORY"]
    kept = [each["mountPath"] for each in app["volumeMounts"] if each["name"] == "ca"]
    assert kept == ["/own", "/etc/ca", "/etc/ssl/ca"]
    assert wait_messages(shop, "sharded", 1) == [
        "Container app: cannot expand $(NOT_THERE) in subPathExpr of volumeMounts[1]"
    ]


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"expansion.addon-operator.io/ignore": "true"}, False),
        ({"expansion.addon-operator.io/ignore": "false"}, True),
        ({"podpreset.admission.kubernetes.io/exclude": "true"}, True),
    ],
    ids=["ignored", "not ignored", "excluded from presets alone"],
)
def test_a_pod_opts_out_with_its_own_annotation(
    shop: Shop, annotations: dict[str, str], told: bool, request: pytest.FixtureRequest
) -> None:
    name = f"opt-{request.node.callspec.id.replace(' ', '-')}"
    shop.pod(container(args=["$(X)"]), annotations=annotations, metadata={"name": name})
    shop.pod(container(args=["$(X)"]), metadata={"name": f"{name}-after"})
    wait_messages(shop, f"{name}-after", 1)
    if told:
        wait_messages(shop, name, 1)
    assert bool(messages(shop, name)) is told


def test_the_pod_is_admitted_unchanged(shop: Shop) -> None:
    pod = shop.pod(container(args=["$(X)"]), metadata={"labels": {"role": "other"}})
    assert pod["spec"]["containers"][0]["args"] == ["$(X)"]
    assert "annotations" not in pod["metadata"]


def test_a_pod_that_would_be_gigabytes_expanded_and_one_with_hundreds_of_sources_hold_nothing_up(
    shop: Shop,
) -> None:
    env = [{"name": "V0", "value": "0123456789"}]
    env += [{"name": f"V{number + 1}", "value": f"$(V{number})" * 10} for number in range(30)]
    sources = [{"configMapRef": {"name": f"c{number}", "optional": True}} for number in range(300)]
    shop.pod(
        container(args=["$(X)"], envFrom=sources), metadata={"name": "sources", "labels": {"role": "other"}}
    )
    shop.pod(container(env=env, args=["$(V30) $(X)"]), metadata={"name": "bomb", "labels": {"role": "other"}})
    assert wait_messages(shop, "bomb", 1) == ["Container app: cannot expand $(X) in args[0]"]
    shop.operator.wait_metric(1, "env_sources_dropped_total")
    assert messages(shop, "sources") == []


@pytest.mark.slow
def test_events_can_be_switched_off(
    devcluster: handle.DevCluster, tmp_path_factory: pytest.TempPathFactory, shop: Shop
) -> None:
    namespace = devcluster.namespace("operator")
    site = operator_site.Site(devcluster, namespace, tmp_path_factory.mktemp("quiet"))
    # The webhooks of the module's operator would tell of these pods, too.
    for path in admitting.CONFIGURATIONS:
        for each in shop.request("GET", path)["items"]:
            shop.client.request("DELETE", f"{path}/{each['metadata']['name']}")
    shop.operator.terminate()
    shop.operator.wait_end()
    with admitting.opened(site, devcluster, EXPANSION_EVENTS="no") as quiet:
        quiet.preset()
        quiet.pod(
            container(args=["$(X)"], env=[{"name": "DB_PORT", "value": "1"}]), metadata={"name": "quiet"}
        )
        quiet.wait_events("conflict", 1)
        assert quiet.events("UnresolvedVariable") == []
    site.close()
    devcluster.delete_namespace(namespace)

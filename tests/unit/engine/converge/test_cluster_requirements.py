"""What is asked of the cluster for modules that require something of it."""

import pathlib

import pytest
from typing_extensions import override

from addon_operator.engine.converge import api_watch, cluster_requirements
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.discovery import api_resources, discovery, presence
from addon_operator.loading import crd_sources
from addon_operator.modules import model, module_config, requirements
from tests.support import rows

_CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.soon.example.com}
spec: {group: soon.example.com, versions: [{name: v1}]}
"""


class Cluster(discovery.Catalog):
    """Serves some APIs; others are only registered."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.served = {"v1", "apps/v1"}
        self.stale: set[str] = set()
        self.registered: set[str] = set()

    @override
    async def look(self) -> discovery.Discovered:
        self.asked.append("all")
        groups = tuple(map(api_resources.GroupVersion, sorted(self.served | self.stale)))
        return discovery.Discovered("v1.31.2", groups, tuple(self.stale))

    @override
    async def version(self) -> str:
        self.asked.append("version")
        return "v1.31.2"


class Probe(presence.ObjectProbe):
    """Asks whether an API is registered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @override
    async def exists(self, resource: api_resources.Resource, namespace: str, name: str) -> bool | None:
        assert resource.path() == "/apis/apiregistration.k8s.io/v1/apiservices"
        self._cluster.asked.append(name)
        return name in self._cluster.registered


def module(*apis: str, kubernetes: str = "", problem: str = "") -> model.Module:
    config = module_config.ModuleConfig(requires=module_config.Requirements(kubernetes, (), apis))
    return model.Module(ModuleName("web"), 1, pathlib.Path("web"), config=config, problem=problem)


class Followed(api_watch.ApiWatch):
    """Remembers what a look asked to be followed."""

    def __init__(self) -> None:
        self.last: tuple[frozenset[str], requirements.ClusterFacts] | None = None

    @override
    def follow(self, apis: frozenset[str], seen: requirements.ClusterFacts) -> None:
        self.last = apis, seen


def made(
    cluster: Cluster, watch: api_watch.ApiWatch | None = None
) -> cluster_requirements.ClusterRequirements:
    return cluster_requirements.ClusterRequirements(
        cluster,
        Probe(cluster),
        crd_sources.CrdSources((), lambda _: {}),
        watch,
    )


@rows.each(
    ("modules", "asked"),
    [
        pytest.param([module()], [], id="nothing required"),
        pytest.param([module("apps/v1", problem="it is wrong")], [], id="it never runs"),
        pytest.param([module(), module(kubernetes=">=1.30")], ["version"], id="a version"),
        pytest.param([module("apps/v1", kubernetes=">=1.30")], ["all"], id="an API that is served"),
        pytest.param([module("example.com/v1")], ["all", "v1.example.com"], id="one that is not"),
    ],
)
async def test_nothing_is_asked_that_no_module_requires(
    modules: list[model.Module], asked: list[str]
) -> None:
    cluster = Cluster()
    await made(cluster).look(modules)
    assert cluster.asked == asked


async def test_an_api_is_served_absent_or_unclear() -> None:
    cluster = Cluster()
    cluster.stale, cluster.registered = {"stale.example.com/v1"}, {"v1.late.example.com"}
    apis = ("apps/v1", "stale.example.com/v1", "late.example.com/v1", "gone.example.com/v1")
    followed = Followed()
    found = made(cluster, followed)
    facts = await found.look([module(*apis)])
    assert facts == requirements.ClusterFacts(
        "v1.31.2",
        frozenset({"v1", "apps/v1"}),
        frozenset({"stale.example.com/v1", "late.example.com/v1"}),
    )
    assert followed.last == (frozenset(apis), facts)


async def test_of_an_api_that_is_absent_the_modules_that_are_on_and_define_it_are_known(
    tmp_path: pathlib.Path,
) -> None:
    modules = [module("soon.example.com/v1", "apps/v1")]
    for name in ("certs", "off"):
        path = tmp_path / name
        (path / "crds").mkdir(parents=True)
        (path / "crds" / "things.yaml").write_text(_CRD)
        modules.append(model.Module(ModuleName(name), 1, path))
    facts = await made(Cluster()).look(modules, lambda each: each.name != "off")
    assert facts.coming == {"soon.example.com/v1": (ModuleName("certs"),)}

"""Which watches there are for the resources of releases, and what they tell."""

from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.engine.drift import kind_watch, watched_resources
from addon_operator.helm import places
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import api_errors
from addon_operator.kube.informers import object_changes, watch_health
from addon_operator.modules import crd_files, manifests
from tests.unit.engine import watching

DB, WEB = watching.DB, watching.WEB


class Told(watched_resources.ResourceListener):
    def __init__(self) -> None:
        self.missing_modules: list[ModuleName] = []
        self.returned_names: list[str] = []
        self.followed_modules: list[ModuleName] = []

    @override
    def followed(self, module: ModuleName) -> None:
        self.followed_modules.append(module)

    @override
    def missing(self, modules: Iterable[ModuleName]) -> None:
        self.missing_modules += sorted(modules)

    @override
    def touched(self, resource: watched_resources.Watched) -> None:
        self.returned_names.append(str(resource))


class Bench:
    def __init__(self) -> None:
        self.cluster = watching.Cluster()
        self.resources = watching.resources_of(self.cluster)
        self.told = Told()
        self.resources.subscribe(self.told)

    def missing(self, module: ModuleName) -> list[str]:
        return [str(each) for each in self.resources.missing_of(module)]

    def states(self, module: ModuleName) -> dict[str, str]:
        return {row["name"]: row["state"] for row in self.resources.view(module) or ()}


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_modules_share_one_watch_per_kind(bench: Bench) -> None:
    await bench.resources.follow(WEB, watching.wanted("a", "b"))
    await bench.resources.follow(
        DB, watching.wanted("c") + watching.wanted("d", resource=watching.DEPLOYMENT)
    )
    selections = [each.selection for each in bench.cluster.open]
    assert [(each.kind, each.api_version) for each in selections] == [
        ("ConfigMap", "v1"),
        ("Deployment", "apps/v1"),
    ]
    assert all(each.metadata_only and each.namespaces is None for each in selections)


async def test_watches_go_with_the_last_manifest_that_needs_them(bench: Bench) -> None:
    await bench.resources.follow(WEB, watching.wanted("a"))
    await bench.resources.follow(DB, watching.wanted("a"))
    bench.resources.unfollow(WEB)
    assert len(bench.cluster.open) == 1
    await bench.resources.follow(DB, watching.wanted("d", resource=watching.DEPLOYMENT))
    assert [each.selection.kind for each in bench.cluster.open] == ["Deployment"]
    bench.resources.unfollow(DB)
    bench.resources.unfollow(DB)
    assert bench.cluster.open == []


async def test_what_is_absent_already_when_the_first_list_comes_is_reported(bench: Bench) -> None:
    bench.cluster.put("a", "foreign")
    await bench.resources.follow(WEB, watching.wanted("a", "b"))
    await bench.resources.follow(DB, watching.wanted("a"))
    assert bench.states(WEB) == {"a": "unknown", "b": "unknown"}
    bench.cluster.sync()
    assert bench.told.missing_modules == [WEB]
    assert bench.missing(WEB) == ["ConfigMap addons/b"]
    assert bench.states(WEB) == {"a": "present", "b": "absent"}


async def test_what_is_followed_from_now_on_or_no_longer_is_told(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    await bench.resources.follow(DB, watching.wanted("a", "z"))
    bench.resources.unfollow(WEB)
    assert bench.told.followed_modules == [WEB, DB, WEB]
    assert bench.missing(DB) == ["ConfigMap addons/z"]
    assert bench.resources.watched_of(WEB) is None


async def test_deletions_and_returns_are_reported_for_objects_that_some_module_has(bench: Bench) -> None:
    bench.cluster.put("a", "foreign")
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    bench.cluster.remove("foreign")
    assert bench.told.missing_modules == []
    bench.cluster.remove("a")
    assert bench.told.missing_modules == [WEB]
    bench.cluster.put("a", "foreign")
    assert bench.told.returned_names == ["ConfigMap addons/a"]
    assert bench.missing(WEB) == []


async def test_of_a_module_that_is_not_followed_nothing_is_shown(bench: Bench) -> None:
    assert bench.resources.view(WEB) is None
    await bench.resources.follow(WEB, watching.wanted("a") + watching.wanted("r", resource=watching.ROLE))
    assert [row["resource"] for row in bench.resources.view(WEB) or ()] == [
        "ClusterRole r",
        "ConfigMap addons/a",
    ]
    bench.resources.unfollow(WEB)
    assert bench.resources.view(WEB) is None


async def test_a_resource_that_left_the_manifest_is_missed_no_more(bench: Bench) -> None:
    bench.cluster.put("a", "b")
    await bench.resources.follow(WEB, watching.wanted("a", "b"))
    bench.cluster.sync()
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.remove("b")
    assert bench.told.missing_modules == []


async def test_namespaces_are_the_written_ones_or_that_of_the_release_or_none(bench: Bench) -> None:
    role = watching.wanted("r", resource=watching.ROLE, namespace="nonsense")
    await bench.resources.follow(
        WEB, [*watching.wanted("a"), *watching.wanted("b", namespace="other"), *role]
    )
    bench.cluster.sync()
    assert bench.missing(WEB) == ["ConfigMap addons/a", "ConfigMap other/b", "ClusterRole r"]


async def test_without_the_right_to_list_everything_each_namespace_has_its_watch(bench: Bench) -> None:
    bench.cluster.may_list = False
    bench.cluster.put("a")
    await bench.resources.follow(WEB, [*watching.wanted("a", "b"), *watching.wanted("c", namespace="other")])
    assert [each.selection.namespaces for each in bench.cluster.open] == [("addons",), ("other",)]
    bench.cluster.sync()
    assert bench.missing(WEB) == ["ConfigMap addons/b", "ConfigMap other/c"]
    bench.resources.unfollow(WEB)
    assert bench.cluster.open == []


async def test_a_kind_that_cannot_be_followed_is_reported_once_with_all_its_modules(bench: Bench) -> None:
    await bench.resources.follow(WEB, watching.wanted("a"))
    await bench.resources.follow(DB, watching.wanted("b"))
    [watch] = bench.cluster.open
    for _ in range(2):
        watch.listener.trouble("configmaps may not be listed")
    assert bench.cluster.told == [((DB, WEB), "ConfigMap", "configmaps may not be listed")]
    [row] = bench.resources.view(WEB) or []
    assert (row["state"], row["reason"]) == ("not watched", "configmaps may not be listed")
    watch.listener.trouble(None)
    watch.sync()
    watch.listener.trouble("connection lost")
    assert len(bench.cluster.told) == 1
    assert bench.states(WEB) == {"a": "absent"}


async def test_kinds_that_are_unknown_or_have_no_watch_are_shown_with_the_reason(bench: Bench) -> None:
    odd = manifests_of_unknown_kind()
    review = watching.wanted("r", resource=watching.REVIEW)
    for _ in range(2):
        assert not await bench.resources.follow(WEB, [*odd, *review, *watching.wanted("a")])
    rows = {
        row["name"]: (row["state"], row["reason"])
        for row in bench.resources.view(WEB) or ()
        if "reason" in row
    }
    assert rows["o"][0] == "not watched"
    assert "no kind 'Odd'" in rows["o"][1]
    assert "cannot be listed and watched" in rows["r"][1]
    assert [kind for _, kind, _ in bench.cluster.told] == ["Odd", "SubjectAccessReview"]
    assert await bench.resources.follow(WEB, review)


def manifests_of_unknown_kind() -> list[manifests.ManifestResource]:
    return [manifests.ManifestResource("example.com/v1", "Odd", None, "o")]


async def test_a_watch_that_does_not_come_up_is_a_problem_after_a_minute_and_a_kind_that_is_gone_is_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_health, "GRACE_SECONDS", 0)
    await bench.resources.follow(WEB, watching.wanted("a"))
    (subscription,) = bench.cluster.open
    subscription.listener.trouble("you may not watch configmaps")
    assert "of releases has been down for 0 s: you may not watch configmaps" in (
        bench.resources.trouble() or ""
    )
    subscription.is_kind_known = False
    subscription.listener.trouble("there is no such kind")
    assert bench.resources.trouble() is None
    subscription.is_kind_known = True
    subscription.listener.trouble("nobody answers")
    assert bench.resources.trouble() is not None
    subscription.listener.trouble(None)
    subscription.sync()
    assert bench.resources.trouble() is None


async def test_a_watch_that_has_just_begun_is_not_a_problem(bench: Bench) -> None:
    await bench.resources.follow(WEB, watching.wanted("a"))
    assert bench.resources.trouble() is None


async def test_resources_that_two_modules_have_are_reported_when_that_changes() -> None:
    cluster = watching.Cluster()
    resources = watching.resources_of(cluster)
    await resources.follow(watching.WEB, watching.wanted("a", "b"))
    assert cluster.shares == []
    for _ in range(2):
        await resources.follow(watching.DB, watching.wanted("a", "c"))
    told = (("db", "web"), ("ConfigMap addons/a",))
    assert cluster.shares == [told]
    assert resources.shared == dict([told])
    resources.unfollow(watching.DB)
    assert resources.shared == {}
    await resources.follow(watching.DB, watching.wanted("a"))
    assert cluster.shares == [told, told]


async def test_what_others_have_is_found_whatever_the_version_of_its_group() -> None:
    resources = watching.resources_of(watching.Cluster())
    web = watching.wanted("r", resource=watching.ROLE) + watching.wanted("b", namespace="far")
    await resources.follow(watching.WEB, [*watching.wanted("a"), *web])
    older = structs.replace(watching.ROLE, api_version="rbac.authorization.k8s.io/v1beta1")
    asked = [*watching.wanted("a", "x"), *watching.wanted("r", resource=older), *watching.wanted("b")]
    assert [each.name for each in resources.of_others(watching.DB, asked)] == ["a", "r"]
    assert resources.of_others(watching.WEB, asked) == ()


async def test_namespaces_in_which_the_operator_and_other_modules_are_stay() -> None:
    resources, db = watching.resources_of(watching.Cluster()), ModuleName("dbs/db")
    await resources.follow(db, watching.wanted("a"))
    asked = [
        manifests.ManifestResource(version, kind, None, name)
        for version, kind, name in (
            ("v1", "Namespace", "addons"),
            ("v1", "Namespace", "dbs"),
            ("v1", "Namespace", "webs"),
            ("v1", "ConfigMap", "dbs"),
        )
    ]
    assert [str(each) for each in resources.of_others(watching.WEB, asked)] == [
        "Namespace addons",
        "Namespace dbs",
    ]
    assert resources.give_up(db, asked) == (asked[0],)


async def test_of_two_modules_that_give_up_the_same_the_second_one_is_the_last_to_have_it() -> None:
    resources = watching.resources_of(watching.Cluster())
    for module in (watching.WEB, watching.DB):
        await resources.follow(module, watching.wanted("a", "b"))
    (dropped, _) = watching.wanted("a", "b")
    assert resources.give_up(watching.WEB, [dropped]) == (dropped,)
    assert resources.give_up(watching.DB, [dropped]) == ()
    assert resources.shared == {(watching.DB, watching.WEB): ("ConfigMap addons/b",)}


async def test_what_a_module_in_maintenance_has_is_its_own_and_is_not_looked_after(bench: Bench) -> None:
    resources = bench.resources
    definition = structs.replace(
        watching.ROLE, kind=crd_files.KIND, api_version=crd_files.API_VERSION, namespaced=False
    )
    asked = [*watching.wanted("a", "b"), *watching.wanted("things.x", resource=definition)]
    bench.cluster.kinds.append(definition)
    # WEB runs last, so that what both have belongs to it.
    await resources.follow(DB, watching.wanted("a"))
    assert not resources.has_definition("things.x")
    for rests in (False, True):
        await resources.follow(WEB, asked, rests=rests)
        assert resources.has_definition("things.x")
        assert resources.owners(DB, asked) == dict.fromkeys(asked, WEB)
        assert resources.shared == {(DB, WEB): ("ConfigMap addons/a",)}
        assert resources.watched_of(WEB) is None or not rests
    bench.cluster.sync()
    assert (bench.missing(WEB), bench.missing(DB)) == ([], [])
    assert len(bench.cluster.open) == 1
    home = manifests.ManifestResource("v1", "Namespace", None, "addons")
    assert resources.of_others(DB, [home]) == (home,)
    assert resources.give_up(WEB, asked) == (asked[0],)
    assert (resources.shared, bench.missing(DB)) == ({}, ["ConfigMap addons/a"])
    resources.unfollow(WEB)
    assert resources.owners(DB, asked) == {asked[0]: DB}


async def test_objects_whose_kind_is_gone_are_told_from_those_whose_server_is_away() -> None:
    cluster = watching.Cluster()
    resources = watching.resources_of(cluster)
    gone, away, served = (
        structs.replace(watching.ROLE, kind=kind, api_version=api_version)
        for kind, api_version in (
            ("Thing", "gone.example.com/v1"), ("Thing", "away.example.com/v1"), ("Thing", "apps/v1"),
        )
    )  # fmt: skip
    cluster.objects["APIService"] = {object_changes.ObjectKey("", "v1.away.example.com")}
    asked = [
        *watching.wanted("a"),
        *(each for kind in (gone, away, served) for each in watching.wanted("b", resource=kind)),
    ]
    found = await resources.of_gone_kinds(asked)
    assert [each.api_version for each in found] == ["gone.example.com/v1", "apps/v1"]
    assert await resources.of_gone_kinds(watching.wanted("a")) == ()
    assert cluster.looks == 1, "without an unknown kind nothing is asked"


async def test_a_removal_waits_for_a_kind_that_may_be_back_in_a_moment() -> None:
    cluster = watching.Cluster()
    kinds = watching.Catalog(cluster)
    kinds.away.add("apps/v1")
    resources = watched_resources.WatchedResources(
        cluster, kinds, watching.Probe(cluster), cluster.tell, places.ReleaseLocations("addons")
    )
    thing = structs.replace(watching.ROLE, kind="Thing", api_version="apps/v1")
    with pytest.raises(api_errors.KubernetesError, match=r"Thing \(apps/v1\) is not served just now"):
        await resources.of_gone_kinds(watching.wanted("a", resource=thing))


RUNNING: dict[str, Any] = {"kind": "Job", "status": {"startTime": "2026-01-01T00:00:00Z", "active": 1}}
COMPLETE = {"kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {"kind": "Job", "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
ADDED, MODIFIED, DELETED = object_changes.ChangeType
LIVES: dict[str, tuple[list[tuple[object_changes.ChangeType, dict[str, Any], str]], list[str]]] = {
    "it completed": ([(ADDED, RUNNING, "1"), (MODIFIED, COMPLETE, "2"), (DELETED, COMPLETE, "3")], []),
    "it failed": ([(ADDED, RUNNING, "1"), (DELETED, FAILED, "3")], []),
    "somebody deleted it while it ran": ([(ADDED, RUNNING, "1"), (DELETED, RUNNING, "3")], ["Job addons/a"]),
    "it went while nobody watched": ([(ADDED, RUNNING, "1"), (DELETED, RUNNING, "1")], []),
    "it was never seen": ([], []),
    "it came back": ([(ADDED, RUNNING, "1"), (DELETED, RUNNING, "3"), (ADDED, RUNNING, "4")], []),
    "it came back and completed": (
        [(ADDED, RUNNING, "1"), (DELETED, RUNNING, "3"), (ADDED, RUNNING, "4"), (DELETED, COMPLETE, "5")],
        [],
    ),
}


async def test_work_that_is_gone_is_missing_only_if_it_was_seen_to_go_before_it_ended() -> None:
    found = {}
    for why, (life, _) in LIVES.items():
        bench = Bench()
        await bench.resources.follow(WEB, watching.wanted("a", resource=watching.JOB))
        bench.cluster.sync()
        (watch,) = bench.cluster.open
        for change, job, version in life:
            document = orjson.dumps({**job, "metadata": {"name": "a", "resourceVersion": version}})
            ((entry, _),) = await kind_watch.Work().reduce([document])
            key = object_changes.ObjectKey("addons", "a")
            watch.listener.changed([object_changes.Change(change, key, entry, version)])
        found[why] = (life, bench.missing(WEB))
    assert found == LIVES


async def test_work_that_is_not_there_at_a_start_counts_as_ended(bench: Bench) -> None:
    await bench.resources.follow(WEB, watching.wanted("a", resource=watching.JOB) + watching.wanted("b"))
    bench.cluster.sync()
    assert bench.missing(WEB) == ["ConfigMap addons/b"]
    reasons = {row["name"]: (row["state"], row.get("reason")) for row in bench.resources.view(WEB) or ()}
    assert reasons["a"] == ("absent", "it counts as ended, and the next revision makes it again")


async def test_work_that_runs_at_a_start_and_is_deleted_then_is_missing(bench: Bench) -> None:
    key = object_changes.ObjectKey("addons", "a")
    bench.cluster.put("a", resource=watching.JOB)
    bench.cluster.entries[key] = b'{"version": "1", "ended": false}'
    await bench.resources.follow(WEB, watching.wanted("a", resource=watching.JOB))
    bench.cluster.sync()
    assert bench.missing(WEB) == []
    bench.cluster.entries[key] = b'{"version": "2", "ended": false}'
    bench.cluster.remove("a", resource=watching.JOB)
    assert bench.missing(WEB) == ["Job addons/a"]

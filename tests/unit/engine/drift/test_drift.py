"""When a disappeared resource is restored or makes a run of its module, and when it does not."""

import asyncio
from typing import Any

import pytest

from addon_operator.engine import events
from addon_operator.engine.drift import drift, drift_backoff, restoring
from addon_operator.helm import helm_errors, messages, release_types
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import api_errors, paths
from addon_operator.kube.objects import own_deletions
from tests.support import clocks
from tests.unit.engine import fakes, watching

DB, WEB = watching.DB, watching.WEB


class Bench:
    """Modules with watched resources; time is moved by hand."""

    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.cluster = watching.Cluster()
        self.resources = watching.resources_of(self.cluster)
        self.deletions = own_deletions.OwnDeletions()
        self.inbox = fakes.Inbox()
        self.told: list[tuple[str, str, tuple[str, ...]]] = []
        self.reasons: list[str] = []
        self.defects: list[str] = []
        self.brought: set[str] = set()
        """Definitions that come back by themselves."""
        self.drift = drift.Drift(
            self.resources,
            watching.restorer_of(self.cluster, lambda crd: crd in self.brought),
            self.deletions,
            self._tell,
            self.inbox,
            self.clock,
        )

    @property
    def runs(self) -> list[tuple[str, str]]:
        return [(run.module, run.activation) for run in self.inbox.runs]

    @property
    def hastened(self) -> list[str]:
        """Modules whose failed runs are not to wait."""
        return [run.module for run in self.inbox.runs if run.at_once]

    def _tell(self, event: events.Event) -> None:
        match event:
            case events.AbsentFound():
                self.told.append(("absent", event.module, tuple(event.resources)))
                self.reasons.append(event.reason)
            case events.ResourcesHealed():
                what = "healed" if event.by_helm else "restored"
                self.told.append((what, event.module, tuple(event.resources)))
            case events.HealPostponed():
                self.told.append((f"postponed {event.seconds:g}", event.module, tuple(event.resources)))
            case events.PartFailed():
                self.defects.append(f"{event.part}: {event.error}")

    async def have(self, module: ModuleName, *names: str) -> None:
        """The module's release is there with these ConfigMaps."""
        self.cluster.put(*names)
        await self.resources.follow(module, watching.wanted(*names))
        self.cluster.sync()

    def hook_deletes(self, owner: str, name: str) -> None:
        key = own_deletions.DeletedObject("", "ConfigMap", "addons", name)
        self.deletions.note(own_deletions.Owner(owner), key)
        self.cluster.remove(name)

    async def after(self, seconds: float) -> list[str]:
        """The modules that runs are asked for by then."""
        before = len(self.runs)
        self.clock.now += seconds
        await self.drift.look()
        return [module for module, _ in self.runs[before:]]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_what_cannot_be_restored_makes_a_run_within_a_second(bench: Bench) -> None:
    await bench.have(WEB, "a")
    assert await bench.after(1) == []
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    assert bench.runs == [(WEB, "DetectAbsentHelmResources")]
    assert bench.told == [("absent", WEB, ("ConfigMap addons/a",))]


async def test_a_burst_of_deletions_makes_one_run(bench: Bench) -> None:
    await bench.have(WEB, "a", "b", "c")
    bench.cluster.remove("a")
    assert await bench.after(drift.SETTLE / 2) == []
    bench.cluster.remove("b", "c")
    assert await bench.after(drift.SETTLE) == [WEB]
    assert await bench.after(1) == []


async def test_a_shared_resource_makes_a_run_of_the_last_module_that_has_it(bench: Bench) -> None:
    await bench.have(WEB, "a")
    await bench.have(DB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    bench.resources.unfollow(WEB)
    assert await bench.after(1) == [DB]


async def test_a_resource_that_somebody_puts_back_at_once_is_not_a_reason(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    bench.cluster.put("a")
    assert await bench.after(1) == []


async def test_what_disappeared_while_the_operator_was_away_makes_a_run(bench: Bench) -> None:
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    assert await bench.after(1) == [WEB]


async def test_a_watch_that_is_behind_is_not_believed(bench: Bench) -> None:
    bench.cluster.behind = {"a"}
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    assert await bench.after(1) == []
    assert await bench.drift.restore(WEB) == ()
    bench.cluster.behind = set()
    assert await bench.after(drift.LAG) == [WEB]


async def test_without_the_right_to_get_the_watch_is_believed(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.may_get = False
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]


async def test_while_the_api_server_does_not_answer_nothing_is_concluded(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    bench.cluster.error = errors.AddonOperatorError("no answer")
    assert await bench.after(1) == []
    bench.cluster.error = None
    assert await bench.after(drift.RECHECK) == [WEB]


async def test_of_many_absent_resources_only_the_first_are_asked_for(bench: Bench) -> None:
    names = [f"a{number:03}" for number in range(100)]
    await bench.have(WEB, *names)
    bench.cluster.remove(*names)
    assert len(await bench.drift.restore(WEB)) == 100
    assert len(bench.cluster.probed) < 10


async def test_of_many_that_a_watch_is_behind_with_only_the_first_are_asked_for(bench: Bench) -> None:
    names = [f"a{number:03}" for number in range(100)]
    bench.cluster.behind = set(names)
    await bench.resources.follow(WEB, watching.wanted(*names))
    bench.cluster.sync()
    assert await bench.drift.restore(WEB) == ()
    assert len(bench.cluster.probed) < 10


async def test_a_deletion_by_the_modules_own_hook_is_not_a_reason(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.hook_deletes(WEB, "a")
    assert await bench.after(1) == []
    assert await bench.drift.restore(WEB) == ()


async def test_a_hooks_deletion_counts_once(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.hook_deletes(WEB, "a")
    assert await bench.after(1) == []
    bench.cluster.put("a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]


@pytest.mark.parametrize("owner", ["db", ""], ids=["other module", "global hook"])
async def test_a_deletion_by_the_hook_of_somebody_else_is_a_reason(bench: Bench, owner: str) -> None:
    await bench.have(WEB, "a")
    bench.hook_deletes(owner, "a")
    assert await bench.after(1) == [WEB]


async def test_a_hooks_deletion_before_the_first_list_is_not_a_reason_either(bench: Bench) -> None:
    bench.hook_deletes(WEB, "a")
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    assert await bench.after(1) == []


async def test_while_helm_works_on_a_release_its_deletions_are_no_reason(bench: Bench) -> None:
    await bench.have(WEB, "a", "b")
    async with bench.drift.helm_at_work(WEB):
        bench.cluster.remove("a", "b")
        assert await bench.after(1) == []
        bench.cluster.put("a")
        await bench.resources.follow(WEB, watching.wanted("a"))
    assert await bench.after(10) == []


async def test_what_is_absent_after_helm_worked_is_healed(bench: Bench) -> None:
    await bench.have(WEB, "a")
    async with bench.drift.helm_at_work(WEB):
        bench.cluster.remove("a")
    assert await bench.after(drift.LAG) == [WEB]


async def test_a_run_that_came_to_nothing_is_asked_for_again(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    assert await bench.after(drift.RECHECK) == [WEB]
    bench.cluster.put("a")
    assert await bench.after(drift.RECHECK) == []


async def test_a_resource_that_is_removed_again_and_again_is_healed_more_and_more_seldom(
    bench: Bench,
) -> None:
    await bench.have(WEB, "a")
    for _ in range(drift_backoff.FREE):
        bench.cluster.remove("a")
        assert await bench.after(0.5) == [WEB]
        bench.cluster.put("a")
        bench.drift.restored_by_helm(WEB, ["ConfigMap addons/a"])
    bench.cluster.remove("a")
    assert await bench.after(0.5) == []
    assert bench.told[-1] == ("postponed 4.5", WEB, ("ConfigMap addons/a",))
    assert await bench.after(1) == []
    assert len([told for told in bench.told if told[0].startswith("postponed")]) == 1
    assert await bench.after(4) == [WEB]


async def test_nothing_of_a_forgotten_module_is_healed(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    bench.resources.unfollow(WEB)
    bench.drift.forget(WEB)
    assert await bench.after(100) == []


async def test_the_worker_looks_as_soon_as_a_watch_tells(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "SETTLE", 0.0)
    await bench.have(WEB, "a")
    worker = asyncio.create_task(bench.drift.work())
    await clocks.settle()
    bench.cluster.remove("a")
    await clocks.settle()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert bench.runs == [(WEB, drift.ACTIVATION)]


SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: other}
"""
MANIFEST = f"""\
---
# Source: web/templates/secret.yaml
{SECRET}---
# Source: web/templates/config.yaml
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {{name: a, labels: {{app: web}}}}
  data: {{password: p4ss, port: "1:30"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: role}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: b, namespace: far}}
"""


def api_error(status: int, message: str = "no") -> api_errors.ApiError:
    return api_errors.from_answer(
        paths.target("POST", "/api/v1/namespaces/x/configmaps"), status, b"%s" % message.encode()
    )


async def test_an_absent_object_is_restored_from_the_deployed_revision_as_helm_made_it(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(drift.SETTLE) == []
    ((way, body),) = bench.cluster.written
    assert way == "create /api/v1/namespaces/addons/configmaps"
    assert body["data"] == {"password": "p4ss", "port": "1:30"}
    assert body["metadata"] == {
        "name": "a",
        "labels": {"app": "web", "app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "addons"},
    }
    assert bench.told == [("restored", WEB, ("ConfigMap addons/a",))]
    assert await bench.after(100) == []


async def test_objects_of_other_namespaces_and_of_the_cluster_are_restored_in_their_order(
    bench: Bench,
) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST, is_server_side=True)
    far = watching.wanted("b", namespace="far") + watching.wanted("role", resource=watching.ROLE)
    await bench.resources.follow(WEB, far)
    bench.cluster.sync()
    assert await bench.after(1) == []
    assert [way for way, _ in bench.cluster.written] == [
        "apply /apis/rbac.authorization.k8s.io/v1/clusterroles/role",
        "apply /api/v1/namespaces/far/configmaps/b",
    ]


async def test_what_the_deployed_revision_has_not_is_left_alone(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(4, SECRET)
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == []
    assert (bench.cluster.written, bench.told) == ([], [])


async def test_a_broken_record_makes_a_run_that_says_why(bench: Bench) -> None:
    bench.cluster.record_error = helm_errors.ReleaseRecordError("it cannot be decoded")
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    assert bench.reasons == ["it cannot be decoded"]


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        pytest.param(api_error(403), 1, id="forbidden"),
        pytest.param(api_error(422), 1, id="refused"),
        pytest.param(api_error(403, "because it is being terminated"), 3, id="its namespace is going"),
        pytest.param(api_error(404), 3, id="its kind is not there"),
        pytest.param(api_error(503), 3, id="the server is in trouble"),
        pytest.param(api_errors.Unreachable("no answer"), 3, id="no answer"),
    ],
)
async def test_what_may_pass_is_waited_for_before_the_module_is_run(
    bench: Bench, error: api_errors.KubernetesError, tries: int
) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    bench.cluster.write_error = error
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    asked = [await bench.after(drift.LAG) for _ in range(tries)]
    assert asked == [[]] * (tries - 1) + [[WEB]]
    assert bench.reasons == [str(error)]


async def test_objects_of_a_definition_that_is_on_its_way_out_wait_for_its_end_without_a_run(
    bench: Bench,
) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    bench.cluster.write_error = api_error(
        403, "create not allowed while custom resource definition is terminating"
    )
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert [await bench.after(drift.LAG) for _ in range(20)] == [[]] * 20
    # It is gone, and not yet there again.
    bench.cluster.write_error = api_error(404)
    assert await bench.after(drift.LAG) == []
    bench.cluster.write_error = None
    assert await bench.after(drift.LAG) == []
    assert bench.told == [("restored", WEB, ("ConfigMap addons/a",))]


async def test_a_definition_that_never_goes_makes_a_run_after_a_minute(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    bench.cluster.write_error = api_error(
        403, "create not allowed while custom resource definition is terminating"
    )
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    runs = [await bench.after(drift.LAG) for _ in range(60)]
    assert runs == [[]] * 59 + [[WEB]]


async def test_while_somebody_elses_helm_is_at_work_nothing_is_restored(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST, is_busy=True)
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == []
    assert bench.cluster.written == []
    bench.cluster.record = release_types.Deployed(4, MANIFEST)
    await bench.after(drift.LAG)
    assert len(bench.cluster.written) == 1


async def test_an_object_that_somebody_put_back_meanwhile_is_none_the_worse(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    bench.cluster.write_error = api_errors.AlreadyExists(
        paths.target("POST", "/api/v1/namespaces/x/configmaps"), 409, "AlreadyExists", "there"
    )
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == []
    assert bench.told == []


async def test_ten_restorations_of_each_object_come_at_once(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    await bench.have(WEB, "a")
    for _ in range(drift_backoff.FREE):
        bench.cluster.remove("a")
        await bench.after(0.2)
    assert len(bench.cluster.written) == drift_backoff.FREE
    bench.cluster.remove("a")
    await bench.after(0.2)
    assert len(bench.cluster.written) == drift_backoff.FREE
    assert bench.told[-1][0].startswith("postponed")
    await bench.after(drift_backoff.FIRST_PAUSE)
    assert len(bench.cluster.written) == drift_backoff.FREE + 1


async def test_before_helm_begins_what_is_absent_is_restored(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    async with bench.drift.helm_at_work(WEB):
        assert await bench.drift.restore(WEB) == ()
    assert len(bench.cluster.written) == 1
    assert await bench.after(10) == []


async def test_a_restoration_and_helm_never_work_on_one_release_together(bench: Bench) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    bench.clock.now += 1
    bench.cluster.gate.clear()
    looking = asyncio.create_task(bench.drift.look())
    order: list[int] = []

    async def helm() -> None:
        async with bench.drift.helm_at_work(WEB):
            order.append(len(bench.cluster.written))

    await clocks.settle()
    working = asyncio.create_task(helm())
    await clocks.settle()
    assert order == []
    bench.cluster.gate.set()
    await asyncio.gather(looking, working)
    assert order == [1]


UNCHANGEABLE = release_types.Deployed(
    3, MANIFEST, unchangeable=frozenset({messages.ObjectName("ConfigMap", "a", None)})
)


async def test_what_helm_could_not_change_is_left_to_a_run_at_once_and_all_else_is_restored(
    bench: Bench,
) -> None:
    bench.cluster.record = UNCHANGEABLE
    await bench.have(WEB, "a")
    await bench.resources.follow(WEB, [*watching.wanted("a"), *watching.wanted("b", namespace="far")])
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    assert bench.hastened == [WEB]
    assert [body["metadata"]["name"] for _, body in bench.cluster.written] == ["b"]
    async with bench.drift.helm_at_work(WEB):
        assert await bench.drift.restore(WEB) == ("ConfigMap addons/a",)
        bench.cluster.put("a")
    assert await bench.after(100) == []
    # The next deletion is another matter.
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]


async def test_what_helm_did_not_make_anew_when_it_had_its_turn_comes_back_as_it_was(bench: Bench) -> None:
    bench.cluster.record = UNCHANGEABLE
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    async with bench.drift.helm_at_work(WEB):
        assert await bench.drift.restore(WEB) == ("ConfigMap addons/a",)
    assert bench.cluster.written == []
    assert await bench.after(drift.LAG) == []
    assert len(bench.cluster.written) == 1


async def test_a_run_that_does_not_come_to_helm_is_not_waited_for_without_end(bench: Bench) -> None:
    bench.cluster.record = UNCHANGEABLE
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    assert await bench.after(drift.PATIENCE / 2) == []
    assert bench.cluster.written == []
    assert await bench.after(drift.PATIENCE / 2) == []
    assert len(bench.cluster.written) == 1


async def test_once_a_definition_was_on_its_way_out_its_return_is_waited_for_without_a_run(
    bench: Bench,
) -> None:
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    bench.cluster.write_error = api_error(
        403, "create not allowed while custom resource definition is terminating"
    )
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == []
    bench.cluster.write_error = api_error(404)
    assert [await bench.after(drift.LAG) for _ in range(20)] == [[]] * 20


@pytest.mark.parametrize(
    ("message", "tries"),
    [
        pytest.param("the server could not find the requested resource", 60, id="definition"),
        pytest.param('namespaces "far" not found', 3, id="namespace"),
    ],
)
async def test_a_definition_that_comes_back_by_itself_is_waited_for_without_a_run(
    bench: Bench, message: str, tries: int
) -> None:
    bench.brought = {"configmaps."}
    bench.cluster.record = release_types.Deployed(3, MANIFEST)
    bench.cluster.write_error = api_error(404, message)
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    asked = [await bench.after(drift.LAG) for _ in range(tries)]
    assert asked == [[]] * (tries - 1) + [[WEB]]


def many(kind: str, api_version: str, *names: str) -> str:
    head = f"---\napiVersion: {api_version}\nkind: {kind}\nmetadata: "
    return "".join(f"{head}{{name: {name}}}\n" for name in names)


async def test_many_objects_are_restored_side_by_side_in_waves_and_with_few_questions(bench: Bench) -> None:
    maps = [f"a{number:02}" for number in range(76)]
    manifest = many("Deployment", "apps/v1", "web") + many("ConfigMap", "v1", *maps)
    bench.cluster.record = release_types.Deployed(3, manifest)
    await bench.resources.follow(
        WEB, [*watching.wanted("web", resource=watching.DEPLOYMENT), *watching.wanted(*maps)]
    )
    bench.cluster.sync()
    assert await bench.after(1) == []
    assert len(bench.cluster.written) == 77
    assert bench.cluster.most_at_once == restoring.AT_ONCE
    assert bench.cluster.written[-1][1]["kind"] == "Deployment", "what uses others comes last"
    assert (len(bench.cluster.probed), bench.cluster.records_read) == (5, 1)


async def test_what_disappears_next_does_not_wait_for_watches_to_tell_of_what_was_restored(
    bench: Bench,
) -> None:
    maps = [f"a{number:02}" for number in range(20)]
    bench.cluster.record = release_types.Deployed(3, many("ConfigMap", "v1", *maps))
    bench.cluster.is_late = True
    await bench.have(WEB, *maps)
    bench.cluster.remove(*maps[:7])
    assert await bench.after(drift.SETTLE) == []
    bench.cluster.remove(*maps[7:])
    assert await bench.after(drift.SETTLE) == []
    assert [body["metadata"]["name"] for _, body in bench.cluster.written] == maps
    bench.cluster.behind.clear()
    await bench.after(drift.LAG)
    assert len(bench.cluster.written) == 40, "what watches never tell of is looked at again"


async def test_a_defect_at_one_module_is_told_and_tried_again_and_holds_up_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.have(WEB, "a")
    await bench.have(DB, "b")
    original, is_there = bench.resources.probe.exists, True

    async def exists(resource: Any, namespace: Any, name: str) -> bool | None:  # noqa: ANN401 - passed on
        if name == "a" and is_there:
            raise TypeError("a bug")
        return await original(resource, namespace, name)

    monkeypatch.setattr(bench.resources.probe, "exists", exists)
    bench.cluster.remove("a", "b")
    assert await bench.after(1) == [DB]
    assert bench.defects == ["drift: a bug"]
    is_there = False
    assert sorted(await bench.after(drift.RECHECK)) == [DB, WEB]

"""Module objects in a fake API server: what is written when, and what trouble does."""

import asyncio
import pathlib
from typing import Any

import pytest
from msgspec import structs

from addon_operator.engine import state
from addon_operator.helm import release_types
from addon_operator.kernel import clock, names
from addon_operator.kube.client import client
from addon_operator.kube.objects import events
from addon_operator.modules import model, release
from addon_operator.status import module_status
from addon_operator.status import module_status_writer as writing
from tests.support import api_server, logs
from tests.support.api_server import Answer, Asked

COLLECTION = "/apis/addon-operator.io/v1alpha1/namespaces/addons/modules"
KIND = "/apis/addon-operator.io/v1alpha1"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modules.addon-operator.io"
EVENTS = "/api/v1/namespaces/addons/events"
MODULES = ("web", "api", "gone")
Status = state.ModuleStatus
Object = dict[str, Any]


class Cluster:
    """A cluster that holds Modules, as far as the writer can tell the difference."""

    def __init__(self, server: api_server.ApiServer) -> None:
        self.server = server
        self.objects: dict[str, Object] = {}
        self.trouble: Answer | None = None
        """Instead of every answer about Modules."""
        self.is_defined = True
        self.status_written = asyncio.Event()
        server.on("GET", COLLECTION, self._list)
        server.on("PATCH", CRD, self._define)
        server.on("POST", EVENTS, lambda asked: Answer(asked.body, 201))
        for name in MODULES:
            server.on("PATCH", f"{COLLECTION}/{name}", self._apply)
            server.on("PATCH", f"{COLLECTION}/{name}/status", self._apply_status)
            server.on("DELETE", f"{COLLECTION}/{name}", self._delete)

    def add(self, name: str, labels: Object = module_status.LABELS, status: Object | None = None) -> None:
        self.objects[name] = {
            "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1, "labels": labels},
            "status": status or {},
        }

    @property
    def writes(self) -> list[str]:
        """What was asked for but lists, shortened; forgets it."""
        found = [request.replace(COLLECTION, "") for request in self.server.requests if "GET" not in request]
        self.server.asked.clear()
        return found

    def events(self) -> list[tuple[str, str, str]]:
        bodies = [asked.body for asked in self.server.asked if asked.path == EVENTS]
        return [
            (body["involvedObject"]["name"], body["involvedObject"]["uid"], body["reason"]) for body in bodies
        ]

    def _refused(self) -> Answer | None:
        return self.trouble if self.is_defined else api_server.NOT_SERVED

    def _list(self, _: Asked) -> Answer:
        items = list(self.objects.values())
        return self._refused() or Answer({"items": items, "metadata": {"resourceVersion": "1"}})

    def _define(self, asked: Asked) -> Answer:
        self.is_defined = True
        return Answer(asked.body)

    def _apply(self, asked: Asked) -> Answer:
        name = asked.body["metadata"]["name"]
        refused = self._refused()
        if refused is None:
            status = self.objects.get(name, {}).get("status")
            assert asked.body["metadata"]["namespace"] == "addons"
            self.add(name, asked.body["metadata"]["labels"], status)
        return refused or Answer(self.objects[name])

    def _apply_status(self, asked: Asked) -> Answer:
        name = asked.body["metadata"]["name"]
        if self._refused() or name not in self.objects:
            return self._refused() or api_server.status(404, "NotFound")
        self.objects[name]["status"] = asked.body["status"]
        self.status_written.set()
        return Answer(self.objects[name])

    def _delete(self, asked: Asked) -> Answer:
        assert asked.body["preconditions"]["uid"] == f"uid-{asked.path.rpartition('/')[2]}"
        self.objects.pop(asked.path.rpartition("/")[2])
        return Answer({})


@pytest.fixture
def cluster(server: api_server.ApiServer) -> Cluster:
    return Cluster(server)


@pytest.fixture
def recorder(kube: client.KubeClient, pauses: api_server.Pauses) -> events.EventWriter:
    return events.EventWriter(kube, pauses)


@pytest.fixture
def writer(
    kube: client.KubeClient, recorder: events.EventWriter, pauses: api_server.Pauses, log: logs.Lines
) -> writing.ModuleStatusWriter:
    return writing.ModuleStatusWriter(
        kube, recorder, "addons", log, known=lambda: ["web", "api"], time=pauses
    )


def module(
    name: str = "web", status: state.ModuleStatus = Status.READY, error: str = ""
) -> state.ModuleState:
    found = model.Module(names.ModuleName(name), 10, pathlib.Path(name))
    return state.ModuleState(found, status, last_error=error, last_error_without_values=error)


def outcome(revision: int) -> release_types.ReleaseOutcome:
    return release_types.ReleaseOutcome(
        release_types.ReleaseAction.UPGRADED, "why", revision, release.Checksum(f"sum{revision}")
    )


async def test_a_module_gets_its_object_and_then_its_status(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    writer.module_changed(module())
    assert await writer.turn() == 0
    assert cluster.writes == ["PATCH /web", "PATCH /web/status"]
    stored = cluster.objects["web"]
    assert stored["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "addon-operator"}
    assert stored["status"]["state"] == "Ready"
    assert stored["status"]["observedGeneration"] == 1


async def test_many_changes_are_one_write_and_none_is_none(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    await writer.turn()
    web = module(status=Status.RUNNING)
    for status in (Status.RUNNING, Status.FAILED, Status.RUNNING, Status.READY):
        web.status = status
        writer.module_changed(web)
    await writer.turn()
    assert cluster.writes == ["PATCH /web", "PATCH /web/status"]
    writer.module_changed(web)
    await writer.turn()
    assert cluster.writes == []


async def test_the_release_is_shown(writer: writing.ModuleStatusWriter, cluster: Cluster) -> None:
    web = module()
    writer.release_ensured(web.module.name, outcome(3))
    writer.module_changed(web)
    await writer.turn()
    assert cluster.objects["web"]["status"]["release"] == {"revision": 3, "checksum": "sum3"}
    writer.release_ensured(web.module.name, outcome(4))
    await writer.turn()
    assert cluster.objects["web"]["status"]["release"]["revision"] == 4
    web.status = Status.DISABLED
    writer.module_changed(web)
    await writer.turn()
    assert "release" not in cluster.objects["web"]["status"]


async def test_a_change_while_its_object_is_written_is_written_next(
    writer: writing.ModuleStatusWriter, cluster: Cluster, server: api_server.ApiServer
) -> None:
    web = module(status=Status.RUNNING)
    cluster.add("web")
    apply_status = cluster._apply_status

    def overtaken(asked: Asked) -> Answer:
        server.on("PATCH", f"{COLLECTION}/web/status", apply_status)
        web.status = Status.READY
        writer.module_changed(web)
        return apply_status(asked)

    server.on("PATCH", f"{COLLECTION}/web/status", overtaken)
    writer.module_changed(web)
    await writer.turn()
    assert cluster.objects["web"]["status"]["state"] == "Running"
    await writer.turn()
    assert cluster.objects["web"]["status"]["state"] == "Ready"


async def test_objects_of_modules_that_are_gone_are_deleted_but_not_what_somebody_else_made(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    cluster.add("web")
    cluster.add("gone")
    cluster.add("foreign", labels={})
    await writer.turn()
    assert cluster.writes == ["DELETE /gone"]
    assert set(cluster.objects) == {"web", "foreign"}


async def test_the_object_of_a_module_whose_directory_goes_away_is_deleted(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    writer.module_changed(module())
    await writer.turn()
    writer.module_gone(names.ModuleName("web"))
    await writer.turn()
    assert set(cluster.objects) == set()
    writer.module_changed(module())
    await writer.turn()
    assert set(cluster.objects) == {"web"}


async def test_an_object_that_somebody_else_made_is_kept_from_then_on(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    cluster.add("web", labels={})
    writer.module_changed(module())
    await writer.turn()
    assert cluster.writes == ["PATCH /web", "PATCH /web/status"]
    assert cluster.objects["web"]["metadata"]["labels"] == module_status.LABELS


async def test_what_an_earlier_operator_reported_is_kept_until_there_is_news(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    before = {"release": {"revision": 7, "checksum": "theirs"}, "lastRun": "2026-01-01T00:00:00Z"}
    cluster.add("web", status=before)
    writer.module_changed(module(status=Status.PENDING))
    await writer.turn()
    assert before.items() <= cluster.objects["web"]["status"].items()


async def test_what_is_shown_has_the_time_of_a_change_before_that_is_written(
    writer: writing.ModuleStatusWriter, cluster: Cluster, pauses: api_server.Pauses
) -> None:
    failed = module(status=Status.FAILED, error="it broke")
    writer.module_changed(failed)
    await writer.turn()
    await pauses.sleep(60.0)
    writer.module_changed(module())
    assert cluster.objects["web"]["status"]["state"] == "Failed"
    assert (shown := writer.shown("web")) is not None
    assert shown["since"]["Ready"] == clock.rfc3339(pauses.time())


@pytest.mark.parametrize("how", ["deleted", "changed"])
async def test_what_somebody_did_to_an_object_is_put_right(
    writer: writing.ModuleStatusWriter, cluster: Cluster, pauses: api_server.Pauses, how: str
) -> None:
    writer.module_changed(module())
    await writer.turn()
    if how == "deleted":
        del cluster.objects["web"]
    else:
        cluster.add("web", status={"state": "Failed"})
    await writer.turn()
    pauses.now += writing.RESYNC_SECONDS
    await writer.turn()
    assert cluster.objects["web"]["status"]["state"] == "Ready"


async def test_an_object_that_is_missed_while_its_status_is_written_is_made_again(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    web = module(status=Status.RUNNING)
    writer.module_changed(web)
    await writer.turn()
    del cluster.objects["web"]
    web.status = Status.READY
    writer.module_changed(web)
    assert await writer.turn() == 0
    assert cluster.objects["web"]["status"]["state"] == "Ready"


@pytest.mark.parametrize(
    "trouble",
    [api_server.status(403, "Forbidden"), api_server.status(405, "MethodNotAllowed")],
    ids=["forbidden", "terminating"],
)
async def test_trouble_is_one_warning_and_nothing_is_forgotten(
    writer: writing.ModuleStatusWriter, cluster: Cluster, log: logs.Lines, trouble: Answer
) -> None:
    cluster.trouble = trouble
    writer.module_changed(module())
    assert [await writer.turn() for _ in range(3)] == [1.0, 2.0, 4.0]
    assert len(log.warnings) == 1
    cluster.trouble = None
    assert await writer.turn() == 0
    assert cluster.objects["web"]["status"]["state"] == "Ready"
    assert log.lines[-1] == ("info", "the status of modules is shown as Module objects")


async def test_a_definition_that_somebody_removed_is_applied_again(
    writer: writing.ModuleStatusWriter, cluster: Cluster, pauses: api_server.Pauses
) -> None:
    writer.module_changed(module())
    await writer.turn()
    cluster.is_defined = False
    cluster.objects.clear()
    pauses.now += writing.RESYNC_SECONDS
    assert await writer.turn() == 0
    assert set(cluster.objects) == {"web"}


async def test_without_the_definition_and_the_right_to_apply_it_there_is_one_warning(
    writer: writing.ModuleStatusWriter, cluster: Cluster, server: api_server.ApiServer, log: logs.Lines
) -> None:
    cluster.is_defined = False
    server.on("PATCH", CRD, api_server.status(403, "Forbidden"))
    await writer.prepare()
    writer.module_changed(module())
    assert [await writer.turn() for _ in range(2)] == [1.0, 2.0]
    assert len(log.warnings) == 1
    assert "customresourcedefinitions" in log.warnings[0]


async def test_a_definition_of_an_older_version_that_stays_is_one_warning(
    writer: writing.ModuleStatusWriter, cluster: Cluster, server: api_server.ApiServer, log: logs.Lines
) -> None:
    cluster.is_defined = False
    server.on("PATCH", CRD, api_server.status(403, "Forbidden"))
    server.on("GET", KIND, {"resources": [{"name": "modules", "namespaced": False}]})
    await writer.prepare()
    writer.module_changed(module())
    assert [await writer.turn() for _ in range(3)] == [1.0, 2.0, 4.0]
    (warning,) = log.warnings
    assert "run 'kubectl delete crd modules.addon-operator.io'" in warning
    server.on("PATCH", CRD, cluster._define)
    assert await writer.turn() == 0
    assert cluster.objects["web"]["status"]["state"] == "Ready"


async def test_a_definition_that_others_applied_is_enough(
    writer: writing.ModuleStatusWriter, cluster: Cluster, server: api_server.ApiServer, log: logs.Lines
) -> None:
    server.on("PATCH", CRD, api_server.status(403, "Forbidden"))
    await writer.prepare()
    writer.module_changed(module())
    assert await writer.turn() == 0
    assert log.warnings == []


async def test_the_definition_is_waited_for_until_it_is_served(
    writer: writing.ModuleStatusWriter,
    cluster: Cluster,
    server: api_server.ApiServer,
    pauses: api_server.Pauses,
) -> None:
    missing = api_server.NOT_SERVED
    server.on("GET", COLLECTION, missing, missing, cluster._list)
    await writer.prepare()
    assert len(pauses.seconds) == 2


async def test_a_status_that_is_refused_does_not_hold_up_the_others(
    writer: writing.ModuleStatusWriter, cluster: Cluster, server: api_server.ApiServer, log: logs.Lines
) -> None:
    server.on("PATCH", f"{COLLECTION}/web/status", api_server.status(422, "Invalid"))
    writer.module_changed(module("web"))
    writer.module_changed(module("api"))
    assert await writer.turn() == 0
    assert cluster.objects["api"]["status"]["state"] == "Ready"
    assert "module web" in log.warnings[0]


async def test_events_are_about_the_object(
    writer: writing.ModuleStatusWriter, recorder: events.EventWriter, cluster: Cluster
) -> None:
    web = module(status=Status.PENDING)
    for status, error in (
        (Status.PENDING, ""),
        (Status.FAILED, "no"),
        (Status.RUNNING, "no"),
        (Status.READY, ""),
    ):
        web.status, web.last_error_without_values = status, error
        writer.module_changed(web)
    await writer.turn()
    await recorder.flush()
    assert cluster.events() == [("web", "uid-web", reason) for reason in ("Enabled", "Failed", "Ready")]


async def test_a_restart_is_not_an_event(
    writer: writing.ModuleStatusWriter, recorder: events.EventWriter, cluster: Cluster
) -> None:
    conditions = [{"type": "Ready", "status": "True", "reason": "RunSucceeded"}]
    cluster.add("web", status={"state": "Ready", "conditions": conditions})
    web = module(status=Status.PENDING)
    for status in (Status.PENDING, Status.RUNNING, Status.READY):
        web.status = status
        writer.module_changed(web)
        await writer.turn()
    await recorder.flush()
    assert cluster.events() == []


async def test_it_writes_by_itself_once_something_changes(
    writer: writing.ModuleStatusWriter, cluster: Cluster, pauses: api_server.Pauses
) -> None:
    running = asyncio.create_task(writer.run())
    writer.module_changed(module())
    async with asyncio.timeout(60):
        await cluster.status_written.wait()
    assert writing.RETRIES.first not in pauses.seconds
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_after_a_quiet_time_some_changes_are_shown_at_once_and_then_one_in_a_while(
    writer: writing.ModuleStatusWriter, cluster: Cluster, pauses: api_server.Pauses
) -> None:
    running = asyncio.create_task(writer.run())

    async def change(status: state.ModuleStatus) -> float:
        """Return after how many seconds it is shown."""
        began = pauses.now
        cluster.status_written.clear()
        writer.module_changed(module(status=status))
        async with asyncio.timeout(60):
            await cluster.status_written.wait()
        return pauses.now - began

    try:
        took = [await change(each) for each in (Status.RUNNING, Status.READY) * 4]
        assert took[1] <= 2 * writing.GATHER_SECONDS
        assert sum(took) >= 5 * writing.PAUSE_SECONDS, "however often it changes"
        assert max(took) <= writing.PAUSE_SECONDS + 2 * writing.GATHER_SECONDS
        await pauses.sleep(10.0)
        assert await change(Status.RUNNING) <= 2 * writing.GATHER_SECONDS
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_the_last_changes_are_written_at_the_end_unless_that_never_worked(
    writer: writing.ModuleStatusWriter, cluster: Cluster
) -> None:
    await writer.finish()
    assert cluster.server.asked == []
    await writer.turn()
    writer.module_changed(module())
    await writer.finish()
    assert cluster.objects["web"]["status"]["state"] == "Ready"


async def test_what_a_release_took_over_is_an_event(
    writer: writing.ModuleStatusWriter, recorder: events.EventWriter, cluster: Cluster
) -> None:
    web = module()
    writer.release_ensured(web.module.name, structs.replace(outcome(1), adopted=("ConfigMap web",)))
    writer.module_changed(web)
    await writer.turn()
    await recorder.flush()
    assert ("web", "uid-web", "TookOwnership") in cluster.events()


async def test_a_defect_at_one_object_loses_none_and_holds_up_no_other(
    writer: writing.ModuleStatusWriter, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await writer.turn()
    original = module_status.document

    def document(of: state.ModuleState, *more: Any) -> module_status.ModuleStatusDocument:  # noqa: ANN401 - passed on
        if of.module.name == "web":
            raise TypeError("a bug")
        return original(of, *more)

    with monkeypatch.context() as patched:
        patched.setattr(module_status, "document", document)
        writer.module_changed(module("web"))
        writer.module_changed(module("api"))
        for _ in range(2):
            with pytest.raises(TypeError):
                await writer.turn()
        assert cluster.objects["api"]["status"]["state"] == "Ready"
    await writer.turn()
    assert cluster.objects["web"]["status"]["state"] == "Ready"

"""The debug endpoint, asked over its socket."""

import asyncio
import contextlib
import os
import pathlib
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import orjson
import pytest
import structlog
import yaml
from msgspec import structs

from addon_operator.debug import debug_site, debug_socket
from addon_operator.engine import intents, module_requests, state
from addon_operator.engine.hooks import running_hooks
from addon_operator.kernel import errors
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.objects import module_objects, suspension
from addon_operator.modules import module_config, windows
from addon_operator.process.children import children
from addon_operator.settings import settings
from tests.support import programs
from tests.unit.debug import inspected


@pytest.fixture
def place() -> Iterator[pathlib.Path]:
    # Shorter than the directories of pytest: a socket's path has a limit.
    with tempfile.TemporaryDirectory(prefix="ao-") as directory:
        yield pathlib.Path(directory) / "debug.socket"


class Log:
    """A log that remembers warnings and defects."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.said: list[str] = []
        self.told = asyncio.Event()
        self.defects: list[BaseException | None] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)

    def info(self, text: str) -> None:
        self.said.append(text)
        self.told.set()

    def exception(self, text: str, **_: object) -> None:
        self.defects.append(sys.exc_info()[1])


@pytest.fixture
def log() -> Any:  # noqa: ANN401  # in place of structlog's
    return Log()


@pytest.fixture
def world() -> inspected.World:
    return inspected.make()


def settings_for(path: pathlib.Path, origin: str = "flag --debug-unix-socket") -> settings.Settings:
    return settings.Settings(
        namespace="addons", debug_unix_socket=path, origins={"debug_unix_socket": origin}
    )


@pytest.fixture
async def starting(
    place: pathlib.Path,
    world: inspected.World,
    log: Any,  # noqa: ANN401  # in place of structlog's
) -> AsyncIterator[aiohttp.ClientSession]:
    async with (
        debug_site.serving(settings_for(place), world.api, log),
        aiohttp.ClientSession("http://unix", connector=aiohttp.UnixConnector(str(place))) as opened,
    ):
        yield opened


@pytest.fixture
async def session(starting: aiohttp.ClientSession, world: inspected.World) -> aiohttp.ClientSession:
    world.api.serve(world.engine)
    return starting


async def get(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def json_at(session: aiohttp.ClientSession, path: str) -> Any:  # noqa: ANN401  # JSON
    status, text = await get(session, path)
    assert status == 200, text
    return orjson.loads(text)


async def error_at(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    status, text = await get(session, path)
    document = orjson.loads(text)
    assert list(document) == ["error"]
    return status, document["error"]


async def test_the_endpoint_lives_before_the_engine_is_there(starting: aiohttp.ClientSession) -> None:
    assert await get(starting, "/") == (200, "debug endpoint is alive\n")
    assert (await json_at(starting, "/config/list.json"))[0]["value"] == "info"


async def test_what_needs_the_engine_says_what_the_operator_does(starting: aiohttp.ClientSession) -> None:
    paths = ["/module/list.json", "/queue/main.json", "/module/web/values.json", "/global/list.json"]
    told = (503, "the operator is starting; ask again in a moment")
    assert {path: await error_at(starting, path) for path in paths} == dict.fromkeys(paths, told)


async def test_modules_are_listed_as_the_go_operator_does_and_in_full(session: aiohttp.ClientSession) -> None:
    document = await json_at(session, "/module/list.json")
    assert document["enabledModules"] == ["kube-dns", "web"]
    assert [row["name"] for row in document["modules"]] == ["kube-dns", "web"]
    assert document["modules"][1]["order"] == 20


async def test_what_hooks_gave_is_told_whole_to_those_who_ask_for_sensitive_values(
    session: aiohttp.ClientSession,
) -> None:
    status, text = await error_at(session, "/hook-values.json")
    assert (status, inspected.SECRET in text) == (400, False)
    assert text.endswith("ask with ?showSensitive=true")
    found = await json_at(session, "/hook-values.json?showSensitive=true")
    assert (found["namespace"], found["server"]) == inspected.HOME
    assert found["global"] == {
        "patches": [[{"op": "add", "path": "/global/zone", "value": "a"}]], "switches": {}
    }  # fmt: skip
    assert found["modules"]["web"]["patches"] == [
        [{"op": "add", "path": "/web/password", "value": inspected.SECRET}]
    ]


async def test_snapshots_stand_by_hook_and_binding(session: aiohttp.ClientSession) -> None:
    document = await json_at(session, "/module/web/snapshots.json")
    assert document["pods.sh"]["pods"] == [
        {"object": {"kind": "Pod", "metadata": {"name": "one"}}, "filterResult": "one"}
    ]
    assert document["pods.sh"]["secrets"] == [
        {"object": {"kind": "Secret", "data": {"key": "***"}}, "filterResult": "***"}
    ]
    assert await json_at(session, "/module/kube-dns/snapshots.json") == {}
    assert await json_at(session, "/global/snapshots.json") == document


SENSITIVE = [
    "/global/values.json",
    "/global/config.json",
    "/global/snapshots.json",
    "/module/web/values.json",
    "/module/web/patches.json",
    "/module/web/snapshots.json",
]


@pytest.mark.parametrize("format_", ["json", "yaml", "text"])
async def test_what_is_sensitive_is_hidden_unless_it_is_asked_for(
    session: aiohttp.ClientSession, format_: str
) -> None:
    paths = [path.replace(".json", f".{format_}") for path in SENSITIVE]
    texts = {
        query: {path: (await get(session, f"{path}{query}"))[1] for path in paths}
        for query in ("", "?showSensitive=true")
    }
    shown = {
        query: [path for path, text in found.items() if inspected.SECRET in text]
        for query, found in texts.items()
    }
    assert shown == {"": [], "?showSensitive=true": paths}


async def test_queues_are_shown_with_their_failing_head(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    await inspected.fail_a_task(world)
    main = await json_at(session, "/queue/main.json")
    assert (main["name"], main["tasksCount"], main["headTries"]) == ("main", 1, 1)
    assert main["tasks"][0]["lastError"] == "the chart is broken"
    listed = await json_at(session, "/queue/list.json")
    assert listed["active"] == [main]
    assert listed["empty"] == []
    assert listed["summary"]["totalTasks"] == 1
    with_empty = await json_at(session, "/queue/list.json?showEmpty=true")
    assert [row["name"] for row in with_empty["empty"]] == ["idle"]


async def test_text_is_yaml_that_a_terminal_shows(session: aiohttp.ClientSession) -> None:
    assert await get(session, "/module/web/config.text") == (200, "size: 2\n")
    for path in ["/module/list", "/queue/main", "/queue/list", "/config/list"]:
        async with session.get(f"{path}.text") as answer:
            assert (path, answer.content_type) == (path, "text/plain")
            assert (path, yaml.safe_load(await answer.text())) == (
                path,
                await json_at(session, f"{path}.json"),
            )


async def test_yaml_says_the_same_as_json(session: aiohttp.ClientSession) -> None:
    for path in ["/module/list", "/queue/main", "/module/web/values", "/global/patches", "/config/list"]:
        async with session.get(f"{path}.yaml") as answer:
            assert (path, answer.content_type) == (path, "application/yaml")
            told = yaml.safe_load(await answer.text())
            assert (path, told) == (path, await json_at(session, f"{path}.json"))


async def test_a_module_is_rendered_or_compared(session: aiohttp.ClientSession) -> None:
    assert await get(session, "/module/web/render") == (200, "manifest of web, sensitive: False\n")
    assert await get(session, "/module/web/render?diff=true&showSensitive=true&debug=true") == (
        200,
        "diff of web, sensitive: True\n",
    )


async def test_an_error_of_helm_is_reported(session: aiohttp.ClientSession, world: inspected.World) -> None:
    world.renderer.error = errors.ModuleError("web", "the chart is broken")
    assert await error_at(session, "/module/web/render") == (500, "module web: the chart is broken")


async def test_an_unknown_module_is_reported_with_the_nearest_name(session: aiohttp.ClientSession) -> None:
    paths = ["values.json", "config.json", "patches.json", "snapshots.json", "render"]
    told = (404, "there is no module 'kube-dsn'; did you mean 'kube-dns'?")
    found = {path: await error_at(session, f"/module/kube-dsn/{path}") for path in paths}
    assert found == dict.fromkeys(paths, told)


async def test_a_module_may_be_named_by_its_values_key(session: aiohttp.ClientSession) -> None:
    assert await json_at(session, "/module/kubeDns/values.json") == {}


async def test_global_is_not_a_module(session: aiohttp.ClientSession) -> None:
    status, text = await error_at(session, "/module/global/values.json")
    assert status == 404
    assert "addon-operator global" in text


async def set_level(session: aiohttp.ClientSession, **form: str) -> tuple[int, Any]:
    async with session.post("/config/set", data=form) as answer:
        return answer.status, await answer.json()


WRONG_CHANGES: list[tuple[dict[str, str], str]] = [
    ({"name": "log.level"}, "'value' is missing"),
    ({"value": "debug"}, "'name' is missing"),
    ({"name": "log.levle", "value": "debug"}, "did you mean 'log.level'?"),
    ({"name": "log.level", "value": "loud"}, "is not a level"),
    ({"name": "log.level", "value": "debug", "duration": "soon"}, "invalid duration"),
    ({"name": "log.level", "value": "debug", "duration": "-1s"}, "must be more than 0"),
]


async def test_a_wrong_change_is_refused(session: aiohttp.ClientSession, world: inspected.World) -> None:
    for form, part in WRONG_CHANGES:
        status, document = await set_level(session, **form)
        assert (form, status) == (form, 400)
        assert part in document["error"]
    assert world.levels == []


async def post(session: aiohttp.ClientSession, path: str, **form: str) -> tuple[int, Any]:
    async with session.post(path, data=form or None) as answer:
        return answer.status, await answer.json()


async def test_a_module_is_run_when_somebody_asks(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    status, row = await post(session, "/module/web/run")
    assert (status, row["name"]) == (200, "web")
    assert world.inbox.get_nowait() == intents.RunWanted(inspected.WEB, "Command", at_once=True)


async def test_a_run_that_is_waited_for_is_one_that_begins_after_the_question(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    world.states.mark(inspected.WEB, state.ModuleStatus.RUNNING)
    asked = asyncio.ensure_future(post(session, "/module/web/run?wait=true"))
    await world.inbox.get()
    module = world.states[inspected.WEB]
    for end, status in enumerate((state.ModuleStatus.READY, state.ModuleStatus.FAILED), start=1):
        await asyncio.sleep(3 * module_requests.LOOK_SECONDS)
        assert not asked.done()
        module.runs = end
        world.states.mark(inspected.WEB, status, "no such image" if end == 2 else "")
    _, row = await asked
    assert (row["state"], row["lastError"]) == ("Failed", "no such image")


async def test_only_what_waits_for_another_try_is_tried_again(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    assert (await post(session, "/module/web/retry"))[0] == 200
    assert world.inbox.get_nowait() == intents.RetryWanted(inspected.WEB)
    status, document = await post(session, "/module/kube-dns/retry")
    assert status == 409
    assert "nothing of it waits for another try" in document["error"]
    assert world.inbox.empty()


async def test_a_disabled_module_is_not_run(session: aiohttp.ClientSession, world: inspected.World) -> None:
    world.states.enabled = (inspected.KUBE_DNS,)
    status, document = await post(session, "/module/web/run")
    assert status == 409
    assert document["error"].startswith("module web is disabled (")
    assert (await post(session, "/module/wbe/run"))[0] == 404
    assert world.inbox.empty()


async def test_a_module_is_suspended_in_the_cluster_and_for_a_time(
    session: aiohttp.ClientSession, world: inspected.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[dict[str, str | None]] = []

    async def annotate(
        _: client.KubeClient, namespace: str, name: str, annotations: dict[str, str | None]
    ) -> dict[str, object]:
        assert (namespace, name) == ("addons", "web")
        written.append(annotations)
        if annotations[suspension.SUSPENDED] == "refused":
            raise api_errors.Unreachable("nobody answers")
        if annotations[suspension.SUSPENDED] != "unseen":
            # As the watch of annotations does.
            world.states.suspend(inspected.WEB, suspension.read(known(annotations), 0.0))
        return {}

    def known(annotations: dict[str, str | None]) -> dict[str, str]:
        return {key: value for key, value in annotations.items() if value is not None}

    monkeypatch.setattr(module_objects, "annotate", annotate)
    status, told = await post(session, "/module/web/suspend", reason="new disks", by="me", **{"for": "2h"})
    assert (status, told["name"]) == (200, "web")
    assert told["suspended"].startswith("suspended: new disks (by me, since ")
    assert all(written[0].values())
    world.states.suspend(inspected.WEB, None)
    status, told = await post(session, "/module/web/suspend", reason="refused")
    assert (status, told["error"]) == (
        409,
        "that could not be written to the Module object addons/web: nobody answers",
    )
    assert (await post(session, "/module/web/suspend"))[0] == 400
    assert (await post(session, "/module/web/suspend", reason="x", **{"for": "soon"}))[0] == 400
    assert (await post(session, "/module/web/resume"))[0] == 409
    monkeypatch.setattr(module_requests, "SEEN_SECONDS", 0.02)
    status, told = await post(session, "/module/web/suspend", reason="unseen")
    assert (status, told["error"].partition(" within ")[0]) == (
        409,
        "that is written to the Module object addons/web, but this operator has not taken it in",
    )
    world.states.suspend(inspected.WEB, suspension.Suspension("new disks", 1.0, "alice"))
    status, told = await post(session, "/module/web/suspend", reason="x")
    assert (status, told["error"]) == (
        409,
        (
            "module web is already suspended: new disks (by alice, since 1970-01-01T00:00:01Z); "
            "ask whoever did that, or replace it with --replace"
        ),
    )
    assert (await post(session, "/module/web/suspend", reason="x", replace="true"))[0] == 200
    assert await post(session, "/module/web/resume") == (200, {"name": "web"})
    assert written[-1] == dict.fromkeys(suspension.ALL)


def hold(world: inspected.World, *, is_removal: bool = False) -> None:
    held = windows.HeldBack("upgrade to revision 8", 1000.0, 500.0, is_removal)
    world.states.hold_back(inspected.WEB, held)


async def test_a_module_is_run_past_its_windows_when_somebody_asks(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    hold(world)
    status, row = await post(session, "/module/web/run?now=true")
    assert (status, row["heldBack"]["what"]) == (200, "upgrade to revision 8")
    assert row["heldBack"]["until"] == "1970-01-01T00:16:40Z"
    wanted = intents.RunWanted(inspected.WEB, "Command", at_once=True, past_windows=True)
    assert world.inbox.get_nowait() == wanted


async def test_a_disabled_module_is_removed_past_its_windows_and_that_can_be_waited_for(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    world.states.enabled = (inspected.KUBE_DNS,)
    hold(world, is_removal=True)
    world.states.mark(inspected.WEB, state.ModuleStatus.DELETING, "")
    assert (await post(session, "/module/web/run"))[0] == 409
    asked = asyncio.ensure_future(post(session, "/module/web/run?now=true&wait=true"))
    assert (await world.inbox.get()) == intents.RunWanted(
        inspected.WEB, "Command", at_once=True, past_windows=True
    )
    await asyncio.sleep(3 * module_requests.LOOK_SECONDS)
    assert not asked.done()
    world.states.mark(inspected.WEB, state.ModuleStatus.DISABLED, "")
    assert (await asked)[1]["state"] == "Disabled"


async def test_a_removal_is_not_done_before_those_that_come_first(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    needs = module_config.Requirements(modules=(inspected.WEB,))
    config = module_config.ModuleConfig(requires=needs)
    world.states[inspected.KUBE_DNS].module = structs.replace(
        world.states[inspected.KUBE_DNS].module, config=config
    )
    world.states.enabled = ()
    hold(world, is_removal=True)
    world.states.hold_back(inspected.KUBE_DNS, windows.HeldBack("removal", 1000.0, is_removal=True))
    status, document = await post(session, "/module/web/run?now=true")
    assert status == 409
    assert "comes after that of kube-dns, which waits, too" in document["error"]


async def test_what_waits_for_a_window_is_a_difference_below_a_line_that_says_until_when(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    status, text = await get(session, "/module/web/diff?pending=true")
    assert (status, text) == (200, "Nothing is held back.\n")
    hold(world)
    _, text = await get(session, "/module/web/diff?pending=true")
    assert text == (
        "waits for a window, which opens at 1970-01-01T00:16:40Z: upgrade to revision 8\n"
        "the difference of web\n"
    )
    status, text = await get(session, "/module/web/diff")
    assert status == 400
    assert "ask with ?pending=true" in text


async def test_hooks_that_run_are_listed_and_one_is_ended(
    session: aiohttp.ClientSession, world: inspected.World
) -> None:
    assert (await get(session, "/hooks/running.json"))[0] == 503, "no engine has any yet"
    running = running_hooks.RunningHooks(programs.programs())
    world.api.show_running(running)
    hangs = asyncio.create_task(running.run(["sleep", "1000"], env=dict(os.environ)))
    await asyncio.sleep(0)
    (row,) = orjson.loads((await get(session, "/hooks/running.json"))[1])
    assert row["command"] == ["sleep", "1000"]
    for is_ended in (True, False):
        async with session.post(f"http://o/hooks/running/{row['id']}/end") as answer:
            assert await answer.json() == {"ended": is_ended}
        await asyncio.wait([hangs])
    assert isinstance(hangs.exception(), children.ChildEndedError)


async def test_an_operator_says_where_it_works(session: aiohttp.ClientSession) -> None:
    _, text = await get(session, "/operator.json")
    assert orjson.loads(text) == {"namespace": inspected.HOME[0], "server": inspected.HOME[1]}


async def test_all_paths_are_discovered(session: aiohttp.ClientSession) -> None:
    _, text = await get(session, "/discovery")
    lines = text.splitlines()
    assert "GET /module/{name}/render" in lines
    assert "GET /queue/list.{format}" in lines
    assert "POST /config/set" in lines
    assert "POST /module/{name}/run" in lines
    assert len(lines) == len(set(lines)) == 37


async def test_other_paths_are_not_found(session: aiohttp.ClientSession) -> None:
    paths = ["/nothing", "/module/list", "/module/list.xml", "/queue/other.json"]
    assert {path: await error_at(session, path) for path in paths} == {
        path: (404, f"there is nothing at {path}; /discovery lists what there is") for path in paths
    }


async def test_a_wrong_method_is_reported(session: aiohttp.ClientSession) -> None:
    async with session.post("/module/list.json") as answer:
        assert answer.status == 405
        assert "takes GET" in (await answer.json())["error"]


async def test_a_flag_that_is_not_a_boolean_is_reported(session: aiohttp.ClientSession) -> None:
    assert await error_at(session, "/queue/list.json?showEmpty=maybe") == (
        400,
        "showEmpty=maybe: give true or false",
    )


async def test_a_defect_is_reported_without_a_traceback(
    session: aiohttp.ClientSession, world: inspected.World, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect() -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(world.engine, "modules", defect)
    assert await error_at(session, "/module/list.json") == (
        500,
        "the operator failed to answer; its log says why",
    )
    assert isinstance(log.defects[0], ZeroDivisionError)


@pytest.fixture
def occupied(place: pathlib.Path) -> pathlib.Path:
    place.write_text("no socket")
    return place


async def test_a_named_socket_that_is_not_free_ends_the_start(
    occupied: pathlib.Path, world: inspected.World
) -> None:
    with pytest.raises(debug_socket.DebugSocketError, match="is not a socket"):
        async with debug_site.serving(settings_for(occupied), world.api, structlog.get_logger()):
            pytest.fail("it must not serve")


async def test_a_default_socket_that_is_not_free_is_a_warning(
    occupied: pathlib.Path,
    world: inspected.World,
    log: Any,  # noqa: ANN401  # in place of structlog's
) -> None:
    async with debug_site.serving(settings_for(occupied, "default"), world.api, log):
        pass
    (warning,) = log.warnings
    assert warning.startswith("debug commands do not reach this operator: ")


async def test_a_process_that_may_not_ask_gets_a_sentence_and_nothing_else(
    place: pathlib.Path,
    world: inspected.World,
    log: Any,  # noqa: ANN401  # in place of structlog's
) -> None:
    asked: list[int] = []

    def refuse(pid: int) -> bool:
        asked.append(pid)
        return True

    async with (
        debug_site.serving(settings_for(place), world.api, log, refuse),
        aiohttp.ClientSession("http://unix", connector=aiohttp.UnixConnector(str(place))) as session,
    ):
        for path in ("/", "/config/list.json", "/nowhere"):
            status, told = await error_at(session, path)
            assert (status, told[:50]) == (403, "the operator does not answer processes that it has"), path
    assert set(asked) == {os.getpid()}


async def test_a_socket_that_another_operator_held_is_taken_once_that_one_has_ended(
    place: pathlib.Path,
    world: inspected.World,
    log: Any,  # noqa: ANN401  # in place of structlog's
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debug_site, "_RETRY_SECONDS", 0.01)
    with contextlib.ExitStack() as first:
        first.enter_context(debug_socket.listening(place))
        async with debug_site.serving(settings_for(place, "default"), world.api, log):
            await asyncio.sleep(0.05)
            assert log.said == []
            first.close()
            async with asyncio.timeout(60):
                await log.told.wait()
            assert log.said == ["debug commands reach this operator now"]
            connector = aiohttp.UnixConnector(str(place))
            async with aiohttp.ClientSession("http://unix", connector=connector) as session:
                assert (await session.get("/")).status == 200

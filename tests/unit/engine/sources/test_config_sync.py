"""The values ConfigMap both ways: what counts as an edit, and what a bad one leaves in force."""

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.engine import config_events, events, intents
from addon_operator.engine.sources import config_sync
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName, values_key
from addon_operator.kube import api_errors
from addon_operator.kube.objects import config_maps, values_secret
from addon_operator.values import checks, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations, schemas
from tests.support import api_server, rows
from tests.unit.engine import fakes

WEB, DB = ModuleName("web"), ModuleName("db")


class FakeConfigMap(config_maps.ConfigMap):
    """A ConfigMap with a version counter; ``meanwhile`` runs between the answer's making and its arrival."""

    def __init__(self, data: dict[str, str] | None) -> None:
        self.data = data
        self.version = 1
        self.meanwhile: Callable[[], None] = lambda: None

    def delete(self) -> None:
        self.data = None

    def snapshot(self) -> config_maps.Snapshot | None:
        return None if self.data is None else config_maps.Snapshot(dict(self.data), str(self.version))

    def edit(self, **data: str) -> config_maps.Snapshot | None:
        self.data = {**(self.data or {}), **data}
        self.version += 1
        return self.snapshot()

    @override
    async def read(self) -> config_maps.Snapshot | None:
        answer = self.snapshot()
        self.meanwhile()
        await asyncio.sleep(0)
        return answer

    @override
    async def update(self, change: config_maps.Change, *, may_create: bool = True) -> config_maps.Snapshot:
        if self.data is None and not may_create:
            raise config_maps.MissingError("ConfigMap")
        self.data = dict(await change(self.data or {}))
        self.version += 1
        written = config_maps.Snapshot(dict(self.data), str(self.version))
        self.meanwhile()
        await asyncio.sleep(0)
        return written


class Heard(fakes.Heard):
    @property
    @override
    def warnings(self) -> list[str]:
        return [event.text for event in self.of(events.Warned)]

    @property
    def invalid(self) -> list[str]:
        return [str(event.error) for event in self.of(config_events.ConfigRefused) if not event.at_start]

    @property
    def refused(self) -> list[tuple[str, str]]:
        """At the start, with the ConfigMap's uid."""
        return [
            (str(event.error), event.uid) for event in self.of(config_events.ConfigRefused) if event.at_start
        ]


SCHEMA = """
properties:
  a: {}
  c: {}
  size: {type: integer, maximum: 9}
  password: {type: string, minLength: 8, x-sensitive: true}
"""


class Bench:
    def __init__(
        self, data: dict[str, str] | None, secret: "Secret | None" = None, empty_after: float | None = None
    ) -> None:
        self.pauses = api_server.Pauses()
        self.cluster = FakeConfigMap(data)
        checked = schemas.load_schemas((SCHEMA, "config-values.yaml"))
        files = sources.parse_common_values("webEnabled: true", "modules/values.yaml")
        self.values = store.ValuesStore(
            [store.ModuleValues(WEB, files, schemas=checked), store.ModuleValues(DB)]
        )
        self.heard, self.inbox = Heard(), fakes.Inbox()
        self.state = config_sync.ConfigSync(
            self.values,
            self.cluster,
            self.inbox,
            self.heard.append,
            source="ConfigMap",
            secret=None if secret is None else secret.source,
            empty_after=empty_after,
            sleep=self.pauses.sleep,
        )

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_so():  # noqa: ASYNC110 - tasks of the code under test run meanwhile
                await asyncio.sleep(0)

    @property
    def changes(self) -> list[sources.ConfigChange]:
        """Edits that the engine is to react to."""
        return [intent.change for intent in self.inbox.put_in if isinstance(intent, intents.ConfigEdited)]


async def loaded(data: dict[str, str] | None) -> Bench:
    bench = Bench(data)
    await bench.state.load()
    return bench


async def receive(bench: Bench, snapshot: config_maps.Snapshot | None) -> None:
    bench.state.received(snapshot)
    await bench.state.settled()


async def reread(bench: Bench) -> None:
    await bench.state.reread()
    await bench.state.settled()


def patch(path: str, value: object) -> patches.ValuesPatch:
    return patches.ValuesPatch(({"op": "add", "path": path, "value": value},), "hook")  # type: ignore[dict-item] # JSON


async def test_a_missing_config_map_is_an_empty_one() -> None:
    bench = await loaded(None)
    assert bench.values.config_values(WEB) == {"global": {}, "web": {}}


async def test_an_edit_is_applied_and_reported_by_what_it_changed() -> None:
    bench = await loaded({"web": "a: 1"})
    await receive(bench, bench.cluster.edit(web="a: 2"))
    assert bench.values.config_values(WEB)["web"] == {"a": 2}
    assert [change.sections_changed for change in bench.changes] == [{WEB}]


async def test_an_edit_that_changes_only_the_formatting_is_not_reported() -> None:
    bench = await loaded({"web": "a: 1"})
    await receive(bench, bench.cluster.edit(web="# a comment\na:   1\n"))
    assert bench.changes == []


async def test_the_same_version_delivered_again_is_not_reported() -> None:
    bench = await loaded({"web": "a: 1"})
    await receive(bench, bench.cluster.snapshot())
    assert bench.changes == []


async def test_a_bad_edit_is_reported_once_and_leaves_the_last_good_values() -> None:
    bench = await loaded({"web": "a: 1"})
    bad = bench.cluster.edit(web="a: [")
    await receive(bench, bad)
    await receive(bench, bad)
    assert len(bench.heard.invalid) == 1
    assert bench.values.config_values(WEB)["web"] == {"a": 1}
    await receive(bench, bench.cluster.edit(web="a: 3"))
    assert bench.values.config_values(WEB)["web"] == {"a": 3}
    assert len(bench.changes) == 1


async def test_it_shows_whether_the_config_map_is_wrong_now() -> None:
    bench = await loaded({"web": "a: 1"})
    seen = [bench.state.is_refused]
    for text in ("a: [", "a: 1"):
        await receive(bench, bench.cluster.edit(web=text))
        seen.append(bench.state.is_refused)
    assert seen == [False, True, False]


async def test_an_older_version_that_comes_late_is_skipped() -> None:
    bench = await loaded({"web": "a: 1"})
    old = bench.cluster.edit(web="a: 2")
    await receive(bench, bench.cluster.edit(web="a: 3"))
    await receive(bench, old)
    assert bench.values.config_values(WEB)["web"] == {"a": 3}


@rows.each("seen_by", ["watch", "look"])
async def test_a_config_map_that_is_deleted_empties_nothing_and_is_told_until_it_is_back(
    seen_by: str,
) -> None:
    bench = await loaded({"web": "a: 1"})
    bench.cluster.delete()
    for _ in range(2):
        await (receive(bench, None) if seen_by == "watch" else reread(bench))
    (missing,) = bench.heard.of(config_events.ConfigMissing)
    assert missing.counts_as_empty_in is None
    assert bench.values.config_values(WEB)["web"] == {"a": 1}
    await receive(bench, bench.cluster.edit(web="a: 1"))
    assert bench.changes == []
    (found,) = bench.heard.of(config_events.ConfigFound)
    assert found.loss == ""
    await receive(bench, None)
    await receive(bench, bench.cluster.edit(web="a: 2"))
    assert bench.changes[0].sections_changed == {WEB}, "what came back otherwise is an edit"
    assert len(bench.heard.of(config_events.ConfigMissing)) == 2


async def test_nothing_is_told_of_a_config_map_that_never_was() -> None:
    bench = await loaded(None)
    await receive(bench, None)
    await reread(bench)
    assert bench.heard.of(config_events.ConfigMissing) == []


async def test_a_hook_writes_no_config_map_that_is_missing_and_creates_one_that_never_was() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.cluster.delete()
    with pytest.raises(config_maps.MissingError):
        await bench.state.write(WEB, patch("/web/c", 1))
    assert len(bench.heard.of(config_events.ConfigMissing)) == 1, "it is told before the watch reports it"
    with pytest.raises(config_maps.MissingError, match="put it back"):
        bench.state.check_writable()
    assert bench.cluster.data is None
    assert bench.values.config_values(WEB)["web"] == {"a": 1}
    await receive(bench, bench.cluster.edit(web="a: 1"))
    bench.state.check_writable()
    assert await bench.state.write(WEB, patch("/web/c", 1))
    new = await loaded(None)
    new.state.check_writable()
    assert await new.state.write(WEB, patch("/web/c", 1))
    assert new.cluster.data == {"web": "c: 1\n"}


async def test_what_hooks_had_written_and_is_not_in_what_came_back_is_told_with_its_keys() -> None:
    bench = await loaded({"web": "a: 1"})
    await bench.state.write(WEB, patch("/web/c", "s3cret"))
    await bench.state.write(DB, patch("/db/password", "s3cret"))
    bench.cluster.delete()
    await receive(bench, None)
    bench.cluster.version += 1
    await receive(bench, bench.cluster.edit(web="a: 1", db="other: 1"))
    (found,) = bench.heard.of(config_events.ConfigFound)
    assert found.loss == ("ConfigMap is there again without what hooks had written: db.password, web.c")
    assert bench.changes[0].sections_changed == {WEB, DB}


async def test_keys_that_an_earlier_operator_wrote_for_hooks_are_known_by_their_field_manager() -> None:
    bench = await loaded(None)
    entry = {"manager": "addon-operator", "fieldsV1": {"f:data": {"f:db": {}, ".": {}}}}
    body = {
        "metadata": {"resourceVersion": "7", "managedFields": [entry, {"manager": "kubectl"}]},
        "data": {"web": "a: 1", "db": "b: 1"},
    }
    await receive(bench, config_maps.snapshot_of(body))
    await receive(bench, None)
    bench.cluster.version = 8
    await receive(bench, bench.cluster.edit(web="c: 1"))
    (found,) = bench.heard.of(config_events.ConfigFound)
    assert found.lost == ("db",)


async def test_with_config_map_missing_empty_the_second_look_empties_it() -> None:
    bench = Bench({"web": "a: 1"}, empty_after=7.0)
    await bench.state.load()
    bench.cluster.delete()
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        assert bench.values.config_values(WEB)["web"] == {"a": 1}
        if looks == 1:
            fail("a look that fails says nothing")

    bench.cluster.meanwhile = look
    await receive(bench, None)
    (missing,) = bench.heard.of(config_events.ConfigMissing)
    assert "for 7s; then it counts as empty" in missing.follows
    await bench.until(lambda: bool(bench.changes))
    assert bench.pauses.seconds == [7.0, 7.0]
    assert bench.values.config_values(WEB)["web"] == {}
    assert bench.heard.of(config_events.ConfigRight)
    bench.state.check_writable()


async def test_with_config_map_missing_empty_one_that_is_back_in_between_is_not_emptied() -> None:
    bench = Bench({"web": "a: 1"}, empty_after=7.0)
    await bench.state.load()
    bench.cluster.delete()
    bench.state.received(None)
    bench.cluster.edit(web="a: 1")
    await bench.until(lambda: bool(bench.heard.of(config_events.ConfigFound)))
    assert bench.changes == []
    assert bench.values.config_values(WEB)["web"] == {"a": 1}


async def test_a_hooks_write_reaches_cluster_and_store_and_is_not_an_edit() -> None:
    bench = await loaded({"web": "a: 1  # mine", "db": "b:   1 # theirs"})
    bench.cluster.meanwhile = lambda: bench.state.received(bench.cluster.snapshot())
    assert await bench.state.write(WEB, patch("/web/c", 2)) is True
    assert bench.values.config_values(WEB)["web"] == {"a": 1, "c": 2}
    assert bench.cluster.data is not None
    assert bench.cluster.data["db"] == "b:   1 # theirs"
    await receive(bench, bench.cluster.snapshot())
    assert bench.changes == [], "whether the watch is faster or slower than the answer"


async def test_a_write_that_changes_nothing_says_so() -> None:
    bench = await loaded({"web": "a: 1"})
    assert await bench.state.write(WEB, patch("/web/a", 1)) is False


async def test_an_edit_of_others_that_a_write_brings_along_is_reported() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.cluster.edit(db="b: 2")
    await bench.state.write(WEB, patch("/web/c", 2))
    await bench.state.settled()
    assert [change.sections_changed for change in bench.changes] == [{DB}]


async def test_a_bad_edit_of_another_section_does_not_stop_a_hooks_write() -> None:
    bench = await loaded({"web": "a: 1"})
    bench.cluster.edit(db="b: [")
    assert await bench.state.write(WEB, patch("/web/c", 2)) is True
    assert bench.values.config_values(WEB)["web"] == {"a": 1, "c": 2}
    await bench.state.settled()
    assert len(bench.heard.invalid) == 1


async def test_a_patch_outside_the_modules_section_is_refused_before_anything_is_written() -> None:
    bench = await loaded({})
    with pytest.raises(patches.PatchError, match="/db/x"):
        bench.values.config_patched(WEB, patch("/db/x", 1))


async def test_an_unknown_key_is_a_warning() -> None:
    bench = await loaded({"wbe": "a: 1"})
    assert any("wbe" in warning for warning in bench.heard.warnings)
    assert bench.state.warnings == bench.heard.warnings, "as long as the key is there"


async def test_a_section_that_was_copied_with_its_key_is_a_warning() -> None:
    bench = Bench({"web": "web: {a: 1}", "db": "db: {a: 1}"})
    files = sources.parse_common_values("web: {a: 0}", "modules/values.yaml")
    bench.values.set_files([store.ModuleValues(WEB, files), store.ModuleValues(DB)], [files])
    await bench.state.load()
    (told,) = bench.state.warnings
    assert "key 'web' holds nothing but 'web' again" in told
    assert "remove the line 'web:'" in told


async def test_a_warning_is_reported_once_and_again_after_it_was_gone() -> None:
    bench = await loaded({"wbe": "a: 1"})
    await receive(bench, bench.cluster.edit(db="b: 1"))
    assert len(bench.heard.warnings) == 1
    bench.cluster.data = {}
    await receive(bench, bench.cluster.edit(db="b: 1"))
    await receive(bench, bench.cluster.edit(wbe="a: 2"))
    assert len(bench.heard.warnings) == 2


async def test_a_plan_has_no_values_where_global_is_wrong_and_says_all_that_is() -> None:
    with pytest.raises(sources.ConfigMapError) as caught:
        await loaded({"global": "[", "dbEnabled": "yes", "web": "{size: 10, password: short}"})
    assert len(caught.value.violations) == 4
    assert "web.size: must be at most 9, not 10" in str(caught.value)
    assert "short" not in str(caught.value)


async def test_a_plan_withholds_modules_whose_values_are_wrong_and_says_why() -> None:
    bench = await loaded({"web": "size: 10", "db": "[", "global": "a: 1"})
    assert bench.values.withheld == {WEB: {"web"}, DB: {"db"}}
    assert bench.values.config_values(None) == {"global": {"a": 1}}
    (refused,) = bench.heard.of(config_events.ConfigRefused)
    assert "config-values.yaml; set in ConfigMap" in str(refused.error)
    assert {each.key for each in refused.wrong} == {"web", "db"}


class Waiting:
    """A start over a ConfigMap that is wrong: what is told, and an edit for each look."""

    def __init__(self, data: dict[str, str] | None, *edits: Callable[[FakeConfigMap], object]) -> None:
        self.bench = Bench(data)
        self.waited_for: list[str | None] = []
        self._edits = iter(edits)

    async def sleep(self, _: float) -> None:
        assert self.bench.state.is_refused
        self.waited_for.append(self.bench.state.waits_for)
        next(self._edits)(self.bench.cluster)

    async def start(self) -> None:
        await self.bench.state.load_when_valid(self.sleep)


async def test_a_config_map_that_is_wrong_for_all_modules_at_the_start_is_waited_for() -> None:
    waiting = Waiting(
        {"web": "{size: 10, password: short}", "global": "a: [secret"},
        lambda _: None,
        lambda cluster: cluster.edit(web="{size: 11}"),
        lambda cluster: cluster.edit(web="size: 9", **{"global": ""}),
    )
    await waiting.start()
    assert ["web.size: must be at most 9" in text for text, _ in waiting.bench.heard.refused] == [True, True]
    assert waiting.waited_for[0] == waiting.waited_for[1] != waiting.waited_for[2]
    assert all("web.size: must be at most 9" in (text or "") for text in waiting.waited_for)
    assert "key 'global'" in (waiting.waited_for[0] or "")
    for value in ("10", "11", "short", "secret"):
        assert value not in "".join(map(str, waiting.waited_for)), "no values in what everybody may read"
    state = waiting.bench.state
    assert (state.is_refused, state.waits_for) == (False, None)
    assert waiting.bench.values.config_values(WEB)["web"] == {"size": 9}
    assert waiting.bench.changes == [], "the first values are no edit"


async def test_an_api_server_that_is_away_meanwhile_is_waited_for_too() -> None:
    def away(cluster: FakeConfigMap) -> None:
        def fail() -> None:
            cluster.meanwhile = lambda: None
            raise errors.AddonOperatorError("nobody answers")

        cluster.meanwhile = fail

    waiting = Waiting({"global": "["}, away, lambda cluster: cluster.edit(**{"global": ""}))
    await waiting.start()
    assert waiting.bench.heard.warnings == ["ConfigMap cannot be read: nobody answers; next try in 2 s"]


async def test_a_wrong_config_map_that_is_deleted_at_the_start_does_not_begin_as_an_empty_one() -> None:
    waiting = Waiting(
        {"global": "["}, lambda cluster: cluster.delete(), lambda cluster: cluster.edit(web="size: 1")
    )
    await waiting.start()
    assert len(waiting.waited_for) == 2
    assert waiting.bench.values.config_values(WEB)["web"] == {"size": 1}


def with_files(waiting: Waiting, text: str, own: str = "") -> None:
    checked = schemas.load_schemas((SCHEMA + "required: [a]\n", "config-values.yaml"))
    files = sources.parse_common_values(text, "modules/values.yaml")
    of_module = sources.parse_module_values(WEB, own, "web/values.yaml")
    waiting.bench.values.set_files([store.ModuleValues(WEB, files, of_module, checked)], [files])


WRONG_OWN = "web: {a: 1, size: 10}"
WRONG_FILES = "{webEnabled: true, web: {a: 1, size: 10}}"


@rows.each(
    ("files", "data"),
    [
        (WRONG_FILES, None),
        (WRONG_FILES, {"web": "password: short"}),
        (WRONG_FILES, {"web": "["}),
    ],
    ids=["alone", "beside a wrong ConfigMap", "under what cannot be read"],
)
async def test_what_is_wrong_in_files_of_all_modules_is_an_error(
    files: str, data: dict[str, str] | None
) -> None:
    waiting = Waiting(data)
    with_files(waiting, files)
    with pytest.raises(errors.AddonOperatorError):
        await waiting.start()
    assert waiting.bench.heard.refused == []


async def test_what_ends_a_start_is_told_of_files_and_config_map_together() -> None:
    waiting = Waiting({"web": "["})
    with_files(waiting, WRONG_FILES)
    with pytest.raises(sources.ConfigMapError, match=r"key 'web'.*invalid YAML") as caught:
        await waiting.start()
    assert "web.size: must be at most 9" in str(caught.value)


@rows.each(
    ("own", "data"),
    [(WRONG_OWN, None), (WRONG_OWN, {"web": "password: long-enough"}), ("", None)],
    ids=["alone", "beside a right ConfigMap", "a key that nothing sets"],
)
async def test_what_is_wrong_in_files_of_one_module_keeps_only_that_from_its_start(
    own: str, data: dict[str, str] | None
) -> None:
    waiting = Waiting(data)
    with_files(waiting, "webEnabled: true", own)
    await waiting.start()
    assert (waiting.bench.heard.refused, waiting.bench.state.is_refused) == ([], False)
    with pytest.raises(schema_violations.InvalidValuesError, match="the values of module web are not valid"):
        checks.Checks(waiting.bench.values).checking_set_values(WEB)()
    waiting.bench.values.set_config(sources.ConfigValues({values_key(WEB): {"a": 1, "size": 9}}))
    checks.Checks(waiting.bench.values).checking_set_values(WEB)()


async def test_a_wrong_section_is_told_beside_wrong_files_of_its_module() -> None:
    waiting = Waiting({"web": "password: 1"})
    with_files(waiting, "webEnabled: true", "web: {a: 1, size: 10}")
    await waiting.start()
    [text] = waiting.bench.heard.invalid
    assert "web.password" in text
    assert "web.size" not in text


@rows.each(
    ("files", "data"),
    [
        ("webEnabled: true", {"web": "size: 1"}),
        ("webEnabled: true", {}),
        ("{webEnabled: false, web: {a: 1, size: 10}}", {"webEnabled": "true"}),
        ("{webEnabled: true, web: {a: 1, size: 1}}", {"web": "size: 10"}),
    ],
    ids=["a key was taken out", "all keys were taken out", "it enables what is wrong", "over good files"],
)
async def test_what_the_config_map_breaks_of_one_module_withholds_that_alone_until_an_edit_mends_it(
    files: str, data: dict[str, str]
) -> None:
    waiting = Waiting(data)
    with_files(waiting, files)
    await waiting.start()
    bench = waiting.bench
    assert bench.values.withheld == {WEB: {"web"}}
    assert (len(bench.heard.invalid), bench.state.is_refused, bench.state.lacks) == (1, True, None)
    await receive(bench, bench.cluster.edit(**{"global": "a: 1"}))
    assert bench.values.withheld == {WEB: {"web"}}, "another edit proves nothing of it"
    assert bench.values.config_values(None) == {"global": {"a": 1}}
    await receive(bench, bench.cluster.edit(web="{a: 1, size: 2}"))
    assert bench.values.withheld == {}
    assert bench.changes[-1].flags_changed == {WEB}
    await receive(bench, bench.cluster.edit(web="{a: 1, size: 10}"))
    assert bench.values.withheld == {}, "now there are older values"


async def test_keys_of_a_module_that_are_wrong_at_the_start_count_as_far_as_they_are_right() -> None:
    waiting = Waiting({"web": "[", "webEnabled": "false", "dbEnabled": "perhaps", "db": "b: 1"})
    await waiting.start()
    bench = waiting.bench
    assert bench.values.withheld == {WEB: {"web"}, DB: {"dbEnabled"}}
    assert not bench.values.flag(WEB).enabled, "it is switched off beside its wrong section"
    (refused,) = bench.heard.of(config_events.ConfigRefused)
    assert refused.follows == "what is right is in force, and nothing is done with web, db"


async def test_a_module_that_comes_with_a_wrong_section_is_withheld() -> None:
    bench = await loaded({"api": "["})
    api = ModuleName("api")
    bench.values.set_files([store.ModuleValues(api)], [])
    await bench.state.set_modules()
    assert bench.values.withheld == {api: {"api"}}


@rows.each(
    ("edit", "db", "flag"),
    [
        ({"web": "{size: 10, nosuch: 1}"}, {"b": 2}, True),
        ({"web": "["}, {"b": 2}, True),
        ({"webEnabled": "perhaps"}, {"b": 2}, True),
        ({"web": "[", "webEnabled": "false"}, {"b": 2}, False),
        ({"web": "[", "global": "["}, {"b": 1}, True),
        ({"global": "["}, {"b": 1}, True),
    ],
    ids=[
        "a schema",
        "no YAML",
        "a wrong switch",
        "switched off beside it",
        "global is wrong, too",
        "only global is wrong",
    ],
)
async def test_a_wrong_section_keeps_what_is_in_force_of_it_and_a_wrong_global_of_all(
    edit: dict[str, str], db: dict[str, int], flag: bool
) -> None:
    bench = await loaded({"web": "size: 1", "webEnabled": "true", "db": "b: 1"})
    await receive(bench, bench.cluster.edit(**edit, db="b: 2"))
    assert len(bench.heard.invalid) == 1
    assert bench.values.config_values(DB)["db"] == db
    assert bench.values.config_values(WEB)["web"] == {"size": 1}
    assert bench.values.flag(WEB).enabled is flag
    assert len(bench.changes) == (db == {"b": 2})
    assert bench.state.is_refused
    await receive(
        bench, bench.cluster.edit(**{"web": "size: 9", "webEnabled": "true", "global": "", "db": "b: 3"})
    )
    assert bench.values.config_values(WEB)["web"] == {"size": 9}
    assert bench.values.config_values(DB)["db"] == {"b": 3}
    assert not bench.state.is_refused


async def test_all_that_is_wrong_with_an_edit_is_told_at_once() -> None:
    bench = await loaded({"web": "size: 1"})
    await receive(bench, bench.cluster.edit(web="{size: 10, nosuch: 1}"))
    (told,) = bench.heard.invalid
    assert "web.size" in told
    assert "web.nosuch" in told


async def test_a_section_that_cannot_be_read_is_not_checked_as_if_it_were_empty() -> None:
    bench = await loaded({})
    assert len(bench.state.violations({"web": "[", "db": "["})) == 2


async def test_values_of_a_disabled_module_are_checked_when_it_is_enabled() -> None:
    bench = await loaded({"webEnabled": "false", "web": "size: 10"})
    await receive(bench, bench.cluster.edit(webEnabled="true"))
    assert len(bench.heard.invalid) == 1


async def test_a_proposed_state_is_checked_and_changes_nothing() -> None:
    bench = await loaded({"web": "size: 1"})
    assert bench.state.violations({"web": "size: 2"}) == ()
    ((violation, _),) = bench.state.violations({"web": "size: 10"})
    assert violation.startswith("web.size: must be at most 9")
    assert bench.values.config_values(WEB)["web"] == {"size": 1}


async def test_a_hooks_patch_that_breaks_the_schema_is_refused_before_anything_is_written() -> None:
    bench = await loaded({"web": "size: 1"})
    with pytest.raises(schema_violations.InvalidValuesError, match=r"web\.size"):
        bench.values.config_patched(WEB, patch("/web/size", 10))


async def test_a_hooks_patch_is_checked_again_over_what_somebody_wrote_meanwhile() -> None:
    bench = await loaded({"web": "size: 1"})
    bench.values.config_patched(WEB, patch("/web/c", 1))
    bench.cluster.edit(web="size: 10")
    with pytest.raises(schema_violations.InvalidValuesError, match=r"web\.size"):
        await bench.state.write(WEB, patch("/web/c", 1))
    assert bench.cluster.data == {"web": "size: 10"}


async def test_an_edit_that_arrives_during_a_write_that_fails_is_taken_after_it() -> None:
    bench = await loaded({"web": "a: 1"})

    def meanwhile() -> None:
        bench.state.received(bench.cluster.edit(web="a: 2"))
        fail("the answer is lost")

    bench.cluster.meanwhile = meanwhile
    with pytest.raises(errors.AddonOperatorError, match="the answer is lost"):
        await bench.state.write(WEB, patch("/web/c", 1))
    await bench.state.settled()
    assert bench.values.config_values(WEB)["web"] == {"a": 2}
    assert len(bench.changes) == 1


async def test_a_hooks_write_beside_a_bad_edit_does_not_count_it_again() -> None:
    bench = await loaded({"web": "a: 1"})
    await receive(bench, bench.cluster.edit(db="b: ["))
    await bench.state.write(WEB, patch("/web/c", 2))
    await receive(bench, bench.cluster.snapshot())
    assert len(bench.heard.invalid) == 1


LARGE = "".join(f"key{number}: {'x' * 100}\n" for number in range(1000))


async def test_an_edit_is_read_beside_the_loop_and_what_follows_waits_for_it() -> None:
    bench = await loaded({"db": "b: 1"})
    bench.state.received(bench.cluster.edit(db=LARGE))
    bench.state.received(bench.cluster.edit(web="a: 5"))
    assert bench.changes == [], "nothing was read in the call itself"
    await bench.state.settled()
    assert [change.sections_changed for change in bench.changes] == [{DB}, {WEB}]
    assert len(bench.values.config_values(DB)["db"]) == 1000  # type: ignore[arg-type] # it is a mapping


async def test_a_large_bad_edit_is_reported_once_and_a_hook_may_write_at_the_same_time() -> None:
    bench = await loaded({"db": "b: 1"})
    bench.state.received(bench.cluster.edit(db=LARGE + "key0: twice"))
    assert await bench.state.write(WEB, patch("/web/c", 2)) is True
    await bench.state.settled()
    assert len(bench.heard.invalid) == 1
    assert bench.values.config_values(WEB)["web"] == {"c": 2}


async def test_a_creation_during_the_look_is_not_taken_for_a_deletion() -> None:
    bench = await loaded(None)
    bench.cluster.meanwhile = lambda: bench.state.received(bench.cluster.edit(web="a: 1"))
    await reread(bench)
    assert bench.values.config_values(WEB)["web"] == {"a": 1}


async def test_the_config_map_is_looked_at_again_and_again_even_after_an_error() -> None:
    bench = await loaded({"web": "a: 1"})
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 1:
            bench.cluster.meanwhile = lambda: fail("no connection")
        elif len(slept) == 2:
            bench.cluster.meanwhile = lambda: None
            bench.cluster.edit(web="a: 2")
        else:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await bench.state.keep_in_step(sleep)
    await bench.state.settled()
    assert slept == [config_sync.REREAD_SECONDS] * 3
    assert "no connection" in bench.heard.warnings[0]
    assert bench.values.config_values(WEB)["web"] == {"a": 2}


def fail(reason: str) -> None:
    raise errors.AddonOperatorError(reason)


async def test_other_modules_on_disk_are_read_from_the_same_config_map() -> None:
    bench = await loaded({"db": "a: 1", "newModule": "b: 2"})
    assert len(bench.heard.warnings) == 1
    new = ModuleName("new-module")
    bench.values.set_files([store.ModuleValues(DB), store.ModuleValues(new)], ())
    await bench.state.set_modules()
    assert bench.values.config_values(new) == {"global": {}, "newModule": {"b": 2}}
    assert bench.changes == []
    assert bench.state.violations({"newModule": "b: ["})


async def test_a_config_map_that_is_wrong_for_other_modules_is_reported() -> None:
    bench = await loaded({"db": "a: 1", "newModule": "b: ["})
    new = ModuleName("new-module")
    bench.values.set_files([store.ModuleValues(DB), store.ModuleValues(new)], ())
    await bench.state.set_modules()
    [told] = bench.heard.invalid
    assert "newModule" in told
    assert bench.values.config_values(DB) == {"global": {}, "db": {"a": 1}}


# --- the values Secret


FORBIDDEN = api_server.status(403, "Forbidden", "no")


class Secret:
    """One of an API server in memory; ``refusal`` is what that answers instead."""

    def __init__(self, data: dict[str, str] | None, *, is_named: bool = False) -> None:
        server = api_server.ApiServer()
        kube = api_server.client_of(server, api_server.Pauses())
        self.source = values_secret.ValuesSecret(kube, "addons", "values", is_named)
        self.refusal: api_server.Answer | None = None
        self.data = data
        self.version = 100
        server.on("GET", "/api/v1/namespaces/addons/secrets/values", lambda _: self._answer())

    def _answer(self) -> api_server.Answer:
        if self.refusal is not None:
            return self.refusal
        return api_server.status(404, "NotFound") if self.data is None else api_server.Answer(self._body())

    def _body(self) -> dict[str, Any]:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in (self.data or {}).items()}
        return {"metadata": {"resourceVersion": str(self.version), "uid": "secret-uid"}, "data": encoded}

    def edit(self, **data: str) -> config_maps.Snapshot:
        self.data, self.version = data, self.version + 1
        return values_secret.snapshot_of(self._body())


async def with_secret(data: dict[str, str], secret: dict[str, str] | None) -> tuple[Bench, Secret]:
    stored = Secret(secret)
    bench = Bench(data, stored)
    await bench.state.load()
    return bench, stored


async def edit_secret(bench: Bench, secret: Secret, **data: str) -> None:
    bench.state.received(secret.edit(**data), "Secret")
    await bench.state.settled()


async def test_an_edit_of_the_secret_is_applied_and_reported_as_such() -> None:
    bench, secret = await with_secret({"web": "a: 1"}, None)
    await edit_secret(bench, secret, web="a: 2")
    assert bench.values.config_values(WEB)["web"] == {"a": 2}
    (intent,) = [one for one in bench.inbox.put_in if isinstance(one, intents.ConfigEdited)]
    assert intent.kind == "Secret"
    assert intent.change.sections_changed == {WEB}
    bench.state.received(None, "Secret")
    await bench.state.settled()
    assert bench.values.config_values(WEB)["web"] == {"a": 2}
    assert [event.kind for event in bench.heard.of(config_events.ConfigMissing)] == ["Secret"]
    bench.state.check_writable()


async def test_a_bad_edit_of_the_secret_is_reported_on_it_and_hinders_no_edit_of_the_config_map() -> None:
    bench, secret = await with_secret({"web": "a: 1"}, {"web": "c: 1"})
    await edit_secret(bench, secret, web="size: 77")
    (refused,) = bench.heard.of(config_events.ConfigRefused)
    assert (refused.kind, refused.uid) == ("Secret", "secret-uid")
    assert "77" not in str(refused.error)
    assert bench.state.is_refused
    await receive(bench, bench.cluster.edit(web="a: 2"))
    assert bench.values.config_values(WEB)["web"] == {"a": 2, "c": 1}
    assert bench.state.is_refused
    assert len(bench.heard.of(config_events.ConfigRefused)) == 1
    await edit_secret(bench, secret, web="c: 2")
    assert bench.values.config_values(WEB)["web"] == {"a": 2, "c": 2}
    assert [bench.state.is_refused] == [False]


async def test_an_edit_of_one_that_mends_the_other_brings_both_into_force() -> None:
    bench, secret = await with_secret({"web": "password: long-enough"}, None)
    await receive(bench, bench.cluster.edit(web="password: short"))
    assert bench.state.is_refused
    await edit_secret(bench, secret, web="password: s3cret-and-long")
    assert [bench.state.is_refused] == [False]
    assert bench.values.config.sections == {"web": {"password": "short"}}
    assert bench.values.config_values(WEB)["web"] == {"password": "s3cret-and-long"}


async def test_a_proposed_config_map_is_checked_with_the_secret_in_force() -> None:
    bench, _ = await with_secret({}, {"web": "size: 5"})
    assert bench.state.violations({"web": "size: 77"}) == ()
    assert bench.state.violations({"web": "size: 5"}, "Secret") == ()
    ((violation, _),) = bench.state.violations({"web": "size: 77"}, "Secret")
    assert "not ***" in violation


async def test_what_a_hook_writes_stays_below_the_secret_and_is_warned_of_once() -> None:
    bench, _ = await with_secret({"web": "a: 1"}, {"web": "a: 2"})
    for value in (3, 4):
        await bench.state.write(WEB, patch("/web/a", value))
    assert bench.cluster.data == {"web": "a: 4\n"}
    assert bench.values.config_values(WEB)["web"] == {"a": 2}
    assert bench.heard.warnings == [
        "hook changes /web/a without effect: Secret addons/values sets that, and lies over ConfigMap"
    ]


async def test_a_secret_that_must_not_be_read_counts_as_empty_unless_it_was_named() -> None:
    secret = Secret({"web": "a: 2"})
    secret.refusal = FORBIDDEN
    bench = Bench({"web": "a: 1"}, secret)
    await bench.state.load()
    await reread(bench)
    assert bench.values.config_values(WEB)["web"] == {"a": 1}
    (warning,) = bench.heard.warnings
    assert warning.startswith("Secret addons/values counts as empty, because it must not be read: ")
    assert warning.endswith("; allow that, or set VALUES_SECRET to none")
    named = Secret({"web": "a: 2"}, is_named=True)
    named.refusal = FORBIDDEN
    with pytest.raises(api_errors.Forbidden):
        await Bench({}, named).state.load()


async def test_a_secret_that_was_read_once_is_never_taken_for_an_empty_one() -> None:
    bench, secret = await with_secret({}, {"web": "a: 2"})
    secret.refusal = FORBIDDEN
    with pytest.raises(api_errors.Forbidden):
        await bench.state.reread()
    assert bench.values.config_values(WEB)["web"] == {"a": 2}


async def test_at_the_start_a_wrong_section_of_the_secret_withholds_its_module() -> None:
    secret = Secret({"web": "size: 77"})
    bench = Bench({"web": "a: 1"}, secret)
    await bench.state.load_when_valid()
    (refused,) = bench.heard.of(config_events.ConfigRefused)
    assert (refused.kind, refused.at_start) == ("Secret", False)
    assert bench.values.withheld == {WEB: {"web"}}
    bench.state.received(secret.edit(web="size: 7"), "Secret")
    await bench.state.settled()
    assert bench.values.withheld == {}
    assert bench.values.config_values(WEB)["web"] == {"a": 1, "size": 7}


async def test_changed_modules_are_read_from_the_secret_too() -> None:
    bench, _ = await with_secret({}, {"api": "a: 2"})
    api = ModuleName("api")
    bench.values.set_files([store.ModuleValues(api)], [])
    await bench.state.set_modules()
    assert bench.values.config_values(api)["api"] == {"a": 2}


async def test_a_refused_edit_names_its_keys_without_values_and_the_end_of_it_is_told() -> None:
    bench = await loaded({"web": "a: 1"})
    await receive(bench, bench.cluster.edit(web="password: hunter2: x", db="b: 1", dbEnabled="hunter2"))
    (refused,) = bench.heard.of(config_events.ConfigRefused)
    assert [each.key for each in refused.wrong] == ["web", "dbEnabled"]
    assert refused.wrong[0].text.startswith("key 'web', line 1, column 18")
    await receive(bench, bench.cluster.edit(web="size: 10", dbEnabled="false"))
    assert [each.key for each in bench.heard.of(config_events.ConfigRefused)[1].wrong] == ["web"]
    assert not any(
        "hunter2" in each.text
        for event in bench.heard.of(config_events.ConfigRefused)
        for each in event.wrong
    )
    assert bench.heard.of(config_events.ConfigRight) == []
    await receive(bench, bench.cluster.edit(web="size: 9"))
    await receive(bench, bench.cluster.edit(web="size: 8"))
    assert [event.kind for event in bench.heard.of(config_events.ConfigRight)] == ["ConfigMap"]


class Defect:
    """A bug that shows itself for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_there = True
        original = checks.Checks.edit_violations

        def violations(
            checker: checks.Checks, values: sources.ConfigValues
        ) -> list[schema_violations.Violation]:
            if self.is_there:
                raise TypeError("a bug")
            return original(checker, values)

        monkeypatch.setattr(checks.Checks, "edit_violations", violations)


async def test_an_edit_that_a_defect_keeps_from_being_read_is_told_and_taken_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = await loaded({"web": "a: 1"})
    defect = Defect(monkeypatch)
    await receive(bench, bench.cluster.edit(web="a: 2"))
    (told,) = bench.heard.of(config_events.ConfigNotRead)
    assert (told.source, str(told.error), told.delay) == ("ConfigMap", "a bug", config_sync.REREAD_SECONDS)
    seen = [(bench.state.is_refused, bench.values.config_values(WEB)["web"])]
    defect.is_there = False
    await reread(bench)
    seen.append((bench.state.is_refused, bench.values.config_values(WEB)["web"]))
    assert seen == [(True, {"a": 1}), (False, {"a": 2})]
    assert len(bench.changes) == 1
    assert [event.kind for event in bench.heard.of(config_events.ConfigRight)] == ["ConfigMap"]


async def test_an_edit_that_arrives_while_modules_cannot_be_taken_in_is_taken_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = await loaded({"web": "a: 1"})
    defect = Defect(monkeypatch)
    taking_in = asyncio.create_task(bench.state.set_modules())
    await asyncio.sleep(0)
    bench.state.received(bench.cluster.edit(web="a: 2"))
    with pytest.raises(TypeError):
        await taking_in
    defect.is_there = False
    await bench.state.settled()
    assert bench.values.config_values(WEB)["web"] == {"a": 2}


async def test_an_edit_that_is_taken_back_after_a_defect_is_no_trouble_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = await loaded({"web": "a: 1"})
    defect = Defect(monkeypatch)
    await receive(bench, bench.cluster.edit(web="a: 2"))
    defect.is_there = False
    await receive(bench, bench.cluster.edit(web="a: 1"))
    assert not bench.state.is_refused
    assert bench.changes == []


async def test_an_edit_that_waits_behind_a_defect_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, secret = await with_secret({"web": "a: 1"}, None)
    original = checks.Checks.edit_violations
    failures = iter([TypeError("a bug")])

    def violations(checker: checks.Checks, values: sources.ConfigValues) -> list[schema_violations.Violation]:
        for failure in failures:
            raise failure
        return original(checker, values)

    monkeypatch.setattr(checks.Checks, "edit_violations", violations)
    bench.state.received(bench.cluster.edit(web="a: 2"))
    bench.state.received(secret.edit(web="c: 1"), "Secret")
    await bench.state.settled()
    seen = [(bench.state.is_refused, bench.values.config_values(WEB)["web"])]
    await reread(bench)
    seen.append((bench.state.is_refused, bench.values.config_values(WEB)["web"]))
    assert seen == [(True, {"a": 1, "c": 1}), (False, {"a": 2, "c": 1})], "the ConfigMap's was still to come"


async def test_a_defect_of_who_listens_loses_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await loaded({"web": "a: 1"})
    await receive(bench, bench.cluster.edit(web="a: ["))
    failures = iter([TypeError("a bug")])

    def tell(event: events.Event) -> None:
        if isinstance(event, config_events.ConfigRight):
            for failure in failures:
                raise failure
        bench.heard.append(event)

    monkeypatch.setattr(bench.state, "_tell", tell)
    await receive(bench, bench.cluster.edit(web="a: 2"))
    await reread(bench)
    assert bench.values.config_values(WEB)["web"] == {"a": 2}
    assert len(bench.changes) == 1

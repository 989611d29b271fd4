"""Reading and checking values in a process that can be ended."""

import asyncio
import os
import pathlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from addon_operator.documents import document_stream
from addon_operator.hook_contract import jq_programs
from addon_operator.hook_contract.outputs import object_operations
from addon_operator.inspection import values_worker
from addon_operator.kernel import errors, json_types
from addon_operator.kernel.names import GLOBAL_KEY, ModuleName, ValuesKey
from addon_operator.process.children import spawning
from addon_operator.values import checks, inspectors, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations, schemas
from tests.unit import costs

WEB = ModuleName("web")
KEY = ValuesKey("web")
SCHEMA = """
type: object
properties:
  size: {type: integer, maximum: 9}
  password: {type: string, minLength: 8, x-sensitive: true}
  names: {type: array, items: {type: string}, uniqueItems: true}
  nodes:
    type: array
    items: {type: object, properties: {text: {type: string, default: '@'}}}
  tree: {$ref: '#/definitions/tree'}
definitions:
  tree:
    type: object
    properties: {left: {$ref: '#/definitions/tree'}, right: {$ref: '#/definitions/tree'}}
x-kubernetes-validations:
- rule: "!has(self.size) || !has(oldSelf.size) || self.size >= oldSelf.size"
  message: size must not shrink
""".replace("@", "x" * 3000)
BOMB = """
type: object
properties:
  text: {type: string}
x-kubernetes-validations:
- rule: "[1, 2, 3, 4].all(n, !self.text.matches('.{0,1000}.{0,1000}' + string(n)))"
"""
MANY_STEPS = """
type: object
properties:
  names: {type: array, items: {type: string}}
x-kubernetes-validations:
- rule: self.names.all(a, self.names.all(b, self.names.all(c, a + b + c != 'x')))
  message: names must be few
"""
LONG: Final = "x" * 500_000
PATIENT: Final = 30.0
"""Seconds that a busy machine may take for what has to come."""


@pytest.fixture(scope="module")
def worker() -> Iterator[values_worker.ValuesWorker]:
    with values_worker.ValuesWorker() as made:
        yield made


@pytest.fixture(scope="module")
def hurried() -> Iterator[values_worker.ValuesWorker]:
    """One that gives nothing more than a moment."""
    with values_worker.ValuesWorker(seconds=0.3) as made:
        yield made


@pytest.fixture(scope="module")
def checked() -> schemas.SectionSchemas:
    return schemas.load_schemas((SCHEMA, "config-values.yaml"), (SCHEMA, "values.yaml"))


Proposal = tuple[ValuesKey, json_types.JsonObject, json_types.JsonObject, json_types.JsonObject | None]


def proposal(config: json_types.JsonObject, before: json_types.JsonObject | None = None) -> Proposal:
    return KEY, {"size": 1}, config, before or {}


TEXTS = ["a: 1\nb: [x, {c: null}]", "", "a: [", "- 1", "true", "a: 1e400\nb: 0x1f", "a: 1\na: 2", "é: '😀'"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_as_it_would_be_here(worker: values_worker.ValuesWorker, text: str) -> None:
    def read(inspector: inspectors.Inspector) -> object:
        try:
            return inspector.parse_section("web", text)
        except errors.ConfigurationError as error:
            return str(error)

    assert read(worker) == read(inspectors.HERE)


@pytest.mark.parametrize(
    "config",
    [{}, {"size": 10}, {"size": "1"}, {"password": "short"}, {"nosuch": 1}, {"names": ["a", "a"]}],
    ids=repr,
)
def test_values_are_checked_as_they_would_be_here(
    worker: values_worker.ValuesWorker, checked: schemas.SectionSchemas, config: json_types.JsonObject
) -> None:
    asked = proposal(config, {"size": 5})
    assert worker.config_violations(*asked, checked) == inspectors.HERE.config_violations(*asked, checked)
    assert checked.values is not None
    values = KEY, config, asked[3], checked.values
    here = inspectors.HERE.values_violations(*values, for_helm=True)
    assert worker.values_violations(*values, for_helm=True) == here


def test_rules_see_the_values_before(
    worker: values_worker.ValuesWorker, checked: schemas.SectionSchemas
) -> None:
    [found] = worker.config_violations(*proposal({"size": 2}, {"size": 5}), checked)
    assert found.rule == "size must not shrink"


def bomb() -> tuple[Proposal, schemas.SectionSchemas]:
    return (KEY, {}, {"text": LONG}, {}), schemas.load_schemas((BOMB, "bomb.yaml"))


def test_a_rule_of_too_many_steps_is_ended_by_the_runtime(worker: values_worker.ValuesWorker) -> None:
    many: json_types.JsonObject = {"names": [f"n{number}" for number in range(5_000)]}
    loaded = schemas.load_schemas((MANY_STEPS, "many.yaml"))
    [found] = worker.config_violations(KEY, {}, many, {}, loaded)
    assert found.rule == "names must be few (the rule cannot be evaluated over these values)"


def test_a_rule_that_takes_too_long_is_ended_in_one_sentence_and_the_next_one_is_checked(
    worker: values_worker.ValuesWorker, checked: schemas.SectionSchemas
) -> None:
    worker.parse_section("web", "a: 1")
    asked, bombed = bomb()
    with worker.within(0.3):
        [found] = worker.config_violations(*asked, bombed)
    assert str(found) == (
        "web: cannot be checked: it took more than 0.3 s, the time limit; make the values smaller, or the "
        "patterns and rules of the schema simpler (bomb.yaml)"
    )
    assert worker.config_violations(*proposal({"size": 3}), checked) == []


@pytest.mark.slow  # it burns its whole time, as the rule above does
def test_all_of_an_edit_has_one_budget(worker: values_worker.ValuesWorker) -> None:
    asked, bombed = bomb()
    worker.parse_section("web", "a: 1")
    with worker.within(0.3):
        told = [str(found) for _ in range(200) for found in worker.config_violations(*asked, bombed)]
    assert len(told) == 200
    assert all("it took more than 0.3 s" in sentence for sentence in told)


def test_who_waits_for_another_edit_is_refused_in_time(worker: values_worker.ValuesWorker) -> None:
    worker.parse_section("web", "a: 1")
    asked, bombed = bomb()

    def hold() -> None:
        with worker.within(PATIENT):
            worker.config_violations(*asked, bombed)

    holding = threading.Thread(target=hold)
    holding.start()
    while not worker._one_by_one.locked():
        time.sleep(0)
    with worker.within(0.1), pytest.raises(sources.ValuesFileError, match="others are being checked"):
        worker.parse_section("web", "a: 1")
    assert worker._worker is not None
    worker._worker.kill()
    holding.join()


def test_values_that_take_too_much_memory_are_refused(checked: schemas.SectionSchemas) -> None:
    with values_worker.ValuesWorker(memory_bytes=40 << 20) as small:
        with pytest.raises(sources.ValuesFileError, match=r"key 'web': it takes more than 40 MiB of memory"):
            small.parse_section("web", "a: [" + "1," * 100_000 + "]")
        assert small.parse_section("web", "a: 1") == {"a": 1}


def test_defaults_that_blow_values_up_are_refused(
    worker: values_worker.ValuesWorker, checked: schemas.SectionSchemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspectors, "MAX_VALUES_BYTES", 1 << 20)
    nodes: list[json_types.JsonValue] = [{} for _ in range(500)]
    [found] = inspectors.HERE.config_violations(*proposal({"nodes": nodes}), checked)
    assert found.rule == "must have at most 1 MiB once aliases are written out and defaults filled in"


@pytest.mark.parametrize(
    "config",
    [
        lambda count: {"names": [*(f"n{number}" for number in range(count)), "n1"]},
        lambda count: {"names": list(range(count))},
        lambda count: {f"k{number}": 1 for number in range(count)},
    ],
    ids=["unique items", "wrong items", "unknown keys"],
)
def test_large_invalid_values_are_reported_by_their_first_violations(
    checked: schemas.SectionSchemas, config: Callable[[int], json_types.JsonObject]
) -> None:
    def check(values: json_types.JsonObject) -> None:
        found = inspectors.HERE.config_violations(*proposal(values), checked)
        assert 1 <= len(found) <= schema_violations.MAX_VIOLATIONS

    assert costs.is_linear(config, check, 300)


def test_a_worker_that_was_killed_is_started_again(worker: values_worker.ValuesWorker) -> None:
    worker.parse_section("web", "a: 1")
    assert worker._worker is not None
    worker._worker.kill()
    with pytest.raises(sources.ValuesFileError):
        worker.parse_section("web", "a: 1")
    assert worker.parse_section("web", "a: 1") == {"a": 1}


def test_schemas_that_changed_are_handed_over(worker: values_worker.ValuesWorker) -> None:
    for most in (3, 5):
        loaded = schemas.load_schemas((f"properties: {{size: {{maximum: {most}}}}}", "config-values.yaml"))
        [found] = worker.config_violations(*proposal({"size": 9}), loaded)
        assert found.rule == f"must be at most {most}"


@pytest.mark.slow  # it burns its whole time, as the rule above does
def test_a_patch_of_a_hook_is_ended_as_well(hurried: values_worker.ValuesWorker) -> None:
    bombed = schemas.load_schemas(None, (BOMB, "values.yaml"))
    values = store.ValuesStore([store.ModuleValues(WEB, schemas=bombed)], inspector=hurried)
    patch = patches.ValuesPatch(({"op": "add", "path": "/web/text", "value": LONG},), "hook x")
    with pytest.raises(
        schema_violations.InvalidValuesError, match=r"web: cannot be checked: it took more than 0\.3 s"
    ):
        values.frozen(WEB).patched(patch)
    assert values.values(WEB) == {"global": {}, "web": {}}


@pytest.mark.slow  # it burns its whole time, as the rule above does
async def test_the_loop_goes_on_while_a_bomb_is_checked(worker: values_worker.ValuesWorker) -> None:
    worker.parse_section("web", "a: 1")
    asked, bombed = bomb()
    checking = asyncio.create_task(asyncio.to_thread(worker.config_violations, *asked, bombed))
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert not checking.done()
    assert worker._worker is not None
    worker._worker.kill()
    assert await checking


def test_the_worker_ends_when_its_operator_does() -> None:
    with values_worker.ValuesWorker() as made:
        made.parse_section("web", "a: 1")
        assert made._worker is not None
        made._worker._socket.shutdown(socket.SHUT_RDWR)
        assert made._worker._process.wait(timeout=PATIENT) == 0
    with pytest.raises(sources.ValuesFileError, match="the operator ends"):
        made.parse_section("web", "a: 1")


def test_the_global_section_is_checked_the_same_way(worker: values_worker.ValuesWorker) -> None:
    loaded = schemas.load_schemas(("properties: {a: {type: integer}}", "config-values.yaml"))
    values = store.ValuesStore(global_schemas=loaded, inspector=worker)
    [found] = checks.Checks(values).config_violations(sources.ConfigValues({GLOBAL_KEY: {"a": "x"}}))
    assert str(found) == 'global.a: must be an integer, not "x" (config-values.yaml; set in values ConfigMap)'


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}\n{"b": [2]}', "a: 1\n---\nb: &x [1]\nc: *x", "a: 1\n---\nb: [", '{"a": 1, "a": 2}'],
    ids=["JSON", "YAML", "bad YAML", "a key twice"],
)
def test_outputs_of_hooks_are_read_as_they_would_be_here(
    worker: values_worker.ValuesWorker, text: str
) -> None:
    def read(load: object_operations.LoadDocuments) -> str:
        try:
            return str(load(text))
        except document_stream.DocumentError as error:
            return str(error)

    assert read(worker.load_stream) == read(document_stream.load_stream)


def test_a_number_that_the_api_server_cannot_read_is_reported(worker: values_worker.ValuesWorker) -> None:
    with pytest.raises(
        document_stream.StreamError, match=r"document \[1\]: the API server cannot read it as JSON"
    ):
        worker.load_stream('{"a": 1}\n{"a": ' + "1" * 40 + "}")


@pytest.mark.slow  # it burns its whole time, as the rule above does
def test_an_output_that_takes_too_long_is_ended_in_one_sentence(hurried: values_worker.ValuesWorker) -> None:
    text = "items: [" + "{a: 1}, " * 60_000 + "]\n"
    with pytest.raises(object_operations.ObjectOperationError) as caught:
        object_operations.parse(text, "hook x: KUBERNETES_PATCH_PATH", hurried.load_stream)
    assert str(caught.value).startswith(
        "hook x: KUBERNETES_PATCH_PATH, it cannot be read: it took more than 0.3 s, the time limit"
    )


EXPLOSION = """
type: object
properties: {tree: {$ref: '#/definitions/tree'}}
definitions:
  tree:
    type: object
    properties:
      inner: {anyOf: [{$ref: '#/definitions/tree'}, {$ref: '#/definitions/tree'}]}
      leaf: {type: integer}
"""
UNIQUE = "properties: {items: {type: array, uniqueItems: true}}"


def nested(levels: int) -> json_types.JsonObject:
    return {"inner": nested(levels - 1)} if levels else {"leaf": "no integer"}


@pytest.mark.parametrize(
    ("schema", "config"),
    [
        pytest.param(EXPLOSION, {"tree": nested(60)}, id="forms in forms"),
        pytest.param(
            UNIQUE,
            {"items": [{"a": number, "b": [number]} for number in range(100_000)]},
            id="unique items",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_keywords_that_explode_are_ended_in_one_sentence(
    hurried: values_worker.ValuesWorker, schema: str, config: json_types.JsonObject
) -> None:
    [found] = hurried.config_violations(
        KEY, {}, config, {}, schemas.load_schemas((schema, "config-values.yaml"))
    )
    assert "web: cannot be checked: it took more than 0.3 s, the time limit" in str(found)


GROWS = """
properties: {size: {type: integer}}
x-kubernetes-validations: [{rule: self.size >= oldSelf.size}]
x-deckhouse-validations: [{rule: self.gone > 1}]
"""


@pytest.mark.parametrize(("before", "count"), [(None, 0), ({}, 0), ({"size": 2}, 0), ({"size": 4}, 1)])
def test_the_worker_knows_whether_there_were_values_before(
    worker: values_worker.ValuesWorker, before: json_types.JsonObject | None, count: int
) -> None:
    schema = schemas.load_schema(GROWS, "f")
    assert len(worker.values_violations(KEY, {"size": 3}, before, schema, for_helm=False)) == count
    both = schemas.SectionSchemas(schema)
    assert len(worker.config_violations(KEY, {}, {"size": 3}, before, both)) == count


def test_an_index_is_read_as_it_would_be_here(
    worker: values_worker.ValuesWorker, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "index.yaml"
    path.write_text("entries:\n  web:\n  - version: 1.0.0\n    urls: [web.tgz]\n  bad:\n  - version: [\n")
    assert worker.read_index(path, "web", "1.0.0")["urls"] == ["web.tgz"]
    path.write_text("entries: [")
    with pytest.raises(errors.ConfigurationError, match=r"index\.yaml, line 2"):
        worker.read_index(path, "web", "1.0.0")
    with pytest.raises(errors.ConfigurationError, match="cannot be read"):
        worker.read_index(tmp_path / "none", "web", "1.0.0")


def test_an_index_that_takes_too_long_is_ended_in_one_sentence(
    hurried: values_worker.ValuesWorker, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(errors.ConfigurationError, match=r"index\.yaml cannot be read: it took more than"):
        hurried.read_index(tmp_path / "pipe", "web", "1.0.0")


@pytest.mark.parametrize("text", [".a[", "nothing_of_that_name", ".a | .b"])
def test_an_expression_of_jq_is_compiled_as_it_would_be_here(
    worker: values_worker.ValuesWorker, text: str
) -> None:
    def said() -> str:
        try:
            jq_programs.check(text)
        except jq_programs.JqError as error:
            return str(error)
        return ""

    here = said()
    with worker.checking_jq():
        assert said() == here


def test_while_the_process_starts_the_time_of_an_expression_of_jq_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = [0.0]
    start, monotonic = spawning.start_python, time.monotonic

    def start_late(*arguments: Any) -> Any:  # noqa: ANN401
        passed.append(60.0)
        return start(*arguments)

    monkeypatch.setattr(spawning, "start_python", start_late)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(passed))
    with values_worker.ValuesWorker() as new, new.checking_jq():
        jq_programs.check(".a")
    with values_worker.ValuesWorker() as new, new.within(30), pytest.raises(sources.ValuesFileError):
        new.parse_section("web", "a: 1")


def test_constants_of_jq_that_take_gigabytes_take_them_from_nobody(
    worker: values_worker.ValuesWorker,
) -> None:
    with worker.checking_jq(), pytest.raises(jq_programs.JqError, match="too much time or memory"):
        jq_programs.check('"x" * 1000000000')

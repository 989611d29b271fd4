"""A state file is written whole and for its owner; a wrong or old one is one sentence."""

import pathlib
from collections.abc import Iterator

import orjson
import pytest

from addon_operator.commands.plan_state import hidden_values, plan_state, recorded_cluster
from addon_operator.kernel import json_types
from addon_operator.kube import api_errors
from addon_operator.values.schema import schemas
from tests.support import rows
from tests.unit.commands.plan_state import states


def test_a_file_reads_back_and_only_its_owner_may_read_it(tmp_path: pathlib.Path) -> None:
    plan_state.write(states.state(), tmp_path / "state.json")
    read = plan_state.read(tmp_path / "state.json")
    assert orjson.dumps(read) == orjson.dumps(states.state())
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


@rows.each(
    ("change", "sentence"),
    [
        ({"kind": "other"}, "is JSON, but not a state file"),
        ({"format": 0, "operator": "0.0.1"}, "was written by version 0.0.1 in format 0"),
        ({"releases": [{}]}, "is damaged: something in it was edited; record it again"),
        ({"hash_key": "xyz"}, "is damaged: something in it was edited; record it again"),
    ],
    ids=["another file", "an old one", "without releases", "without a key"],
)
def test_a_wrong_or_old_file_is_one_sentence(
    tmp_path: pathlib.Path, change: dict[str, object], sentence: str
) -> None:
    path = tmp_path / "state.json"
    plan_state.write(states.state(), path)
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | change))
    with pytest.raises(plan_state.PlanStateError, match=sentence) as caught:
        plan_state.read(path)
    assert "\n" not in str(caught.value)


ODD: tuple[object, ...] = (
    None,
    5,
    -1.5,
    10**18,
    True,
    "",
    "x",
    "/",
    "\x00",
    [],
    [[]],
    [5],
    {},
    {"a": 5},
    {"": None},
)


def _with(value: object) -> Iterator[object]:
    """Yield the document again and again, each time with something else at one of its places."""
    yield from ODD
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {other: member for other, member in value.items() if other != key}
            yield from ({**value, key: odd} for odd in _with(inner))
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from ([*value[:number], odd, *value[number + 1 :]] for odd in _with(inner))


@pytest.mark.slow
def test_whatever_a_file_holds_it_is_read_or_one_sentence(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state.json"
    plan_state.write(states.state(), path)
    documents = [each for each in _with(orjson.loads(path.read_bytes())) if isinstance(each, dict)]
    assert len(documents) > 200
    read = 0
    for document in documents:
        path.write_bytes(orjson.dumps(document))
        try:
            found = plan_state.read(path)
        except plan_state.PlanStateError:
            continue
        recorded_cluster.client_of(found, recorded_cluster.access(path))
        read += 1
    assert read


@rows.each(
    ("content", "sentence"),
    [
        (b"\xff\xfe{", "not a state file, as it is not JSON from line 1 on; write one"),
        (b"kind: state\n", "as it is not JSON"),
        (b'{"kind":\n<<<<<<< HEAD\n1}', "as it is not JSON from line 2 on"),
        (b'{"a": 1}}', "as it is not JSON"),
        (b"[]", "is JSON, but not a state file"),
        (b"{}", "is JSON, but not a state file"),
        (b"", "is empty; record it again"),
        (b" \n\n", "is empty"),
        (b"{", "is cut off in line 1: it was not written or copied whole; record it again"),
        (b'{\n  "kind": "addon', "is cut off in line 2"),
        (b'{\n  "kind": "\xc3', "is cut off in line 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: pathlib.Path, content: bytes, sentence: str) -> None:
    (tmp_path / "state.json").write_bytes(content)
    with pytest.raises(plan_state.PlanStateError, match=sentence):
        plan_state.read(tmp_path / "state.json")


def test_a_file_without_what_this_version_needs_was_written_by_another_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state.json"
    plan_state.write(states.state(), path)
    document = orjson.loads(path.read_bytes()) | {"operator": "0.0.1"}
    path.write_bytes(orjson.dumps({key: value for key, value in document.items() if key != "hook_values"}))
    with pytest.raises(plan_state.PlanStateError, match=r"lacks hook_values: .* version 0\.0\.1 wrote it"):
        plan_state.read(path)


def test_a_file_beyond_the_bound_is_not_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_state.write(states.state(), tmp_path / "state.json")
    monkeypatch.setattr(plan_state, "MAX_BYTES", 100)
    with pytest.raises(plan_state.PlanStateError, match="is larger than"):
        plan_state.read(tmp_path / "state.json")


async def test_the_recorded_cluster_tells_what_is_in_the_file_and_takes_no_write(
    tmp_path: pathlib.Path,
) -> None:
    kube = recorded_cluster.client_of(states.state(), recorded_cluster.access(tmp_path / "kubeconfig"))
    assert (await kube.get("/api/v1/namespaces/addons"))["metadata"]["name"] == "addons"
    listed = await kube.list_all("/api/v1/secrets", label_selector="owner in (helm,addon-operator)")
    assert [each["metadata"]["name"] for each in listed.items] == ["sh.helm.release.v1.web.v3"]
    for gone in (
        "/api/v1/namespaces/addons/configmaps/gone",
        "/apis/apiregistration.k8s.io/v1/apiservices/x",
    ):
        with pytest.raises(api_errors.NotFound):
            await kube.get(gone)
    with pytest.raises(recorded_cluster.NotRecordedError):
        await kube.get("/api/v1/namespaces/addons/configmaps/other")
    with pytest.raises(recorded_cluster.NotRecordedError):
        await kube.delete("/api/v1/namespaces/addons")


def test_stand_ins_keep_the_type_and_what_is_only_a_switch() -> None:
    stand_ins = hidden_values.StandIns(b"key")
    value: json_types.JsonValue = {"a": "text", "b": 8080, "c": True, "d": None, "e": "", "f": ["text"]}
    shown = stand_ins.of(value, ("web",))
    assert isinstance(shown, dict)
    assert str(shown["a"]).startswith("hidden-")
    assert shown["f"] != [shown["a"]], "who may write one of them would know the other"
    assert stand_ins.of("text", ("web", "a")) == shown["a"]
    assert isinstance(shown["b"], int)
    assert (shown["c"], shown["d"], shown["e"]) == (True, None, "")
    assert hidden_values.StandIns(b"other").of("text", ("web", "a")) != shown["a"]
    masked: json_types.JsonValue = {"a": schemas.HIDDEN, "b": "y"}
    assert stand_ins.where_masked({"a": "x", "b": "y"}, masked, ("web",)) == {
        "a": stand_ins.of("x", ("web", "a")), "b": "y"
    }  # fmt: skip

"""What hooks gave, for another process and from a release."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from addon_operator.kernel import names
from addon_operator.values import config_map_reader, store
from addon_operator.values.patches import hook_values, patches
from tests.support import rows

WEB = names.ModuleName("web")


def patch(*operations: Mapping[str, Any]) -> patches.ValuesPatch:
    return patches.ValuesPatch(tuple(operations), "test")


def made(config: str = "size: 1") -> store.ValuesStore:
    values = store.ValuesStore([store.ModuleValues(WEB)])
    values.set_config(config_map_reader.ConfigMapReader(values.modules).read({"web": config}).usable())
    return values


def test_what_hooks_gave_counts_in_another_store_as_it_did_in_the_first() -> None:
    first, second = made(), made("size: 2")
    first.apply_values_patch(WEB, patch({"op": "add", "path": "/web/internal", "value": {"a": 1}}))
    first.apply_values_patch(
        WEB,
        patch(
            {"op": "test", "path": "/web/size", "value": 1}, {"op": "add", "path": "/web/one", "value": True}
        ),
    )
    first.apply_values_patch(WEB, patch({"op": "add", "path": "/web/plain", "value": "x"}))
    first.apply_values_patch(None, patch({"op": "add", "path": "/webEnabled", "value": True}))
    groups = first.patch_groups(WEB)
    assert [len(group) for group in groups] == [1, 2, 1]
    second.section_of(WEB).adopt([patch(*group) for group in groups])
    second.adopt_switches(first.hook_switches)
    assert second.values(WEB)["web"] == {"size": 2, "internal": {"a": 1}, "plain": "x"}
    assert second.flag(WEB).enabled


def test_patches_of_other_sections_are_refused_and_none_is_taken() -> None:
    values = made()
    with pytest.raises(patches.PatchError, match="'/db/a' is not permitted"):
        values.section_of(WEB).adopt(
            [
                patch({"op": "add", "path": "/web/a", "value": 1}),
                patch({"op": "add", "path": "/db/a", "value": 1}),
            ],
        )
    assert values.values(WEB)["web"] == {"size": 1}


def test_places_are_the_outermost_that_hooks_wrote_to_and_never_what_they_wrote() -> None:
    values = made("{size: 1, list: [a], old: x}")
    for operation in (
        {"op": "add", "path": "/web/internal", "value": {}},
        {"op": "add", "path": "/web/internal/key", "value": "hunter2"},
        {"op": "add", "path": "/web/list/0", "value": "hunter2"},
        {"op": "remove", "path": "/web/old"},
        {"op": "test", "path": "/web/size", "value": 1},
    ):
        values.apply_values_patch(WEB, patch(operation))
    values.apply_values_patch(None, patch({"op": "add", "path": "/webEnabled", "value": False}))
    found = values.hook_places(WEB)
    assert found.own == ("/web/internal", "/web/list", "/web/old")
    assert found.switches == {"webEnabled": False}
    assert "hunter2" not in found.text()
    assert hook_values.read_places(found.text()) == found


def test_without_hooks_there_is_nothing_to_save() -> None:
    assert made().hook_places(WEB).text() == ""


def test_what_the_values_secret_sets_is_saved_by_its_places_alone() -> None:
    values = made()
    reader = config_map_reader.ConfigMapReader([WEB], "Secret a/b", is_secret=True)
    texts = {"web": "{auth: {a.b: hunter2, c/d: {}}, list: [{x: hunter2}]}", "global": "key: hunter2"}
    values.set_config(dataclasses.replace(values.config, secret=reader.read(texts).usable()))
    found = values.hook_places(WEB)
    assert found.hidden == ("/global/key", "/web/auth/a.b", "/web/auth/c~1d", "/web/list")
    assert "hunter2" not in found.text()
    assert hook_values.read_places(found.text()) == found


@rows.each(
    ("hidden", "kept"),
    [
        (["/web/%d"], ("/web",)),
        (["/web/auth/users/%d/password", "/global/key"], ("/web/auth/users", "/global/key")),
        (["/web/%d/a", "/global/%d"], ("/web", "/global")),
    ],
)
def test_more_hidden_places_than_can_be_kept_hide_more_and_not_less(
    hidden: list[str], kept: tuple[str, ...]
) -> None:
    all_of_them = [text.replace("%d", str(number)) for number in range(5000) for text in hidden]
    places = hook_values.HookPaths(own=("/web/a",), hidden=tuple(dict.fromkeys(all_of_them)))
    assert len(places.text()) <= hook_values.MAX_PLACES_BYTES
    assert hook_values.read_places(places.text()) == hook_values.HookPaths(own=("/web/a",), hidden=kept)


def test_what_is_hidden_is_kept_beside_more_places_of_hooks_than_can_be() -> None:
    own = tuple(f"/web/{number}" for number in range(9999))
    found = hook_values.HookPaths(own=own, hidden=("/web/password",)).text()
    assert hook_values.known_places(found) is None, "where hooks wrote to is not known"
    read = hook_values.read_places(found)
    assert read is not None
    assert read.hidden == ("/web/password",)
    long = hook_values.HookPaths(own=own, hidden=("/web/" + "x" * 40_000, f"/{'y' * 40_000}")).text()
    assert hook_values.read_places(long) == hook_values.HookPaths(
        hidden=hook_values.EVERYWHERE, is_known=False
    )


def test_more_places_than_an_annotation_holds_are_not_saved() -> None:
    assert hook_values.HookPaths(own=tuple(f"/web/{number}" for number in range(9999))).text() == ""


@rows.each(
    "text", [None, "", "{", "[]", '{"global": [], "section": ["web"], "switches": {}}',
             '{"global": [""], "section": [], "switches": {}}', '{"global": 1, "section": 2, "switches": 3}'],
)  # fmt: skip
def test_what_is_none_of_ours_tells_no_places(text: str | None) -> None:
    assert hook_values.read_places(text) is None


def test_the_values_at_the_places_are_what_hooks_gave_then() -> None:
    given: dict[str, Any] = {"web": {"size": 1, "internal": {"a": [1, 2]}}}
    found = hook_values.at_places(("/web/internal", "/web/old"), given, "revision 1")
    values = made("{size: 5, old: x}")
    values.section_of(WEB).adopt(found)
    assert values.values(WEB)["web"] == {"size": 5, "internal": {"a": [1, 2]}}
    assert len(hook_values.at_places(("/web/old",), given, "", is_whole=False)) == 0


def test_of_another_operators_release_what_no_source_has_counts_as_given_by_hooks() -> None:
    given: dict[str, Any] = {"size": 9, "deep": {"a": 1, "b": None}, "internal": {"x": "y"}, "gone": None}
    found = hook_values.unexplained(names.ValuesKey("web"), {"size": 1, "deep": {"c": 1}}, given, "")
    assert [one.operations[0] for one in found] == [
        {"op": "add", "path": "/web/deep/a", "value": 1},
        {"op": "add", "path": "/web/internal", "value": {"x": "y"}},
    ]
    assert hook_values.unexplained(names.GLOBAL_KEY, {}, {"enabledModules": ["web"]}, "") == []

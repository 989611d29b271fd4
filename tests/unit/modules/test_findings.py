"""The table of what there is to know of modules."""

import pathlib
import re

from addon_operator.modules import findings

STATES = pathlib.Path(__file__).parents[3] / "docs" / "explanation" / "states.md"


def row(type_: str, message: str) -> findings.FindingRow:
    return {"type": type_, "message": message, "since": ""}


def test_each_kind_has_a_type_of_its_own() -> None:
    assert len({kind.type for kind in findings.TABLE}) == len(findings.TABLE)


def test_the_page_of_states_has_all_words_and_reasons_in_the_order_of_the_table() -> None:
    section = STATES.read_text(encoding="utf-8").partition("## Words and reasons")[2].partition("\n## ")[0]
    cells = [line.split(" | ")[:2] for line in section.splitlines() if line.startswith("| ")][1:]
    words = [word for cell, _ in cells for word in cell.removeprefix("| ").split(", ")]
    reasons = [reason for _, cell in cells for reason in re.findall(r"`(\w+)`", cell)]
    assert words == list(dict.fromkeys(kind.word for kind in findings.TABLE))
    assert reasons == list(dict.fromkeys(kind.reason or kind.type for kind in findings.TABLE))


def test_the_worst_stands_first_whoever_noted_it_first_and_what_says_nothing_does_not() -> None:
    found = findings.worst_first(
        [
            findings.Finding(findings.WARNED, ("a field is unknown",)),
            findings.Finding(findings.CHART_LOST, ("",)),
            findings.Finding(findings.HOOK_FAILS, ()),
            findings.Finding(findings.CHANGED_BY_OTHERS, ("revision 3",)),
        ]
    )
    assert [each.kind for each in found] == [findings.CHANGED_BY_OTHERS, findings.WARNED]


def test_sentences_that_begin_alike_say_so_once() -> None:
    found = [row("WrongValues", "web.port"), row("WrongFiles", "line 2"), row("Drifted", "ConfigMap x")]
    assert findings.said(found, "web") == [
        "what is newer is not in force: web.port",
        "line 2",
        "others changed it: ConfigMap x; 'addon-operator module run web' puts it back",
    ]


def test_what_only_another_version_knows_is_said_as_it_calls_it() -> None:
    kind = findings.kind_of(row("Levitates", "it is above its node"))
    assert (kind.word, kind.group) == ("Levitates", findings.Group.ATTENTION)
    assert findings.said([row("Levitates", "it is above its node")], "web") == ["it is above its node"]
    assert findings.kind_of(row("NotInForce", "")).word == "Not in force", "the reason of a condition"


def test_texts_stand_below_their_keys_whether_there_are_any_or_not() -> None:
    found = [
        findings.Finding(findings.WRONG_VALUES, ("web.port",)),
        findings.Finding(findings.WRONG_HOOKS, ("a.sh",)),
        findings.Finding(findings.HOOK_LEFT_OUT, ("a.go", "b.go")),
    ]
    keys = findings.by_key(found)
    assert (keys["wrongValues"], keys["hooksLeftOut"]) == ("web.port; a.sh", ["a.go", "b.go"])
    assert (keys["foreignRecord"], keys["hooksFail"]) == ("", [])
    assert found[2].messages == [
        "Go hooks never run here: a.go, b.go: write them anew in another language, or remove them"
    ]

"""Each failure of an upgrade that people meet comes with the sentence that mends it."""

from addon_operator.documents import json_pointers
from addon_operator.helm import messages
from addon_operator.modules import manifests
from addon_operator.modules.drift import others_fields
from tests.support import rows
from tests.unit.helm import recorded_upgrades

RECORDED = {f"{each['case']}, helm {each['helm']}": each for each in recorded_upgrades.RECORDED}


def test_there_is_a_sentence_for_every_recorded_failure() -> None:
    told = recorded_upgrades.ADVICE.keys() | recorded_upgrades.OTHERS.keys()
    assert told == {each["case"] for each in recorded_upgrades.RECORDED}


@rows.each("name", RECORDED)
def test_what_mends_it_is_behind_the_error_and_takes_no_data_with_it(name: str) -> None:
    recorded = RECORDED[name]
    said = messages.explanation(recorded["stderr"], 1)
    for text in (said.text, str(said.without_values)):
        advice = messages.advice(text, "charts/web", "addons")
        expected = recorded_upgrades.ADVICE.get(recorded["case"], "")
        assert (expected in advice) if expected else not advice


@rows.each("name", [name for name, each in RECORDED.items() if "live" in each])
def test_what_somebody_added_and_the_error_is_about_is_found_with_who_did_it(name: str) -> None:
    recorded = RECORDED[name]
    text = messages.explanation(recorded["stderr"], 1).text
    ((object_name, said),) = messages.refused_changes(text)
    ((_, body),) = manifests.find_objects(recorded["manifest"], lambda each: each.name == object_name.name)
    found = others_fields.blamed(others_fields.beside(body, recorded["live"]), said)
    assert [json_pointers.render(each.live_path) for each in found] == recorded_upgrades.OTHERS[
        recorded["case"]
    ]
    assert {each.manager for each in found} == {"kubectl-edit"}

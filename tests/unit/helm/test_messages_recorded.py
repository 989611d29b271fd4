"""What becomes of real errors of Helm 3.22 and 4.3 against Kubernetes 1.36, with a word in every value.

Names were made alike, and base64 and managedFields shorter; nothing else was changed.
"""

import json
import pathlib
from typing import TypedDict

from addon_operator.helm import messages

CANARY = "canary-5up3r"
ENCODED = "Y2FuYXJ5LTV1cDNy"
NAMES = ("secret-name", "secret-key")
"""The word is the name of a Secret, or of a key: those are told."""


class Recorded(TypedDict, total=False):
    case: str
    stderr: str
    told: str
    """For everybody; also for the log, if that does not have a line of its own."""
    log: str


RECORDED: list[Recorded] = json.loads((pathlib.Path(__file__).parent / "recorded_errors.json").read_text())


def test_real_errors_are_reported_with_their_reasons() -> None:
    wanted = {each["case"]: (each.get("log", each["told"]), each["told"]) for each in RECORDED}
    made = {each["case"]: messages.explanation(each["stderr"], 1) for each in RECORDED}
    assert {case: (found.text, found.without_values) for case, found in made.items()} == wanted


def test_real_errors_are_reported_without_values() -> None:
    for each in RECORDED:
        told = str(messages.explanation(each["stderr"], 1).without_values)
        # What a chart says itself is compared with its values elsewhere.
        if not each["case"].startswith((*NAMES, "t-fail")):
            assert CANARY not in told, each["case"]
        assert ENCODED not in told, each["case"]
        assert "54331234" not in told, each["case"]


def test_real_errors_that_were_cut_anywhere_show_less_and_never_more() -> None:
    for each in RECORDED:
        if each["case"].startswith("secret-") and not each["case"].startswith(NAMES):
            for end in range(0, len(each["stderr"]), 7):
                found = messages.explanation(each["stderr"][:end], 1)
                assert CANARY not in f"{found.text} {found.without_values}", (each["case"], end)
                assert ENCODED not in f"{found.text} {found.without_values}", (each["case"], end)


def test_a_secret_of_megabytes_is_taken_out_and_the_reason_stays() -> None:
    quoted = json.dumps(json.dumps({"data": {"big": ENCODED + "eHh4" * 700_000}, "kind": "Secret"}))
    said = f'Error: cannot patch "s" with kind Secret: "" is invalid: patch: Invalid value: {quoted}'
    found = messages.explanation(f"{said}: json: cannot unmarshal number into Go struct field Secret.x\n", 1)
    assert found.text == found.without_values
    assert found.text.endswith(
        "patch: Invalid value: ***: json: cannot unmarshal number into Go struct field Secret.x"
    )


def test_real_errors_name_what_nobody_may_change() -> None:
    found = {each["case"]: messages.unchangeable(each["stderr"].partition("Error: ")[2]) for each in RECORDED}
    named = {case: sorted((each.kind, each.name) for each in names) for case, names in found.items() if names}
    assert named == {
        f"{case}, helm {major}": [name]
        for major in (3, 4)
        for case, name in {
            "secret-type": ("Secret", "s"),
            "secret-immutable": ("Secret", "s"),
            "deploy-selector": ("Deployment", "d"),
            "job-immutable": ("Job", "j"),
            "pod-update": ("Pod", "p"),
        }.items()
    }

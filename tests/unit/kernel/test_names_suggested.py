"""Guesses at what was meant."""

from addon_operator.kernel import names
from tests.support import rows

KNOWN = ("beforeHelm", "afterHelm", "onStartup")


@rows.each(
    ("name", "near"),
    [("beforHelm", "beforeHelm"), ("BEFOREHELM", "beforeHelm"), ("onstart", "onStartup"), ("zzz", None)],
)
def test_the_nearest_name_is_found_whatever_its_case(name: str, near: str | None) -> None:
    assert names.nearest(name, KNOWN) == near


def test_a_question_or_the_other_advice_is_given() -> None:
    assert names.did_you_mean("afterhlem", KNOWN, "remove it") == "did you mean 'afterHelm'?"
    assert names.did_you_mean("zzz", KNOWN, "remove it") == "remove it"

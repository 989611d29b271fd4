"""Edits that a plan takes for made."""

import pytest

from addon_operator.commands.plan import proposal
from tests.support import rows


@rows.each(
    ("text", "said"),
    [
        ("web=x", "a section cannot be set as a whole"),
        ("web.color", "write it as key=value"),
        ("web..color=x", "names no key"),
    ],
)
def test_a_setting_that_names_no_value_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(proposal.ProposalError, match=said):
        proposal.Setting.parse(text)


def test_a_switch_is_set_as_a_whole_and_a_value_in_its_section() -> None:
    data = {"web": "color: green\n"}
    for text in ("webEnabled=false", "web.color=red"):
        proposal.Setting.parse(text).apply(data)
    assert data == {"web": "color: red\n", "webEnabled": "false"}

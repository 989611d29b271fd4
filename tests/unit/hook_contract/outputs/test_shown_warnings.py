"""What the API server shows of a hook's warnings."""

from addon_operator.hook_contract.outputs import review_answers


def test_each_warning_is_shown_once_and_long_ones_whole_while_there_is_room() -> None:
    assert review_answers.shown_warnings(["old", "w" * 3000, "old", ""]) == ("old", "w" * 3000)


def test_line_breaks_and_controls_are_replaced_because_the_api_server_drops_texts_that_have_some() -> None:
    assert review_answers.shown_warnings(["use v1\n\tinstead\x7f", "\n"]) == (
        "use v1 instead\N{REPLACEMENT CHARACTER}",
    )


def test_too_many_letters_cut_each_warning_and_the_last_says_how_many_are_left_out() -> None:
    shown = review_answers.shown_warnings([f"{number:03}" + "ü" * 500 for number in range(100)])
    assert [len(text) for text in shown[:-1]] == [256] * 15
    assert shown[0].endswith("ü…")
    assert shown[-1] == "85 more warnings are left out"
    assert sum(map(len, shown)) <= 4096


def test_warnings_that_fit_once_they_are_cut_are_all_shown() -> None:
    assert [len(text) for text in review_answers.shown_warnings(["a" * 4000, "b" * 97])] == [256, 97]

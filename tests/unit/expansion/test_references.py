"""References in a text: the tables of the design and of the behaviour report, and properties of any text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from addon_operator import expansion
from tests.support import rows
from tests.unit import costs

VARIABLES = {"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}

DESIGN_TABLE = [
    ("$(VAR_A)", "A"),
    ("___$(VAR_B)___", "___B___"),
    ("___$(VAR_C)", "___C"),
    ("$(VAR_A)-$(VAR_A)", "A-A"),
    ("$(VAR_A)-1", "A-1"),
    ("$(VAR_A)_$(VAR_B)_$(VAR_C)", "A_B_C"),
    ("$$(VAR_B)_$(VAR_A)", "$(VAR_B)_A"),
    ("$$(VAR_A)_$$(VAR_B)", "$(VAR_A)_$(VAR_B)"),
    ("f000-$$VAR_A", "f000-$VAR_A"),
    ("foo\\$(VAR_C)bar", "foo\\Cbar"),
    ("foo\\\\$(VAR_C)bar", "foo\\\\Cbar"),
    ("foo\\\\\\\\$(VAR_A)bar", "foo\\\\\\\\Abar"),
    ("$(VAR_A$(VAR_B))", "$(VAR_A$(VAR_B))"),
    ("$(VAR_A$(VAR_B)", "$(VAR_A$(VAR_B)"),
    ("$(VAR_REF)", "$(VAR_A)"),
    ("%%$(VAR_REF)--$(VAR_REF)%%", "%%$(VAR_A)--$(VAR_A)%%"),
    ("foo$(VAR_EMPTY)bar", "foobar"),
    ("foo$(VAR_Awhoops!", "foo$(VAR_Awhoops!"),
    ("f00__(VAR_A)__", "f00__(VAR_A)__"),
    ("$?_boo_$!", "$?_boo_$!"),
    ("$VAR_A", "$VAR_A"),
    ("$(VAR_DNE)", "$(VAR_DNE)"),
    ("$$$$$$(BIG_MONEY)", "$$$(BIG_MONEY)"),
    ("$$$$$$(VAR_A)", "$$$(VAR_A)"),
    ("$$$$$$$(GOOD_ODDS)", "$$$$(GOOD_ODDS)"),
    ("$$$$$$$(VAR_A)", "$$$A"),
    ("$VAR_A)", "$VAR_A)"),
    ("${VAR_A}", "${VAR_A}"),
    ("$(VAR_B)_______$(A", "B_______$(A"),
    ("$(VAR_C)_______$(", "C_______$("),
    ("$(VAR_A)foobarzab$", "Afoobarzab$"),
    ("foo-\\$(VAR_A", "foo-\\$(VAR_A"),
    ("--$($($($($--", "--$($($($($--"),
    ("$($($($($--foo$(", "$($($($($--foo$("),
    ("foo0--$($($($(", "foo0--$($($($("),
    ("$(foo$$var)", "$(foo$$var)"),
]

BEHAVIOUR_TABLE = [
    ("$$", "$"),
    ("$$$(VAR_A)", "$A"),
    ("$$$$(VAR_A)", "$$(VAR_A)"),
    ("$$(UNKNOWN)", "$(UNKNOWN)"),
    ("$(VAR_A", "$(VAR_A"),
    ("$(A$$B", "$(A$B"),
    ("$(foo$$var", "$(foo$var"),
    ("$x", "$x"),
    ("$é$(VAR_A)", "$éA"),
    ("$日本$(VAR_A)語", "$日本A語"),
    ("$😀$$", "$😀$"),
    ("$", "$"),
    ("text$$", "text$"),
    ("$$$", "$$"),
    ("$()", "$()"),
    ("$( VAR_A )", "$( VAR_A )"),
    ("$('VAR_A')", "$('VAR_A')"),
    ("$($(VAR_A))", "$($(VAR_A))"),
    ("`VAR_A`", "`VAR_A`"),
    ("\\$(VAR_A)", "\\A"),
    ('$(VAR_A:"x")', '$(VAR_A:"x")'),
    ("(VAR_A)", "(VAR_A)"),
    ("\n", "\n"),
    ("a\n$(VAR_A)\nb", "a\nA\nb"),
    ("$(VAR\n_A)", "$(VAR\n_A)"),
    ("", ""),
]

DOLLAR_RICH = st.text(st.sampled_from("$$$(((()))AB é\n\\{}")) | st.text()
CALM = settings(deadline=None)


class Heard:
    """A recorder that remembers what it was told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def unresolved(self, name: str) -> None:
        self.names.append(name)


def naive_expand(text: str, values: dict[str, str]) -> str:
    """The rules once more, character by character, as one would explain them."""
    out, i = "", 0
    while i < len(text):
        following = text[i + 1 : i + 2]
        if text[i] == "$" and following == "$":
            out, i = out + "$", i + 2
        elif text[i] == "$" and following == "(" and ")" in text[i:]:
            name = text[i + 2 :].split(")", 1)[0]
            out, i = out + values.get(name, f"$({name})"), i + len(name) + 3
        else:
            out, i = out + text[i], i + 1
    return out


Table = list[tuple[str, str]]


def expanded(table: Table, *contexts: dict[str, str]) -> Table:
    mapping = expansion.mapping_func_for(None, *contexts)
    return [(text, expansion.expand(text, mapping)) for text, _ in table]


def test_the_design_table_holds() -> None:
    assert expanded(DESIGN_TABLE, VARIABLES) == DESIGN_TABLE


def test_the_design_table_holds_with_two_contexts() -> None:
    first = {"VAR_A": "A", "VAR_EMPTY": ""}
    second = {"VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)"}
    assert expanded(DESIGN_TABLE, first, second) == DESIGN_TABLE


def test_the_behaviour_table_holds() -> None:
    assert expanded(BEHAVIOUR_TABLE, VARIABLES) == BEHAVIOUR_TABLE


def test_the_design_table_is_complete() -> None:
    assert len(DESIGN_TABLE) == 36


@rows.each(
    ("text", "names"),
    [
        ("$($(A))", ["$(A"]),
        ("$(a b)$(a b )", ["a b", "a b "]),
        ("$(foo$$var)", ["foo$$var"]),
        ("$()", [""]),
        ("$$(A)$(", []),
        ("$(A)$(B)$(A)", ["A", "B", "A"]),
        ('$(A:"x")', ['A:"x"']),
    ],
    ids=repr,
)
def test_the_mapping_is_asked_for_what_stands_up_to_the_first_closer(text: str, names: list[str]) -> None:
    asked: list[str] = []

    def mapping(name: str) -> str:
        asked.append(name)
        return ""

    expansion.expand(text, mapping)
    assert asked == names


def test_what_the_mapping_returns_is_not_expanded_again() -> None:
    assert expansion.expand("$(A)$(B", lambda _: "$$(A)$(A)") == "$$(A)$(A)$(B"


def test_each_variable_may_build_on_those_before_it() -> None:
    env: dict[str, str] = {}
    mapping = expansion.mapping_func_for(None, env)
    for name, value in [("FOO", "bar"), ("ZOO", "$(FOO)-1"), ("BLU", "$(ZOO)-2")]:
        env[name] = expansion.expand(value, mapping)
    assert env == {"FOO": "bar", "ZOO": "bar-1", "BLU": "bar-1-2"}


def test_the_first_context_that_has_the_name_wins() -> None:
    assert expansion.mapping_func_for(None, {"A": "first"}, {"A": "second", "B": "third"})("A") == "first"


def test_an_empty_value_in_the_first_context_wins_and_is_not_unresolved() -> None:
    heard = Heard()
    assert expansion.mapping_func_for(heard, {"A": ""}, {"A": "second"})("A") == ""
    assert heard.names == []


def test_a_name_in_no_context_comes_back_as_it_was_written() -> None:
    assert expansion.mapping_func_for(None)("A") == "$(A)"


@rows.each("name", ["MISSING", "", "date +%s", "$(A", "é", "a\nb"], ids=repr)
def test_the_recorder_hears_of_any_unknown_name_whatever_it_looks_like(name: str) -> None:
    heard = Heard()
    assert expansion.mapping_func_for(heard, {"A": "a"})(name) == f"$({name})"
    assert heard.names == [name]


def test_the_recorder_hears_of_a_name_once_in_the_order_of_the_text() -> None:
    heard = Heard()
    mapping = expansion.mapping_func_for(heard, {"A": "a"})
    assert expansion.expand("$(Y)$(A)$(X)$(Y)", mapping) == "$(Y)a$(X)$(Y)"
    assert expansion.expand("$(X)$(Z)$$(W)", mapping) == "$(X)$(Z)$(W)"
    assert heard.names == ["Y", "X", "Z"]


def test_two_mappings_tell_their_recorder_independently() -> None:
    heard = Heard()
    expansion.mapping_func_for(heard)("A")
    expansion.mapping_func_for(heard)("A")
    assert heard.names == ["A", "A"]


@given(DOLLAR_RICH, st.dictionaries(st.sampled_from(["A", "B", "AB", "", "(", "$", "$(A"]), st.text("$()A")))
@CALM
def test_any_text_expands_as_in_the_naive_implementation(text: str, values: dict[str, str]) -> None:
    assert expansion.expand(text, expansion.mapping_func_for(None, values)) == naive_expand(text, values)


@given(st.text().map(lambda text: text.replace("$", "")))
@CALM
def test_text_without_the_operator_is_unchanged_and_asks_for_nothing(text: str) -> None:
    heard = Heard()
    assert expansion.expand(text, expansion.mapping_func_for(heard)) == text
    assert heard.names == []


@given(DOLLAR_RICH)
@CALM
def test_text_with_every_operator_doubled_comes_back_as_it_was(text: str) -> None:
    heard = Heard()
    assert expansion.expand(text.replace("$", "$$"), expansion.mapping_func_for(heard, {"A": "a"})) == text
    assert heard.names == []


@given(DOLLAR_RICH)
@CALM
def test_expanding_never_makes_unresolved_text_longer(text: str) -> None:
    assert len(expansion.expand(text, expansion.mapping_func_for(None))) <= len(text)


@rows.each(
    ("prefix", "unit", "suffix", "expected"),
    [
        ("", "$(", "", "$("),
        ("", "$(", ")", "$("),
        (")", "$(", "", "$("),
        ("", "$(A", "", "$(A"),
        ("", "$()", "", "$()"),
        ("", "$(A)", "", "a"),
        ("", "$$", "", "$"),
        ("", "$$", "(A)", "$"),
        ("", "$(A$$", "", "$(A$"),
    ],
    ids=["openers", "one closer", "early closer", "names", "empty", "known", "escapes", "escaped", "mixed"],
)
def test_a_long_text_takes_linear_time(prefix: str, unit: str, suffix: str, expected: str) -> None:
    def expand(times: int) -> None:
        mapping = expansion.mapping_func_for(None, {"A": "a"})
        expanded = expansion.expand(f"{prefix}{unit * times}{suffix}", mapping)
        assert expanded == f"{prefix}{expected * times}{suffix}"

    # A search to the end of the text for each opener is more than one pass.
    assert costs.is_linear(int, expand, 5000)


def test_a_million_openers_without_a_closer_stay_as_they_are() -> None:
    text = "$(" * 1_000_000
    assert expansion.expand(text, expansion.mapping_func_for(None)) == text

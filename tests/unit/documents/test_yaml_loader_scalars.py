"""Plain scalars, as Helm's own YAML parser reads them (expected values come from a run of that parser)."""

from addon_operator.documents import yaml_loader


def read(words: list[str]) -> dict[str, object]:
    return {word: yaml_loader.plain(word) for word in words}


def test_words_of_consent_are_true() -> None:
    words = ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"]
    assert read(words) == dict.fromkeys(words, True)
    assert {type(value) for value in read(words).values()} == {bool}


def test_words_of_refusal_are_false() -> None:
    words = ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"]
    assert read(words) == dict.fromkeys(words, False)
    assert {type(value) for value in read(words).values()} == {bool}


def test_words_for_nothing_are_null() -> None:
    words = ["", "~", "null", "Null", "NULL"]
    assert read(words) == dict.fromkeys(words)


INTEGERS: dict[str, object] = {
    "0": 0,
    "-0": 0,
    "+12": 12,
    "017": 15,
    "-017": -15,
    "007": 7,
    "0o17": 15,
    "0O17": 15,
    "-0o17": -15,
    "0b11": 3,
    "0B11": 3,
    "-0b11": -3,
    "0x1F": 31,
    "-0X10": -16,
    "1_000": 1000,
    "1__0": 10,
    "1_": 1,
    "0x_1": 1,
    "08": 8,
    "-08": -8,
    "1e3": 1000,
    "1E+3": 1000,
    "1e1_0": 10_000_000_000,
    "1.0": 1,
    "1.": 1,
    "18446744073709551615": 18446744073709551615,
    "-9223372036854775808": -9223372036854775808,
}


def test_whole_numbers_of_any_notation_are_integers() -> None:
    found = read([*INTEGERS])
    assert found == INTEGERS
    assert [text for text, value in found.items() if type(value) is not int] == []


FLOATS: dict[str, object] = {
    "0.1": 0.1,
    ".5": 0.5,
    "-.5": -0.5,
    "1_0.5": 10.5,
    "1.50": 1.5,
    "1e-7": 1e-7,
    "1e21": 1e21,
    "99999999999999999999": 1e20,
    "077777777777777777777777777": 7.777777777777777e25,
}


def test_fractions_and_numbers_beyond_64_bits_are_floats() -> None:
    found = read([*FLOATS])
    assert found == FLOATS
    assert [text for text, value in found.items() if type(value) is not float] == []


STRINGS = [
    "yEs",
    "nULL",
    "12:30",
    "12:30:45",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "0o8",
    "0b2",
    "0b",
    "0x",
    "_1",
    "1e",
    "1e400",
    "1.2.3",
    "1,000",
    "1e3.5",
    "0xFFFFFFFFFFFFFFFFF",
    "._5",
    ".",
    "+",
    "-",
    "=",
    "Infinity",
    "nan",
    "1 2",
]


def test_everything_else_is_a_string() -> None:
    assert read(STRINGS) == {text: text for text in STRINGS}


def test_words_that_surprise_as_booleans_are_known() -> None:
    words = ["yes", "Off", "N", "true", "False", "x"]
    assert [word for word in words if yaml_loader.is_unusual_boolean(word)] == ["yes", "Off", "N"]

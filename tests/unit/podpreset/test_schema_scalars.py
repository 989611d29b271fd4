"""Numbers and booleans as text."""

from addon_operator.podpreset import schema

TEXTS: list[tuple[str | float | None, str]] = [
    ("x", "x"),
    ("", ""),
    (None, ""),
    (6379, "6379"),
    (-1, "-1"),
    (0, "0"),
    (2**63, "9223372036854775808"),
    (True, "true"),
    (False, "false"),
    (1.5, "1.5"),
    (3.0, "3"),
    (-0.25, "-0.25"),
    (1e16, "10000000000000000"),
    (1.5e20, "150000000000000000000"),
    (1e21, "1e+21"),
    (0.00001, "0.00001"),
    (1e-7, "1e-7"),
]


def test_a_scalar_has_the_text_that_the_api_server_would_write() -> None:
    assert [schema.text_of(value) for value, _ in TEXTS] == [text for _, text in TEXTS]

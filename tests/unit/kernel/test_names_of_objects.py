"""What names and labels of objects look like."""

from collections.abc import Callable

from addon_operator.kernel import names
from tests.support import rows

LONG = "a" * 64
DEEP = ".".join(["a" * 63] * 4)[:253]


@rows.each(
    ("check", "right", "wrong"),
    [
        (names.is_dns_label, ("a", "a-1", "1", LONG[1:]), ("", "-a", "a-", "a.b", "A", LONG, "a\n")),
        (names.is_subdomain, ("a", "a.b-c", LONG, DEEP), ("", "a..b", ".a", "a.", "A.b", DEEP + "a")),
        (
            names.is_label_key,
            ("a", "A_b.c", "x.y/A", f"{DEEP}/a"),
            ("", "/a", "a/", "a/b/c", "X/a", "a..b/c", LONG, f"{DEEP}a/a"),
        ),
        (names.is_label_value, ("", "a", "A_b.c"), ("-a", "a/b", LONG, "ä")),
    ],
    ids=["DNS label", "subdomain", "label key", "label value"],
)
def test_names_are_those_that_the_api_server_takes(
    check: Callable[[str], bool], right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    assert [text for text in right if not check(text)] == []
    assert [text for text in wrong if check(text)] == []

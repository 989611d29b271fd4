"""Times as text."""

from addon_operator.kernel import clock
from tests.support import rows


def test_a_time_is_written_as_the_api_server_writes_it() -> None:
    assert clock.rfc3339(1_000_000_000.9) == "2001-09-09T01:46:40Z"


@rows.each(
    "text",
    [
        "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00-23:59",
        "9999-12-31T23:59:59Z", "9999-12-31T23:59:59+23:59", "9999-12-31T23:59:59-23:59",
        "2026-02-30T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01", "now", "", "99999-01-01T00:00:00Z",
        "2026-01-01T00:00:00.999999999Z", "9999-12-31T23:59:59.9999999Z",
    ],
)  # fmt: skip
def test_a_time_that_was_read_can_be_written_and_anything_else_is_a_value_error(text: str) -> None:
    try:
        seconds = clock.parse_rfc3339(text)
    except ValueError:
        return
    assert clock.rfc3339(seconds).endswith("Z")

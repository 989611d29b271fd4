"""Times as text."""

from addon_operator.kernel import clock


def test_a_time_is_written_as_the_api_server_writes_it() -> None:
    assert clock.rfc3339(1_000_000_000.9) == "2001-09-09T01:46:40Z"

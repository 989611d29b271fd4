"""Warnings of things that are tried again and again."""

import structlog
from structlog import testing

from addon_operator.aio import warn_once


def test_a_warning_is_logged_once_until_it_changes_or_is_over() -> None:
    with testing.capture_logs() as logs:
        once = warn_once.WarnOnce(structlog.get_logger())
        once.over("it works")
        for text in ("it fails", "it fails", "it fails otherwise"):
            once.warn(text)
        once.over("it works again")
        once.warn("it fails otherwise")
    assert [(log["log_level"], log["event"]) for log in logs] == [
        ("warning", "it fails"),
        ("warning", "it fails otherwise"),
        ("info", "it works again"),
        ("warning", "it fails otherwise"),
    ]

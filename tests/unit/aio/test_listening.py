"""Why a port cannot be listened on, by the errors of asyncio."""

import errno

from addon_operator.aio import listening
from tests.support import rows


@rows.each(
    ("error", "reason"),
    [
        (OSError(errno.EADDRINUSE, "error while attempting to bind"), "another process listens there"),
        (OSError(errno.EADDRNOTAVAIL, "x"), "this machine has no such address"),
        (
            OSError("could not bind on any address out of [('192.0.2.1', 0)]"),
            "this machine has no such address",
        ),
        (OSError(errno.EACCES, "x"), "this user may not listen on such a low port"),
        (OSError(errno.EMFILE, "('::', 1): too many open files"), "too many open files"),
        (OSError("no route"), "no route"),
    ],
    ids=["taken", "elsewhere", "elsewhere, Python 3.13", "low", "other", "no number"],
)
def test_the_reason_is_given_in_a_users_words(error: OSError, reason: str) -> None:
    assert listening.reason(error) == reason

"""Why an address and port cannot be listened on, in the words of a user."""

import errno
from typing import Final

_REASONS: Final = {
    errno.EADDRINUSE: "another process listens there",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "this user may not listen on such a low port",
}
# From Python 3.13 on asyncio passes over addresses that the machine does not have; when none is left, its
# error has no number.
_NONE_LEFT: Final = "could not bind on any address"


def reason(error: OSError) -> str:
    """Say why ``asyncio`` could not listen."""
    if error.errno is None and str(error).startswith(_NONE_LEFT):
        return _REASONS[errno.EADDRNOTAVAIL]
    # asyncio's own text repeats the address.
    return _REASONS.get(error.errno or 0) or str(error.strerror or error).rpartition(": ")[2]

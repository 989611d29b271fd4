"""A helm that notes what it is called for, and takes as little time as it can."""

import functools
import pathlib
import subprocess
from typing import Final

_SCRIPT: Final = """\
#!/bin/sh
echo "$*" >> "{calls}"
{more}
# Every operator asks for it at its start, and it stays the same.
if [ "$*" = "version --template {{{{.Version}}}}" ]; then printf %s "{version}"; exit; fi
{quick}
# A process that ends so soon need not collect garbage: that is a fifth of its time.
GOGC=off exec "{helm}" "$@"
"""
# To fetch and read the schemas of all kinds is half of what an installation costs Helm and the API server.
_QUICK: Final = """\
case "$1" in install|upgrade) set -- "$@" --disable-openapi-validation ;; esac
"""


def write(
    path: pathlib.Path, helm: pathlib.Path, calls: pathlib.Path, more: str = "", *, validates: bool = False
) -> None:
    """Write the program; it adds its arguments to the file ``calls``, and runs ``more`` first.

    Unless it ``validates``, it leaves all checks of objects to the API server.
    """
    quick = "" if validates else _QUICK
    path.write_text(_SCRIPT.format(calls=calls, more=more, helm=helm, version=_version(helm), quick=quick))
    path.chmod(0o755)


@functools.cache
def _version(helm: pathlib.Path) -> str:
    argv = [str(helm), "version", "--template", "{{.Version}}"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

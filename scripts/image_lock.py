"""Writes the locks of the image: what of ``requirements-dev.lock`` the operator, or its build, needs.

``--check`` writes nothing and ends with code 1 when a file is not what it would write.
"""

import dataclasses
import pathlib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

CHECKOUT: Final = pathlib.Path(__file__).resolve().parents[1]
LOCK: Final = CHECKOUT / "requirements-dev.lock"
PROJECT: Final = CHECKOUT / "pyproject.toml"
DOCKER: Final = CHECKOUT / "deploy" / "docker"

_HEADER: Final = "# Taken from requirements-dev.lock by 'make lock'; do not edit.\n"
_ENTRY: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==")
_VIA: Final = re.compile(r"^    # (?:via )? *(?P<name>[A-Za-z0-9._-]+)(?: \(|$)", re.MULTILINE)
_REQUIREMENT: Final = re.compile(r"[A-Za-z0-9._-]+")
_SEPARATORS: Final = re.compile(r"[-_.]+")


@dataclasses.dataclass(frozen=True, slots=True)
class Pin:
    """One entry of the lock."""

    text: str
    """Its lines: version, marker, hashes."""
    wanted_by: frozenset[str]


def locks(lock: str, project: str) -> dict[str, str]:
    """Name of each file and what it should hold."""
    pins = dict(_pins(lock))
    described = tomllib.loads(project)
    return {
        "requirements.lock": _lock(pins, described["project"]["dependencies"]),
        "build.lock": _lock(pins, described["build-system"]["requires"]),
    }


def _lock(pins: Mapping[str, Pin], requirements: Iterable[str]) -> str:
    needed = {_canonical(match[0]) for text in requirements if (match := _REQUIREMENT.match(text))}
    while more := {name for name, pin in pins.items() if pin.wanted_by & needed} - needed:
        needed |= more
    return _HEADER + "".join(pins[name].text for name in sorted(needed))


def _pins(lock: str) -> Iterator[tuple[str, Pin]]:
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock):
        match = _ENTRY.match(block)
        if match is None:
            continue
        entry = "".join(line + "\n" for line in block.splitlines() if not line.lstrip().startswith("#"))
        wanted_by = frozenset(_canonical(found["name"]) for found in _VIA.finditer(block))
        yield _canonical(match["name"]), Pin(entry, wanted_by)


def _canonical(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def main() -> int:
    """Write, or check; the exit code."""
    wanted = locks(LOCK.read_text("utf-8"), PROJECT.read_text("utf-8"))
    files = {DOCKER / name: text for name, text in wanted.items()}
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        if "--check" in sys.argv[1:]:
            print(f"{path.relative_to(CHECKOUT)} is not in step with requirements-dev.lock: run 'make lock'")
        else:
            path.write_text(files[path], "utf-8")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())

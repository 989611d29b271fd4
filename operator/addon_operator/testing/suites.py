"""Runs the tests of several modules, those in Python and those in YAML, and counts them by module."""

import importlib.metadata
import importlib.util
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from addon_operator.commands import values_files
from addon_operator.kernel import errors
from addon_operator.loading import module_directories
from addon_operator.testing.modules import places

if TYPE_CHECKING:
    from addon_operator.testing import counting

_PLUGIN: Final = "addon_operator.testing.plugin"
_ENTRY: Final = "pytest11"
_NOT_INSTALLED: Final = "tests of modules need pytest; install it: pip install 'pytest>=9.1'"
# Modules are charts: nothing may be left behind in them. Files of several modules may have one name, and
# one that cannot be read takes no other with it.
_OPTIONS: Final = (
    "--import-mode=importlib",
    "--continue-on-collection-errors",
    "-p",
    "no:cacheprovider",
    # This process has imported the plugin's package already; there are no assertions in it.
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)


class ArgumentsError(errors.ConfigurationError):
    """pytest does not take the arguments that it was to get."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a run."""

    counts: "Sequence[counting.Counts]"
    has_passed: bool
    """Whether there are tests, and all of them passed."""


def chosen(directories: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[pathlib.Path]:
    """Return the modules in these directories: each is a module, or holds modules, or ``modules/``.

    Global hooks beside ``modules/`` or named themselves are among them, if they have tests.

    Without any, it is the current directory if that is one of these, and else ``MODULES_DIR``.
    Raises a :class:`.ConfigurationError` for a directory without a module.
    """
    here = pathlib.Path.cwd()
    kind = module_directories.kind_of(here)
    is_here = kind is not module_directories.Kind.MODULES or module_directories.holds_a_module(here)
    flags: list[tuple[Mapping[str, str | None], str | None]] = [
        values_files.flags_of(each, None)
        for each in directories or ((".",) if is_here else ())
        if not places.is_global_hooks(pathlib.Path(each))
    ]
    found = [path.absolute() for path in map(pathlib.Path, directories) if places.is_global_hooks(path)]
    for below, only in flags or ([] if directories else [({}, None)]):
        place = values_files.places(below, environ)
        hooks = place.global_hooks_dir.absolute()
        if (not below or below["global_hooks_dir"]) and (hooks / places.TESTS).is_dir():
            found.append(hooks)
        for root in place.modules_dirs:
            paths = [path.absolute() for path in module_directories.listed(root)]
            found += [path for path in paths if only in (None, path.name)]
    if not found:
        raise errors.ConfigurationError(f"there is no module in {', '.join(directories) or here}")
    return list(dict.fromkeys(found))


def run(modules: Sequence[pathlib.Path], arguments: Sequence[str]) -> Outcome:
    """Run the tests of these modules with pytest, with further ``arguments`` of its.

    Raises a :class:`.ConfigurationError` if pytest is not installed, an :class:`ArgumentsError`, and
    :class:`KeyboardInterrupt` after Ctrl-C.
    """
    if importlib.util.find_spec("pytest") is None:
        raise errors.ConfigurationError(_NOT_INSTALLED)
    import pytest

    from addon_operator.testing import counting

    counter = counting.Counter([counting.Counts(module) for module in modules])
    tests = [each.module / places.TESTS for each in counter.counts]
    # pathlib's raises where nobody may look, which is told next.
    given = [path for path in tests if os.path.isdir(path)]  # noqa: PTH112
    if closed := next(filter(None, map(module_directories.unreachable, [*modules, *given])), ""):
        raise errors.ConfigurationError(closed)
    if not given:
        return Outcome(counter.counts, False)
    sys.dont_write_bytecode = True
    plugin = () if _is_installed() else ("-p", _PLUGIN)
    code = int(pytest.main([*plugin, *_OPTIONS, *arguments, *map(str, given)], plugins=[counter]))
    if code == pytest.ExitCode.USAGE_ERROR:
        raise ArgumentsError("pytest does not take these arguments: its own words are above")
    if counter.is_interrupted:
        raise KeyboardInterrupt
    return Outcome(counter.counts, code == pytest.ExitCode.OK)


def _is_installed() -> bool:
    """Say whether pytest finds the plugin by itself: it must not be named then."""
    return any(each.value == _PLUGIN for each in importlib.metadata.entry_points(group=_ENTRY))

"""Which directories hold modules, and what the modules there are called."""

import contextlib
import enum
import errno
import itertools
import os
import pathlib
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from addon_operator.helm.charts import plain_files
from addon_operator.kernel import errors, names
from addon_operator.modules import module_config

VALUES_FILE: Final = "values.yaml"
SCHEMAS_DIRECTORY: Final = "openapi"
_FILES_OF_A_MODULE: Final = ("Chart.yaml", module_config.FILE)
_FILES: Final = (*_FILES_OF_A_MODULE, VALUES_FILE)
_DIRECTORIES_OF_A_MODULE: Final = ("crds", "hooks", SCHEMAS_DIRECTORY, "templates")
MODULES_NAME: Final = "modules"
GLOBAL_NAME: Final = "global-hooks"
_ENABLED: Final = "enabled"
_MARKS: Final = ("Chart.yaml", "templates", "crds", _ENABLED)
_MARKS_OF_NUMBERED: Final = (*_MARKS, "hooks", SCHEMAS_DIRECTORY, VALUES_FILE)
_PARTS: Final = frozenset({"chart", "charts", "crds", "hooks", SCHEMAS_DIRECTORY, "templates"})
_OWN: Final = frozenset(map(str.lower, (*_FILES, _ENABLED, *_DIRECTORIES_OF_A_MODULE)))
_HAS: Final = (
    "Chart.yaml, chart/Chart.yaml, module.yaml, values.yaml, enabled, templates/, hooks/, crds/ and openapi/"
)
_STRAY_REMEDY: Final = "move it out of MODULES_DIR, or give it a number such as 010- if it is one"


class Kind(enum.Enum):
    """What a directory that somebody names without more is."""

    MODULE = enum.auto()
    MODULES = enum.auto()
    """A directory of modules; those that have nothing of the others are taken for one."""
    REPOSITORY = enum.auto()
    """One with ``modules/`` in it, and perhaps ``global-hooks/``."""


def kind_of(directory: pathlib.Path) -> Kind:
    """Say what a directory is; one that modules lie in is not a module, whatever else lies beside them.

    Its own ``module.yaml`` or ``Chart.yaml`` makes it a module. Else, it is what its modules make it. Only
    one without any is a module by its parts, such as ``templates``; ``hooks`` alone count with a number.
    """
    if _has_any(directory, _FILES_OF_A_MODULE):
        return Kind.MODULE
    inner, is_numbered = directory / MODULES_NAME, _has_number(directory.absolute())
    has_global = _is_directory(directory / GLOBAL_NAME)
    if _is_directory(inner) and (not is_numbered or has_global or holds_a_module(inner)):
        return Kind.MODULES if kind_of(inner) is Kind.MODULE else Kind.REPOSITORY
    if has_global or holds_a_module(directory):
        return Kind.MODULES
    marks = _MARKS_OF_NUMBERED if is_numbered else _MARKS
    is_stock = _has_any(directory / module_config.CHART_DIRECTORY, ("Chart.yaml",))
    return Kind.MODULE if is_stock or _has_any(directory, marks) else Kind.MODULES


def is_module(directory: pathlib.Path) -> bool:
    """Say whether a directory that somebody names is one module, see :func:`kind_of`."""
    return kind_of(directory) is Kind.MODULE


def _has_any(directory: pathlib.Path, entries: Iterable[str]) -> bool:
    # Where nobody may look, nothing is.
    return any(os.path.lexists(directory / name) for name in entries)


def holds_a_module(directory: pathlib.Path) -> bool:
    """Say whether a module lies there for sure: it has a number, or its own files."""
    with contextlib.suppress(OSError):
        inside = (each for each in directory.iterdir() if each.name != module_config.CHART_DIRECTORY)
        return any(
            _is_directory(entry) and (_has_number(entry) or _has_any(entry, _FILES_OF_A_MODULE))
            for entry in inside
        )
    return False


def listed(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return the directories of modules in a modules directory, by name.

    Those that belong to a module, such as ``hooks``, are none beside files of a module; those without
    anything of a module are none at all, see :func:`strays`.

    Raises a :class:`.ConfigurationError` for one that is missing, cannot be read, is a module, lies in one,
    or only lies around a directory of modules. Everybody who reads modules asks here.
    """
    check(directory)
    try:
        found = _below(directory)
        _check_is_no_module(directory, found)
        _check_is_not_in_module(directory, found)
        _check_is_not_around(directory, found)
        return [path for path in found if not _why_stray(path)]
    except OSError as error:
        raise errors.ConfigurationError(
            f"modules directory {directory.absolute()} cannot be read: {error.strerror}; correct its "
            "permissions"
        ) from None


def _below(directory: pathlib.Path) -> list[pathlib.Path]:
    parts = parts_of_module(directory)
    return [
        entry
        for entry in sorted(directory.iterdir())
        if not entry.name.startswith(".") and entry.name not in parts and _is_directory(entry)
    ]


def _is_directory(entry: pathlib.Path) -> bool:
    """Say whether it is one, or may be: only what is not there itself is gone.

    A link to a volume that is not mounted leads nowhere, say.
    """
    try:
        return stat.S_ISDIR(entry.stat().st_mode)
    except OSError:
        return os.path.lexists(entry)


def unreachable(path: pathlib.Path) -> str:
    """Say why nobody can look into the directory of a module; empty if one can.

    What lies in such a one is not known, and so it is not looked for: what cannot be seen is not absent.
    """
    try:
        path.stat()
    except OSError as error:
        return f"{path} {_told(path, error)}; correct it, or remove it"
    if not os.access(path, os.R_OK | os.X_OK, effective_ids=True):
        return f"{path} cannot be read: {os.strerror(errno.EACCES)}; correct its permissions"
    return _not_text(path)


def why_no_directory(path: pathlib.Path) -> str:
    """Say why a path is not that of a directory, in words that follow its name; empty if it is."""
    try:
        is_directory = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        return _told(path, error)
    return "" if is_directory else "is not a directory"


def _told(path: pathlib.Path, error: OSError) -> str:
    if os.path.islink(path):  # noqa: PTH114 - pathlib's raises where nobody may look
        return f"is a link to {path.readlink()}, which leads nowhere"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "does not exist"
    return f"cannot be read: {error.strerror}"


def _not_text(path: pathlib.Path) -> str:
    """Say that a path is not text: nothing that names it could be written into JSON."""
    whole = str(path.absolute())
    return "" if errors.writable(whole) == whole else f"{path} has a name that is not UTF-8 text; rename it"


def parts_of_module(directory: pathlib.Path) -> list[str]:
    """Return the directories that belong to a module and lie beside files of one, by name."""
    if not any((directory / name).is_file() for name in _FILES):
        return []
    return sorted(name for name in _PARTS if (directory / name).is_dir() and not _is_module(directory / name))


def _is_module(part: pathlib.Path) -> bool:
    """Say whether what is named like a part of a module is a module, which must not be lost.

    The chart of a module has the files of one.
    """
    is_chart = part.name == module_config.CHART_DIRECTORY
    return not is_chart and any(
        (part / name).exists() for name in (*_FILES_OF_A_MODULE, "templates", _ENABLED)
    )


def strays(directories: Sequence[pathlib.Path]) -> dict[pathlib.Path, str]:
    """Return the directories that lie where modules do and are none, with a sentence for each.

    Raises :class:`OSError` for a modules directory that cannot be read.
    """
    # pathlib's raises for a link to itself.
    named = {os.path.realpath(path) for path in directories}
    found: dict[pathlib.Path, str] = {}
    for directory in directories:
        for name in parts_of_module(directory):
            found[directory / name] = (
                "is not a module, as a directory of that name belongs to one; if it is one, rename it to "
                f"'010-{name}'"
            )
        found |= {path: why for path in _below(directory) if (why := _why_stray(path))}
    strange = {path: why for path, why in found.items() if os.path.realpath(path) not in named}
    return {path: f"{path.absolute()} {why}" for path, why in strange.items()}


def unread(directories: Sequence[pathlib.Path], modules: Collection[str]) -> str:
    """Say which module is there beside these, or that nobody can see that; empty if none is."""
    try:
        paths = [path for directory in directories for path in listed(directory)]
    except errors.ConfigurationError as error:
        return str(error)
    new = next((path for path in paths if (module_name(path) or path.name) not in modules), None)
    return "" if new is None else f"{new.absolute()} is there by now, and has not been read yet"


def by_name(found: Mapping[pathlib.Path, str]) -> dict[str, str]:
    """Return the same by the names that the directories would have as modules."""
    return {module_name(path) or path.name: why for path, why in found.items()}


def _why_stray(path: pathlib.Path) -> str:
    """Say why a directory beside modules is not one; empty if it is, or may be.

    A number says that it is a module, whatever is missing in it. So does what cannot be read.
    """
    if _is_around_modules(path):
        return "is not a module, and the modules in it are not read; name it in MODULES_DIR, too"
    if path.name == GLOBAL_NAME and not _has_any(path, _FILES_OF_A_MODULE):
        return "is not a module, as its name is that of global hooks: GLOBAL_HOOKS_DIR names these"
    return "" if _looks_like_module(path) else f"is not a module: it has none of {_HAS}; {_STRAY_REMEDY}"


def _check_is_no_module(directory: pathlib.Path, found: Sequence[pathlib.Path]) -> None:
    """Raise a :class:`.ConfigurationError` for a module in the place of a directory of modules."""
    parts = parts_of_module(directory)
    is_chart = any((directory / name).is_file() for name in _FILES_OF_A_MODULE)
    if (parts or is_chart) and not any(map(_looks_like_module, found)):
        seen = [name for name in _FILES if (directory / name).is_file()]
        holds = ", ".join([*(f"{name}/" for name in parts), *seen])
        around = (module_around(directory) or directory.absolute()).parent
        raise _wrong(directory, f"is a module itself: it holds {holds}", around)


def _check_is_not_in_module(directory: pathlib.Path, found: Sequence[pathlib.Path]) -> None:
    """Raise a :class:`.ConfigurationError` for a part of a module in the place of a directory of modules."""
    module = module_around(directory)
    if module is None or module == directory.resolve():
        return
    is_part = not _PARTS.isdisjoint(directory.resolve().relative_to(module).parts)
    if is_part or not any(map(_looks_like_module, found)):
        raise _wrong(directory, f"lies in module {module.name}", module.parent)


def module_around(directory: pathlib.Path) -> pathlib.Path | None:
    """Return the module that a directory is or lies in; ``None`` if it is not in one for sure.

    One with a number or ``module.yaml`` is one for sure. A chart alone may be a repository's: it is one only
    around its parts.
    """
    path = directory.resolve()
    above = [path, *path.parents]
    for each in above:
        if _has_any(each, (module_config.FILE,)) or (_has_number(each) and is_module(each)):
            return each
    inside = itertools.pairwise(above)
    charts = (outer for inner, outer in inside if inner.name in _PARTS and _has_any(outer, ("Chart.yaml",)))
    return next(charts, None)


def _check_is_not_around(directory: pathlib.Path, found: Sequence[pathlib.Path]) -> None:
    """Raise a :class:`.ConfigurationError` for what only lies around a directory of modules."""
    around = [path for path in found if _is_around_modules(path)]
    is_repository = any(path.name == MODULES_NAME for path in around)
    # Beside modules/, a repository has much that looks like a module, such as charts and definitions.
    is_own = _is_module_for_sure if is_repository else _looks_like_module
    beside = (path for path in found if path not in around and path.name != GLOBAL_NAME)
    if around and not any(map(is_own, beside)):
        inner = [path for path in around if path.name == MODULES_NAME or not is_repository]
        raise _wrong(directory, "is one level too high: the modules are below it", *inner)


def _wrong(directory: pathlib.Path, why: str, *right: pathlib.Path) -> errors.ConfigurationError:
    meant = os.pathsep.join(str(path.absolute()) for path in right)
    return errors.ConfigurationError(
        f"modules directory {directory.absolute()} {why}; set MODULES_DIR={meant}, or --modules-dir"
    )


def _is_around_modules(path: pathlib.Path) -> bool:
    """Say whether it has nothing of a module but modules in it, as a directory of modules has."""
    if _has_number(path) or path.name == GLOBAL_NAME:
        return False
    if path.name == MODULES_NAME and not _has_any(path, (*_FILES_OF_A_MODULE, _ENABLED, "templates")):
        return holds_a_module(path)
    has_parts = _has_any(path, (*_FILES_OF_A_MODULE, *_PARTS, _ENABLED))
    return not has_parts and (_has_numbered(path) if _has_any(path, _FILES) else holds_a_module(path))


def _has_numbered(path: pathlib.Path) -> bool:
    # Foreign directories lie there, too, and may be closed.
    with contextlib.suppress(OSError):
        return any(_is_numbered(entry) and entry.is_dir() for entry in path.iterdir())
    return False


def _is_numbered(path: pathlib.Path) -> bool:
    return module_name(path) is not None and _has_number(path)


def _has_number(path: pathlib.Path) -> bool:
    return names.directory_order(path.name) is not None


def _is_module_for_sure(path: pathlib.Path) -> bool:
    return _has_number(path) or _has_any(path, (module_config.FILE,))


def _looks_like_module(path: pathlib.Path) -> bool:
    """Say whether it has a number, or anything of a module, under a name that is nearly right, too."""
    if _has_number(path) or _has_any(path / module_config.CHART_DIRECTORY, ("Chart.yaml",)):
        return True
    try:
        return any(entry.name.lower().replace(".yml", ".yaml") in _OWN for entry in path.iterdir())
    except OSError:
        # What is closed may be one, if one may be called so.
        return module_name(path) is not None


def check(directory: pathlib.Path) -> None:
    """Raise a :class:`.ConfigurationError` if there is no such directory."""
    if not os.path.lexists(directory) and (module := module_around(directory.absolute().parent)):
        raise _wrong(directory, f"does not exist, as {module.name} is a module", module.parent)
    _check_is_directory("modules", directory, "name it with MODULES_DIR or --modules-dir")


def check_global(directory: pathlib.Path) -> None:
    """Raise a :class:`.ConfigurationError` if a directory of global hooks that is named is not there."""
    _check_is_directory("global hooks", directory, "name it with GLOBAL_HOOKS_DIR or --global-hooks-dir")


def _check_is_directory(what: str, directory: pathlib.Path, remedy: str) -> None:
    if problem := why_no_directory(directory):
        raise errors.ConfigurationError(f"{what} directory {directory.absolute()} {problem}; {remedy}")
    if problem := _not_text(directory):
        raise errors.ConfigurationError(f"{what} directory {problem}")


def names_of(paths: Iterable[pathlib.Path]) -> frozenset[names.ModuleName]:
    """Return the names of modules that directories have."""
    return frozenset(filter(None, map(module_name, paths)))


def module_name(path: pathlib.Path) -> names.ModuleName | None:
    """Return the name of the module in a directory; ``None`` if no module can have the directory's name."""
    try:
        return names.parse_module_directory(path.name)[1]
    except names.ModuleNameError:
        return None


def check_name(path: pathlib.Path) -> None:
    """Raise :class:`.ModuleNameError` for a directory whose name no module can have."""
    try:
        names.parse_module_directory(path.name)
    except names.ModuleNameError as error:
        raise names.ModuleNameError(f"{path}: {error}") from None


def too_much_linked(path: pathlib.Path) -> str:
    """Say that links lead to too much; Helm, too, would follow all of them."""
    try:
        for _ in plain_files.walk(path):
            pass
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def not_directories(path: pathlib.Path) -> Iterator[str]:
    """Yield a sentence for each thing in the place of a directory, which would count as none."""
    for name in _DIRECTORIES_OF_A_MODULE:
        if os.path.lexists(path / name) and not (path / name).is_dir():
            yield f"{path / name} is not a directory; make it one, or remove it"

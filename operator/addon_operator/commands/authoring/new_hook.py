"""A new hook of a module, or a global one, with a test."""

import enum
import itertools
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.commands.authoring import skeletons
from addon_operator.commands.checks import hook_places, hooks_check
from addon_operator.kernel import errors, names
from addon_operator.loading import hook_files, module_directories, named_files

_HOOKS: Final = skeletons.ROOT / "hooks"
_TESTS: Final = "tests"
_NAME: Final = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
_MODE: Final = 0o755


class Language(enum.StrEnum):
    """In what a hook is written."""

    PYTHON = "python"
    BASH = "bash"


class Binding(enum.StrEnum):
    """When a hook runs, as people name it."""

    ON_STARTUP = "onStartup"
    BEFORE_ALL = "beforeAll"
    AFTER_ALL = "afterAll"
    BEFORE_HELM = "beforeHelm"
    AFTER_HELM = "afterHelm"
    BEFORE_DELETE_HELM = "beforeDeleteHelm"
    AFTER_DELETE_HELM = "afterDeleteHelm"
    SCHEDULE = "schedule"
    KUBERNETES = "kubernetes"
    VALIDATING = "validating"
    MUTATING = "mutating"
    CONVERSION = "conversion"


_SKELETONS: Final[Mapping[Binding, str]] = {
    Binding.ON_STARTUP: "values",
    Binding.BEFORE_ALL: "values",
    Binding.AFTER_ALL: "says",
    Binding.BEFORE_HELM: "values",
    Binding.AFTER_HELM: "says",
    Binding.BEFORE_DELETE_HELM: "says",
    Binding.AFTER_DELETE_HELM: "says",
}
_SUFFIXES: Final[Mapping[Language, str]] = {Language.PYTHON: ".py", Language.BASH: ".sh"}
_SETS_VALUES: Final = frozenset(
    {Binding.ON_STARTUP, Binding.BEFORE_ALL, Binding.BEFORE_HELM, Binding.KUBERNETES}
)
_ONLY_GLOBAL: Final = (Binding.BEFORE_ALL, Binding.AFTER_ALL)
_ONLY_OF_MODULES: Final = (
    Binding.BEFORE_HELM,
    Binding.AFTER_HELM,
    Binding.BEFORE_DELETE_HELM,
    Binding.AFTER_DELETE_HELM,
    Binding.CONVERSION,
)


class NewHookError(errors.AddonOperatorError):
    """The hook cannot be made, or is there already."""


class Request(msgspec.Struct, frozen=True):
    """What is wanted."""

    owner: str
    """The name of a module, or ``global``."""
    name: str
    """Without suffix."""
    binding: Binding
    language: Language


class Written(msgspec.Struct, frozen=True):
    """The files of a new hook."""

    hook: pathlib.Path
    test: pathlib.Path
    hint: str = ""
    """What the user has to know so that it works; empty if nothing."""


class Place(msgspec.Struct, frozen=True):
    """Where a hook is to be."""

    path: pathlib.Path
    """The directory of a module, or that of global hooks, which need not exist."""
    owner: str
    """The name of the module, or ``global``."""


def bindings_of(owner: str) -> tuple[Binding, ...]:
    """Return the bindings that a hook can have, of a module or of ``global``; the usual one is first."""
    is_global = owner == names.GLOBAL_KEY
    usual, never = (
        (Binding.BEFORE_ALL, _ONLY_OF_MODULES) if is_global else (Binding.BEFORE_HELM, _ONLY_GLOBAL)
    )
    return (usual, *(each for each in Binding if each not in (usual, *never)))


def find(place: str, configured: hook_places.Configured) -> tuple[Place, str]:
    """Return where the hook ``MODULE/NAME`` is to be, and NAME; MODULE is a name or a directory.

    ``global-hooks/NAME`` is a global hook, as is one in the directory of the settings.

    Raises :class:`NewHookError`.
    """
    module, _, name = place.rpartition("/")
    if not module or not name:
        raise NewHookError(
            f"{place!r} is not a place for a hook; write MODULE/NAME, such as web/count-nodes.py, or "
            "global-hooks/NAME"
        )
    path = pathlib.Path(module)
    if module in (names.GLOBAL_KEY, module_directories.GLOBAL_NAME) or configured.is_global(path):
        return Place(path if path.is_dir() else configured.global_hooks_dir, names.GLOBAL_KEY), name
    if path.is_dir():
        return Place(path, _module_in(path)), name
    known = {
        each.name: each
        for directory in filter(pathlib.Path.is_dir, configured.modules_dirs)
        for each in module_directories.listed(directory)
    }
    owners = {each: owner for each in known.values() if (owner := module_directories.module_name(each))}
    for each, owner in owners.items():
        if module in (each.name, owner):
            return Place(each, owner), name
    where = ", ".join(str(each.absolute()) for each in configured.modules_dirs)
    hint = names.did_you_mean(module, owners.values(), "name its directory, or --modules-dir")
    raise NewHookError(f"there is no module {module!r} in {where}; {hint}")


def _module_in(path: pathlib.Path) -> names.ModuleName:
    directory = path.resolve()
    if not module_directories.is_module(directory) and names.directory_order(directory.name) is None:
        raise NewHookError(f"{directory} is not a module; name the directory of one, or 'global-hooks'")
    try:
        return names.parse_module_directory(directory.name)[1]
    except names.ModuleNameError as error:
        raise NewHookError(str(error)) from None


def parse_name(name: str, language: Language | None) -> tuple[str, Language]:
    """Return name and language; the suffix says the language, which is Python without either.

    Raises :class:`NewHookError`.
    """
    by_suffix = next((each for each, suffix in _SUFFIXES.items() if name.endswith(suffix)), None)
    stem = name if by_suffix is None else name.removesuffix(_SUFFIXES[by_suffix])
    if by_suffix is None and "." in name:
        raise NewHookError(
            f"{name!r} is a hook in another language; a name ends in .py or .sh, or in neither"
        )
    if not _NAME.fullmatch(stem):
        raise NewHookError(f"{name!r} is not a name for a hook; use lower-case words joined by dashes")
    if by_suffix is not None and language not in (None, by_suffix):
        raise NewHookError(f"{name!r} is a hook in {by_suffix}; leave --hook out, or name it {stem}")
    return stem, by_suffix or language or Language.PYTHON


def create(place: Place, name: str, binding: Binding | None, language: Language | None) -> Written:
    """Write a hook and its test into a place, by default with the usual binding; nothing is overwritten.

    Raises :class:`NewHookError` for what is there, cannot be written, or what this operator would refuse.
    """
    stem, chosen = parse_name(name, language)
    possible = bindings_of(place.owner)
    if binding is not None and binding not in possible:
        whose = "a global hook" if place.owner == names.GLOBAL_KEY else "a hook of a module"
        raise NewHookError(f"{whose} cannot have {binding}; --on is one of {', '.join(possible)}")
    request = Request(place.owner, stem, binding or possible[0], chosen)
    with skeletons.writing(place.path, NewHookError):
        written = write(place.path, request)
        refused, warned = _asked(written.hook)
        if refused:
            written.hook.unlink()
            written.test.unlink()
            raise NewHookError(
                f"a hook with {request.binding} cannot run here: {refused}; nothing was written"
            )
        return structs.replace(written, hint=warned or _hint(place.path, request))


def write(root: pathlib.Path, request: Request) -> Written:
    """Write the files of a hook below the directory of its module, or of global hooks.

    Raises :class:`NewHookError` if one of them is there, and :class:`OSError`.
    """
    kind, suffix = _SKELETONS.get(request.binding, str(request.binding)), _SUFFIXES[request.language]
    skeleton = _HOOKS / f"{kind}{suffix}.txt"
    if not skeleton.is_file():
        raise NewHookError(f"there is no skeleton in {request.language} for {request.binding}; take python")
    marks = _marks(request, suffix)
    hook = root / hook_files.HOOKS_DIRECTORY / f"{request.name}{suffix}"
    test = root / _TESTS / f"{request.name}.yaml"
    for file in (hook, test):
        if os.path.lexists(file):
            raise NewHookError(f"{file} is there already; nothing was written")
    _write_new(test, skeletons.read(_HOOKS / f"{kind}.test.yaml", marks))
    _write_new(hook, skeletons.read(skeleton, marks))
    hook.chmod(_MODE)
    return Written(hook, test)


def _marks(request: Request, suffix: str) -> Mapping[str, str]:
    words = re.split("[-_]", request.name)
    return {
        "MODULE": request.owner,
        "KEY": str(names.values_key(names.ModuleName(request.owner))),
        "HOOK": f"{request.name}{suffix}",
        "HOOKNAME": request.name.replace("_", "-"),
        "HOOKKEY": words[0] + "".join(map(str.capitalize, words[1:])),
        "METRIC": "_".join([*request.owner.split("-"), *words]),
        "BINDING": str(request.binding),
    }


def _write_new(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def _asked(hook: pathlib.Path) -> tuple[str, str]:
    """Ask the hook for its configuration, and return what is wrong with it, and what else there is to say."""
    files = hooks_check.check(hook_places.configured({}).below(hook)).files
    refused, warned = ([*each.errors] for each in files), ([*each.warnings] for each in files)
    return "; ".join(itertools.chain(*refused)), "; ".join(itertools.chain(*warned))


def _hint(path: pathlib.Path, request: Request) -> str:
    schema = path / module_directories.SCHEMAS_DIRECTORY / module_directories.VALUES_FILE
    if request.binding not in _SETS_VALUES or not schema.is_file():
        return ""
    if "internal:" in named_files.read_text(schema):
        return ""
    return f"the hook sets a value below 'internal': allow it in {schema}"

"""A new module: a directory that lints, renders, has a test and a README."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
from collections.abc import Iterator
from typing import Final

import msgspec

from addon_operator.commands.authoring import new_hook, skeletons
from addon_operator.commands.checks import values_schema
from addon_operator.kernel import errors, names
from addon_operator.loading import module_directories
from addon_operator.modules import editor_schema, module_config, module_schema

_STEP: Final = 10
_MOST_ORDER: Final = 999_999
_MODULE_SCHEMA: Final = ".module.schema.json"
"""In the directory of modules: one for all of them."""
_CHART: Final = re.compile(r"(?P<repository>(?:oci|https?)://[^@\s]+)/(?P<name>[^/@\s]+)@(?P<version>[^@/]+)")
_EXACT: Final = re.compile(module_schema.EXACT_VERSION)


class NewModuleError(errors.AddonOperatorError):
    """The module cannot be made, or is there already."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """A chart in a repository."""

    repository: str
    name: str
    version: str


_FORM: Final = "write REPOSITORY/NAME@VERSION"
_ARCHIVES: Final = (".tgz", ".tar.gz")
_ON_DISK: Final = ("/", "./", "../", "~", "file:")
"""How the place of a chart begins that lies in a directory."""


class Request(msgspec.Struct, frozen=True):
    """What is wanted."""

    name: str
    directory: pathlib.Path
    """Of modules; it is made if it is not there."""
    order: int | None = None
    """``None``: behind all that are there."""
    chart: Chart | None = None
    language: new_hook.Language | None = None
    """Of a first hook."""
    with_schema: bool = False


def parse_chart(text: str) -> Chart:
    """Return the chart that somebody named as ``oci://HOST/PATH/NAME@VERSION``, or with an address in http.

    Raises :class:`NewModuleError`.
    """
    if text.startswith(_ON_DISK):
        raise NewModuleError(
            f"{text!r} is not in a repository; copy the chart to modules/010-NAME/"
            f"{module_config.CHART_DIRECTORY}: this is a module, without any other file"
        )
    match = _CHART.fullmatch(text)
    if match is None:
        raise NewModuleError(_remedy(text))
    chart = Chart(match["repository"], match["name"], match["version"])
    if not _EXACT.fullmatch(chart.version):
        asked = _shown_by_helm(chart.repository, chart.name)
        if any(map(str.isdigit, chart.version)):
            asked += f" --version {shlex.quote(chart.version)}"
        raise NewModuleError(
            f"{chart.version!r} is not an exact version; '{asked}' prints the newest one that fits"
        )
    return chart


def _remedy(text: str) -> str:
    """Return what is wrong with a text that names no chart, and what to write."""
    scheme, mark, rest = text.partition("://")
    if mark and "@" in rest.partition("/")[0]:
        return "--chart has credentials; leave them out, and see CHART_CREDENTIALS for where they belong"
    if not mark and "/" in text:
        return (
            f"{text!r} has no address; {_FORM}. The address of what Helm calls {text.partition('/')[0]!r} is "
            "printed by 'helm repo list'"
        )
    if text.endswith(_ARCHIVES):
        return f"{text!r} is the archive of a chart; {_FORM}: the repository is where its index.yaml lies"
    repository, _, last = text.rpartition("/")
    name, colon, tag = last.partition(":")
    if mark and "@" not in text and repository.removeprefix(f"{scheme}:/").strip("/") and name:
        if colon:
            return f"{text!r} names no chart; write {repository}/{name}@{tag}"
        return (
            f"{text!r} names no version; {_FORM}. '{_shown_by_helm(repository, name)}' prints the newest one"
        )
    return f"{text!r} names no chart; {_FORM}, such as oci://ghcr.io/stefanprodan/charts/podinfo@6.14.1"


def _shown_by_helm(repository: str, name: str) -> str:
    """Return the command that shows what Helm finds of a chart."""
    is_registry = repository.startswith("oci:")
    return f"helm show chart {f'{repository}/{name}' if is_registry else f'{name} --repo {repository}'}"


def create(request: Request) -> pathlib.Path:
    """Write the module, all of it or nothing, and return its directory; nothing is overwritten.

    Raises :class:`NewModuleError` for what is there or cannot be written, and for names that modules cannot
    have.
    """
    name, path = _place(request)
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with skeletons.writing(path, NewModuleError, f"; nothing of {path} is left"):
        request.directory.mkdir(parents=True, exist_ok=True)
        with _removing(hidden):
            _write(request, name, hidden, path)
            # Only an empty directory would be replaced.
            hidden.rename(path)
        schema = request.directory / _MODULE_SCHEMA
        if not schema.exists():
            schema.write_text(json.dumps(editor_schema.schema(), indent=2) + "\n", "utf-8")
    return path


def _place(request: Request) -> tuple[names.ModuleName, pathlib.Path]:
    directory = request.directory
    if "/" in request.name or names.directory_order(request.name) is not None:
        raise NewModuleError(
            f"{request.name!r} is not the name of a module; write it without directory, which is an argument "
            "of its own, and without number, which is --order"
        )
    others = module_directories.listed(directory) if directory.is_dir() else []
    for other in others:
        if module_directories.module_name(other) == request.name:
            raise NewModuleError(f"{other.absolute()} is a module of this name; choose another name")
    orders = [names.directory_order(other.name) or 0 for other in others]
    order = min((max(orders, default=0) // _STEP + 1) * _STEP, _MOST_ORDER)
    path = directory / f"{order if request.order is None else request.order:03}-{request.name}"
    try:
        name = names.parse_module_directory(path.name)[1]
    except names.ModuleNameError as error:
        raise NewModuleError(str(error)) from None
    if os.path.lexists(path):
        raise NewModuleError(f"{path} is there already; nothing was written")
    return name, path


def _write(request: Request, name: names.ModuleName, root: pathlib.Path, path: pathlib.Path) -> None:
    chart = request.chart
    marks = {
        "MODULE": str(name),
        "KEY": str(names.values_key(name)),
        "PATH": str(path),
        "MODULE_SCHEMA": f"../{_MODULE_SCHEMA}",
    }
    if chart is not None:
        marks |= {"REPOSITORY": chart.repository, "CHART": chart.name, "VERSION": chart.version}
    kind = "module" if chart is None else "upstream"
    parts = [kind]
    if request.with_schema:
        parts.append("schema" if chart is None else "upstream-schema")
    for part in parts:
        for where, text in skeletons.filled(part, marks):
            _write_file(root / where, text)
    if chart is not None:
        _check_config(root, path)
    if request.language is not None:
        new_hook.write(root, new_hook.Request(name, "first", new_hook.Binding.BEFORE_HELM, request.language))
    if request.with_schema:
        values_schema.write(root, name)


def _check_config(root: pathlib.Path, path: pathlib.Path) -> None:
    """Refuse what ``module.yaml`` refuses: the address, the name or the version of a chart."""
    file = module_config.FILE
    name = names.parse_module_directory(path.name)[1]
    try:
        module_config.parse(name, (root / file).read_text("utf-8"), str(path / file))
    except errors.ConfigurationError as error:
        raise NewModuleError(f"{error}; nothing was written") from None


def _write_file(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@contextlib.contextmanager
def _removing(path: pathlib.Path) -> Iterator[None]:
    """Leave nothing of a directory behind that did not get its name."""
    try:
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)

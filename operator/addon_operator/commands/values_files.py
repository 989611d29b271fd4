"""Values as files alone make them, for commands that work without a cluster."""

import contextlib
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.documents import yaml_reading, yaml_writing
from addon_operator.kernel import errors, json_types, names
from addon_operator.kube.objects import config_maps, values_secret
from addon_operator.loading import module_directories, module_files, named_files, value_origins
from addon_operator.settings import setting_resolution, settings_loading
from addon_operator.settings import settings as app_settings
from addon_operator.values import config_map_reader, sources, store

_SECRET: Final = "Secret"  # noqa: S105 - a kind, not a password
_FIELDS: Final = ("modules_dirs", "global_hooks_dir", "unnumbered_module_order", "hook_env")
_OF_CHARTS: Final = ("tmp_dir", "chart_cache_dir")


class FilesToCheck(msgspec.Struct, frozen=True):
    """Where the files are."""

    modules_dirs: tuple[pathlib.Path, ...]
    global_hooks_dir: pathlib.Path
    unnumbered_module_order: int
    charts: pathlib.Path = module_files.CHARTS
    hook_env: tuple[str, ...] = ("*",)
    """The variables that programs among hooks inherit."""
    only: str | None = None
    """The directory of the one module that is looked at, in the one directory of modules."""

    @property
    def directories(self) -> Mapping[pathlib.Path, Sequence[pathlib.Path]]:
        """The modules of each directory, without those that are refused: ``values check`` says why."""
        found: dict[pathlib.Path, list[pathlib.Path]] = {}
        for directory in self.modules_dirs:
            with contextlib.suppress(errors.ConfigurationError):
                found[directory] = module_directories.listed(directory)
        return found

    def load(self) -> module_files.LoadedModules:
        """Return all files.

        Raises a :class:`.ConfigurationError` for whatever is wrong with them.
        """
        return module_files.load(
            self.modules_dirs, self.unnumbered_module_order, self.global_hooks_dir, charts=self.charts
        )


def places(
    flags: Mapping[str, str | None],
    environ: Mapping[str, str] = os.environ,
    *,
    may_lack_global: bool = False,
) -> FilesToCheck:
    """Return the places by flags, variables and defaults, as for ``start``; no other setting is needed.

    Raises :class:`.SettingsError`, and a :class:`.ConfigurationError` for a directory of global hooks that
    somebody named and that is not there, unless ``may_lack_global``.
    """
    resolution = settings_loading.some((*_FIELDS, *_OF_CHARTS), flags, environ)
    values: Mapping[str, Any] = resolution.values
    is_named = resolution.origins["global_hooks_dir"] != setting_resolution.DEFAULT_ORIGIN
    if is_named and not may_lack_global:
        module_directories.check_global(values["global_hooks_dir"])
    charts = app_settings.charts_below(values["tmp_dir"], values["chart_cache_dir"])
    return FilesToCheck(**{field: values[field] for field in _FIELDS}, charts=charts)


def flags_of(directory: str, global_hooks: str | None) -> tuple[dict[str, str | None], str | None]:
    """Return flags for a directory of modules, one with ``modules/`` in it, or one module, with its name."""
    path = pathlib.Path(directory).absolute()
    if module_directories.is_module(path):
        return {"modules_dirs": str(path.parent), "global_hooks_dir": global_hooks}, path.name
    return flags_below(directory, global_hooks), None


def here(modules_dirs: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the working directory if it is one module and nobody names another place: it is what is meant.

    ``modules_dirs`` is the flag.
    """
    known = settings_loading.some(("modules_dirs",), {"modules_dirs": modules_dirs}, environ)
    is_named = known.origins["modules_dirs"] != setting_resolution.DEFAULT_ORIGIN
    return None if is_named or not module_directories.is_module(pathlib.Path.cwd()) else "."


def nearest(path: pathlib.Path) -> str:
    """Say which directory was most likely meant by one that is not there."""
    around, known = path.absolute().parent, list[pathlib.Path]()
    for place in (around, around / module_directories.MODULES_NAME):
        with contextlib.suppress(OSError):  # Where nobody may look, nothing was meant.
            known += [each for each in sorted(place.iterdir()) if each.is_dir()]
    by_name = {each.name: each for each in reversed(known)}
    by_module = {name.lstrip("0123456789").removeprefix("-"): each for name, each in by_name.items()}
    name = path.name if path.name in by_module else names.nearest(path.name, by_name)
    if name is None:
        return "name one with modules, or a module"
    return f"did you mean '{by_module.get(name) or by_name[name]}'?"


def flags_below(directory: str, global_hooks: str | None) -> dict[str, str | None]:
    """Return the flags for a directory of modules, or for one with ``modules/`` and ``global-hooks/`` in it.

    ``global_hooks`` is what the user named, which wins. Raises a :class:`.ConfigurationError` if there is no
    such directory.
    """
    path = pathlib.Path(directory)
    # Several are one set of modules.
    if os.pathsep not in directory and (problem := module_directories.why_no_directory(path)):
        raise errors.ConfigurationError(f"{path.absolute()} {problem}; {nearest(path)}")
    if module_directories.kind_of(path) is not module_directories.Kind.REPOSITORY:
        return {"modules_dirs": directory, "global_hooks_dir": global_hooks}
    hooks = path / module_directories.GLOBAL_NAME
    named = str(hooks) if global_hooks is None and hooks.is_dir() else global_hooks
    return {"modules_dirs": str(path / module_directories.MODULES_NAME), "global_hooks_dir": named}


def read_config(
    path: pathlib.Path, modules: tuple[names.ModuleName, ...], kind: str = "ConfigMap"
) -> sources.ConfigValues:
    """Return what a file (a manifest, or a values file) says instead of the values ConfigMap, or Secret.

    Raises a :class:`.ConfigurationError` if anything in it is wrong.
    """
    return look_at_config(path, modules, kind).usable()


def look_at_config(
    path: pathlib.Path, modules: tuple[names.ModuleName, ...], kind: str = "ConfigMap"
) -> config_map_reader.ConfigMapReading:
    """Return the same as :func:`read_config`, with what is wrong in single keys beside all that is right.

    Raises a :class:`.ConfigurationError` if it cannot be read.
    """
    found = _read_object(path, kind)
    if isinstance(found, config_maps.Snapshot):
        reader = config_map_reader.ConfigMapReader(modules, str(path), is_secret=kind == _SECRET)
        return reader.read(found.data, found.binary)
    keys = {names.GLOBAL_KEY, *map(names.values_key, modules), *map(names.enabled_key, modules)}
    unknown = [key for key in (*found.sections, *found.enabled) if key not in keys]
    hints = (names.did_you_mean(key, keys, "remove it") for key in unknown)
    warnings = tuple(
        f"{path}: key {key!r} belongs to no module; {hint}" for key, hint in zip(unknown, hints, strict=True)
    )
    config = sources.ConfigValues(
        found.sections, found.enabled, warnings=(*warnings, *found.misplaced), source=str(path)
    )
    return config_map_reader.ConfigMapReading(config)


def object_in(path: pathlib.Path, kind: str) -> config_maps.Snapshot:
    """Return what the values ConfigMap, or Secret, would hold with the same in it as the file.

    Raises a :class:`.ConfigurationError` if it cannot be read.
    """
    found = _read_object(path, kind)
    if isinstance(found, config_maps.Snapshot):
        return found
    sections = {str(key): yaml_writing.dump(section) for key, section in found.sections.items()}
    switches = {key: str(is_on).lower() for key, is_on in found.enabled.items()}
    return config_maps.Snapshot({**sections, **switches}, "")


def _read_object(path: pathlib.Path, kind: str) -> config_maps.Snapshot | sources.ValuesFile:
    text = named_files.read_text(path)
    manifest = yaml_reading.load(text, str(path))
    if isinstance(manifest, dict) and manifest.get("kind") == kind:
        if kind == _SECRET:
            return config_maps.Snapshot(_texts_of_secret(manifest, path), "")
        return config_maps.Snapshot(
            _data(manifest, path), "", binary=tuple(_data(manifest, path, "binaryData"))
        )
    if isinstance(manifest, dict) and _is_unnamed_manifest(manifest):
        raise errors.ConfigurationError(
            f"{path}: this looks like a manifest, and its kind is {manifest.get('kind')!r}; "
            f"write 'kind: {kind}', or sections and switches alone"
        )
    return sources.parse_common_values(text, str(path))


def _is_unnamed_manifest(document: json_types.JsonObject) -> bool:
    """Say whether it is a manifest of another kind, or of none: its values would be taken for sections."""
    return "apiVersion" in document or "kind" in document or {"metadata", "data"} <= document.keys()


def _texts_of_secret(manifest: json_types.JsonObject, path: pathlib.Path) -> dict[str, str]:
    """Return data and stringData, which wins, as the API server joins them."""
    try:
        data = values_secret.texts_of({"data": _data(manifest, path)})
    except ValueError:
        raise errors.ConfigurationError(f"{path}: data of a Secret must be base64; use stringData") from None
    return data | _data(manifest, path, "stringData")


def _data(manifest: json_types.JsonObject, path: pathlib.Path, field: str = "data") -> dict[str, str]:
    data = manifest.get(field) or {}
    texts = isinstance(data, dict) and all(isinstance(text, str) for text in data.values())
    if not texts:
        raise errors.ConfigurationError(
            f"{path}: {field} of a {manifest['kind']} must be a mapping of texts; quote them"
        )
    return {str(key): str(text) for key, text in data.items()} if isinstance(data, dict) else {}


def origins_of(values: store.ValuesStore, module: names.ModuleName | None) -> Mapping[str, object]:
    """Return all values that a module (``None``: a global hook) would see, and where each comes from.

    What is sensitive is masked. A running operator answers in the same form.
    """
    parts = [value_origins.ValueOrigins(values, part) for part in dict.fromkeys((None, module))]
    rows = [row for part in parts for row in part.rows(show_sensitive=False)]
    return {"module": module or names.GLOBAL_KEY, "values": rows}

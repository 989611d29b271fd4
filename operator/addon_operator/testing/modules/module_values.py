"""Values as the operator would have them: files, an edit of the ConfigMap, and what hooks set."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from addon_operator.documents import json_documents
from addon_operator.kernel import errors, json_types, names
from addon_operator.loading import module_files
from addon_operator.modules import model
from addon_operator.values import checks, config_map_reader, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations

SOURCE: Final = "values of the test"


class Values(dict[str, Any]):
    """What hooks of a module, and its chart, get: ``global`` and the module's own section.

    Global hooks get ``global`` alone.

    It may be changed as any mapping: what differs then stands for what hooks set.
    """

    def __init__(self, files: module_files.ModuleFiles | None, values: store.ValuesStore) -> None:
        super().__init__(values.values(_name(files)))
        self._files = files
        self._store = values

    def stored(self) -> store.ValuesStore:
        """Return a store with these values, of the caller's own.

        Raises :class:`.AddonOperatorError` for changes that hooks could not have made.
        """
        own = self._store.snapshot(*self._store.modules)
        own.enabled = self._store.enabled
        now = own.values(_name(self._files))
        sections: dict[names.ModuleName | None, str] = {None: names.GLOBAL_KEY}
        if self._files is not None:
            sections[self._files.module.name] = self._files.module.key
        for owner, key in sections.items():
            if not json_documents.equal(now[key], self.get(key)):
                own.apply_values_patch(owner, _changed(key, now[key], self.get(key)))
        return own

    def after(self, values: store.ValuesStore) -> "Values":
        """Return what a hook made of these values."""
        return Values(self._files, values)

    def with_section(self, section: Mapping[str, Any]) -> "Values":
        """Return the same, with this laid over the module's section as if a hook had set it.

        Raises a :class:`.ConfigurationError` if it has the section's key around it.
        """
        made = Values(self._files, self._store)
        key = names.GLOBAL_KEY if self._files is None else self._files.module.key
        if list(section) == [key] and key not in self[key]:
            raise errors.ConfigurationError(
                f"what hooks set is in the section {key!r} already; write it without that key"
            )
        made[key] = sources.merge(self[key], dict(section))
        return made

    @property
    def data(self) -> dict[str, str]:
        """The data of the ConfigMap that says what the test edited, and what hooks wrote there."""
        config = self._store.config
        sections = {str(key): json.dumps(section) for key, section in config.sections.items()}
        switches = {key: str(value).lower() for key, value in config.enabled.items()}
        return {**sections, **switches, **config.maintenance}

    @property
    def config(self) -> json_types.JsonObject:
        """What the ConfigMap says, as hooks see it in their config values."""
        return self._store.config_values(_name(self._files))


def _name(files: module_files.ModuleFiles | None) -> names.ModuleName | None:
    return None if files is None else files.module.name


def _changed(key: str, before: json_types.JsonValue, after: object) -> patches.ValuesPatch:
    """Return the patch that makes one section of another, as a hook would write it."""
    if not isinstance(after, Mapping):
        raise errors.ConfigurationError(f"values: {key} must be a mapping, not {after!r}")
    had = cast("json_types.JsonObject", before)
    removed = [{"op": "remove", "path": _pointer(key, name)} for name in had if name not in after]
    added = [
        {"op": "add", "path": _pointer(key, name), "value": value}
        for name, value in after.items()
        if name not in had or not json_documents.equal(had[name], value)
    ]
    return patches.parse_patch(json.dumps([*removed, *added]), SOURCE)


def _pointer(key: str, name: str) -> str:
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"/{key}/{escaped}"


def of(
    loaded: module_files.LoadedModules, files: module_files.ModuleFiles | None, edits: Mapping[str, object]
) -> Values:
    """Return the values of a module with an edit of the ConfigMap: sections and switches by their key.

    Without ``files``, they are those of global hooks.
    Raises :class:`.AddonOperatorError` for what the operator would refuse, and for keys that mean nothing.
    """
    values = loaded.store()
    if files is not None:
        check_module(files.module)
    values.set_config(_config(values, data_of(edits), files))
    _check(values, _name(files))
    values.enabled = [
        each.module.name
        for each in loaded.modules
        if each.module.name == _name(files) or values.flag(each.module.name).enabled
    ]
    return Values(files, values)


def check_module(module: model.Module) -> None:
    """Raise a :class:`.ConfigurationError` for a module that cannot run as it is."""
    if module.stopped_by:
        raise errors.ConfigurationError(f"module {module.name}: {module.stopped_by}")


def data_of(edits: Mapping[str, object]) -> dict[str, str]:
    """Return the data of a ConfigMap with these sections and switches; ``global_`` is ``global``."""
    data = {}
    for key, value in edits.items():
        name = key.rstrip("_")
        data[name] = str(value).lower() if isinstance(value, bool) else _text(name, value)
    return data


def _text(key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise errors.ConfigurationError(f"values: {key} cannot be written as JSON: {error}") from error


def _config(
    values: store.ValuesStore, data: Mapping[str, str], files: module_files.ModuleFiles | None
) -> sources.ConfigValues:
    reader = config_map_reader.ConfigMapReader(values.modules, SOURCE)
    config = reader.read(data).usable()
    if config.warnings:
        # In a cluster, a warning: the key may be of a module that is to come. In a test it is a slip.
        said, own = "; ".join(config.warnings), None if files is None else files.module
        where = "" if own is None else f": that of {own.name} is {own.key!r}"
        raise errors.ConfigurationError(f"{said} (values stand below the key of their module{where})")
    return config


def _check(values: store.ValuesStore, module: names.ModuleName | None) -> None:
    own = () if module is None else (module,)
    told = (
        "the global values are not valid"
        if module is None
        else f"the values of module {module} are not valid"
    )
    checks.raise_violations(checks.Checks(values).config_violations(values.config, own), told)
    for owner in (None, *own):
        section = values.frozen(owner)
        wrong = [each for each in section.values_violations(section.present) if not each.is_missing_key]
        checks.raise_violations(wrong, told)


def check_for_helm(values: store.ValuesStore, module: model.Module) -> None:
    """Check what the chart gets, as the operator does before Helm runs.

    Raises a :class:`.ConfigurationError` that says which hooks have yet to set what is missing.
    """
    try:
        checks.Checks(values).checking_helm_values(module.name)()
    except schema_violations.InvalidValuesError as error:
        if not all(each.is_missing_key for each in error.violations):
            raise
        hint = "let hooks set them with hooks=True, or set them in the values that the test renders with"
        raise errors.ConfigurationError(f"{error}; {hint}") from error


class Enabled(msgspec.Struct, frozen=True):
    """Whether the operator would enable a module; true or false itself."""

    enabled: bool
    reason: str
    """Why, as ``module list`` shows it."""

    def __bool__(self) -> bool:
        return self.enabled

"""What each source of values says: ``values.yaml`` files, the values ConfigMap and the values Secret.

The sources are only read and checked here; :mod:`.store` lays them on each other.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Final, NoReturn, Self

from addon_operator.documents import json_documents, yaml_reading
from addon_operator.kernel import errors, json_types, names

NO_RESOURCE_RECONCILIATION: Final = "NoResourceReconciliation"
"""Value of ``someModuleMaintenance`` that stops Helm and healing for the module."""
SUSPENDED: Final = "Suspended"
"""Maintenance mode of a module that annotations of its Module object suspend."""

DEFAULT_CONFIG_MAP: Final = "values ConfigMap"
DISABLING_ALIAS: Final = "false"
"""Text of a section that disables its module instead of configuring it."""
SWITCHES: Final[Mapping[str, bool]] = {"true": True, DISABLING_ALIAS: False}


class ValuesFileError(errors.ConfigurationError):
    """A ``values.yaml`` has a key or a value that does not belong there; names file, position and key."""


class ConfigMapError(errors.ConfigurationError):
    """The values ConfigMap is wrong; ``violations`` are all of them, one sentence each."""

    def __init__(self, source: str, violations: tuple[str, ...]) -> None:
        verb = "are" if " and " in source else "is"
        super().__init__(f"{source} {verb} invalid: {'; '.join(violations)}")
        self.source = source
        """What is wrong: the names of one or two objects."""
        self.violations = violations
        """All that is wrong, in the order of the keys."""


@dataclasses.dataclass(frozen=True, slots=True)
class ValuesFile:
    """A ``values.yaml``."""

    source: str
    """The file's name, for messages."""
    sections: Mapping[names.ValuesKey, json_types.JsonObject] = dataclasses.field(default_factory=dict)
    """Values by their section: ``global`` or a module's values key."""
    enabled: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    """Switches by their key, e.g. ``someModuleEnabled``."""

    def section(self, key: names.ValuesKey) -> json_types.JsonObject:
        """Return what it says of a section; not to be changed."""
        return self.sections.get(key, {})


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigValues:
    """What the values ConfigMap says, with the values Secret that lies over it; or what that Secret says."""

    sections: Mapping[names.ValuesKey, json_types.JsonObject] = dataclasses.field(default_factory=dict)
    """Values by their section: ``global`` or a module's values key."""
    enabled: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    """Switches by their key, e.g. ``someModuleEnabled``; the alias ``someModule: "false"`` is one too."""
    maintenance: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The mode by its key, e.g. ``someModuleMaintenance``; modules that are managed as usual are absent, or
    empty in the Secret."""
    warnings: tuple[str, ...] = ()
    """Keys that belong to no module, one sentence each."""
    source: str = DEFAULT_CONFIG_MAP
    """Name of the ConfigMap, for messages."""
    secret: "ConfigValues | None" = None
    """What the Secret says, which wins; ``None`` if there is none."""
    _together: dict[names.ValuesKey, json_types.JsonObject] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def section(self, key: names.ValuesKey) -> json_types.JsonObject:
        """Return what ConfigMap and Secret together say of a section; not to be changed."""
        own, secret = self.sections.get(key, {}), self.secret_section(key)
        if not secret:
            return own
        if key not in self._together:
            self._together[key] = merge(own, secret)
        return self._together[key]

    def laid_together(self) -> Self:
        """Return the same, with all sections merged already: in a thread, as that takes its time."""
        for key in self.secret.sections if self.secret is not None else ():
            self.section(key)
        return self

    def secret_section(self, key: names.ValuesKey) -> json_types.JsonObject:
        """Return what the Secret alone says of a section; not to be changed."""
        return {} if self.secret is None else self.secret.sections.get(key, {})

    def maintenance_of(self, module: names.ModuleName) -> str:
        """Return the module's maintenance mode; empty if it is managed as usual."""
        key = names.maintenance_key(module)
        layers = [self.maintenance] if self.secret is None else [self.secret.maintenance, self.maintenance]
        return next((modes[key] for modes in layers if key in modes), "")


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigChange:
    """What differs, by content, between two states of the ConfigMap and the Secret over it."""

    global_changed: bool
    """The ``global`` section."""
    flags_changed: frozenset[names.ModuleName]
    """Modules that their switches now decide otherwise."""
    sections_changed: frozenset[names.ModuleName]
    """Modules with another section."""
    maintenance_changed: frozenset[names.ModuleName]
    """Modules with another maintenance mode."""

    def __bool__(self) -> bool:
        return self.global_changed or bool(
            self.flags_changed or self.sections_changed or self.maintenance_changed
        )


def parse_common_values(text: str, source: str) -> ValuesFile:
    """Read ``$MODULES_DIR/values.yaml``: ``global``, any module's section, any ``…Enabled`` switch.

    Raises :class:`ValuesFileError` or :class:`.YamlError`.
    """
    document = yaml_reading.load_document(text, source)
    for key in _root(document):
        if not _is_values_key(key):
            _fail(document, key, f"this is not a values key (camelCase); did you mean {_camel_case(key)!r}?")
    return _values_file(document)


def _is_values_key(key: str) -> bool:
    return _VALUES_KEY.fullmatch(key) is not None


_VALUES_KEY: Final = re.compile(r"[a-z0-9][A-Za-z0-9]*")


def _camel_case(key: str) -> str:
    words = names.values_key(names.ModuleName(key.replace("_", "-")))
    return words[:1].lower() + words[1:]


def parse_module_values(module: names.ModuleName, text: str, source: str) -> ValuesFile:
    """Read a module's ``values.yaml``: only its own section and its own switch.

    Raises :class:`ValuesFileError` or :class:`.YamlError`.
    """
    document = yaml_reading.load_document(text, source)
    allowed = (names.values_key(module), names.enabled_key(module))
    for key in _root(document):
        if key not in allowed:
            _fail(
                document,
                key,
                f"the values of module {module!r} may only set {allowed[0]!r} and {allowed[1]!r}; "
                f"write it below {allowed[0]!r}",
            )
    return _values_file(document)


def switch_in(module: names.ModuleName, text: str) -> Mapping[str, bool]:
    """Return what the lines of a module's ``values.yaml`` say of its switch, however wrong others are."""
    key = names.enabled_key(module)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        word = value.partition("#")[0].strip()
        if name.rstrip() == key and word in SWITCHES:
            return {key: SWITCHES[word]}
    return {}


def _root(document: yaml_reading.Document) -> json_types.JsonObject:
    if document.value is None:
        return {}
    if not isinstance(document.value, dict):
        raise ValuesFileError(
            f"{document.source}: a values file must be a mapping, not {kind_of(document.value)}"
        )
    return document.value


def _values_file(document: yaml_reading.Document) -> ValuesFile:
    sections: dict[names.ValuesKey, json_types.JsonObject] = {}
    enabled: dict[str, bool] = {}
    for key, value in _root(document).items():
        if isinstance(value, dict) or not key.endswith(names.ENABLED_SUFFIX):
            sections[names.ValuesKey(key)] = _section(document, key, value)
        elif isinstance(value, bool):
            enabled[key] = value
        else:
            _fail(document, key, f"a switch must be true or false, not {kind_of(value)}")
    return ValuesFile(document.source, sections, enabled)


def _section(document: yaml_reading.Document, key: str, value: json_types.JsonValue) -> json_types.JsonObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        _fail(document, key, f"a section must be a mapping, not {kind_of(value)}")
    return value


def _fail(document: yaml_reading.Document, key: str, problem: str) -> NoReturn:
    raise ValuesFileError(f"{document.where((key,))}, key {key}: {problem}")


def kind_of(value: json_types.JsonValue) -> str:
    """Say what a value is, for a sentence about what it should be."""
    if value is None:
        return "nothing"
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "a string"


_KINDS: Final = ((bool, "a boolean"), (list, "a list"), ((int, float), "a number"), (dict, "a mapping"))


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """The verdict of the values on a module, before its ``enabled`` script."""

    enabled: bool
    reason: str
    """Which source decided, e.g. ``enabled by someModuleEnabled in modules/values.yaml``."""
    is_default: bool = False
    """Whether no source decided."""


def decide(
    module: names.ModuleName,
    files: tuple[ValuesFile, ...],
    hooks: Mapping[str, bool],
    config: ConfigValues,
) -> Flag:
    """Decide by the highest source that has a verdict; without any, the module is disabled.

    ``files`` go from the lowest to the highest.
    Source: "Modules discovery" of the addon-operator documentation.
    """
    key = names.enabled_key(module)
    configured = [config] if config.secret is None else [config, config.secret]
    levels = [
        *((file.enabled, f"in {file.source}") for file in files),
        (hooks, "of a global hook"),
        *((source.enabled, f"in {source.source}") for source in configured),
    ]
    for switches, where in reversed(levels):
        if key in switches:
            enabled = switches[key]
            return Flag(enabled, f"{'enabled' if enabled else 'disabled'} by {key} {where}")
    return Flag(False, f"disabled by default: no source sets {key}", is_default=True)


def merge(*layers: json_types.JsonObject) -> json_types.JsonObject:
    """Lay the layers on each other, lowest first.

    Mappings are merged deep; lists and scalars are replaced whole; an explicit ``null`` stays ``null``.
    Keys keep the order in which they first appear. The result shares nothing with the layers.
    Source: "Merged values" of the addon-operator documentation.
    """
    result: json_types.JsonObject = {}
    for layer in layers:
        _lay(result, layer)
    return result


def _lay(below: json_types.JsonObject, above: json_types.JsonObject) -> None:
    for key, value in above.items():
        present = below.get(key)
        if isinstance(value, dict):
            target = present if isinstance(present, dict) else {}
            below[key] = target
            _lay(target, value)
        else:
            below[key] = json_documents.copy_value(value)

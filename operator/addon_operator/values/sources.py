"""What each source of values says: ``values.yaml`` files, the values ConfigMap and the values Secret.

The sources are only read and checked here; :mod:`.store` lays them on each other.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Final, Self

import msgspec

from addon_operator.documents import json_documents, yaml_reading
from addon_operator.kernel import errors, json_types, names

NO_RESOURCE_RECONCILIATION: Final = "NoResourceReconciliation"
"""Value of ``someModuleMaintenance`` that stops Helm and healing for the module."""
SUSPENDED: Final = "Suspended"
"""Maintenance mode of a module that annotations of its Module object suspend."""

DEFAULT_CONFIG_MAP: Final = "values ConfigMap"
_MOST_MISTAKES: Final = 20
DISABLING_ALIAS: Final = "false"
"""Text of a section that disables its module instead of configuring it."""
SWITCHES: Final[Mapping[str, bool]] = {"true": True, DISABLING_ALIAS: False}


class ValuesFileError(errors.MistakesError):
    """A ``values.yaml`` has keys or values that do not belong there; names file, position and key of each."""


class ConfigMapError(errors.ConfigurationError):
    """The values ConfigMap is wrong; ``violations`` are all of them, one sentence each."""

    def __init__(self, source: str, violations: tuple[str, ...]) -> None:
        verb = "are" if " and " in source else "is"
        super().__init__(f"{source} {verb} invalid: {'; '.join(violations)}")
        self.source = source
        """What is wrong: the names of one or two objects."""
        self.violations = violations
        """All that is wrong, in the order of the keys."""


class ValuesFile(msgspec.Struct, frozen=True):
    """A ``values.yaml``."""

    source: str
    """The file's name, for messages."""
    sections: Mapping[names.ValuesKey, json_types.JsonObject] = msgspec.field(default_factory=dict)
    """Values by their section: ``global`` or a module's values key."""
    enabled: Mapping[str, bool] = msgspec.field(default_factory=dict)
    """Switches by their key, e.g. ``someModuleEnabled``."""
    is_unread: bool = False
    """Whether it is there and cannot be read, so that nobody knows what it switches."""
    misplaced: tuple[str, ...] = ()
    """Flags that stand in the section of their module, one sentence each, with the line."""

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


class ConfigChange(msgspec.Struct, frozen=True):
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

    def problem(key: str) -> str:
        words = names.values_key(names.ModuleName(key.replace("_", "-")))
        meant = words[:1].lower() + words[1:]
        return f"this is not a values key (camelCase); did you mean {meant!r}?"

    wrong = (key for key in _root(document) if not _VALUES_KEY.fullmatch(key))
    return _values_file(document, {key: problem(key) for key in wrong})


_VALUES_KEY: Final = re.compile(r"[a-z0-9][A-Za-z0-9]*")


def parse_module_values(
    module: names.ModuleName, text: str, source: str, *, has_chart: bool = False
) -> ValuesFile:
    """Read a module's ``values.yaml``: only its own section and its own switch.

    In a module that ``has_chart``, a file without one of these is most likely that of the chart: one mistake.

    Raises :class:`ValuesFileError` or :class:`.YamlError`.
    """
    document = yaml_reading.load_document(text, source)
    allowed = (names.values_key(module), names.enabled_key(module))
    found = _root(document)
    others = {key: value for key, value in found.items() if key not in allowed}
    if has_chart and others.keys() == found.keys() and _are_of_chart(module, others):
        raise ValuesFileError(_of_chart(document, *allowed))
    return _values_file(document, {key: _misplaced(module, key, value) for key, value in others.items()})


def _are_of_chart(module: names.ModuleName, others: json_types.JsonObject) -> bool:
    is_more = others.keys() - {names.GLOBAL_KEY}
    # Of many keys one is easily like the name; a file of a module has two.
    is_many = len(is_more) > len(names.keys_of(module))
    return bool(is_more) and (is_many or not any(_near(module, key, value) for key, value in others.items()))


def _of_chart(document: yaml_reading.Document, section: str, switch: str) -> str:
    first = next(iter(_root(document)))
    return (
        f"{document.where((first,))}, key {first}: no key of this file is {section!r} or {switch!r}, so "
        f"these are values of a chart, not of the module; write all of them below {section!r}, or, if "
        "Chart.yaml of a published chart is beside this file, move all of that chart as it is into chart/"
    )


def _misplaced(module: names.ModuleName, key: str, value: json_types.JsonValue) -> str:
    """Return what to do with a key that does not belong into the values of a module."""
    section, switch = names.values_key(module), names.enabled_key(module)
    said = f"the values of module {module!r} may only set {section!r} and {switch!r}; "
    if key == names.GLOBAL_KEY:
        return f"{said}write it into the values.yaml of the directory of modules"
    if near := _near(module, key, value):
        return f"{said}did you mean {near!r}?"
    return f"{said}write it below {section!r}"


def _near(module: names.ModuleName, key: str, value: json_types.JsonValue) -> str:
    """Return the key of the module's that looks like this one; empty if none does."""
    section = names.values_key(module)
    is_switch = key.endswith(names.ENABLED_SUFFIX) and isinstance(value, bool)
    stem = key.removesuffix(names.ENABLED_SUFFIX) if is_switch else key
    meant = names.enabled_key(module) if is_switch else section
    return meant if names.nearest(stem, [section]) else ""


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


def _values_file(document: yaml_reading.Document, wrong: Mapping[str, str]) -> ValuesFile:
    """Read all keys that are not ``wrong``.

    Raises :class:`ValuesFileError` with all that is wrong.
    """
    sections: dict[names.ValuesKey, json_types.JsonObject] = {}
    enabled: dict[str, bool] = {}
    found = dict(wrong)
    for key, value in _root(document).items():
        if key in wrong:
            continue
        if isinstance(value, bool) and key.endswith(names.ENABLED_SUFFIX):
            enabled[key] = value
        elif isinstance(value, dict) or (value is None and not key.endswith(names.ENABLED_SUFFIX)):
            sections[names.ValuesKey(key)] = value or {}
        elif key.endswith(names.ENABLED_SUFFIX):
            found[key] = f"a switch must be true or false, not {kind_of(value)}"
        else:
            found[key] = f"a section must be a mapping, not {kind_of(value)}"
    if found:
        listed = list(found.items())[:_MOST_MISTAKES]
        raise ValuesFileError(*(f"{document.where((key,))}, key {key}: {said}" for key, said in listed))
    misplaced = (
        f"{document.where((key, flag))}: {said}"
        for key, section in sections.items()
        for flag, said in flags_below(key, section)
    )
    first = tuple(itertools.islice(misplaced, _MOST_MISTAKES))
    return ValuesFile(document.source, sections, enabled, misplaced=first)


def flags_below(
    key: names.ValuesKey, section: json_types.JsonObject, *, in_config_map: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield each flag of a module that stands in its section, where it is a value, with a sentence.

    ``in_config_map``: whether the section is there, where alone modes of maintenance belong.
    """
    beside = f"beside {key!r}"
    elsewhere = beside if in_config_map else "in the values ConfigMap"
    places = {names.ENABLED_SUFFIX: beside, names.MAINTENANCE_SUFFIX: elsewhere}
    for suffix, place in places.items():
        flag = key + suffix
        if flag in section and key != names.GLOBAL_KEY:
            said = f"{flag!r} below the key {key!r} is a value, which switches nothing"
            yield flag, f"{said}; write it as a key of its own, {place}"


def kind_of(value: json_types.JsonValue) -> str:
    """Say what a value is, for a sentence about what it should be."""
    if value is None:
        return "nothing"
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "a string"


_KINDS: Final = ((bool, "a boolean"), (list, "a list"), ((int, float), "a number"), (dict, "a mapping"))


class Flag(msgspec.Struct, frozen=True):
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

"""What each source of values says: ``values.yaml`` files, the values ConfigMap and the values Secret.

The sources are only read and checked here; :mod:`.store` lays them on each other.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NoReturn, Self

from addon_operator.documents import json_documents, yaml_reading
from addon_operator.kernel import errors, json_types, names

NO_RESOURCE_RECONCILIATION: Final = "NoResourceReconciliation"
"""Value of ``someModuleMaintenance`` that stops Helm and healing for the module."""

DEFAULT_CONFIG_MAP: Final = "values ConfigMap"


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
        if name.rstrip() == key and word in _SWITCH_VALUES:
            return {key: _SWITCH_VALUES[word]}
    return {}


def _root(document: yaml_reading.Document) -> json_types.JsonObject:
    if document.value is None:
        return {}
    if not isinstance(document.value, dict):
        raise ValuesFileError(
            f"{document.source}: a values file must be a mapping, not {_kind(document.value)}"
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
            _fail(document, key, f"a switch must be true or false, not {_kind(value)}")
    return ValuesFile(document.source, sections, enabled)


def _section(document: yaml_reading.Document, key: str, value: json_types.JsonValue) -> json_types.JsonObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        _fail(document, key, f"a section must be a mapping, not {_kind(value)}")
    return value


def _fail(document: yaml_reading.Document, key: str, problem: str) -> NoReturn:
    raise ValuesFileError(f"{document.where((key,))}, key {key}: {problem}")


def _kind(value: json_types.JsonValue) -> str:
    if value is None:
        return "nothing"
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "a string"


_KINDS: Final = ((bool, "a boolean"), (list, "a list"), ((int, float), "a number"), (dict, "a mapping"))


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a key of the values ConfigMap."""

    key: str
    """The section or the switch."""
    text: str
    """Where and what; it may quote what stands there."""
    without_values: str
    """The same for places where no values may be shown."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigMapReading:
    """What can be read of the values ConfigMap, and what cannot."""

    values: ConfigValues
    problems: tuple[Problem, ...] = ()
    """All that is wrong, in the order of the keys."""
    unreadable: frozenset[str] = frozenset()
    """The keys of sections that are wrong and therefore missing in :attr:`values`."""

    @property
    def violations(self) -> tuple[str, ...]:
        """All that is wrong, one sentence each."""
        return tuple(problem.text for problem in self.problems)

    def usable(self) -> ConfigValues:
        """Return the values; raises :class:`ConfigMapError` with everything that is wrong."""
        if self.violations:
            raise ConfigMapError(self.values.source, self.violations)
        return self.values


def parse_section(key: str, text: str) -> json_types.JsonObject:
    """Parse the text of a section in the ConfigMap.

    Raises :class:`ValuesFileError` or :class:`.YamlError`.
    """
    value = yaml_reading.load(text, f"key {key!r}")
    if value is None or isinstance(value, dict):
        return value or {}
    raise ValuesFileError(f"key {key!r}: {_section_problem(key, value)}")


ParseSection = Callable[[str, str], json_types.JsonObject]


class ConfigMapReader:
    """Reads the values ConfigMap, or Secret, again and again; a text that is as before is not parsed anew."""

    def __init__(
        self,
        known_modules: Collection[names.ModuleName],
        source: str = DEFAULT_CONFIG_MAP,
        parse: ParseSection = parse_section,
        *,
        is_secret: bool = False,
    ) -> None:
        """``parse`` reads the text of a section; see :func:`parse_section`.

        What is said of a Secret (``is_secret``) quotes nothing of it but keys.
        """
        self._source = source
        self._is_secret = is_secret
        self._parse = parse
        self._sections = {names.values_key(module) for module in known_modules}
        self._switches = {names.enabled_key(module) for module in known_modules}
        self._maintenance = {names.maintenance_key(module) for module in known_modules}
        self._parsed: Mapping[str, tuple[str, json_types.JsonObject]] = {}

    def read(self, data: Mapping[str, str]) -> ConfigMapReading:
        """Read the data; nothing that is wrong in it is an error here."""
        found = _Found()
        unknown = [key for key, text in data.items() if not self._take(found, key, text)]
        for key in data:
            switch = key + names.ENABLED_SUFFIX
            if self._is_alias(key, data[key]) and found.switches.setdefault(switch, False):
                text = f"key {key!r} disables the module but {switch!r} enables it; remove one of them"
                found.problems.append(Problem(key, text, text))
        self._parsed = {key: (data[key], section) for key, section in found.sections.items()}
        values = ConfigValues(
            found.sections, found.switches, found.maintenance, self._warnings(unknown), self._source
        )
        return ConfigMapReading(values, tuple(found.problems), frozenset(found.unreadable))

    def _take(self, found: "_Found", key: str, text: str) -> bool:
        """Read what stands under a key; whether the key is known."""
        if key == names.GLOBAL_KEY or key in self._sections:
            if not self._is_alias(key, text):
                self._take_section(found, names.ValuesKey(key), text)
        elif key in self._switches:
            self._take_switch(found, key, text.strip())
        elif key in self._maintenance:
            self._take_maintenance(found, key, text.strip())
        else:
            return False
        return True

    def _is_alias(self, key: str, text: str) -> bool:
        return key in self._sections and text.strip() == DISABLING_ALIAS

    def _take_section(self, found: "_Found", key: names.ValuesKey, text: str) -> None:
        before, section = self._parsed.get(key, (None, {}))
        try:
            found.sections[key] = section if before == text else self._parse(key, text)
        except errors.ConfigurationError as error:
            found.unreadable.add(key)
            text = _unquoted(key, str(error)) if self._is_secret else str(error)
            found.problems.append(Problem(key, text, _without_quotations(key, text)))

    def _take_switch(self, found: "_Found", key: str, text: str) -> None:
        if text in _SWITCH_VALUES:
            found.switches[key] = _SWITCH_VALUES[text]
        else:
            rule = 'a switch must be "true" or "false"'
            found.problems.append(self._wrong_flag(key, rule, text))

    def _take_maintenance(self, found: "_Found", key: str, mode: str) -> None:
        if mode.lower() == NO_RESOURCE_RECONCILIATION.lower():
            found.maintenance[key] = NO_RESOURCE_RECONCILIATION
        elif not mode:
            if self._is_secret:
                # It lies over what the ConfigMap says.
                found.maintenance[key] = ""
        else:
            rule = f"the maintenance mode must be {NO_RESOURCE_RECONCILIATION!r} or empty"
            found.problems.append(self._wrong_flag(key, rule, mode))

    def _wrong_flag(self, key: str, rule: str, text: str) -> Problem:
        unquoted = f"key {key!r}: {rule}"
        quoted = "" if self._is_secret else f", not {text[:_SHOWN]!r}"
        return Problem(key, unquoted + quoted, unquoted)

    def _warnings(self, unknown: Sequence[str]) -> tuple[str, ...]:
        # To look for similar names takes a while for each.
        warnings = [self._unknown(key) for key in unknown[:MAX_UNKNOWN]]
        if (more := len(unknown) - MAX_UNKNOWN) > 0:
            warnings.append(f"{self._source}: {more} more keys are unknown and ignored")
        return tuple(warnings)

    def _unknown(self, key: str) -> str:
        nearest = self._nearest(key)
        hint = f"did you mean {nearest!r}?" if nearest else "no module has it"
        return f"{self._source}: key {key!r} is unknown and ignored; {hint}"

    def _nearest(self, key: str) -> str | None:
        """Return the known key that is meant; flags by what stands before their common ending."""
        for suffix, known in (
            (names.ENABLED_SUFFIX, self._switches),
            (names.MAINTENANCE_SUFFIX, self._maintenance),
            ("", {names.GLOBAL_KEY, *self._sections, *self._switches, *self._maintenance}),
        ):
            if key.endswith(suffix):
                stems = [name.removesuffix(suffix) for name in known]
                nearest = names.nearest(key.removesuffix(suffix), stems)
                return None if nearest is None else nearest + suffix
        return None


@dataclasses.dataclass(slots=True)
class _Found:
    """What one reading of a ConfigMap has found so far."""

    sections: dict[names.ValuesKey, json_types.JsonObject] = dataclasses.field(default_factory=dict)
    switches: dict[str, bool] = dataclasses.field(default_factory=dict)
    maintenance: dict[str, str] = dataclasses.field(default_factory=dict)
    problems: list[Problem] = dataclasses.field(default_factory=list)
    unreadable: set[str] = dataclasses.field(default_factory=set)


_SHOWN: Final = 100
MAX_UNKNOWN: Final = 50
"""How many unknown keys are named one by one."""
DISABLING_ALIAS: Final = "false"
"""Text of a section that disables its module instead of configuring it."""
_SWITCH_VALUES: Final[Mapping[str, bool]] = {"true": True, DISABLING_ALIAS: False}


def _unquoted(key: str, problem: str) -> str:
    """Return what is wrong with the text of a section, by its place alone if the text may be quoted."""
    place = re.match(rf"{re.escape(f'key {key!r}')}, line \d+, column \d+", problem)
    if place is None:
        return problem
    return f"{place[0]}: this is not valid YAML in UTF-8; it is not quoted, as it may be secret"


_QUOTATION: Final = re.compile(
    r"""'(?:[^'\\]++|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)""", re.DOTALL
)
_PUNCTUATION: Final = re.compile(r"""(['"])(?:[^\w\\]|\\[tnr])\1""")


def _without_quotations(key: str, text: str) -> str:
    """Return what is wrong with the text of a section without what it quotes, but for a punctuation mark."""
    named = f"key {key!r}"
    place, rest = (named, text.removeprefix(named)) if text.startswith(named) else ("", text)
    return place + _QUOTATION.sub(lambda found: found[0] if _PUNCTUATION.fullmatch(found[0]) else "***", rest)


def _section_problem(key: str, value: json_types.JsonValue) -> str:
    if value is True:
        switch = key + names.ENABLED_SUFFIX
        return f'a section must be YAML of a mapping; to enable the module, set {switch}: "true"'
    return f"a section must be YAML of a mapping, not {_kind(value)}"


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

"""Reads the values ConfigMap or Secret: sections, switches, maintenance modes, and what is wrong."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.documents import yaml_reading
from addon_operator.kernel import errors, json_types, names
from addon_operator.values import sources


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with a key of the values ConfigMap."""

    key: str
    """The section or the switch."""
    text: str
    """Where and what; it may quote what stands there."""
    without_values: str
    """The same for places where no values may be shown."""


class ConfigMapReading(msgspec.Struct, frozen=True):
    """What can be read of the values ConfigMap, and what cannot."""

    values: sources.ConfigValues
    problems: tuple[Problem, ...] = ()
    """All that is wrong, in the order of the keys."""
    unreadable: frozenset[str] = frozenset()
    """The keys of sections that are wrong and therefore missing in :attr:`values`."""

    @property
    def violations(self) -> tuple[str, ...]:
        """All that is wrong, one sentence each."""
        return tuple(problem.text for problem in self.problems)

    def usable(self) -> sources.ConfigValues:
        """Return the values; raises :class:`sources.ConfigMapError` with everything that is wrong."""
        if self.violations:
            raise sources.ConfigMapError(self.values.source, self.violations)
        return self.values


def parse_section(key: str, text: str) -> json_types.JsonObject:
    """Parse the text of a section in the ConfigMap.

    Raises :class:`sources.ValuesFileError` or :class:`.YamlError`.
    """
    value = yaml_reading.load(text, f"key {key!r}")
    if value is None or isinstance(value, dict):
        return value or {}
    raise sources.ValuesFileError(f"key {key!r}: {_section_problem(key, value)}")


ParseSection = Callable[[str, str], json_types.JsonObject]


def not_read(source: str, binary: Collection[str]) -> Iterator[str]:
    """Yield a sentence if a ConfigMap has values in ``binaryData``, under these keys."""
    if binary:
        keys = names.listed(sorted(binary), MAX_UNKNOWN)
        yield f"{source}: binaryData is not read ({keys}); write text under data"


class ConfigMapReader:
    """Reads the values ConfigMap, or Secret, again and again; a text that is as before is not parsed anew."""

    def __init__(
        self,
        known_modules: Collection[names.ModuleName],
        source: str = sources.DEFAULT_CONFIG_MAP,
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

    def read(self, data: Mapping[str, str], binary: Collection[str] = ()) -> ConfigMapReading:
        """Read the data; nothing that is wrong in it is an error here.

        ``binary`` are the keys of ``binaryData``, which means nothing.
        """
        collected = _Collected()
        unknown = [key for key, text in data.items() if not self._take(collected, key, text)]
        for key in data:
            switch = key + names.ENABLED_SUFFIX
            if self._is_alias(key, data[key]) and collected.switches.setdefault(switch, False):
                text = f"key {key!r} disables the module but {switch!r} enables it; remove one of them"
                collected.problems.append(Problem(key, text, text))
        self._parsed = {key: (data[key], section) for key, section in collected.sections.items()}
        values = sources.ConfigValues(
            collected.sections,
            collected.switches,
            collected.maintenance,
            (
                *self._warnings(unknown),
                *not_read(self._source, binary),
                *self._misplaced(collected.sections),
            ),
            self._source,
        )
        return ConfigMapReading(values, tuple(collected.problems), frozenset(collected.unreadable))

    def _take(self, collected: "_Collected", key: str, text: str) -> bool:
        """Read what stands under a key; whether the key is known."""
        if key == names.GLOBAL_KEY or key in self._sections:
            if not self._is_alias(key, text):
                self._take_section(collected, names.ValuesKey(key), text)
        elif key in self._switches:
            self._take_switch(collected, key, text.strip())
        elif key in self._maintenance:
            self._take_maintenance(collected, key, text.strip())
        else:
            return False
        return True

    def _is_alias(self, key: str, text: str) -> bool:
        return key in self._sections and text.strip() == sources.DISABLING_ALIAS

    def _take_section(self, collected: "_Collected", key: names.ValuesKey, text: str) -> None:
        before, section = self._parsed.get(key, (None, {}))
        try:
            collected.sections[key] = section if before == text else self._parse(key, text)
        except errors.ConfigurationError as error:
            collected.unreadable.add(key)
            text = _unquoted(key, str(error)) if self._is_secret else str(error)
            collected.problems.append(Problem(key, text, _without_quotations(key, text)))

    def _take_switch(self, collected: "_Collected", key: str, text: str) -> None:
        if text in sources.SWITCHES:
            collected.switches[key] = sources.SWITCHES[text]
        else:
            rule = 'a switch must be "true" or "false"'
            collected.problems.append(self._wrong_flag(key, rule, text))

    def _take_maintenance(self, collected: "_Collected", key: str, mode: str) -> None:
        if mode.lower() == sources.NO_RESOURCE_RECONCILIATION.lower():
            collected.maintenance[key] = sources.NO_RESOURCE_RECONCILIATION
        elif not mode:
            if self._is_secret:
                # It lies over what the ConfigMap says.
                collected.maintenance[key] = ""
        else:
            rule = f"the maintenance mode must be {sources.NO_RESOURCE_RECONCILIATION!r} or empty"
            collected.problems.append(self._wrong_flag(key, rule, mode))

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

    def _misplaced(self, sections: Mapping[names.ValuesKey, json_types.JsonObject]) -> list[str]:
        """Say of flags that stand in the section of their module that they are values there."""
        return [
            f"{self._source}: {said}"
            for key, section in sections.items()
            for _, said in sources.flags_below(key, section, in_config_map=True)
        ]

    def _unknown(self, key: str) -> str:
        nearest = self._nearest(key)
        hint = f"did you mean {nearest!r}?" if nearest else "no module has it"
        return f"{self._source}: key {key!r} is unknown and ignored; {hint}"

    def _nearest(self, key: str) -> str | None:
        """Return the known key that is meant; flags by what stands before their common ending."""
        for suffix, candidates in (
            (names.ENABLED_SUFFIX, self._switches),
            (names.MAINTENANCE_SUFFIX, self._maintenance),
            ("", {names.GLOBAL_KEY, *self._sections, *self._switches, *self._maintenance}),
        ):
            if key.endswith(suffix):
                stems = [name.removesuffix(suffix) for name in candidates]
                nearest = names.nearest(key.removesuffix(suffix), stems)
                return None if nearest is None else nearest + suffix
        return None


class _Collected(msgspec.Struct):
    """What one reading of a ConfigMap has found so far."""

    sections: dict[names.ValuesKey, json_types.JsonObject] = msgspec.field(default_factory=dict)
    switches: dict[str, bool] = msgspec.field(default_factory=dict)
    maintenance: dict[str, str] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    unreadable: set[str] = msgspec.field(default_factory=set)


_SHOWN: Final = 100
MAX_UNKNOWN: Final = 50
"""How many unknown keys are named one by one."""


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
    return place + _QUOTATION.sub(lambda match: match[0] if _PUNCTUATION.fullmatch(match[0]) else "***", rest)


def _section_problem(key: str, value: json_types.JsonValue) -> str:
    if value is True:
        switch = key + names.ENABLED_SUFFIX
        return f'a section must be YAML of a mapping; to enable the module, set {switch}: "true"'
    return f"a section must be YAML of a mapping, not {sources.kind_of(value)}"

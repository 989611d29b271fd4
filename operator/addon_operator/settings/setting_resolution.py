"""From flags and variables to values: which one wins, and everything that is wrong, at once."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from addon_operator.kernel import errors
from addon_operator.settings import setting_fields

DEFAULT_ORIGIN: Final = "default"
_SHOWN_LENGTH: Final = 80


class SettingsError(errors.ConfigurationError):
    """One or more settings are wrong; the text has one line for each, and for each warning."""

    def __init__(self, problems: tuple[str, ...], warnings: tuple[str, ...] = ()) -> None:
        """``warnings`` are about names: a misspelt one may be why another is missing or wrong."""
        text = problems[0] if len(problems) == 1 else f"{len(problems)} settings are wrong:{_lines(problems)}"
        super().__init__(f"{text}\nSet, too:{_lines(warnings)}" if warnings else text)
        self.problems = problems
        """One sentence for each wrong setting."""


def _lines(sentences: tuple[str, ...]) -> str:
    return "".join(f"\n  {sentence}" for sentence in sentences)


@dataclasses.dataclass(frozen=True, slots=True)
class Resolution:
    """What flags and variables come to."""

    values: Mapping[str, Any]
    """Values by field; without those that are wrong or missing."""
    origins: Mapping[str, str]
    """``default``, ``flag --x`` or ``variable X``, by field."""
    problems: tuple[str, ...]
    """Sentences about values that are not allowed."""
    missing: tuple[str, ...]
    """Sentences about settings that must be given and are not."""

    def check(self, warnings: tuple[str, ...] = ()) -> None:
        """Raise :class:`SettingsError` if anything is wrong or missing, with ``warnings`` about names."""
        if self.problems or self.missing:
            raise SettingsError((*self.missing, *self.problems), warnings)


@dataclasses.dataclass(frozen=True, slots=True)
class _Given:
    text: str
    origin: str


def resolve(
    table: Mapping[str, setting_fields.Setting],
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
) -> Resolution:
    """Values, origins and problems of all settings; never raises for what a user wrote."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []
    missing: list[str] = []
    for field, row in table.items():
        given = _given(row, flags.get(field), environ)
        if given is None:
            missing.append(
                f"{row.documented} is not set: give {row.type.allowed}, or the flag {row.flags[0]}"
            )
            continue
        origins[field] = given.origin
        try:
            values[field] = row.type.parse(given.text)
        except (ValueError, errors.ConfigurationError):
            problems.append(_problem(row, given))
    return Resolution(MappingProxyType(values), MappingProxyType(origins), tuple(problems), tuple(missing))


def _given(row: setting_fields.Setting, flag: str | None, environ: Mapping[str, str]) -> _Given | None:
    if flag is not None:
        return _Given(flag, f"flag {row.flags[0]}")
    for variable in row.variables:
        if text := environ.get(variable):
            return _Given(text, f"variable {variable}")
    return None if row.default is None else _Given(row.default, DEFAULT_ORIGIN)


def _problem(row: setting_fields.Setting, given: _Given) -> str:
    shown = given.text if len(given.text) <= _SHOWN_LENGTH else given.text[:_SHOWN_LENGTH] + "…"
    return f"{row.documented}: {shown!r} ({given.origin}) is not allowed: give {row.type.allowed}"

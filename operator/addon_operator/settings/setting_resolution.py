"""Settings: how a field declares one, which flag or variable wins, and everything that is wrong, at once."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import msgspec

from addon_operator.kernel import errors
from addon_operator.settings import setting_types

T = TypeVar("T")

PREFIX: Final = "ADDON_OPERATOR_"
SHELL_PREFIX: Final = "SHELL_OPERATOR_"
DEFAULT_ORIGIN: Final = "default"
_KEY: Final = "setting"
_SHOWN_LENGTH: Final = 80
_SHELL_NAMES: Final = {
    "GLOBAL_HOOKS_DIR": "HOOKS_DIR",
    "LISTEN_ADDRESS": "LISTEN_ADDRESS",
    "LISTEN_PORT": "LISTEN_PORT",
    "NAMESPACE": "NAMESPACE",
    "PROMETHEUS_METRICS_PREFIX": "PROMETHEUS_METRICS_PREFIX",
    "TMP_DIR": "TMP_DIR",
}


class Setting(msgspec.Struct, frozen=True):
    """One row of the table of settings."""

    name: str
    """The variable's name without prefix, such as ``LISTEN_PORT``."""
    type: setting_types.SettingType[Any]
    help: str
    group: str
    default: str | None
    """Text of the default; ``None`` for a setting that must be given."""
    documented: str
    """The variable's name as the documents write it, with or without prefix."""
    flags: tuple[str, ...]
    """Long options of ``start``; the first is the documented one."""
    aliases: tuple[str, ...] = ()
    """Further names without prefix."""
    shell_name: str | None = None
    """Name without prefix under which ``SHELL_OPERATOR_`` is understood, at the lowest priority."""

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables that set it, highest priority first."""
        names = (self.name, *self.aliases)
        shell = (SHELL_PREFIX + self.shell_name,) if self.shell_name else ()
        return (*(PREFIX + name for name in names), *names, *shell)


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Settings under one heading of the documents."""

    title: str

    def setting(
        self,
        type_: setting_types.SettingType[T],
        default: str | None,
        help_: str,
        *,
        name: str = "",
        prefixed: bool = False,
        flags: tuple[str, ...] = (),
        aliases: tuple[str, ...] = (),
    ) -> T:
        """Declare a dataclass field as a setting, named like the field, unless ``name`` is given.

        ``prefixed`` says that the documents write the variable with its prefix; ``flags`` are documented
        options that differ from the name.
        """

        def row(field: str) -> Setting:
            variable = name or field.upper()
            return Setting(
                name=variable,
                type=type_,
                help=help_,
                group=self.title,
                default=default,
                documented=PREFIX + variable if prefixed else variable,
                flags=tuple(dict.fromkeys([*flags, "--" + variable.lower().replace("_", "-")])),
                aliases=aliases,
                shell_name=_SHELL_NAMES.get(variable),
            )

        # A field object stands for the value that it will hold, as with dataclasses.field itself.
        if default is None:
            return cast("T", dataclasses.field(metadata={_KEY: row}))
        value = type_.parse(default)
        return dataclasses.field(metadata={_KEY: row}, default_factory=lambda: value)


def table_of(class_: type) -> Mapping[str, Setting]:
    """Return the rows of a dataclass whose fields are settings, by field name, in their order."""
    fields = dataclasses.fields(class_)
    return MappingProxyType(
        {field.name: field.metadata[_KEY](field.name) for field in fields if _KEY in field.metadata}
    )


class SettingsError(errors.ConfigurationError):
    """One or more settings are wrong; the text has one line for each, and for each warning."""

    def __init__(self, problems: tuple[str, ...], warnings: tuple[str, ...] = ()) -> None:
        """``warnings`` are about names: a misspelt one may be why another is missing or wrong."""
        text = problems[0] if len(problems) == 1 else f"{len(problems)} settings are wrong:{_lines(problems)}"
        super().__init__(f"{text}\nAlso set:{_lines(warnings)}" if warnings else text)
        self.problems = problems
        """One sentence for each wrong setting."""
        self._warnings = warnings

    @property
    def line(self) -> str:
        """All of it as one line."""
        count = f"{len(self.problems)} settings are wrong: " if len(self.problems) > 1 else ""
        also = f"; also set: {'; '.join(self._warnings)}" if self._warnings else ""
        return f"{count}{'; '.join(self.problems)}{also}"


def _lines(sentences: tuple[str, ...]) -> str:
    return "".join(f"\n  {sentence}" for sentence in sentences)


class Resolution(msgspec.Struct, frozen=True):
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


def resolve(
    table: Mapping[str, Setting],
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
) -> Resolution:
    """Return values, origins and problems of all settings; never raises for what a user wrote.

    ``flags`` are by field, and once more by the flag itself if another one than the first was typed.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []
    missing: list[str] = []
    for field, row in table.items():
        found = given(field, row, flags, environ)
        if found is None:
            missing.append(
                f"{row.documented} is not set: give {row.type.allowed}, or the flag {row.flags[0]}"
            )
            continue
        text, origins[field] = found
        try:
            values[field] = row.type.parse(text)
        except setting_types.ExplainedError as error:
            problems.append(f"{row.documented} ({origins[field]}): {error}")
        except (ValueError, errors.ConfigurationError):
            shown = text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"
            problems.append(
                f"{row.documented}: {shown!r} ({origins[field]}) is not allowed: give {row.type.allowed}"
            )
    return Resolution(MappingProxyType(values), MappingProxyType(origins), tuple(problems), tuple(missing))


def given(
    field: str, row: Setting, flags: Mapping[str, str | None], environ: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return the text that wins, and where it came from; ``flags`` as :func:`resolve` takes them."""
    if (text := flags.get(field)) is not None:
        typed = next((flag for flag in row.flags if flags.get(flag) is not None), row.flags[0])
        return text, f"flag {typed}"
    for variable in row.variables:
        if text := environ.get(variable):
            return text, f"variable {variable}"
    return None if row.default is None else (row.default, DEFAULT_ORIGIN)

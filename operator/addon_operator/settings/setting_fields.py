"""A setting as a dataclass field, and the row of the table that the field carries."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from addon_operator.settings import setting_types

T = TypeVar("T")

PREFIX: Final = "ADDON_OPERATOR_"
SHELL_PREFIX: Final = "SHELL_OPERATOR_"
_KEY: Final = "setting"
_SHELL_NAMES: Final = {
    "GLOBAL_HOOKS_DIR": "HOOKS_DIR",
    "LISTEN_ADDRESS": "LISTEN_ADDRESS",
    "LISTEN_PORT": "LISTEN_PORT",
    "NAMESPACE": "NAMESPACE",
    "PROMETHEUS_METRICS_PREFIX": "PROMETHEUS_METRICS_PREFIX",
    "TMP_DIR": "TMP_DIR",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
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


def setting(
    name: str,
    type_: setting_types.SettingType[T],
    default: str | None,
    help_: str,
    group: str,
    *,
    prefixed: bool = False,
    flags: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
) -> T:
    """A dataclass field that is a setting.

    ``prefixed`` says that the documents write the variable with its prefix; ``flags`` are documented options
    that differ from the name.
    """
    row = Setting(
        name=name,
        type=type_,
        help=help_,
        group=group,
        default=default,
        documented=PREFIX + name if prefixed else name,
        flags=tuple(dict.fromkeys([*flags, "--" + name.lower().replace("_", "-")])),
        aliases=aliases,
        shell_name=_SHELL_NAMES.get(name),
    )
    # A field object stands for the value that it will hold, as with dataclasses.field itself.
    return cast("T", _field(row))


def _field(row: Setting) -> object:
    metadata = {_KEY: row}
    if row.default is None:
        return dataclasses.field(metadata=metadata)
    value = row.type.parse(row.default)
    return dataclasses.field(metadata=metadata, default_factory=lambda: value)


def table_of(class_: type) -> Mapping[str, Setting]:
    """The rows of a dataclass whose fields are settings, by field name, in their order."""
    found = {field.name: field.metadata.get(_KEY) for field in dataclasses.fields(class_)}
    return MappingProxyType({name: row for name, row in found.items() if row is not None})

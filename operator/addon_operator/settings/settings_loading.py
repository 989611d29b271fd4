"""The settings as flags, variables and defaults give them."""

import dataclasses
from collections.abc import Iterable, Mapping

from addon_operator.settings import setting_names, setting_resolution, settings


def load(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> settings.Settings:
    """Load the settings from flags (by field name) and variables: flag, variable, default, in this order.

    ``ADDON_OPERATOR_X`` goes before ``X``, and that before ``SHELL_OPERATOR_X`` where that is understood.
    An empty variable counts as not set; an empty flag is a value.

    Raises :class:`.SettingsError` with one line for each setting that is
    wrong or missing.
    """
    resolution = setting_resolution.resolve(settings.TABLE, flags, environ)
    warnings = setting_names.warnings(settings.TABLE.values(), environ, flags)
    resolution.check(warnings)
    return settings.Settings(**resolution.values, origins=resolution.origins, warnings=warnings)


def in_force(loaded: settings.Settings) -> settings.Settings:
    """Return settings as an operator uses them: all paths are absolute, so that every message says where."""
    values = {field: row.type.in_force(getattr(loaded, field)) for field, row in settings.TABLE.items()}
    return dataclasses.replace(loaded, **values)


def some(
    fields: Iterable[str], flags: Mapping[str, str | None], environ: Mapping[str, str]
) -> setting_resolution.Resolution:
    """Return some settings by field, as :func:`load` finds them, whatever is wrong with the others.

    Raises :class:`.SettingsError` about these.
    """
    resolution = setting_resolution.resolve(
        {field: settings.TABLE[field] for field in fields}, flags, environ
    )
    resolution.check()
    return resolution


def texts(
    fields: Iterable[str], flags: Mapping[str, str | None], environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the texts of those of some settings that somebody gave, by variable without prefix."""
    rows = {field: settings.TABLE[field] for field in fields}
    given = {row.name: setting_resolution.given(field, row, flags, environ) for field, row in rows.items()}
    return {
        name: found[0]
        for name, found in given.items()
        if found is not None and found[1] != setting_resolution.DEFAULT_ORIGIN
    }


def log_type(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> str:
    """Return ``LOG_TYPE``, whatever else is wrong; the default if it is wrong itself."""
    row = settings.TABLE["log_type"]
    values = setting_resolution.resolve({"log_type": row}, flags, environ).values
    return str(values.get("log_type") or row.default)

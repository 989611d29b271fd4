"""``addon-operator start``: run the operator."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Final

import click

from addon_operator.cli import exit_codes, settings
from addon_operator.kernel import errors, optional_imports
from addon_operator.process import own_memory
from addon_operator.settings import settings_loading

_JSON: Final = "json"


@click.command(cls=settings.GroupedCommand)
@settings.settings_options
def start(flags: Mapping[str, str | None]) -> None:
    """Run the operator until it gets SIGTERM or Ctrl-C.

    Each option is also an environment variable, with and without the prefix ADDON_OPERATOR_.
    """
    # The operator's parts take time to import, and structlog more than that without quick_imports: wrong
    # settings are reported first.
    try:
        loaded = settings_loading.load(flags, os.environ)
    except errors.AddonOperatorError as error:
        if settings_loading.log_type(flags, os.environ) == _JSON:
            from addon_operator.telemetry import logs

            logs.configure("error", _JSON)
            _end_with_a_record(error, _JSON)
        raise
    own_memory.give_back_early()
    # As the first process of a container this one would ignore SIGTERM until it has a handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(exit_codes.ExitCode.NOTHING))
    with optional_imports.quick_imports():
        from addon_operator.app import run

    try:
        run.run(settings_loading.in_force(loaded), os.environ)
    except errors.AddonOperatorError as error:
        _end_with_a_record(error, loaded.log_type)
        raise


def _end_with_a_record(error: errors.AddonOperatorError, log_type: str) -> None:
    """Log why the operator ends, and end: another line would not be a record for whoever reads the log.

    A person at a terminal reads the sentence that follows instead.
    """
    if log_type != _JSON and sys.stderr.isatty():
        return
    import structlog

    structlog.get_logger("addon-operator").error(error.line)
    sys.exit(exit_codes.ExitCode.FAILED)

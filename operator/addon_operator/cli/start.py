"""``addon-operator start``: run the operator."""

import os
import signal
import sys
from collections.abc import Mapping

import click

from addon_operator.app import libraries
from addon_operator.app import settings as app_settings
from addon_operator.cli import settings


@click.command()
@settings.settings_options
def start(flags: Mapping[str, str | None]) -> None:
    """Run the operator until it gets SIGTERM or Ctrl-C.

    Each option is also an environment variable, with and without the prefix ADDON_OPERATOR_.
    """
    # The operator's parts take time to import: wrong settings are told first.
    loaded = app_settings.load(flags, os.environ)
    # As the first process of a container this one would ignore SIGTERM until it has a handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with libraries.quick_imports():
        from addon_operator.app import run

    run.run(loaded, os.environ)

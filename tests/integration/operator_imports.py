"""What an operator imports at its start, for the process whose copies the tests start as operators."""

import gc

import tests.integration.operator_forks
from addon_operator.cli import start
from addon_operator.kernel import optional_imports

with optional_imports.quick_imports():
    from addon_operator.app import admission, run

__all__ = ["admission", "run", "start", "tests"]

# A collection in a copy would write to all that it shares with the others.
gc.collect()
gc.freeze()

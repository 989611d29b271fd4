"""Tests of modules: the pytest plugin, its fixtures, and tests in YAML.

Fixtures need no import. What they give has its class here, for annotations and editors.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from addon_operator.testing.live.running_operator import Operator, OperatorFailedError
    from addon_operator.testing.modules.hook_runs import HookFailedError, HookRun
    from addon_operator.testing.modules.manifests import Manifests, NoSuchObjectError
    from addon_operator.testing.modules.module import GlobalHooks, Hook, Module, Modules
    from addon_operator.testing.modules.module_values import Enabled, Values
    from addon_operator.testing.snapshots import Snapshot

__all__ = [
    "Module",
    "Modules",
    "GlobalHooks",
    "Values",
    "Enabled",
    "Manifests",
    "NoSuchObjectError",
    "Hook",
    "HookRun",
    "HookFailedError",
    "Snapshot",
    "Operator",
    "OperatorFailedError",
]

_HOMES: Final = {
    "Module": "modules.module",
    "Modules": "modules.module",
    "GlobalHooks": "modules.module",
    "Hook": "modules.module",
    "Values": "modules.module_values",
    "Enabled": "modules.module_values",
    "Manifests": "modules.manifests",
    "NoSuchObjectError": "modules.manifests",
    "HookRun": "modules.hook_runs",
    "HookFailedError": "modules.hook_runs",
    "Snapshot": "snapshots",
    "Operator": "live.running_operator",
    "OperatorFailedError": "live.running_operator",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    """Import a class when it is asked for: pytest loads this package in every run, also of other projects."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

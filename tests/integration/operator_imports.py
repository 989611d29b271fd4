"""What operators and commands import, for the process whose copies the tests start as those."""

import gc

import structlog

import tests.integration.operator_forks
from addon_operator.cli import module, plan, queue_, start
from addon_operator.kernel import optional_imports

with optional_imports.quick_imports():
    from addon_operator.app import admission, hook_environment, run
    from addon_operator.commands.checks import module_lint
    from addon_operator.commands.plan import planning, proposal, recording
    from addon_operator.debug import debug_api, debug_site
    from addon_operator.modules.health import health_rules

__all__ = [
    "admission",
    "module",
    "module_lint",
    "plan",
    "planning",
    "proposal",
    "queue_",
    "recording",
    "run",
    "start",
    "tests",
]

# Patterns that each operator compiles, and the rules that it reads: a tenth of what a short life takes.
debug_site.application(object.__new__(debug_api.DebugApi), structlog.get_logger())
health_rules.of_kind("v1", "ConfigMap")
hook_environment.inherited({"ANY": ""}, ["*"])

# A collection in a copy would write to all that it shares with the others.
gc.collect()
gc.freeze()

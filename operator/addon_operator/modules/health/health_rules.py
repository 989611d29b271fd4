"""``health.rules``: how resources are by what a module says of their kind, in CEL.

Evaluated by a worker process: a rule over many items may take long.
"""

import functools
import importlib.resources
from typing import Final

from addon_operator.documents import yaml_reading
from addon_operator.hook_contract import violations
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules import module_schema
from addon_operator.modules.health import health_config, health_words, resource_health
from addon_operator.values.schema import cel_rules, schema_rules

MOST_CHARS: Final = 1000
"""How long a rule may be."""
_SHOWN: Final = 100
_KINDS: Final = importlib.resources.files(__package__) / "kinds.yaml"


def problem(expression: str, evaluator: cel_rules.CelEvaluator) -> str:
    """Say what is wrong with a rule before it meets any resource; empty if nothing is."""
    if len(expression) > MOST_CHARS:
        return f"a rule may have {MOST_CHARS} characters; make it shorter"
    try:
        evaluator.check(expression)
    except schema_rules.RuleError as error:
        return f"this is not a rule in CEL: {error}"
    return ""


class RulesError(errors.ConfigurationError):
    """A list of rules is wrong; the sentence says what."""


def read(text: str) -> tuple[health_config.HealthRule, ...]:
    """Read a list as a setting has it, YAML or JSON; raises :class:`RulesError` with all that is wrong."""
    try:
        found = yaml_reading.load_document(text, "the list").value
    except yaml_reading.YamlError as error:
        raise RulesError(str(error)) from None
    if found is None:
        return ()
    if wrong := violations.Checker(module_schema.HEALTH_RULES).find(found):
        raise RulesError("; ".join(wrong))
    rules = health_config.read({"rules": found}).rules
    evaluator = cel_rules.CelEvaluator()
    texts = [(rule, text) for rule in rules for text in (rule.healthy, rule.failed) if text]
    if mistakes := [f"{rule.kind}: {said}" for rule, text in texts if (said := problem(text, evaluator))]:
        raise RulesError("; ".join(mistakes))
    return rules


@functools.lru_cache(1024)
def of_kind(api_version: str, kind: str) -> health_config.HealthRule | None:
    """Return the rule of ``kinds.yaml`` for a kind whose words mean something of their own."""
    return of_kinds().rule_of(api_version, kind)


@functools.cache
def of_kinds() -> health_config.HealthConfig:
    """Return all of ``kinds.yaml``."""
    found = yaml_reading.load(_KINDS.read_text(encoding="utf-8"), "kinds.yaml")
    return health_config.read({"rules": found})


class _NoVerdictError(Exception):
    """A rule gives neither true nor false."""


def judged(
    healthy: str, failed: str, resource: KubernetesObject, evaluator: cel_rules.CelEvaluator
) -> tuple[resource_health.HealthState, str]:
    """Return how a resource is, and why it is not healthy: in its own words, if it has any for that.

    What a rule cannot say of it yet, as it has no status, is in progress.
    """
    state = resource_health.HealthState
    variables = {"self": dict(resource)}
    try:
        if failed and _is_true(failed, variables, evaluator):
            return state.FAILED, _said(resource) or f"meets {_shown(failed)}"
        if _is_true(healthy, variables, evaluator):
            return state.HEALTHY, ""
    except _NoVerdictError as error:
        return state.PROGRESSING, f"its rule says nothing of it: {error}"
    return state.PROGRESSING, _said(resource) or f"does not meet {_shown(healthy)}"


def _said(resource: KubernetesObject) -> str:
    word = health_words.decisive(resource)
    return "" if word is None or word.polarity is health_words.Polarity.WELL else word.said


def no_verdict(expression: str, resource: KubernetesObject, evaluator: cel_rules.CelEvaluator) -> str:
    """Say what a rule gives over a resource instead of true or false; empty if it does not."""
    try:
        evaluator.evaluate(expression, {"self": dict(resource)})
    except schema_rules.NoVerdictError as error:
        return error.kind
    except schema_rules.RuleError:
        return ""
    return ""


def _is_true(
    expression: str, variables: dict[str, dict[str, object]], evaluator: cel_rules.CelEvaluator
) -> bool:
    try:
        return evaluator.evaluate(expression, variables)  # type: ignore[arg-type]  # objects are JSON
    except schema_rules.MissingKeyError:
        return False
    except schema_rules.NoVerdictError as error:
        raise _NoVerdictError(f"{_shown(expression)} gives {error.kind}, not true or false") from None
    except schema_rules.RuleError:
        # The reason may show values, and what is said here is shown to everybody.
        raise _NoVerdictError(f"{_shown(expression)} cannot be evaluated over it") from None


def _shown(expression: str) -> str:
    flat = " ".join(expression.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"

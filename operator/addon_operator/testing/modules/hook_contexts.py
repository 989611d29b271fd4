"""Why a hook under test runs: its binding, and what happened or is asked."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from addon_operator.engine import state
from addon_operator.engine.bindings import triggers
from addon_operator.engine.hooks import questions
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import (
    bindings,
    conversion_bindings,
    hook_config,
    webhook_bindings,
)
from addon_operator.kernel import errors, names
from addon_operator.testing.given import given_objects
from addon_operator.testing.modules import asked, module_values, snapshots_of_hooks

_Bound = (
    hook_config.LifecycleBinding
    | bindings.ScheduleBinding
    | bindings.KubernetesBinding
    | webhook_bindings.WebhookBinding
    | conversion_bindings.ConversionBinding
)
_Asking = webhook_bindings.WebhookBinding | conversion_bindings.ConversionBinding
_ADMISSION = "kubernetesValidating or kubernetesMutating"


class Given(msgspec.Struct):
    """What a run begins with."""

    values: module_values.Values
    binding: str | None = None
    objects: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Mapping[str, Any]] = ()
    review: Mapping[str, Any] | None = None
    """What the API server asks a webhook."""
    convert: Sequence[Mapping[str, Any]] | None = None
    """What it wants in another version: in that of ``to``."""
    to: str | None = None


class Reason(msgspec.Struct, frozen=True):
    """Why a hook runs, and what it is asked."""

    binding: str
    contexts: triggers.RunContexts | list[binding_contexts.Context]
    question: questions.Question[asked.Answer] | None = None


async def reason(
    hook: state.Hook,
    given: Given,
    view: snapshots_of_hooks.HookView,
    cluster: given_objects.GivenObjects,
    definitions: Sequence[Mapping[str, Any]],
) -> Reason:
    """Return why a hook runs; events happen to the objects of the cluster.

    Raises a :class:`.ConfigurationError` for what would not let it run.
    """
    _check(hook, given)
    bound = _binding(hook, given)
    if isinstance(bound, _Asking):
        make = _question(bound, given, [*definitions, *_definitions(given)])
        seen = await view.seen(hook)
        question = make(seen.named(hook, bound.include_snapshots_from))
        return Reason(bound.name, [question.context], question.question)
    happened = await _happened(hook, bound, given, view, cluster)
    seen = await view.seen(hook)
    if isinstance(bound, hook_config.LifecycleBinding):
        return Reason(bound.value, [binding_contexts.lifecycle(bound, seen.snapshots(hook))])
    return Reason(bound.name, triggers.RunContexts(hook, happened, seen))


def bindings_of(hook: state.Hook) -> dict[str, _Bound]:
    """Return the bindings of a hook that a test can run it for, by their names."""
    lifecycle = [each for each in hook_config.LifecycleBinding if hook.config.order(each) is not None]
    found: dict[str, _Bound] = {each.value: each for each in lifecycle}
    return found | {each.name: each for each in (*hook.config.queued, *hook.config.answering)}


def steps_before_helm(hooks: Sequence[state.Hook]) -> list[tuple[state.Hook, str]]:
    """Return what runs before Helm when a module starts, hook and binding, in the operator's order."""
    lifecycle = hook_config.LifecycleBinding
    startup = [(hook, lifecycle.ON_STARTUP.value) for hook in state.bound(hooks, lifecycle.ON_STARTUP)]
    synchronized = [
        (hook, each.name)
        for hook in hooks
        if hook.config.version != hook_config.LEGACY_VERSION
        for each in hook.config.kubernetes
        if each.execute_on_synchronization
    ]
    before = [(hook, lifecycle.BEFORE_HELM.value) for hook in state.bound(hooks, lifecycle.BEFORE_HELM)]
    return [*startup, *synchronized, *before]


def _check(hook: state.Hook, given: Given) -> None:
    asking = {"events": given.events, "review": given.review, "convert": given.convert}
    used = [name for name, value in asking.items() if value]
    if len(used) > 1:
        raise errors.ConfigurationError(f"a run has one of events, review and convert, not {used}")
    if (given.convert is None) is not (given.to is None):
        raise errors.ConfigurationError("convert needs objects and to=, the version that is wanted")
    if given.review is not None and not hook.config.webhooks:
        raise errors.ConfigurationError(f"hook {hook.name} reviews nothing: it has no {_ADMISSION}")
    if given.convert is not None and not hook.config.conversions:
        raise errors.ConfigurationError(
            f"hook {hook.name} converts nothing: it has no {conversion_bindings.KEY}"
        )


def _kind_asked(given: Given) -> type[_Bound] | None:
    if given.review is not None:
        return webhook_bindings.WebhookBinding
    if given.convert is not None:
        return conversion_bindings.ConversionBinding
    return bindings.KubernetesBinding if given.events else None


def _binding(hook: state.Hook, given: Given) -> _Bound:
    found = bindings_of(hook)
    if given.binding is not None and given.binding in found:
        return found[given.binding]
    listed = ", ".join(found) or "none"
    if given.binding is not None:
        hint = names.did_you_mean(given.binding, found, f"it has: {listed}")
        raise errors.ConfigurationError(f"hook {hook.name} has no binding {given.binding!r}; {hint}")
    if (wanted := _kind_asked(given)) is not None:
        found = {name: each for name, each in found.items() if isinstance(each, wanted)}
    if len(found) == 1:
        return next(iter(found.values()))
    raise errors.ConfigurationError(
        f"hook {hook.name} has several bindings; name one with binding=: {', '.join(found) or listed}"
    )


def _question(bound: _Asking, given: Given, definitions: Sequence[Mapping[str, Any]]) -> asked.MakeContext:
    if isinstance(bound, webhook_bindings.WebhookBinding):
        if given.review is None:
            raise errors.ConfigurationError(
                f"binding {bound.name} answers the API server; give what it asks with review="
            )
        return asked.review(bound, given.review, definitions)
    if given.convert is None or given.to is None:
        raise errors.ConfigurationError(
            f"binding {bound.name} converts objects; give them with convert=, and their new version with to="
        )
    return asked.conversion(bound, given.convert, given.to)


def _definitions(given: Given) -> list[Mapping[str, Any]]:
    return [each for each in given.objects if each.get("kind") == "CustomResourceDefinition"]


async def _happened(
    hook: state.Hook,
    bound: _Bound,
    given: Given,
    view: snapshots_of_hooks.HookView,
    cluster: given_objects.GivenObjects,
) -> list[triggers.Trigger]:
    """Return why the hook runs; empty for a lifecycle step."""
    if given.review is not None or given.convert is not None:
        raise errors.ConfigurationError(
            "review is for webhooks, and convert for conversions; name such a binding with binding="
        )
    if given.events and not isinstance(bound, bindings.KubernetesBinding):
        raise errors.ConfigurationError("events are for kubernetes bindings; name one with binding=")
    match bound:
        case bindings.ScheduleBinding():
            return [triggers.Tick(bound)]
        case bindings.KubernetesBinding():
            if not given.events and hook.config.version == hook_config.LEGACY_VERSION:
                raise errors.ConfigurationError(
                    f"hook {hook.name} has no configVersion, so it never runs for all objects; give events"
                )
            if not given.events:
                return [triggers.Synchronization(snapshots_of_hooks.Started(bound))]
            return [await view.event(bound, each, cluster) for each in given.events]
        case _:
            return []

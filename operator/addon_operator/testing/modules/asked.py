"""What the API server asks hooks under test: reviews of admission, and conversions of custom resources."""

import functools
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from addon_operator.engine.bindings import hook_answers
from addon_operator.engine.hooks import questions
from addon_operator.hook_contract import binding_contexts, conversions, hook_entries, violations
from addon_operator.hook_contract.configuration import conversion_bindings, webhook_bindings
from addon_operator.hook_contract.outputs import patch_check, review_answers
from addon_operator.kernel import errors
from addon_operator.kube.discovery import api_resources
from addon_operator.testing.given import given_objects, kinds, object_selectors

_OBJECT: Final = "object"
_OLD: Final = "oldObject"
_OPERATION: Final = "operation"
_DRY_RUN: Final = "dryRun"
_SUBRESOURCE: Final = "subResource"
_NEEDED: Final = {"CREATE": (_OBJECT,), "UPDATE": (_OBJECT, _OLD), "DELETE": (_OLD,)}
_USER: Final = {"username": "test", "groups": ["system:authenticated"]}
_ALL: Final = "*"
_TEXT: Final = {"type": "string", "minLength": 1}
REVIEW: Final[Mapping[str, Any]] = {
    "description": "What the API server asks a webhook: object alone is created, oldObject alone is deleted.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        _OPERATION: {"description": "What is to be done.", "enum": list(_NEEDED)},
        _OBJECT: kinds.OBJECT,
        _OLD: kinds.OBJECT,
        _SUBRESOURCE: {"description": "Such as scale.", **_TEXT},
        _DRY_RUN: {"description": "Whether nothing will be stored.", "type": "boolean", "default": False},
        "userInfo": {
            "description": "Who asks.",
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "username": {"description": "A user, or a service account.", "type": "string"},
                "uid": {"description": "What tells users of one name apart.", "type": "string"},
                "groups": {"description": "The user's groups.", "type": "array", "items": _TEXT},
                "extra": {"description": "What an authenticator says besides.", "type": "object"},
            },
            "x-elsewhere": {},
        },
        "options": {"description": "The options of the operation.", "type": "object"},
    },
    "x-elsewhere": {},
}
"""The schema of a review that a test gives."""
_CHECKER: Final = violations.Checker(REVIEW)
_SHOWN: Final = 3


class Answer(msgspec.Struct, frozen=True):
    """What a hook answered."""

    allowed: bool | None = None
    message: str = ""
    warnings: Sequence[str] = ()
    patched: Mapping[str, Any] | None = None
    converted: Sequence[Mapping[str, Any]] = ()


class Asked(msgspec.Struct, frozen=True):
    """A question, and the context that tells it to the hook."""

    context: binding_contexts.Context
    question: questions.Question[Answer]


MakeContext = Callable[[binding_contexts.Snapshots], Asked]
"""Makes the question, once the snapshots that the binding includes are known."""


def review(
    binding: webhook_bindings.WebhookBinding, given: object, definitions: Sequence[Mapping[str, Any]]
) -> MakeContext:
    """Return a review as the API server would send it.

    ``given`` has ``object``, ``oldObject`` or both, and whatever else of a request differs from the usual.
    ``definitions`` are of kinds that the cluster has. Raises a :class:`.ConfigurationError` for what is not a
    request, or one that the binding would not get.
    """
    request = _request(given)
    body = kinds.check(request.get(_OBJECT) or request[_OLD])
    resource = next(
        each
        for each in kinds.of([body], definitions)
        if (each.api_version, each.kind) == (body["apiVersion"], body["kind"])
    )
    _check_is_asked(binding, request, resource)
    whole = _whole_review(request, resource)
    sent = orjson.dumps(whole)
    question = questions.Question(
        hook_answers.WEBHOOK_VARIABLES,
        functools.partial(_read_review, asked=binding.type, sent=sent),
        drops_outputs=bool(request.get(_DRY_RUN)),
        may_patch_values=binding.type is webhook_bindings.ReviewType.MUTATING,
    )
    return lambda snapshots: Asked(
        binding_contexts.review(binding.name, binding.type.value, sent, snapshots), question
    )


def conversion(
    binding: conversion_bindings.ConversionBinding, objects: Sequence[Mapping[str, Any]], version: str
) -> MakeContext:
    """Return the question for one step: these objects are wanted in ``version``.

    Raises a :class:`.ConfigurationError` for objects of several versions, and for a step that the
    binding does not have.
    """
    before = sorted({str(kinds.check(body)["apiVersion"]) for body in objects})
    wanted = conversion_bindings.full_version(version, binding.crd_name)
    if len(before) != 1:
        raise errors.ConfigurationError(
            f"convert needs objects of one version; these have: {', '.join(before) or 'there are none'}"
        )
    steps = {rule.full(binding.crd_name): rule for rule in binding.rules}
    if (before[0], wanted) not in steps:
        listed = ", ".join(f"{old} to {new}" for old, new in steps)
        raise errors.ConfigurationError(
            f"binding {binding.name} does not convert {before[0]} to {wanted}; it converts: {listed}"
        )
    rule = steps[before[0], wanted]
    items = [dict(body) for body in objects]
    request = hook_entries.StepRequest(rule, wanted, str(uuid.uuid4()), items, arrived=0)
    sent = orjson.dumps(hook_answers.conversion_review(request))
    question = questions.Question(
        hook_answers.CONVERSION_VARIABLES,
        functools.partial(_read_conversion, before=items, version=wanted),
    )
    versions = (rule.from_version, rule.to_version)
    return lambda snapshots: Asked(
        binding_contexts.conversion(binding.name, versions, sent, snapshots), question
    )


def _request(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise errors.ConfigurationError(f"a review is {{'object': …}} or {{'oldObject': …}}, not {given!r}")
    request = {key: value for key, value in given.items() if value is not None}
    if problems := _CHECKER.find(request):
        raise errors.ConfigurationError(f"a review is wrong: {'; '.join(problems[:_SHOWN])}")
    usual = "CREATE" if _OLD not in request else "UPDATE" if _OBJECT in request else "DELETE"
    needed = _NEEDED[request.setdefault(_OPERATION, usual)]
    if {key for key in (_OBJECT, _OLD) if key in request} != set(needed):
        raise errors.ConfigurationError(
            f"a review of {request[_OPERATION]} has {' and '.join(needed)}, and no more"
        )
    return request


def _check_is_asked(
    binding: webhook_bindings.WebhookBinding, request: Mapping[str, Any], resource: api_resources.Resource
) -> None:
    """Raise an error for what the API server would not ask: a test of it would show nothing."""
    name = "/".join(filter(None, (resource.plural, request.get(_SUBRESOURCE))))
    if not any(_covers(rule, request[_OPERATION], resource, name) for rule in binding.rules):
        raise errors.ConfigurationError(
            f"binding {binding.name} is not asked about {request[_OPERATION]} of {name} of "
            f"{resource.api_version}: no item of its rules has that"
        )
    selector = binding.objects.to_query() if binding.objects else ""
    if not any(
        object_selectors.has_labels(selector, _labels(request[key]))
        for key in (_OBJECT, _OLD)
        if key in request
    ):
        raise errors.ConfigurationError(
            f"binding {binding.name} is not asked about this object: its labelSelector selects {selector}"
        )


def _labels(body: Mapping[str, Any]) -> Mapping[str, str]:
    return kinds.check(body)["metadata"].get("labels") or {}


def _covers(
    rule: webhook_bindings.WebhookRule, operation: str, resource: api_resources.Resource, name: str
) -> bool:
    group, _, version = resource.api_version.rpartition("/")
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return (
        _has(rule.operations, operation)
        and _has(rule.api_groups, group)
        and _has(rule.api_versions, version)
        and any(_is_resource(pattern, name) for pattern in rule.resources)
        and rule.scope in (_ALL, scope)
    )


def _has(listed: Iterable[str], value: str) -> bool:
    return any(each in (_ALL, value) for each in listed)


def _is_resource(pattern: str, name: str) -> bool:
    """Say whether a rule's item means a resource: ``*`` has no subresources, ``*/*`` and ``pods/*`` have."""
    wanted, _, wanted_sub = pattern.partition("/")
    plural, _, sub = name.partition("/")
    if wanted not in (_ALL, plural):
        return False
    return wanted_sub == sub or (wanted_sub == _ALL and (bool(sub) or wanted == _ALL))


def _whole_review(request: Mapping[str, Any], resource: api_resources.Resource) -> dict[str, Any]:
    placed = {key: _placed(request[key], resource) for key in (_OBJECT, _OLD) if key in request}
    metadata = next(iter(placed.values()))["metadata"]
    group, _, version = resource.api_version.rpartition("/")
    kind = {"group": group, "version": version, "kind": resource.kind}
    plural = {"group": group, "version": version, "resource": resource.plural}
    place = {"namespace": metadata["namespace"]} if resource.namespaced else {}
    usual = {"uid": str(uuid.uuid4()), "userInfo": _USER, _OBJECT: None, _OLD: None, _DRY_RUN: False}
    whole = {
        **usual,
        **request,
        **placed,
        **place,
        "name": metadata["name"],
        "kind": kind,
        "requestKind": kind,
        "resource": plural,
        "requestResource": plural,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole}


def _placed(body: Mapping[str, Any], resource: api_resources.Resource) -> dict[str, Any]:
    """Return an object with the namespace that the API server gives it."""
    if not resource.namespaced:
        return dict(body)
    return {**body, "metadata": {"namespace": given_objects.NAMESPACE, **body["metadata"]}}


def _read_review(text: str, asked: webhook_bindings.ReviewType, sent: bytes) -> Answer:
    answer = review_answers.parse(text, asked)
    patched = patch_check.check(sent, answer.patch)
    if answer.patch and patched is None:
        raise patch_check.PatchError("its patch takes too long to be applied in a test")
    if answer.allowed and not answer.patch:
        patched = orjson.loads(sent)["request"][_OBJECT]
    return Answer(answer.allowed, answer.message, answer.warnings, patched)


def _read_conversion(text: str, before: Sequence[dict[str, Any]], version: str) -> Answer:
    answer = conversions.read_answer(text, before, version)
    return Answer(message=answer.failed_message, converted=answer.objects)

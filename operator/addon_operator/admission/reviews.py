"""Admission reviews: what the API server asks, and what it is answered.

Source: ``admission.k8s.io/v1`` of the Kubernetes API and "Dynamic Admission Control" of its documentation.
"""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from addon_operator.kernel import errors

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_SHOWN_MAX: Final = 63


class MalformedReviewError(errors.AddonOperatorError):
    """The body of a request is no admission review."""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupVersionName:
    """A kind or a resource with its group and version."""

    group: str
    """Empty for the core group."""
    version: str
    name: str
    """``Pod`` of a kind, ``pods`` of a resource."""


@dataclasses.dataclass(frozen=True, slots=True)
class Review:
    """One question of the API server: whether this may be done, and how."""

    uid: str
    """Identifies the question; the answer repeats it."""
    kind: GroupVersionName
    resource: GroupVersionName
    sub_resource: str
    """Such as ``status``; empty for the object itself."""
    name: str
    """Name of the object; empty while the API server has not made one from ``generateName``."""
    namespace: str
    """Empty for objects of the whole cluster."""
    operation: str
    """``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``."""
    dry_run: bool
    """Nothing will be stored: the handler must leave no trace."""
    user: str
    """Name of who asks."""
    object: Mapping[str, Any] | None
    """The object as it is to be; ``None`` on DELETE."""
    old_object: Mapping[str, Any] | None
    """The object as it is stored; ``None`` on CREATE."""
    field_manager: str = ""
    """What the client calls itself, if it does."""
    memory: int = 0
    """Bytes that it takes, estimated from above; see :mod:`.site_load`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong with an object."""

    field: str
    """Where."""
    message: str
    """The rule, and what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a review."""

    allowed: bool = True
    patch: Sequence[Mapping[str, Any]] = ()
    """Operations of a JSON patch; only of a mutating webhook that allows."""
    message: str = ""
    """Why it is refused, for the user."""
    causes: Sequence[Cause] = ()
    """All that is wrong with an object that is refused as invalid; ``kubectl edit`` shows it and goes on."""
    warnings: Sequence[str] = ()
    """Sentences that ``kubectl`` shows; the API server cuts those over 256 characters."""


class Handler(Protocol):
    """Who decides about reviews of one path."""

    async def __call__(self, review: Review) -> Verdict:
        """The verdict; what it raises is answered as the path's route says."""
        ...


ALLOWED: Final = Verdict()


def parse(body: bytes) -> Review:
    """The review in the body of a request.

    Raises :class:`MalformedReviewError` for anything that is no complete review of this version.
    """
    document = _document(body)
    version, kind = document.get("apiVersion"), document.get("kind")
    if (version, kind) != (API_VERSION, KIND):
        raise MalformedReviewError(
            f"the body is a {_shown(kind)} of {_shown(version)}: send an {KIND} of {API_VERSION}, "
            f'and name "v1" in the webhook\'s admissionReviewVersions'
        )
    request = _mapping(document, "request")
    if request is None:
        raise MalformedReviewError(f"the {KIND} has no request")
    return _review(request)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:_SHOWN_MAX])
    return "None" if value is None else type(value).__name__


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedReviewError(f"the body is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise MalformedReviewError(f"the body is no {KIND}: it has to be a JSON object")
    return document


def _review(request: Mapping[str, Any]) -> Review:
    return Review(
        uid=_required(request, "uid"),
        kind=_typed_name(request, "kind", "kind"),
        resource=_typed_name(request, "resource", "resource"),
        sub_resource=_text(request, "subResource"),
        name=_text(request, "name"),
        namespace=_text(request, "namespace"),
        operation=_required(request, "operation"),
        dry_run=request.get("dryRun") is True,
        user=_text(_mapping(request, "userInfo") or {}, "username"),
        object=_mapping(request, "object"),
        old_object=_mapping(request, "oldObject"),
        field_manager=_text(_mapping(request, "options") or {}, "fieldManager"),
    )


def _typed_name(request: Mapping[str, Any], key: str, last: str) -> GroupVersionName:
    value = _mapping(request, key) or {}
    return GroupVersionName(_text(value, "group"), _text(value, "version"), _text(value, last))


def _required(request: Mapping[str, Any], key: str) -> str:
    text = _text(request, key)
    if not text:
        raise MalformedReviewError(f"the {KIND} has no request.{key}")
    return text


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedReviewError(f"{key} in the {KIND} is {_type_of(value)}, and has to be a string")
    return value


def _mapping(holder: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = holder.get(key)
    if value is not None and not isinstance(value, dict):
        raise MalformedReviewError(f"{key} in the {KIND} is {_type_of(value)}, and has to be an object")
    return value


def _type_of(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return names.get(type(value), "an object")


def answer(review: Review, verdict: Verdict) -> bytes:
    """The body of the answer to a review."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": verdict.allowed}
    if verdict.allowed and verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(list(verdict.patch), default=dict)).decode()
    if not verdict.allowed:
        response["status"] = _refusal(review, verdict)
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _refusal(review: Review, verdict: Verdict) -> dict[str, Any]:
    if not verdict.causes:
        return {"code": 403, "reason": "Forbidden", "message": verdict.message}
    causes = [
        {"reason": "FieldValueInvalid", "field": cause.field, "message": cause.message}
        for cause in verdict.causes
    ]
    details = {"name": review.name, "group": review.kind.group, "kind": review.kind.name, "causes": causes}
    return {"code": 422, "reason": "Invalid", "message": verdict.message, "details": details}

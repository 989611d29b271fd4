"""Admission reviews: what the API server asks, and what it is answered.

Source: ``admission.k8s.io/v1`` of the Kubernetes API and "Dynamic Admission Control" of its documentation.
"""

import abc
import base64
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
import orjson

from addon_operator.documents import json_documents
from addon_operator.kernel import errors

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_SHOWN_MAX: Final = 63


class _KindOrResource(msgspec.Struct):
    group: str | None = None
    version: str | None = None
    kind: str | None = None
    resource: str | None = None


class _UserInfo(msgspec.Struct):
    username: str | None = None
    groups: list[str] | None = None


class _Options(msgspec.Struct, rename="camel"):
    field_manager: str | None = None


class _Request(msgspec.Struct, rename="camel"):
    uid: Annotated[str, msgspec.Meta(min_length=1)]
    operation: Annotated[str, msgspec.Meta(min_length=1)]
    kind: _KindOrResource | None = None
    resource: _KindOrResource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    dry_run: bool | None = None
    user_info: _UserInfo | None = None
    options: _Options | None = None
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Document(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    request: _Request | None = None


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


class MalformedReviewError(errors.AddonOperatorError):
    """The body of a request is not an admission review."""


class GroupVersionName(msgspec.Struct, frozen=True):
    """A kind or a resource with its group and version."""

    group: str
    """Empty for the core group."""
    version: str
    name: str
    """``Pod`` of a kind, ``pods`` of a resource."""


class Review(msgspec.Struct, frozen=True):
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
    groups: Sequence[str] = ()
    """Groups of who asks."""
    field_manager: str = ""
    """What the client calls itself, if it does."""
    path: str = ""
    """Where it was sent to."""
    sent: bytes = b""
    """All of it as it came, where the route keeps that."""
    seconds: float = math.inf
    """How long the API server waits, as far as it says so."""
    memory: int = 0
    """Bytes that it takes, estimated from above; see :mod:`.review_budget`."""


class Cause(msgspec.Struct, frozen=True):
    """One thing that is wrong with an object."""

    field: str
    """Where."""
    message: str
    """The rule, and what to do."""


def cause(sentence: str) -> Cause:
    """Return the cause that a sentence says, which begins with the place and a colon; else it is ``data``."""
    place, _, rule = sentence.partition(": ")
    return Cause(place, rule) if rule else Cause("data", sentence)


class ReviewVerdict(msgspec.Struct, frozen=True):
    """The answer to a review."""

    allowed: bool = True
    patch: Sequence[Mapping[str, Any]] = ()
    """Operations of a JSON patch; only of a mutating webhook that allows."""
    message: str = ""
    """Why it is refused, for the user."""
    causes: Sequence[Cause] = ()
    """All that is wrong with an object that is refused as invalid; ``kubectl edit`` shows it and goes on."""
    warnings: Sequence[str] = ()
    """Sentences that ``kubectl`` shows; if there are many, the API server cuts those over 256 characters."""


class UnansweredError(errors.AddonOperatorError):
    """A handler has no answer now; for the API server that is a failed call."""


class ReviewHandler(abc.ABC):
    """Decides about the reviews of one path; what it raises is answered as the path's route says."""

    @abc.abstractmethod
    async def decide(self, review: Review) -> ReviewVerdict:
        """Allow or refuse what the review asks, or change it."""


class BodyHandler(abc.ABC):
    """Answers requests of a path that are not admission reviews."""

    @abc.abstractmethod
    async def answer(self, name: str, body: bytes, seconds: float) -> bytes:
        """Return the body of the answer; ``name`` is the end of the path, ``seconds`` how long it may take.

        Raises :class:`MalformedReviewError` for what is not such a request.
        """


ALLOWED: Final = ReviewVerdict()


def parse(body: bytes, *, has_objects: bool = True) -> Review:
    """Return the review in the body of a request; without its objects, unless ``has_objects``.

    Raises :class:`MalformedReviewError` for anything that is not a complete review of this version.
    """
    try:
        document = _DOCUMENT.decode(body)
    except json_documents.BROKEN as error:
        raise MalformedReviewError(f"the body is not an {KIND}: {error}") from error
    if (document.api_version, document.kind) != (API_VERSION, KIND):
        raise MalformedReviewError(
            f"the body is {shown_type(document.kind, document.api_version)}: send an {KIND} of "
            f'{API_VERSION}, and name "v1" in the webhook\'s admissionReviewVersions'
        )
    if document.request is None:
        raise MalformedReviewError(f"the {KIND} has no request")
    if not has_objects:
        document.request.object = document.request.old_object = msgspec.Raw(b"null")
    return _review(document.request)


def shown_type(kind: str | None, api_version: str | None) -> str:
    """Say what an object calls itself, however long that is: ``a 'Pod' of 'v1'``."""
    if not kind or not api_version:
        return f"without {'apiVersion' if kind else 'kind'}"
    return f"a {kind[:_SHOWN_MAX]!r} of {api_version[:_SHOWN_MAX]!r}"


def _review(request: _Request) -> Review:
    kind, resource = request.kind or _KindOrResource(), request.resource or _KindOrResource()
    return Review(
        uid=request.uid,
        kind=GroupVersionName(kind.group or "", kind.version or "", kind.kind or ""),
        resource=GroupVersionName(resource.group or "", resource.version or "", resource.resource or ""),
        sub_resource=request.sub_resource or "",
        name=request.name or "",
        namespace=request.namespace or "",
        operation=request.operation,
        dry_run=request.dry_run is True,
        user=(request.user_info and request.user_info.username) or "",
        groups=(request.user_info and request.user_info.groups) or (),
        object=_object("object", request.object),
        old_object=_object("oldObject", request.old_object),
        field_manager=(request.options and request.options.field_manager) or "",
    )


def _object(field: str, data: msgspec.Raw) -> Mapping[str, Any] | None:
    # As orjson reads numbers, it can write them again into a patch.
    try:
        document = orjson.loads(memoryview(data))
    except orjson.JSONDecodeError as error:
        raise MalformedReviewError(f"request.{field} of the {KIND} is not JSON: {error}") from error
    if document is not None and not isinstance(document, dict):
        raise MalformedReviewError(f"request.{field} of the {KIND} is not an object")
    return document


def answer(review: Review, verdict: ReviewVerdict) -> bytes:
    """Return the body of the answer to a review."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": verdict.allowed}
    if verdict.allowed and verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(list(verdict.patch), default=dict)).decode()
    if not verdict.allowed:
        response["status"] = _refusal(review, verdict)
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _refusal(review: Review, verdict: ReviewVerdict) -> dict[str, Any]:
    if not verdict.causes:
        return {"code": 403, "reason": "Forbidden", "message": verdict.message}
    causes = [
        {"reason": "FieldValueInvalid", "field": cause.field, "message": cause.message}
        for cause in verdict.causes
    ]
    details = {"name": review.name, "group": review.kind.group, "kind": review.kind.name, "causes": causes}
    return {"code": 422, "reason": "Invalid", "message": verdict.message, "details": details}

"""Conversion reviews: what the API server wants converted, and what it is answered.

Source: ``apiextensions.k8s.io/v1`` of the Kubernetes API and "Versions in CustomResourceDefinitions" of its
documentation.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
import orjson

from addon_operator.admission import reviews
from addon_operator.documents import json_documents
from addon_operator.kernel.json_types import JsonObject

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"
_UID: Final = re.compile(r"[-A-Za-z0-9_.:]{1,128}")


class _Request(msgspec.Struct, rename="camel"):
    uid: Annotated[str, msgspec.Meta(min_length=1)]
    desired_api_version: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="desiredAPIVersion")
    objects: list[msgspec.Raw] = msgspec.field(default_factory=list)


class _Document(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    request: _Request | None = None


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


class ConversionReview(msgspec.Struct, frozen=True):
    """Objects of one definition, and the version that they are wanted in."""

    uid: str
    """Identifies the question; the answer repeats it."""
    crd_name: str
    version: str
    """The wanted one: ``group/version``."""
    objects: Sequence[JsonObject]


def parse(body: bytes, crd_name: str) -> ConversionReview:
    """Return the review in the body of a request about objects of that definition.

    Raises :class:`.MalformedReviewError` for anything else.
    """
    try:
        document = _DOCUMENT.decode(body)
    except json_documents.BROKEN as error:
        raise reviews.MalformedReviewError(f"the body is not a {KIND}: {error}") from error
    if (document.api_version, document.kind) != (API_VERSION, KIND):
        raise reviews.MalformedReviewError(
            f"the body is {reviews.shown_type(document.kind, document.api_version)}: send a {KIND} of "
            f'{API_VERSION}, and name "v1" in conversionReviewVersions of the CustomResourceDefinition'
        )
    request = document.request
    if request is None or _UID.fullmatch(request.uid) is None:
        raise reviews.MalformedReviewError(f"the {KIND} has no request with a uid")
    _check_version("request.desiredAPIVersion", request.desired_api_version, crd_name)
    objects = [_object(number, data, crd_name) for number, data in enumerate(request.objects)]
    return ConversionReview(request.uid, crd_name, request.desired_api_version, objects)


def _object(number: int, data: msgspec.Raw, crd_name: str) -> JsonObject:
    place = f"request.objects[{number}]"
    try:
        document = orjson.loads(memoryview(data))
    except orjson.JSONDecodeError as error:
        raise reviews.MalformedReviewError(f"{place} of the {KIND} is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
        raise reviews.MalformedReviewError(f"{place} of the {KIND} is not an object")
    _check_version(f"{place}.apiVersion", document.get("apiVersion"), crd_name)
    return document


def _check_version(place: str, version: object, crd_name: str) -> None:
    group = crd_name.partition(".")[2]
    if not isinstance(version, str) or version.partition("/")[0] != group or not version.partition("/")[2]:
        raise reviews.MalformedReviewError(f"{place} is not a version of {group}")


def answer(review: ConversionReview, converted: Sequence[JsonObject]) -> bytes:
    """Return the body of the answer with the objects, in the order of the review's."""
    return _answer(review, {"result": {"status": "Success"}, "convertedObjects": list(converted)})


def refusal(review: ConversionReview, message: str) -> bytes:
    """Return the body of the answer for objects that cannot be converted; the user sees the message."""
    return _answer(review, {"result": {"status": "Failure", "message": message}, "convertedObjects": []})


def _answer(review: ConversionReview, response: dict[str, Any]) -> bytes:
    document = {"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": review.uid, **response}}
    return orjson.dumps(document)

"""Conversion reviews as the API server sends them, and everything else that reaches the port."""

from typing import Any

import orjson
import pytest

from addon_operator.admission import reviews
from addon_operator.admission.conversions import conversion_reviews
from tests.support import rows

CRD = "crontabs.example.com"
OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "CronTab",
    "metadata": {"name": "a"},
    "big": 1.5,
}


def body(**request: object) -> bytes:
    asked = {"uid": "1-2", "desiredAPIVersion": "example.com/v2", "objects": [OBJECT], **request}
    document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": asked}
    return orjson.dumps(document)


def parse(data: bytes) -> conversion_reviews.ConversionReview:
    return conversion_reviews.parse(data, CRD)


def test_a_review_is_read() -> None:
    review = parse(body())
    assert (review.uid, review.crd_name, review.version) == ("1-2", CRD, "example.com/v2")
    assert review.objects == [OBJECT]


WRONG: list[tuple[bytes, str]] = [
    (b"", "the body is not a ConversionReview: "),
    (b"[]", "the body is not a ConversionReview: "),
    (b"[" * 100_000, "the body is not a ConversionReview: "),
    (b"{}", "the body is without kind: send a ConversionReview of apiextensions.k8s.io/v1"),
    (
        body().replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
        "the body is a 'ConversionReview' of 'apiextensions.k8",
    ),
    (body(uid="a b"), "the ConversionReview has no request with a uid"),
    (body(desiredAPIVersion="other.com/v2"), "request.desiredAPIVersion is not a version of example.com"),
    (body(desiredAPIVersion="example.com"), "request.desiredAPIVersion is not a version of example.com"),
    (body(objects=[1]), "request.objects[0] of the ConversionReview is not an object"),
    (body(objects=[OBJECT, {}]), "request.objects[1].apiVersion is not a version of example.com"),
    (body(objects=[OBJECT | {"metadata": 1}]), "request.objects[0] of the ConversionReview is not an object"),
    (body(objects=[OBJECT | {"apiVersion": 1}]), "request.objects[0].apiVersion is not a version of"),
]


@rows.each(("data", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_what_is_not_one_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(reviews.MalformedReviewError) as raised:
        parse(data)
    assert str(raised.value).startswith(message)


def response(data: bytes) -> dict[str, Any]:
    document = orjson.loads(data)
    assert (document["apiVersion"], document["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    found: dict[str, Any] = document["response"]
    return found


def test_the_answer_has_the_objects() -> None:
    assert response(conversion_reviews.answer(parse(body()), [OBJECT])) == {
        "uid": "1-2",
        "result": {"status": "Success"},
        "convertedObjects": [OBJECT],
    }


def test_the_answer_says_why_not() -> None:
    assert response(conversion_reviews.refusal(parse(body()), "no way")) == {
        "uid": "1-2",
        "result": {"status": "Failure", "message": "no way"},
        "convertedObjects": [],
    }

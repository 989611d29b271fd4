"""Reading reviews and writing their answers."""

import base64
import json
import types
from typing import Any

import pytest

from addon_operator.admission import reviews
from tests.support import rows
from tests.unit.admission import tls_clients


def parse(**changes: object) -> reviews.Review:
    return reviews.parse(json.dumps(tls_clients.review(**changes)).encode())


def test_a_review_says_who_wants_what() -> None:
    review = parse(name="web-1", subResource="resize", dryRun=True, oldObject={"kind": "Pod"})
    assert (review.uid, review.user, review.operation) == (
        "705ab4f5-6393-11e8-b7cc-42010a800002",
        "admin",
        "CREATE",
    )
    assert (review.namespace, review.name, review.sub_resource) == ("shop", "web-1", "resize")
    assert review.kind == reviews.GroupVersionName("", "v1", "Pod")
    assert review.resource == reviews.GroupVersionName("", "v1", "pods")
    assert review.object is not None
    assert review.object["metadata"] == {"generateName": "web-"}
    assert review.old_object == {"kind": "Pod"}
    assert review.dry_run


def test_what_the_api_server_leaves_out_is_empty() -> None:
    review = reviews.parse(
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",'
        b' "request": {"uid": "u", "operation": "DELETE"}}'
    )
    assert (review.namespace, review.name, review.sub_resource, review.user) == ("", "", "", "")
    assert (review.object, review.old_object, review.dry_run) == (None, None, False)


@rows.each(
    ("body", "says"),
    [
        pytest.param(b"", "the body is not an AdmissionReview: Input", id="nothing"),
        pytest.param(b'{"a": ', "the body is not an AdmissionReview: Input", id="cut off"),
        pytest.param(b"\xff\xfe", "the body is not an AdmissionReview: JSON", id="no text"),
        pytest.param(b"[]", "Expected `object`, got `array`", id="a list"),
        pytest.param(b"{}", "the body is without kind: send", id="an empty object"),
        pytest.param(
            b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}',
            'name "v1" in the webhook\'s admissionReviewVersions',
            id="an old version",
        ),
        pytest.param(b'{"apiVersion": "v1", "kind": "Pod"}', "'Pod' of 'v1'", id="another kind"),
        pytest.param(
            b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {}}',
            "no request",
            id="an answer",
        ),
    ],
)
def test_what_is_not_a_review_is_refused(body: bytes, says: str) -> None:
    with pytest.raises(reviews.MalformedReviewError, match=says):
        reviews.parse(body)


@rows.each(
    ("changes", "says"),
    [
        pytest.param({"uid": ""}, r"of length >= 1 - at `\$.request.uid`", id="no uid"),
        pytest.param({"uid": 7}, r"Expected `str`, got `int` - at `\$.request.uid`", id="a number as uid"),
        pytest.param(
            {"operation": None}, r"`str`, got `null` - at `\$.request.operation`", id="no operation"
        ),
        pytest.param({"object": "pod"}, "request.object .* is not an object", id="a text as object"),
        pytest.param({"oldObject": [1]}, "request.oldObject .* is not an object", id="a list as old object"),
        pytest.param({"kind": ["Pod"]}, r"got `array` - at `\$.request.kind`", id="a list as kind"),
        pytest.param(
            {"userInfo": {"username": True}},
            r"got `bool` - at `\$.request.userInfo.username`",
            id="a boolean as user",
        ),
        pytest.param(
            {"namespace": {}}, r"got `object` - at `\$.request.namespace`", id="an object as namespace"
        ),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(reviews.MalformedReviewError, match=says):
        parse(**changes)


def answer(verdict: reviews.ReviewVerdict) -> dict[str, Any]:
    review = parse(uid="some-uid", name="web-1", kind={"group": "", "version": "v1", "kind": "Pod"})
    document = json.loads(reviews.answer(review, verdict))
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert document["response"].pop("uid") == "some-uid"
    response: dict[str, Any] = document["response"]
    return response


def test_an_allowed_object_without_changes_is_just_allowed() -> None:
    assert answer(reviews.ALLOWED) == {"allowed": True}


def test_a_patch_is_sent_encoded() -> None:
    operation = {"op": "add", "path": "/spec/a", "value": types.MappingProxyType({"b": "é"})}
    response = answer(reviews.ReviewVerdict(patch=(operation,)))
    assert (
        response.pop("patch")
        == base64.b64encode('[{"op":"add","path":"/spec/a","value":{"b":"é"}}]'.encode()).decode()
    )
    assert response == {"allowed": True, "patchType": "JSONPatch"}


def test_a_refusal_says_why_and_changes_nothing() -> None:
    verdict = reviews.ReviewVerdict(
        allowed=False, message="no selector", patch=({"op": "remove", "path": "/a"},)
    )
    assert answer(verdict) == {
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "no selector"},
    }


def test_warnings_reach_the_user() -> None:
    assert answer(reviews.ReviewVerdict(warnings=("mind this",)))["warnings"] == ["mind this"]


def test_what_is_invalid_is_listed_for_kubectl_edit() -> None:
    causes = [reviews.Cause("web.port", "must be an integer"), reviews.Cause("web.host", "must be a string")]
    response = answer(reviews.ReviewVerdict(allowed=False, message="two things", causes=causes))
    assert response["status"] == {
        "code": 422,
        "reason": "Invalid",
        "message": "two things",
        "details": {
            "name": "web-1",
            "group": "",
            "kind": "Pod",
            "causes": [
                {"reason": "FieldValueInvalid", "field": "web.port", "message": "must be an integer"},
                {"reason": "FieldValueInvalid", "field": "web.host", "message": "must be a string"},
            ],
        },
    }


@rows.each(
    ("options", "manager"),
    [({"kind": "PatchOptions", "fieldManager": "kubectl-edit"}, "kubectl-edit"), ({}, ""), (None, "")],
    ids=["named", "unnamed", "no-options"],
)
def test_the_field_manager_is_that_of_the_options(options: dict[str, str] | None, manager: str) -> None:
    assert parse(options=options).field_manager == manager

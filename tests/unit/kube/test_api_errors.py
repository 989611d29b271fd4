"""The sentences of API errors."""

import json

import pytest

from addon_operator.kube import api_errors, paths
from tests.support import rows


def forbidden(method: str, path: str, message: str) -> str:
    body = json.dumps({"reason": "Forbidden", "message": message}).encode()
    return str(api_errors.from_answer(paths.target(method, path), 403, body))


USER = "system:serviceaccount:addons:default"


def test_a_missing_right_names_the_verb_the_place_and_the_rule_to_add() -> None:
    message = (
        f'configmaps "values" is forbidden: User "{USER}" cannot patch resource "configmaps" in API group ""'
    )
    text = forbidden("PATCH", "/api/v1/namespaces/addons/configmaps/values", message)
    assert text == (
        f'{USER} may not patch configmaps "values" in namespace "addons": add to its Role the rule '
        'apiGroups: [""], resources: ["configmaps"], verbs: ["patch"]'
    )


def test_a_missing_right_to_a_subresource_of_the_cluster_asks_for_a_cluster_role() -> None:
    text = forbidden("PUT", "/apis/example.io/v1/things/x/status", f'User "{USER}" cannot update resource')
    assert (
        'ClusterRole the rule apiGroups: ["example.io"], resources: ["things/status"], verbs: ["update"]'
        in text
    )


def test_a_missing_right_to_a_path_names_the_path() -> None:
    text = forbidden("GET", "/metrics", f'User "{USER}" cannot get path "/metrics"')
    assert 'nonResourceURLs: ["/metrics"], verbs: ["get"]' in text


def test_a_refusal_by_a_policy_is_not_a_missing_right() -> None:
    text = forbidden(
        "POST", "/api/v1/namespaces/x/pods", 'pods "a" is forbidden: violates PodSecurity "restricted"'
    )
    assert text.startswith(
        'the API server refuses to create pods in namespace "x": pods "a" is forbidden: violates'
    )


@rows.each(
    "body",
    [b"", b"null", b'{"reason": 1, "message": null}', b"\xff\xfe"],
    ids=["empty", "null", "types", "binary"],
)
def test_an_error_without_a_status_object_is_still_a_sentence(body: bytes) -> None:
    error = api_errors.from_answer(paths.target("GET", "/version"), 500, body)
    assert str(error).startswith("the API server did not get /version (500): ")
    assert error.reason == ""


def missing(path: str, body: object) -> type[api_errors.ApiError]:
    assert isinstance(body, str | dict)
    text = (
        body if isinstance(body, str) else json.dumps({"kind": "Status", "reason": "NotFound"} | dict(body))
    )
    return type(api_errors.from_answer(paths.target("GET", path), 404, text.encode()))


def test_only_an_answer_that_names_what_is_missing_says_that_an_object_is_gone() -> None:
    path = "/api/v1/namespaces/addons/configmaps/values"
    answers = {
        "named": {"details": {"name": "values", "kind": "configmaps"}},
        "namespace": {"details": {"name": "addons", "kind": "namespaces"}},
        "without details": {"message": 'things "values" not found'},
        "unknown path": {"message": "the server could not find the requested resource", "details": {}},
        "of a webhook": {"message": "admission webhook denied the request: nothing here"},
        "gateway": "404 page not found",
        "html": "<html>values</html>",
    }
    found = {name: missing(path, body) for name, body in answers.items()}
    assert [name for name, error in found.items() if error is api_errors.NotFound] == [
        "named", "namespace", "without details",
    ]  # fmt: skip
    assert set(found.values()) == {api_errors.NotFound, api_errors.NotServed}


def test_already_existing_counts_as_a_conflict_too() -> None:
    error = api_errors.from_answer(paths.target("POST", "/api/v1/nodes"), 409, b'{"reason": "AlreadyExists"}')
    assert isinstance(error, api_errors.AlreadyExists)
    assert isinstance(error, api_errors.Conflict)


INVALID = [
    (
        'Secret "a" is invalid: data[k]: Invalid value: "s3cr\\"et": too long',
        "data[k]: Invalid value: ***: too long",
    ),
    (
        '"" is invalid: patch: Invalid value: "{\\"data\\":{\\"k\\":\\"s3cret\\"}}": illegal base64',
        "Invalid value: ***: illegal",
    ),
    ("Secret is invalid: data: Invalid value: `s3cret`: odd", "Invalid value: ***: odd"),
    (
        "Secret is invalid: [a: Duplicate value: 5s3cret: odd, b: Invalid value: s3cret]",
        "Duplicate value: ***: odd",
    ),
]


@rows.each(("message", "shown"), INVALID, ids=["quoted", "object", "raw", "bare"])
def test_a_refused_secret_is_not_quoted(message: str, shown: str) -> None:
    body = json.dumps({"reason": "Invalid", "message": message}).encode()
    target = paths.target("PATCH", "/api/v1/namespaces/addons/secrets/a")
    text = str(api_errors.from_answer(target, 422, body))
    assert shown in text
    assert "s3cr" not in text


def test_a_refused_object_of_another_kind_is_quoted() -> None:
    body = json.dumps(
        {"reason": "Invalid", "message": 'spec.size: Invalid value: "many": no number'}
    ).encode()
    error = api_errors.from_answer(paths.target("POST", "/apis/example.io/v1/things"), 422, body)
    assert 'Invalid value: "many": no number' in str(error)


QUOTING = [
    pytest.param(
        422,
        'spec.size: Invalid value: "s3cret": "spec.size" is invalid: no number',
        "spec.size: Invalid value: ***",
        id="field",
    ),
    pytest.param(
        400,
        'X in version "v1" cannot be handled: json: cannot unmarshal number 43.5 into Go struct field X.a',
        "cannot unmarshal number *** into Go struct field X.a",
        id="type",
    ),
    pytest.param(
        500,
        "failed to create typed patch object (a/b; v1, Kind=X): .spec.a: expected string, got "
        '&value.valueUnstructured{Value:"s3cret"}',
        ".spec.a: expected string, got another type",
        id="apply",
    ),
    pytest.param(422, "s3cret is odd", "(422 Invalid): the operator's log says why", id="no known form"),
]


@rows.each(("status", "message", "told"), QUOTING)
def test_a_refusal_is_shown_to_everybody_without_values(status: int, message: str, told: str) -> None:
    body = json.dumps({"reason": "Invalid", "message": message}).encode()
    error = api_errors.from_answer(paths.target("POST", "/apis/example.io/v1/things"), status, body)
    assert told in error.without_values
    assert "s3cret" not in error.without_values
    assert "43.5" not in error.without_values


def test_a_long_refusal_ends_with_its_reason() -> None:
    quoted = json.dumps("x" * 100_000)
    body = json.dumps({"message": f"patch: Invalid value: {quoted}: json: cannot unmarshal bool"}).encode()
    error = api_errors.from_answer(paths.target("PATCH", "/apis/example.io/v1/things/x"), 422, body)
    assert str(error).endswith("patch: Invalid value: ***: json: cannot unmarshal bool")


def test_credentials_that_are_refused_quote_nothing_whoever_they_are_of() -> None:
    body = json.dumps({"message": 'spec.x: Invalid value: "hunter2": bad'}).encode()
    error = api_errors.from_answer(paths.target("GET", "/version"), 401, body, chosen="context 'c'")
    assert "context 'c'" in error.without_values
    assert "hunter2" not in error.without_values


@rows.each("kind", [None, api_errors.NotFound])
def test_an_error_that_gets_more_words_shows_no_values_where_it_showed_none(
    kind: type[api_errors.ApiError] | None,
) -> None:
    body = json.dumps({"reason": "Conflict", "message": "webhook x denied it: s3cret"}).encode()
    error = api_errors.from_answer(paths.target("PUT", "/api/v1/nodes/a"), 409, body)
    told = error.around("given up: ", "; try it again", kind)
    assert type(told) is (kind or api_errors.Conflict)
    assert str(told).endswith("(409 Conflict): given up: webhook x denied it: s3cret; try it again")
    assert told.without_values.endswith("(409 Conflict): given up: the operator's log says why; try it again")
    assert "s3cret" in str(error)


def test_an_error_that_gets_more_words_keeps_whose_credentials_it_is_about() -> None:
    target = paths.target("GET", "/api/v1/nodes")
    error = api_errors.from_answer(target, 401, b"{}", chosen="context 'c'").around("once more: ")
    assert "once more: " in str(error)
    assert "context 'c'" in str(error)

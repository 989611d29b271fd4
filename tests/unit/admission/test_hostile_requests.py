"""Whatever the admission server is sent: a status that fits, and no pod refused for an error of ours."""

import json
from typing import Any

import hypothesis
import pytest
import yarl
from hypothesis import strategies as st

from addon_operator.admission import reviews
from addon_operator.admission.pods import pod_handler
from tests.support import rows
from tests.support.api_server import Pauses
from tests.unit.admission import tls_clients
from tests.unit.admission.json_documents import JSON
from tests.unit.admission.objects import pod, preset
from tests.unit.admission.pods import pod_fakes

SPEC_KEYS = st.sampled_from(["containers", "initContainers", "volumes", "ephemeralContainers"])
CONTAINER_KEYS = st.sampled_from(["name", "env", "envFrom", "volumeMounts"])
BROKEN_CONTAINER = st.dictionaries(CONTAINER_KEYS, JSON | st.just([{"name": "A"}]), max_size=4)
BROKEN_SPEC = st.dictionaries(SPEC_KEYS, JSON | st.lists(BROKEN_CONTAINER, max_size=2), max_size=4)
METHODS = st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
SEGMENTS = st.sampled_from(["", "..", "mutate-pods", "%00", "%2e%2e", "a%20b", "%c3%bc", "x" * 300, "?q=1"])
TYPES = st.sampled_from(["application/json", "text/plain", "", "application/json; charset=x", "ü"])
REQUESTS = st.tuples(METHODS, st.lists(SEGMENTS, max_size=3), TYPES)
FEW = hypothesis.settings(max_examples=3, suppress_health_check=[hypothesis.HealthCheck.large_base_example])
"""A server for each example: so each one has many requests."""


def encoded(value: object) -> bytes:
    # Integers beyond 64 bits are no JSON that orjson writes.
    return json.dumps(value).encode(errors="surrogatepass")


def presetting() -> reviews.ReviewHandler:
    """The handler of pods with a preset that matches every pod here."""
    presets = pod_fakes.Presets(preset())
    merger = pod_fakes.merger(presets)
    return pod_handler.PodHandler(merger, pod_fakes.Observer(), Pauses())


@hypothesis.given(st.binary(max_size=200) | JSON.map(encoded))
def test_a_body_that_is_not_a_review_is_refused_in_a_sentence(body: bytes) -> None:
    with pytest.raises(reviews.MalformedReviewError, match=r"\w+ "):
        reviews.parse(body)


def holding(value: bytes) -> bytes:
    """A review whose object has that value."""
    return encoded(tls_clients.review(object="HERE")).replace(b'"HERE"', b'{"a": %b}' % value)


@rows.each(
    "value",
    [
        b"NaN", b"1e400", b"9" * 2_000_000, b"[" * 1100 + b"]" * 1100, b"[" * 1_000_000, b'{"a":' * 1_000_000,
        b'"\xff"', b'"\\ud800"',
    ],
    ids=["NaN", "infinite", "huge", "deep", "deeper", "deep objects", "no UTF-8", "half a letter"],
)  # fmt: skip
def test_an_object_that_is_not_json_within_bounds_is_refused_in_a_sentence(value: bytes) -> None:
    with pytest.raises(reviews.MalformedReviewError, match=r"^(the body|request.object) .*\w+ ") as caught:
        reviews.parse(holding(value))
    assert len(str(caught.value).splitlines()) == 1


@rows.each(
    ("value", "read"),
    [(b"9007199254740993", 9007199254740993), (b'1, "a": 2', 2), (b'"\xc3\xa9"', "é")],
    ids=["exact", "twice", "letter"],
)
def test_numbers_are_exact_and_of_two_keys_the_last_counts(value: bytes, read: object) -> None:
    assert reviews.parse(holding(value)).object == {"a": read}


@hypothesis.given(st.dictionaries(st.sampled_from(sorted(tls_clients.review()["request"])), JSON, max_size=4))
def test_a_review_with_odd_fields_is_taken_or_refused_in_a_sentence(changes: dict[str, Any]) -> None:
    body = encoded(tls_clients.review(**changes))
    try:
        found = reviews.parse(body)
    except reviews.MalformedReviewError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - either outcome is right
    else:
        assert isinstance(found.uid, str)


@hypothesis.given(st.lists(BROKEN_SPEC, min_size=2, max_size=2))
async def test_a_pod_of_any_shape_is_allowed(specs: list[dict[str, Any]]) -> None:
    handler = presetting()
    for spec in specs:
        review = reviews.parse(encoded(tls_clients.review(object=pod() | {"spec": spec})))
        answer = json.loads(reviews.answer(review, await handler.decide(review)))
        assert answer["response"]["allowed"] is True


@FEW
@hypothesis.given(st.lists(REQUESTS, min_size=10, max_size=10))
async def test_a_request_of_any_shape_gets_a_status_that_fits(
    requests: list[tuple[str, list[str], str]],
) -> None:
    async with tls_clients.running() as run:
        for method, segments, content_type in requests:
            url = yarl.URL(run.url + "/" + "/".join(segments), encoded=True)
            headers = {"Content-Type": content_type}
            async with run.session.request(method, url, data=b"[]", headers=headers) as answer:
                assert answer.status in {400, 404, 405, 415}
        assert run.watcher.failures == []

"""What reviews take of the memory, and the account that it is on."""

import collections
import contextlib
import json
import tracemalloc

import hypothesis
import orjson
import pytest

from addon_operator.admission import review_budget
from tests.support import rows
from tests.unit.admission.json_documents import JSON

SHAPES = {
    "lists": b"[" + b",".join([b"[]"] * 50_000) + b"]",
    "objects": b"[" + b",".join([b"{}"] * 50_000) + b"]",
    "deep": b"[" + b",".join([b"[" * 500 + b"]" * 500] * 200) + b"]",
    "numbers": b"[" + b",".join([b"1e5"] * 50_000) + b"]",
    "keys": b"{" + b",".join(b'"key-%d":0' % number for number in range(20_000)) + b"}",
    "short texts": b"[" + b",".join([b'""'] * 50_000) + b"]",
    "a wide text": json.dumps("a" * 200_000 + "\N{GRINNING FACE}").encode(),
    "a wide text as it is": ('"' + "a" * 200_000 + '\N{GRINNING FACE}"').encode(),
    "escaped": b'"' + rb"\u003c" * 100_000 + b'"',
}


def memory_of(body: bytes) -> int:
    return review_budget.Estimate().add(body)


def taken(body: bytes) -> int:
    tracemalloc.start()
    try:
        document = orjson.loads(body)
        found, _ = tracemalloc.get_traced_memory()
        assert document is not None
        return found
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@rows.each("name", SHAPES)
def test_a_body_never_takes_more_than_what_is_held_for_it(name: str) -> None:
    body = SHAPES[name]
    assert taken(body) <= memory_of(body) - 2 * len(body)


@hypothesis.given(JSON)
def test_the_estimate_is_the_same_however_the_body_is_cut(value: object) -> None:
    body = json.dumps(value).encode(errors="surrogatepass")
    estimate = review_budget.Estimate()
    assert [estimate.add(body[at : at + 1]) for at in range(len(body))][-1] == memory_of(body)


def test_a_usual_pod_is_held_with_a_small_multiple_of_its_size() -> None:
    container = {"name": "app", "image": "registry.example/app", "env": [{"name": "A", "value": "1"}] * 20}
    body = orjson.dumps({"metadata": {"name": "web"}, "spec": {"containers": [container] * 3}})
    assert memory_of(body) < 25 * len(body)


def test_of_one_user_the_first_request_counts_however_large_and_nothing_is_left_of_him() -> None:
    account = review_budget.MemoryBudget(review_budget.Limits(requests=8, memory_bytes=10))
    for _ in range(2):
        with account.request() as held:
            held.grow(6)
            with account.share("one", held):
                with (
                    account.request() as more,
                    pytest.raises(review_budget.OverloadedError),
                    account.share("one", more),
                ):
                    pass
                with account.request() as others, account.share("other", others):
                    pass


def test_however_many_flood_something_is_left_for_one_more() -> None:
    account = review_budget.MemoryBudget(review_budget.Limits(requests=100))
    with contextlib.ExitStack() as stack:
        taken = collections.Counter[str]()
        for owner in "abcd":
            with contextlib.suppress(review_budget.OverloadedError):
                while True:
                    stack.enter_context(account.share(owner, stack.enter_context(account.request())))
                    taken[owner] += 1
        assert taken["a"] == 50
        assert 100 - taken.total() > 5


def test_what_is_given_back_is_free_again_and_once_only() -> None:
    account = review_budget.MemoryBudget(review_budget.Limits(requests=1, memory_bytes=10))
    for _ in range(3):
        with account.request() as held:
            held.grow(6)
            kept = account.hold(4)
            with pytest.raises(review_budget.OverloadedError):
                held.grow(7)
            with pytest.raises(review_budget.OverloadedError), account.request():
                pass
        assert account.memory == 4
        kept.release()
        kept.release()
        assert account.memory == 0

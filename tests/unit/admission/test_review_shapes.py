"""Reviews that the API server would never send."""

from typing import Any

import orjson
import pytest

from addon_operator.admission import review_shapes, reviews
from tests.support import rows
from tests.unit.admission import tls_clients

PODS = review_shapes.ReviewShape("", "pods")
CONFIG = review_shapes.ReviewShape(bounds_data=True)
POD = {"metadata": {"name": "web-1", "namespace": "shop", "uid": "u1"}}


def parsed(**changes: object) -> reviews.Review:
    return reviews.parse(orjson.dumps(tls_clients.review(**changes)))


@rows.each(
    "changes",
    [
        pytest.param({}, id="a pod without a name"),
        pytest.param({"object": POD, "name": "web-1"}, id="a pod with a name"),
        pytest.param({"operation": "DELETE", "object": None, "oldObject": POD}, id="a deletion"),
        pytest.param({"namespace": "a" * 63, "name": "a.b-c." + "d" * 200}, id="long names"),
    ],
)
def test_reviews_of_the_api_server_are_taken(changes: dict[str, Any]) -> None:
    PODS.check(parsed(**changes))


NOWHERE = [".", "..", "", "a/b", "Shop", "a" * 64, "-a", "a\n", "*", "ä"]
NO_NAMES = ["..", "a/b", "A", "a" * 254, "a..b", "\x1b[31m"]


@rows.each(
    "changes",
    [
        *(pytest.param({"namespace": name}, id=f"namespace {name!r:.9}") for name in NOWHERE),
        *(pytest.param({"name": name}, id=f"name {name!r:.9}") for name in NO_NAMES),
        pytest.param({"object": {"metadata": {"namespace": "other"}}}, id="object of another namespace"),
        pytest.param({"oldObject": {"metadata": {"name": "../x"}}}, id="name of the old object"),
        pytest.param({"object": {"metadata": {"uid": "u\n1"}}}, id="uid of the object"),
        pytest.param({"object": {"metadata": []}}, id="metadata"),
        pytest.param({"uid": "x" * 129}, id="uid"),
    ],
)
def test_names_are_checked_before_anything_is_made_of_them(changes: dict[str, Any]) -> None:
    with pytest.raises(reviews.MalformedReviewError, match="request"):
        review_shapes.ANY.check(parsed(**changes))


@rows.each(
    "changes",
    [
        pytest.param({"userInfo": None}, id="nobody asks"),
        pytest.param({"userInfo": {}}, id="nobody by name asks"),
        pytest.param({"kind": None}, id="no kind"),
        pytest.param({"resource": None}, id="no resource"),
        pytest.param(
            {"resource": {"group": "", "version": "v1", "resource": "secrets"}}, id="other resource"
        ),
        pytest.param({"operation": "LOOK"}, id="no operation of the API"),
    ],
)
def test_where_a_review_has_effects_it_has_to_be_complete(changes: dict[str, Any]) -> None:
    review = parsed(**changes)
    review_shapes.ANY.check(review)
    with pytest.raises(reviews.MalformedReviewError):
        PODS.check(review)


@rows.each("field", ["object", "oldObject"])
def test_a_config_map_may_have_as_much_data_as_the_api_server_stores(field: str) -> None:
    most = {"a": "ä" * (1 << 18), "b": "x" * (1 << 19)}
    CONFIG.check(parsed(**{field: {"data": most}}))
    with pytest.raises(reviews.MalformedReviewError, match="over 1048576 bytes"):
        CONFIG.check(parsed(**{field: {"data": most | {"c": "x"}}}))


@rows.each("data", ["text", [1], 7], ids=["text", "list", "number"])
def test_data_that_is_not_a_mapping_is_refused_in_a_sentence(data: object) -> None:
    with pytest.raises(reviews.MalformedReviewError, match=r"request.object is of another shape: .*\$.data"):
        CONFIG.check(parsed(object={"data": data}))

"""What the API server is answered when it wants objects converted."""

from typing import Any

import orjson
import pytest

from addon_operator.admission import reviews
from addon_operator.admission.conversions import converter
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from tests.support import rows

CRD = "crontabs.example.com"
OBJECT = {"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}}
REVIEW = orjson.dumps(
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": "example.com/v2", "objects": [OBJECT]},
    }
)


async def up(request: hook_entries.StepRequest) -> conversions.ConversionAnswer:
    assert request.seconds == 5.0
    return conversions.ConversionAnswer([{**each, "apiVersion": request.version} for each in request.objects])


async def answer(*pairs: tuple[str, str], name: str = CRD, body: bytes = REVIEW) -> dict[str, Any]:
    rules = tuple(conversion_bindings.ConversionRule(*pair) for pair in pairs)
    declared = converter.DeclaredConversions()
    binding = conversion_bindings.ConversionBinding(CRD, rules)
    declared.replace("cron", [hook_entries.Entry("cron", "x.sh", binding, up)])
    data = await converter.ConversionHandler(declared).answer(name, body, 5.0)
    found: dict[str, Any] = orjson.loads(data)["response"]
    return found


async def test_objects_are_converted() -> None:
    response = await answer(("v1", "v2"))
    assert response["result"] == {"status": "Success"}
    assert response["convertedObjects"] == [OBJECT | {"apiVersion": "example.com/v2"}]


async def test_a_missing_step_is_told() -> None:
    response = await answer(("v2", "v1"))
    assert response["result"] == {
        "status": "Failure",
        "message": (
            f"no conversions of {CRD} lead from example.com/v1 to example.com/v2; declared are "
            "example.com/v2 to example.com/v1"
        ),
    }


async def test_an_object_that_nests_too_deep_to_be_written_is_named() -> None:
    deep = b'{"a":' * 300 + b"1" + b"}" * 300
    response = await answer(
        ("v1", "v2"), body=REVIEW.replace(b'"metadata"', b'"spec":' + deep + b',"metadata"')
    )
    assert response["result"]["status"] == "Failure"
    assert response["result"]["message"].startswith("a nests too deep")


@rows.each("name", ["", "crontabs", "jobs.other.com", "../x.example.com", "x" * 300])
async def test_a_path_of_another_definition_is_refused(name: str) -> None:
    with pytest.raises(reviews.MalformedReviewError):
        await answer(("v1", "v2"), name=name)

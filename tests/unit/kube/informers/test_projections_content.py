"""What counts as a change of an object's content, of which only the metadata come."""

import json
from typing import Any

from addon_operator.kube.informers import projections
from tests.support import rows

HELM = {"manager": "helm", "time": "1", "fieldsV1": {"f:spec": {}}}
STATUS = {"manager": "controller", "time": "1", "subresource": "status"}


def metadata(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"name": "x", "resourceVersion": "1", "generation": 1, "managedFields": [HELM, STATUS], **more}


async def digest(found: dict[str, Any]) -> bytes:
    (reduced,) = await projections.Content().reduce([json.dumps({"metadata": found}).encode()])
    assert reduced.entry == b"{}"
    return reduced.digest


@rows.each(
    ("changed", "counts"),
    [
        ({"resourceVersion": "2"}, False),
        ({"managedFields": [HELM, STATUS | {"time": "2"}]}, False),
        ({"generation": 2}, True),
        ({"labels": {"a": "b"}}, True),
        ({"annotations": {"a": "b"}}, True),
        ({"managedFields": [HELM, STATUS, {"manager": "kubectl"}]}, True),
    ],
    ids=str,
)
async def test_status_does_not_count_and_content_does(changed: dict[str, Any], *, counts: bool) -> None:
    assert (await digest(metadata()) != await digest(metadata(**changed))) is counts


async def test_without_a_generation_every_write_counts() -> None:
    kept = {"name": "x", "resourceVersion": "1"}
    assert await digest(kept) != await digest(kept | {"resourceVersion": "2"})

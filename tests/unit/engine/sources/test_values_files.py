"""A section that was copied into the ConfigMap with its key, and so lies one level too deep."""

from addon_operator.engine.sources import values_files
from addon_operator.kernel import json_types
from addon_operator.values import origins
from tests.support import rows

FILES = [origins.Layer("values.yaml", {"replicas": 1, "image": {"tag": "1"}})]


@rows.each(
    ("section", "is_doubled"),
    [
        ({"web": {"replicas": 2}}, True),
        ({"web": {"replicas": 2, "unknown": 1}}, True),
        ({"replicas": 2}, False),
        ({"web": {"replicas": 2}, "replicas": 3}, False),
        ({"web": {"unknown": 1}}, False),
        ({"web": {}}, False),
        ({"web": "text"}, False),
        ({}, False),
    ],
)
def test_a_section_is_doubled_if_the_files_have_beside_its_key_what_lies_below_it(
    section: json_types.JsonObject, is_doubled: bool
) -> None:
    assert values_files.is_doubled("web", section, FILES) is is_doubled


def test_a_key_that_the_files_have_themselves_is_no_mistake() -> None:
    files = [*FILES, origins.Layer("values.yaml", {"web": {"replicas": 1}})]
    assert not values_files.is_doubled("web", {"web": {"replicas": 2}}, files)

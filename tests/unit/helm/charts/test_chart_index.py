"""Finding a version of a chart in an index.yaml."""

import json
import time

import pytest
import yaml

from addon_operator.helm.charts import chart_index
from addon_operator.kernel import errors

ENTRIES = {
    "web": [
        {"version": "2.0.0", "digest": "two", "description": "|\n  web:\n- version: 1.0.0"},
        {"version": "1.0.0", "digest": "one", "urls": ["web-1.0.0.tgz"]},
        {"version": "1.0.0-rc.1", "digest": "candidate"},
    ],
    "web-more": [{"version": "1.0.0", "digest": "another"}],
    "null": [],
}
INDEX = {"apiVersion": "v1", "entries": ENTRIES, "generated": "2026-01-01T00:00:00Z"}


def as_helm(index: object) -> str:
    return yaml.safe_dump(index)


def as_others(index: object) -> str:
    class Indented(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, indentless=False)

    return yaml.dump(index, Dumper=Indented, default_style='"')


@pytest.mark.parametrize(
    "write",
    [
        as_helm,
        as_others,
        json.dumps,
        lambda index: json.dumps(index, indent=2),
        lambda index: yaml.safe_dump(index, default_flow_style=True),
    ],
    ids=["Helm", "quoted", "JSON", "long JSON", "flow"],
)
@pytest.mark.parametrize(
    ("name", "version", "digest"),
    [
        ("web", "1.0.0", "one"),
        ("web", "2.0.0", "two"),
        ("web-more", "1.0.0", "another"),
        ("web", "3.0.0", None),
        ("other", "1.0.0", None),
    ],
)
def test_a_version_is_found_however_the_index_is_written(
    write: "object", name: str, version: str, digest: str | None
) -> None:
    assert callable(write)
    assert chart_index.find(write(INDEX), name, version).get("digest") == digest


def test_an_index_of_many_megabytes_is_not_parsed_whole() -> None:
    versions = [
        {"version": f"1.0.{number}", "digest": str(number), "about": "x" * 200} for number in range(500)
    ]
    block = as_helm({"entries": {"web": versions}}).partition("\n")[2]
    text = "entries:\n" + "".join(block.replace("  web:", f"  web{n}:", 1) for n in range(40))
    began = time.process_time()
    assert chart_index.find(text, "web20", "1.0.77")["digest"] == "77"
    assert time.process_time() - began < 1.0, "parsing it takes seconds"
    assert len(text) > 4_000_000


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ('"entries":\n  other: [' + "{}," * 400_000 + "]", 1),
        ('{"entries": {"other": [' + "[]," * 3_000_000 + "[]]}}", 8),
        ("entries:\n  web:\n  - version: 1.0.0\n    about: [" + "[]," * 400_000 + "]\n", 1),
    ],
    ids=["other YAML", "JSON", "entry"],
)
def test_what_is_parsed_whole_is_bounded(text: str, most: int) -> None:
    with pytest.raises(errors.ConfigurationError, match=f"more than {most} MiB that must be read at once"):
        chart_index.find(text, "web", "1.0.0")


def test_a_long_index_without_the_version_is_not_an_error() -> None:
    text = f"entries:\n  web:\n  - version: 2.0.0\n    about: {'x' * 2_000_000}\n"
    assert chart_index.find(text, "web", "1.0.0") == {}

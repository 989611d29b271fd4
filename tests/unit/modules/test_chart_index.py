"""Finding a version of a chart in an index.yaml."""

import json

import pytest
import yaml
from typing_extensions import override

from addon_operator.documents import yaml_reading
from addon_operator.kernel import errors
from addon_operator.modules import chart_index
from tests.support import rows
from tests.unit import costs

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
        @override
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, indentless=False)

    return yaml.dump(index, Dumper=Indented, default_style='"')


@rows.each(
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
@rows.each(
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
    assert chart_index.find(write(INDEX).encode(), name, version).get("digest") == digest


@pytest.mark.slow
def test_an_index_of_many_megabytes_is_not_parsed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    load = yaml_reading.load

    def loading(text: str, where: str) -> object:
        parsed.append(text)
        return load(text, where)

    monkeypatch.setattr(yaml_reading, "load", loading)
    versions = [
        {"version": f"1.0.{number}", "digest": str(number), "about": "x" * 200} for number in range(500)
    ]
    block = as_helm({"entries": {"web": versions}}).partition("\n")[2]
    text = "entries:\n" + "".join(block.replace("  web:", f"  web{n}:", 1) for n in range(40))
    assert chart_index.find(text.encode(), "web20", "1.0.77")["digest"] == "77"
    assert len(text) > 4_000_000
    assert 0 < sum(map(len, parsed)) < 40_000


@rows.each(
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
        chart_index.find(text.encode(), "web", "1.0.0")


def test_a_long_index_without_the_version_is_not_an_error() -> None:
    text = f"entries:\n  web:\n  - version: 2.0.0\n    about: {'x' * 2_000_000}\n"
    assert "but in 2.0.0" in str(chart_index.find(text.encode(), "web", "1.0.0")["absent"])


VERSIONS = [
    {"version": f"1.{n}.0", "dependencies": [{"version": "9.9.9", "name": "x"}]} for n in range(9, 0, -1)
]
MANY = {"entries": {"cert-manager": [{"version": "v1.0.0"}], "web": VERSIONS}}


@rows.each("write", [as_helm, json.dumps], ids=["as Helm", "JSON"])
@pytest.mark.parametrize(
    "filler", [0, pytest.param(1_100_000, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_what_an_index_does_not_have_is_told_with_what_it_has(write: "object", filler: int) -> None:
    assert callable(write)
    more = {"filler": [{"version": "1.0.0", "about": "x" * filler}]}
    text = write({"entries": MANY["entries"] | more}).encode()

    def absent(name: str, version: str = "3.0.0") -> object:
        return chart_index.find(text, name, version)["absent"]

    assert absent("web") == (
        "index.yaml does not have it in version 3.0.0, but in 1.9.0, 1.8.0, 1.7.0 and 6 more"
    )
    assert absent("certmanager") == "index.yaml has no chart 'certmanager'; did you mean 'cert-manager'?"
    assert absent("zzz") == "index.yaml has no chart 'zzz'"


@pytest.mark.slow
def test_of_very_many_names_and_versions_the_first_are_looked_at() -> None:
    def index(size: int) -> bytes:
        block = "".join(f"  chart-{n}:\n  - version: 1.0.0\n" for n in range(size))
        items = "".join(f"  - version: 1.0.{n}\n" for n in range(size))
        return f"entries:\n{block}  web:\n{items}".encode()

    def told(text: bytes, name: str, version: str) -> str:
        return str(chart_index.find(text, name, version)["absent"])

    large = index(chart_index.MAX_NAMES + 100)
    assert "and 4997 more" in told(large, "web", "2.0.0")
    assert "no chart 'chart-x'; did you mean 'chart-" in told(large, "chart-x", "1")
    for asked in (("web", "2.0.0"), ("chart-x", "1")):
        assert costs.is_linear(index, lambda text, asked=asked: told(text, *asked), 200)  # type: ignore[misc]


def test_one_version_many_times_is_parsed_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(yaml_reading, "load", lambda text, _: texts.append(text))
    item = f"  - version: 1.0.0\n    about: {'x' * 200}\n"
    text = f"entries:\n  web:\n{item * 72_000}".encode()
    assert "urls" not in chart_index.find(text, "web", "1.0.0")
    assert 0 < len(texts) <= 20


NOT_READ = {"absent": "index.yaml has no version of it that can be read"}
NO_CHART = {"absent": "index.yaml has no chart 'web'"}


@rows.each(
    ("text", "expected"),
    [
        ('{"entries": {"web": 5}}', NOT_READ),
        ('{"entries": {"web": [5, [], {}, {"version": 5}]}}', NOT_READ),
        ('{"entries": 5}', NO_CHART),
        ("5", NO_CHART),
        ("entries:\n  web: 5\n", NOT_READ),
        ("entries:\n  web:\n  - 5\n", NOT_READ),
        ("entries:\n  web:\n  - version: 1.0.0\n", {"version": "1.0.0", "digest": "", "urls": []}),
        ("entries:\n  web:\n  - version: v1.0.0 # new\n", {"version": "v1.0.0", "digest": "", "urls": []}),
    ],
)
def test_an_index_of_another_shape_has_no_version(text: str, expected: object) -> None:
    assert chart_index.find(text.encode(), "web", "1.0.0") == expected


@rows.each(
    ("text", "problem"),
    [
        ("entries:\n  web:\n  - &a\n    version: 1.0.0\n    more: [&b [x], *b]\n", "aliases"),
        ("entries:\n  web:\n  - version: 1.0.0\n    urls: 5\n", "urls of version 1.0.0 must be a list"),
        ("entries:\n  web:\n  - version: 1.0.0\n   - a\n", "invalid YAML"),
        ('{"entries": [' + "[" * 100_000, "nest"),
    ],
)
def test_an_index_that_cannot_be_read_is_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=problem):
        chart_index.find(text.encode(), "web", "1.0.0")


def test_a_version_counts_only_at_its_items_own_place() -> None:
    text = """\
entries:
  web:
  - annotations:
      about: |
        - version: 1.0.0
      version: 1.0.0
    digest: wrong
    dependencies:
    - name: db
      version: 1.0.0
    version: 3.0.0
  - digest: right
    version: "1.0.0"
"""
    assert chart_index.find(text.encode(), "web", "1.0.0")["digest"] == "right"


OUTSIDE, HERE = "https://charts.example.com/stable", "http://127.0.0.1:8080"


@rows.each(
    ("address", "outside", "here"),
    [
        ("web-1.0.0.tgz", True, True),
        ("https://other.example.com/web.tgz", True, True),
        ("oci://other.example.com/web:1.0.0", True, True),
        ("https://10.0.0.1/web.tgz", True, True),
        ("http://other.example.com/web.tgz", False, False),
        ("HTTP://other.example.com/web.tgz", False, False),
        ("http://127.0.0.1:10255/pods", False, True),
        ("hTTps://LOCALHOST/web.tgz", False, True),
        ("https://a.localhost./web.tgz", False, True),
        ("//127.0.0.1/web.tgz", False, True),
        ("http://[::1]/web.tgz", False, True),
        ("https://[::ffff:127.0.0.1]/web.tgz", False, True),
        ("https://[fe80::1%25eth0]/web.tgz", False, True),
        ("https://127.1/web.tgz", False, True),
        ("https://2130706433/web.tgz", False, True),
        ("https://0x7f.0.0.1/web.tgz", False, True),
        ("https://169.254.169.254/latest", False, True),
        ("https://0.0.0.0/web.tgz", False, True),
        ("https://me@127.0.0.1/web.tgz", False, True),
        ("file:///etc/passwd", False, False),
        ("http://[x", False, False),
        ("https://a:b:c/", False, False),
        (" http://127.0.0.1/", False, False),
        ("https:\\\\127.0.0.1/", False, False),
    ],
)
def test_an_index_of_somebody_else_names_no_neighbours(address: str, outside: bool, here: bool) -> None:
    found = [not chart_index.refused_address(repository, address) for repository in (OUTSIDE, HERE)]
    assert found == [outside, here]

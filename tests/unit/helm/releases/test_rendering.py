"""The checksum of what a chart renders to."""

import pytest

from addon_operator.helm.releases import rendering
from tests.support import rows

MANIFEST = "---\n# Source: a\nkind: A\na: |\n  x\n\n  y\n---\n# Source: b\nkind: B\nb: 1\n---\n# nothing\n"


@rows.each(
    "changed",
    [
        pytest.param(MANIFEST.replace("---", "\n\n---"), id="blank lines between documents"),
        pytest.param("---\n# nothing\n# at all\n" + MANIFEST, id="a document of comments"),
        pytest.param("kind: B\nb: 1\n---\na: |\n  x\n\n  y\nkind: A\n", id="order and comments"),
    ],
)
def test_what_makes_no_difference_does_not_change_the_checksum_of_a_manifest(changed: str) -> None:
    assert rendering.manifest_checksum(changed) == rendering.manifest_checksum(MANIFEST)


@rows.each(
    "changed",
    [
        pytest.param(MANIFEST.replace("x\n\n", "x\n"), id="a blank line within a text"),
        pytest.param(MANIFEST.replace("b: 1", "b: 2"), id="a value"),
        pytest.param(MANIFEST.replace("b: 1", "b: true"), id="true for 1"),
        pytest.param(MANIFEST + "---\nkind: B\nb: 1\n", id="a document twice"),
        pytest.param("", id="nothing left"),
    ],
)
def test_everything_else_changes_the_checksum_of_a_manifest(changed: str) -> None:
    assert rendering.manifest_checksum(changed) != rendering.manifest_checksum(MANIFEST)


@rows.each("indicator", ["|+", ">+", "|2+"])
def test_blank_lines_that_belong_to_a_text_count(indicator: str) -> None:
    manifest = f"---\na: {indicator}\n  x\nb: 1\n"
    assert rendering.manifest_checksum(manifest) != rendering.manifest_checksum(manifest.replace("x", "x\n"))

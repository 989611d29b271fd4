"""Where what CI and releases are made of comes from: by content, not by a name that can be moved."""

import pathlib
import re
from typing import Any

import pytest
import yaml

from tests.unit.deploy import dockerfile
from tests.unit.scripts import scripts_loaded

pin_images: Any = scripts_loaded.load("pin_images")

ROOT = dockerfile.ROOT
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
DIGEST = f"sha256:{'a' * 64}"
RECIPE = """\
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim
ARG GO_IMAGE=docker.io/library/golang:1.26@sha256:{old}
ARG JQ_VERSION=1.8.1
""".format(old="b" * 64)


def steps(name: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
    return [step for job in document["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_named_by_its_commit_and_tells_its_version(workflow: pathlib.Path) -> None:
    uses = re.findall(r"uses: *(.*)", workflow.read_text("utf-8"))
    assert uses
    assert [use for use in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_one_action_has_one_commit_in_all_workflows() -> None:
    uses = {use for path in WORKFLOWS for use in re.findall(r"uses: *(\S+)", path.read_text("utf-8"))}
    assert len(uses) == len({use.partition("@")[0] for use in uses})


def test_a_known_vulnerability_fails_ci_and_a_release() -> None:
    for name in ("ci.yaml", "release.yaml"):
        (audit,) = [step for step in steps(name) if step.get("run") == "make audit"]
        assert "continue-on-error" not in audit


def test_the_auditor_is_held_to_its_hashes() -> None:
    script = (ROOT / "scripts" / "audit").read_text("utf-8")
    assert "--require-hashes -r scripts/audit.lock" in script
    lock = (ROOT / "scripts" / "audit.lock").read_text("utf-8")
    assert re.search(r"^pip-audit==\S+ \\\n    --hash=sha256:", lock, re.MULTILINE)


def test_a_release_is_pinned_built_for_both_architectures_described_and_signed_in_this_order() -> None:
    commands = "\n".join(step.get("run", "") for step in steps("release.yaml"))
    order = (
        "scripts/pin_images.py --check",
        "--platform linux/amd64,linux/arm64",
        "--sbom=true --provenance=mode=max",
        "oci-mediatypes=true",
        'cosign sign --yes --recursive "$REFERENCE"',
        'cosign verify "$REFERENCE"',
    )
    places = [commands.index(words) for words in order]
    assert places == sorted(places)
    names = [str(step.get("uses") or step.get("name")) for step in steps("release.yaml")]
    (scan,) = [number for number, name in enumerate(names) if name.startswith("anchore/scan-action@")]
    assert scan < names.index("Sign, and see that it holds"), "what is vulnerable is not signed"
    assert "continue-on-error" not in steps("release.yaml")[scan]
    assert "@$(jq" in commands, "what is signed is named by its digest"


def test_the_chart_is_pushed_as_an_oci_artifact_that_names_the_image_by_its_digest_and_is_signed() -> None:
    (step,) = [each for each in steps("release.yaml") if "helm push" in each.get("run", "")]
    values = (ROOT / "deploy" / "chart" / "addon-operator" / "values.yaml").read_text("utf-8")
    for text in ("repository: addon-operator", 'digest: ""'):
        assert values.count(f"  {text}\n") == 1, "what the release replaces"
    assert '"oci://${IMAGE,,}/charts"' in step["run"]
    assert "digest: ${REFERENCE#*@}" in step["run"]
    assert 'cosign sign --yes "$chart"' in step["run"]


def test_base_images_without_a_digest_are_found_and_given_one() -> None:
    assert pin_images.without_digest(RECIPE) == ["library/python:3.13-slim"]
    asked = []

    def digest_of(repository: str, tag: str) -> str:
        asked.append((repository, tag))
        return DIGEST

    pinned = pin_images.pinned(RECIPE, digest_of)
    assert asked == [("library/python", "3.13-slim"), ("library/golang", "1.26")]
    assert pinned == RECIPE.replace(":3.13-slim", f":3.13-slim@{DIGEST}").replace("b" * 64, "a" * 64)
    assert pin_images.without_digest(pinned) == []


def test_the_check_sees_every_base_image_of_the_recipe() -> None:
    text = dockerfile.PATH.read_text("utf-8")
    images = {one.words[0] for one in dockerfile.read() if one.name == "FROM"}
    assert len(pin_images.pinned(text, lambda *_: DIGEST).split(DIGEST)) - 1 == len(images)

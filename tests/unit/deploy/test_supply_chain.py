"""Where what CI and releases are made of comes from: by content, not by a name that can be moved."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from tests.support import rows
from tests.unit.deploy import dockerfile
from tests.unit.scripts import scripts_loaded

pin_images: Any = scripts_loaded.load("pin_images")

ROOT = dockerfile.ROOT
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
CHART = ROOT / "deploy" / "chart" / "addon-operator"
DIGEST = f"sha256:{'a' * 64}"
RECIPE = """\
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim
ARG GO_IMAGE=docker.io/library/golang:1.26@sha256:{old}
ARG JQ_VERSION=1.8.1
""".format(old="b" * 64)


def steps(name: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
    return [step for job in document["jobs"].values() for step in job.get("steps", ())]


@rows.each("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_named_by_its_commit_and_tells_its_version(workflow: pathlib.Path) -> None:
    uses = re.findall(r"uses: +([^. ].*)", workflow.read_text("utf-8"))
    assert uses
    assert [use for use in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_one_action_has_one_commit_in_all_workflows() -> None:
    uses = {use for path in WORKFLOWS for use in re.findall(r"uses: +([^. ]\S+)", path.read_text("utf-8"))}
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
        "push-by-digest=true,name-canonical=true,oci-mediatypes=true",
        'cosign sign --yes --recursive "$REFERENCE"',
        'cosign verify "$REFERENCE"',
        'imagetools create --tag "${IMAGE,,}:${VERSION#v}" "$REFERENCE"',
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


@rows.each("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_and_only_the_release_of_an_image_may_write(workflow: pathlib.Path) -> None:
    document = yaml.safe_load(workflow.read_text("utf-8"))
    assert document["permissions"] == {"contents": "read"}
    more = {name: job["permissions"] for name, job in document["jobs"].items() if "permissions" in job}
    writes = {"contents": "read", "packages": "write", "id-token": "write"}
    assert more == ({"image": writes} if workflow.name == "release.yaml" else {})
    checkouts = [
        step for step in steps(workflow.name) if str(step.get("uses")).startswith("actions/checkout@")
    ]
    assert [step["with"] for step in checkouts] == [{"persist-credentials": False}] * len(checkouts)


@rows.each("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_name_files_and_targets_that_there_are(workflow: pathlib.Path) -> None:
    text = workflow.read_text("utf-8")
    files = re.findall(r"(?<![\w/.])(?:\./)?((?:\.ci|\.github|scripts|deploy|tests)/[\w./-]*\w)", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
    targets = re.findall(r"\bmake ([\w-]+)", text)
    recipes = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(targets) <= set(recipes)
    assert len(files) + len(targets) > 1


def test_only_what_passed_all_tests_is_released() -> None:
    document = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text("utf-8"))
    assert document["jobs"]["test"] == {"uses": "./.github/workflows/ci.yaml"}
    assert document["jobs"]["image"]["needs"] == "test"
    # YAML 1.1 reads "on" as true.
    assert (
        "workflow_call"
        in yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text("utf-8"))[True]
    )
    assert document["defaults"] == {"run": {"shell": "bash"}}, "which is with pipefail"


@dataclasses.dataclass
class Runner:
    """Runs steps of the release as GitHub does, with programs in the place of those that reach a registry."""

    root: pathlib.Path

    def __post_init__(self) -> None:
        (self.root / "bin").mkdir()
        for file in (
            "pyproject.toml",
            "deploy/chart/addon-operator/Chart.yaml",
            "deploy/chart/addon-operator/values.yaml",
        ):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).write_text((ROOT / file).read_text("utf-8"))

    def program(self, name: str, script: str) -> None:
        path = self.root / "bin" / name
        # As the program does: who writes to one that reads nothing may fail.
        password = '[[ "$*" != *--password-stdin* ]] || cat > /dev/null'
        path.write_text(f'#!/bin/bash\n{password}\necho "{name} $*" >> "$CALLS"\n{script}\n')
        path.chmod(0o755)

    def run(self, step: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (found,) = [each for each in steps("release.yaml") if each.get("name") == step]
        usual = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}", "CALLS": str(self.root / "calls"),
            "IMAGE": "ghcr.io/Owner/Repository", "VERSION": "v0.1.0",
            "REFERENCE": f"ghcr.io/owner/repository@{DIGEST}",
            "GITHUB_ENV": str(self.root / "env"), "GITHUB_STEP_SUMMARY": str(self.root / "summary"),
            "GITHUB_WORKFLOW_REF": "x", "TOKEN": "s3cret", "ACTOR": "somebody",
        }  # fmt: skip
        argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
        return subprocess.run(
            argv, cwd=self.root, env=usual | environment, check=False, capture_output=True, text=True
        )

    def said(self, name: str) -> str:
        return (self.root / name).read_text("utf-8")


@pytest.fixture
def runner(tmp_path: pathlib.Path) -> Runner:
    return Runner(tmp_path)


def test_a_tag_of_another_version_than_the_package_is_refused(runner: Runner) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    step = "The tag is the version of package and chart"
    assert runner.run(step, VERSION=f"v{version}").returncode == 0
    refused = runner.run(step, VERSION="v9.9.9")
    assert refused.returncode == 1
    assert refused.stdout == (
        "::error::the tag is v9.9.9, and pyproject.toml does not have 'version = \"9.9.9\"'\n"
    )


def test_the_build_says_which_digest_it_pushed(runner: Runner) -> None:
    runner.program("docker", f"""echo '{{"containerimage.digest": "{DIGEST}"}}' > metadata.json""")
    assert runner.run("Build, and push with SBOM and provenance").returncode == 0
    assert runner.said("env") == f"REFERENCE=ghcr.io/owner/repository@{DIGEST}\n"
    runner.program("docker", "exit 1")
    assert runner.run("Build, and push with SBOM and provenance").returncode == 1


def test_the_size_of_the_image_of_each_architecture_is_told(runner: Runner) -> None:
    index = json.dumps({"manifests": [
        {"digest": "sha256:1", "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": "sha256:2", "platform": {"os": "unknown", "architecture": "unknown"}},
    ]})  # fmt: skip
    manifest = json.dumps({"layers": [{"size": 3 * 1048576}, {"size": 1}]})
    runner.program("docker", f"case $* in *sha256:1*) echo '{manifest}';; *) echo '{index}';; esac")
    assert runner.run("Tell the size of each image").returncode == 0
    assert runner.said("summary") == "arm64: 4 MiB compressed\n"


def test_the_chart_is_signed_by_the_digest_that_the_registry_gave(runner: Runner) -> None:
    step, chart = (
        "Package the chart with this image, push and sign it",
        "ghcr.io/owner/repository/charts/addon-operator",
    )
    runner.program("helm", f'[ "$1" != push ] || echo "Digest: {DIGEST}" >&2')
    runner.program("cosign", "")
    done = runner.run(step)
    assert done.returncode == 0, done.stderr
    calls = runner.said("calls").splitlines()
    assert calls[0] == "helm package deploy/chart/addon-operator --version 0.1.0 --app-version 0.1.0"
    assert f"helm push addon-operator-0.1.0.tgz oci://{chart.rpartition('/')[0]}" in calls
    assert f"cosign sign --yes {chart}@{DIGEST}" in calls
    assert "s3cret" not in "".join(calls)
    image = yaml.safe_load(runner.said("deploy/chart/addon-operator/values.yaml"))["image"]
    assert (image["repository"], image["digest"]) == ("ghcr.io/owner/repository", DIGEST)
    runner.program("helm", '[ "$1" != push ] || { echo "Error: denied" >&2; exit 1; }')
    failed = runner.run(step)
    assert (failed.returncode, failed.stdout) == (1, "Error: denied\n"), "nothing is signed, and it says why"


def test_a_release_is_not_made_where_nobody_could_ask_for_vulnerabilities(runner: Runner) -> None:
    (audit,) = [step for step in steps("release.yaml") if step.get("run") == "make audit"]
    assert audit["env"] == {"AUDIT_REQUIRED": "true"}
    runner.program("curl", "exit 6")
    environment = {"PATH": f"{runner.root}/bin:{os.environ['PATH']}", "CALLS": str(runner.root / "calls")}

    def audited(**more: str) -> int:
        return subprocess.run(
            [ROOT / "scripts" / "audit"], env=environment | more, check=False, capture_output=True
        ).returncode

    assert (audited(), audited(**audit["env"])) == (0, 1)


def test_images_without_a_digest_are_found_and_given_one() -> None:
    assert pin_images.without_digest(RECIPE) == ["docker.io/library/python:3.13-slim"]
    asked = []

    def digest_of(*image: str) -> str:
        asked.append(image)
        return DIGEST

    pinned = pin_images.pinned(RECIPE, digest_of)
    assert asked == [("docker.io", "library/python", "3.13-slim"), ("docker.io", "library/golang", "1.26")]
    assert pinned == RECIPE.replace(":3.13-slim", f":3.13-slim@{DIGEST}").replace("b" * 64, "a" * 64)
    assert pin_images.without_digest(pinned) == []


def test_the_check_sees_every_base_image_of_the_recipe() -> None:
    text = dockerfile.PATH.read_text("utf-8")
    images = {one.words[0] for one in dockerfile.read() if one.name == "FROM"}
    assert len(pin_images.pinned(text, lambda *_: DIGEST).split(DIGEST)) - 1 == len(images)


def test_every_image_of_the_chart_that_is_released_is_named_by_its_digest(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    templates = "".join(file.read_text("utf-8") for file in (CHART / "templates").iterdir())
    sources = set(re.findall(r"^\s*(?:- )?image: \{\{ ?(.+?) \| quote ?\}\}$", templates, re.MULTILINE))
    assert sources == {'include "addon-operator.image" .', "$git.image"}, "of our own, and of git-sync"
    values = runner.root / "deploy" / "chart" / "addon-operator" / "values.yaml"
    monkeypatch.setattr(pin_images, "_FILES", (values,))
    monkeypatch.setattr(pin_images, "asked_of_registry", lambda *_: DIGEST)
    values.write_text(re.sub("(git-sync:v[0-9.]+).*", r"\1", values.read_text("utf-8")), "utf-8")
    assert pin_images.main(["--check"]) == 1, "no release is made of a chart with a tag alone"
    assert "git-sync" in capsys.readouterr().out
    assert pin_images.main([]) == pin_images.main(["--check"]) == 0
    runner.program("helm", f'[ "$1" != push ] || echo "Digest: {DIGEST}" >&2')
    runner.program("cosign", "")
    assert runner.run("Package the chart with this image, push and sign it").returncode == 0
    released = yaml.safe_load(values.read_text("utf-8"))
    assert released["image"]["digest"] == DIGEST
    assert released["modules"]["git"]["image"].endswith(f":v4.7.1@{DIGEST}")

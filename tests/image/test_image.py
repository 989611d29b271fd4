"""The image as it lies there: what it has more than its base, and how large that is."""

import pathlib
import subprocess

from tests.image import pod

WITHOUT_PARTS_MB = 392
"""Of /opt/addon-operator, helm and kubectl together, before the image was looked at for the first time."""
PATH = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin")


def programs(root: pathlib.Path) -> set[str]:
    return {
        str(found.relative_to(root))
        for directory in PATH
        if (root / directory).is_dir()
        for found in (root / directory).iterdir()
    }


def megabytes(*paths: pathlib.Path) -> int:
    done = subprocess.run(
        ["du", "-sm", "--total", *map(str, paths)], check=True, capture_output=True, text=True
    )
    return int(done.stdout.splitlines()[-1].split()[0])


def test_it_is_an_oci_image_of_a_user_without_rights(image: pod.Image) -> None:
    assert '"application/vnd.oci.image.manifest.v1+json"' in image.format
    assert image.config["User"] == "64535:64535"
    names = {text.partition("=")[0] for text in image.config["Env"]}
    assert not {"MODULES_DIR", "GLOBAL_HOOKS_DIR", "ADDON_OPERATOR_TMP_DIR"} & names


def test_nothing_is_added_to_path_but_what_the_operator_serves(image: pod.Image) -> None:
    added = programs(image.root) - programs(image.base)
    assert added == {
        "usr/local/bin/addon-operator",
        "usr/local/bin/helm",
        "usr/local/bin/kubectl",
        "usr/local/bin/jq",
        "usr/sbin/tini",
    }
    own = {found.name for found in (image.root / "opt/addon-operator/bin").iterdir()}
    assert own == {"addon-operator", "python", "python3", "python3.13"}


def test_it_is_a_third_smaller_than_it_was(image: pod.Image) -> None:
    parts = [
        image.root / "opt/addon-operator",
        *(image.root / f"usr/local/bin/{n}" for n in ("helm", "kubectl")),
    ]
    assert megabytes(*parts) < WITHOUT_PARTS_MB * 2 / 3
    (packages,) = (image.root / "opt/addon-operator/lib").glob("python3.*/site-packages")
    absent = ("pip", "setuptools", "kubernetes", "pydantic_core", "bazel-project", "pygments")
    assert [name for name in absent if (packages / name).exists()] == []

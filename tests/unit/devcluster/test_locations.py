"""Where the local control plane keeps its things."""

import os
import pathlib

import pytest

from addon_operator.devcluster import errors, locations


def test_the_pins_of_the_checkout_are_found() -> None:
    assert (locations.locate({}).pins / "control-plane/go.mod").is_file()


def test_pins_in_the_package_come_before_those_of_a_checkout(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "operator/addon_operator/devcluster"
    for directory in (package / "pins", tmp_path / "deploy/devcluster"):
        directory.mkdir(parents=True)
    assert locations._pins(package) == package / "pins"


def test_pins_that_are_nowhere_are_reported_with_the_places(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.PinsError, match=r"neither in .*/pins nor .*/deploy/devcluster; reinstall"):
        locations._pins(tmp_path / "operator/addon_operator/devcluster")


def test_the_environment_names_both_directories(tmp_path: pathlib.Path) -> None:
    environ = {
        locations.CACHE_VARIABLE: str(tmp_path / "binaries"),
        locations.STATE_VARIABLE: str(tmp_path / "clusters"),
    }
    found = locations.locate(environ)
    assert (found.cache, found.state) == (tmp_path / "binaries", tmp_path / "clusters")


def test_a_relative_directory_of_the_environment_becomes_absolute(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locations.locate({locations.STATE_VARIABLE: "clusters"}).state == tmp_path / "clusters"


def test_the_base_directories_of_the_desktop_are_used(tmp_path: pathlib.Path) -> None:
    found = locations.locate({"XDG_CACHE_HOME": str(tmp_path / "c"), "XDG_STATE_HOME": str(tmp_path / "s")})
    assert found.cache == tmp_path / "c/addon-operator/devcluster"
    assert found.state == tmp_path / "s/addon-operator/devcluster"


@pytest.mark.parametrize("base", [pytest.param("", id="empty"), pytest.param("relative/path", id="relative")])
def test_a_base_directory_that_is_not_absolute_is_ignored(
    base: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = locations.locate({"XDG_CACHE_HOME": base, "XDG_STATE_HOME": base})
    assert found.cache == tmp_path / ".cache/addon-operator/devcluster"
    assert found.state == tmp_path / ".local/state/addon-operator/devcluster"


def test_a_user_without_a_home_directory_has_its_places_below_the_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    found = locations.locate({locations.STATE_VARIABLE: "~/clusters"})
    assert str(found.cache) == "/.cache/addon-operator/devcluster"
    assert str(found.state) == "/clusters"


def test_a_directory_is_made_for_its_owner_only(tmp_path: pathlib.Path) -> None:
    locations.create_private(tmp_path / "a/b", "SOME_VARIABLE")
    locations.create_private(tmp_path / "a/b", "SOME_VARIABLE")
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_reported_with_the_variable_that_moves_it(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.DevClusterError, match=r"file/sub cannot be made .*; set SOME_VARIABLE to"):
        locations.create_private(tmp_path / "file/sub", "SOME_VARIABLE")

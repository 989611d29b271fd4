"""Pinned versions."""

import pathlib

import pytest

from addon_operator.devcluster import errors, locations
from addon_operator.devcluster.binaries import components
from tests.support import rows
from tests.unit.devcluster import fakes


def test_the_version_of_a_module_is_read(tmp_path: pathlib.Path) -> None:
    pin = components.read_pins(fakes.write_pins(tmp_path), fakes.MODULE)
    assert (pin.version, pin.minor, pin.go) == ("v1.2.3", "1.2", (1, 26))


def test_every_requirement_is_read_and_no_replacement(tmp_path: pathlib.Path) -> None:
    pin = components.read_pins(fakes.write_pins(tmp_path), fakes.MODULE)
    assert pin.requirements == {
        "example.com/helper": "v0.4.1-0.20260101000000-0123456789ab",
        "example.com/tool": "v1.2.3",
        "k8s.io/client-go": "v0.36.3",
    }


def test_a_requirement_on_a_line_of_its_own_is_read(tmp_path: pathlib.Path) -> None:
    folder = fakes.write_pins(
        tmp_path, "module m\n\ngo 1.25\n\nrequire example.com/tool v2.0.0+incompatible\n"
    )
    assert components.read_pins(folder, fakes.MODULE).version == "v2.0.0+incompatible"


@rows.each(
    ("go_mod", "go_sum"),
    [
        pytest.param(fakes.GO_MOD.replace("v1.2.3", "v1.2.4"), "sums\n", id="go.mod"),
        pytest.param(fakes.GO_MOD, "other sums\n", id="go.sum"),
    ],
)
def test_the_digest_changes_with_either_file(tmp_path: pathlib.Path, go_mod: str, go_sum: str) -> None:
    before = components.read_pins(fakes.write_pins(tmp_path / "a"), fakes.MODULE).digest
    same = components.read_pins(fakes.write_pins(tmp_path / "b"), fakes.MODULE).digest
    after = components.read_pins(fakes.write_pins(tmp_path / "c", go_mod, go_sum), fakes.MODULE).digest
    assert before == same != after


@rows.each("name", ["go.mod", "go.sum"])
def test_a_missing_file_is_named(tmp_path: pathlib.Path, name: str) -> None:
    (fakes.write_pins(tmp_path) / name).unlink()
    with pytest.raises(errors.PinsError, match=f"the pins in {tmp_path / name} cannot be read"):
        components.read_pins(tmp_path, fakes.MODULE)


@rows.each(
    "go_mod",
    [
        pytest.param("module m\n\ngo 1.26.0\n", id="no requirement"),
        pytest.param("module m\n\nrequire example.com/tool v1.0.0\n", id="no Go version"),
        pytest.param("", id="empty"),
    ],
)
def test_a_file_without_the_pin_is_reported(tmp_path: pathlib.Path, go_mod: str) -> None:
    with pytest.raises(errors.PinsError, match=r"does not pin example\.com/tool"):
        components.read_pins(fakes.write_pins(tmp_path, go_mod), fakes.MODULE)


@rows.each("component", components.ALL, ids=lambda component: component.name)
def test_our_own_pins_are_complete(component: components.Component) -> None:
    pin = components.read_pins(locations.locate({}).pins / component.name, component.module)
    go_mod = (pin.folder / "go.mod").read_text()
    assert all(binary.package in go_mod for binary in component.binaries)
    assert {binary.module for binary in component.binaries} <= pin.requirements.keys()
    assert sorted(path.name for path in pin.folder.iterdir()) == ["go.mod", "go.sum"]


@rows.each("minor", components.VERSIONS)
def test_all_libraries_of_kubernetes_are_pinned_to_its_version(minor: str) -> None:
    component = components.kubernetes(minor)
    pin = components.read_pins(locations.locate({}).pins / component.name, component.module)
    assert pin.minor == minor
    library = "v0." + pin.version.removeprefix("v1.")
    replaced = [line for line in (pin.folder / "go.mod").read_text().splitlines() if "=>" in line]
    assert len(replaced) > 25
    assert all(line.endswith(f" {library}") for line in replaced)

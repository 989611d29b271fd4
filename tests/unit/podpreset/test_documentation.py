"""The reference page: its example, its library session and its sentences."""

import doctest
import pathlib
import re

import yaml

from addon_operator.podpreset import model, selection

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "podpreset.md"
TEXT = PAGE.read_text()


def test_the_example_is_a_valid_preset() -> None:
    first = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert first is not None
    assert isinstance(model.parse(yaml.safe_load(first[1])), model.Preset)


def test_the_session_runs_as_it_is_printed() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_annotations_are_the_ones_in_use() -> None:
    assert f"\n{selection.EXCLUDE}: " in TEXT
    assert f"\n{selection.applied_key('allow-database')}: " in TEXT

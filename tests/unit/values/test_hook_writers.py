"""The last write of a hook to a place is remembered, within a bound."""

import json

from addon_operator.values import hook_writers
from addon_operator.values.patches import patches


def patch(source: str, *places: str) -> patches.ValuesPatch:
    operations = [{"op": "add", "path": place, "value": 1} for place in places]
    return patches.parse_patch(json.dumps(operations), source)


def test_the_last_write_counts_also_to_what_a_place_lies_in() -> None:
    writers = hook_writers.HookWriters()
    writers.note(patch("one", "/web/a", "/web/b/c"), 1.0)
    writers.note(patch("two", "/web/b"), 2.0)
    assert writers.of(("web", "a")) == hook_writers.Written("one", 1.0)
    assert writers.of(("web", "b", "c")) == hook_writers.Written("two", 2.0)
    assert writers.of(("web", "other")) is None


def test_the_oldest_are_forgotten_beyond_the_bound() -> None:
    writers = hook_writers.HookWriters()
    writers.note(patch("old", "/web/old"), 1.0)
    writers.note(patch("new", *(f"/web/a{number}" for number in range(hook_writers.MOST + 5))), 2.0)
    assert writers.of(("web", "old")) is None
    assert writers.of(("web", "a1")) is not None

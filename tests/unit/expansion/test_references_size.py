"""How much text references may make."""

from typing import Any

import pytest

from addon_operator import expansion
from tests.support import rows


class Mapping:
    """A mapping to a long value, which counts how often it is asked."""

    def __init__(self, length: int) -> None:
        self.value = "x" * length
        self.calls = 0

    def __call__(self, name: str) -> str:
        self.calls += 1
        return self.value


def test_a_text_is_given_up_as_soon_as_it_would_be_too_long() -> None:
    mapping = Mapping(1 << 20)
    with pytest.raises(expansion.ExpansionSizeError, match="8388608 characters"):
        expansion.expand("$(A)" * 100_000, mapping)
    assert mapping.calls <= 9


@rows.each(
    ("text", "value", "limit"),
    [("$(A)", "x" * 10, 10), ("ab$(A)", "x" * 8, 10), ("$(A)" * 3, "$(A)", 5), ("$$" * 10, "", 1)],
    ids=["a value", "a value and a text", "longer before, and not after", "escapes"],
)
def test_what_fits_is_expanded(text: str, value: str, limit: int) -> None:
    assert expansion.expand(text, lambda _: value, limit=limit) == expansion.expand(text, lambda _: value)


@rows.each(
    ("text", "value", "limit"),
    [
        ("$(A)", "x" * 11, 10),
        ("ab$(A)", "x" * 9, 10),
        ("$(A)" * 3, "$(AB)", 5),
        ("longer before $(A)", "$(AB)", 5),
    ],
    ids=["a value", "a value and a text", "longer before, and growing", "growing by one"],
)
def test_what_does_not_fit_is_an_error(text: str, value: str, limit: int) -> None:
    with pytest.raises(expansion.ExpansionSizeError):
        expansion.expand(text, lambda _: value, limit=limit)


def environment(container: dict[str, Any], **more: Any) -> expansion.ContainerEnvironment:  # noqa: ANN401 - a limit, or objects
    given: dict[str, Any] = {"services": (), "config_maps": {}, "secrets": {}, "master_services": (), **more}
    return expansion.container_environment({}, {"name": "web", **container}, **given)


def test_variables_that_refer_to_variables_ten_times_each_are_an_error() -> None:
    env = [{"name": "V0", "value": "0123456789"}]
    env += [{"name": f"V{number + 1}", "value": f"$(V{number})" * 10} for number in range(30)]
    with pytest.raises(expansion.ExpansionSizeError) as raised:
        environment({"env": env})
    assert str(raised.value) == (
        "container web: the environment with command and args would have more than 8388608 characters: "
        "let fewer variables refer to long ones"
    )


PARTS = {
    "a value": {"env": [{"name": "A", "value": "x" * 10}]},
    "an expanded value": {"env": [{"name": "A", "value": "xxxx"}, {"name": "B", "value": "$(A)"}]},
    "a variable that is set again": {"env": [{"name": "A", "value": "xxxx"}, {"name": "A", "value": "yyyy"}]},
    "command": {"command": ["x" * 11]},
    "args": {"args": ["x" * 5, "y" * 6]},
    "envFrom": {"envFrom": [{"configMapRef": {"name": "c"}}], "args": ["x"]},
}


@rows.each("part", PARTS.values(), ids=PARTS)
def test_everything_that_the_process_gets_counts(part: dict[str, Any]) -> None:
    objects = {"config_maps": {"c": {"NAME": "value6"}}}
    environment(part, limit=11, **objects)
    with pytest.raises(expansion.ExpansionSizeError):
        environment(part, limit=9, **objects)


def test_variables_of_services_count() -> None:
    service = {"metadata": {"name": "db"}, "spec": {"clusterIP": "10.0.0.1"}}
    environment({}, services=[service], limit=23)
    with pytest.raises(expansion.ExpansionSizeError):
        environment({}, services=[service], limit=22)

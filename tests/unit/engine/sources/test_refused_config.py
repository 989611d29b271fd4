"""What is wrong with the ConfigMap and the Secret as they are now is remembered, with since when."""

import pathlib

from addon_operator.engine import config_events, module_states, state
from addon_operator.engine.sources import refused_config
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import findings, model
from addon_operator.values import sources
from tests.support import clocks

WEB, DB = ModuleName("web"), ModuleName("db")
SIZE = config_events.WrongKey("web", "web.size: must be at most 9")
SWITCH = config_events.WrongKey("dbEnabled", 'key \'dbEnabled\': a switch must be "true" or "false"')
SHARED = config_events.WrongKey("global", "global.zone: must be a string")
BOUNDS = "the last good values stay in force"


class Bench:
    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.clock.now = 0.0
        self.changed: list[str] = []
        modules = [model.Module(name, 1, pathlib.Path(name)) for name in (WEB, DB)]
        self.states = module_states.ModuleStates(modules, self._changed)
        for each in self.states:
            each.discovered = True
        self.refused = refused_config.RefusedConfig(self.states, self.clock)

    def _changed(self, event: state.ModuleChanged) -> None:
        self.changed.append(event.state.module.name)

    def refuse(self, *wrong: config_events.WrongKey, kind: str = "ConfigMap", at_start: bool = False) -> None:
        texts = tuple(each.text for each in wrong)
        error = sources.ConfigMapError(f"{kind} a/b", texts)
        self.refused(config_events.ConfigRefused(error, "uid", wrong, at_start=at_start, kind=kind))

    @property
    def blamed(self) -> dict[str, str]:
        return {each.module.name: text for each in self.states for text in each.texts(findings.WRONG_VALUES)}


def test_a_refused_edit_is_shown_with_what_is_wrong_since_when_and_what_follows() -> None:
    bench = Bench()
    bench.refuse(SIZE)
    said = f"ConfigMap a/b is invalid since 1970-01-01T00:00:00Z: {SIZE.text}; {BOUNDS}"
    assert bench.refused.sentences == [said]
    assert bench.blamed == {WEB: said}
    assert bench.changed == [WEB], "its object shows it, and no other module's"


def test_each_module_is_told_what_concerns_it_and_all_what_is_wrong_with_global() -> None:
    bench = Bench()
    bench.refuse(SIZE, SWITCH)
    assert (SIZE.text in bench.blamed[WEB], SWITCH.text in bench.blamed[WEB]) == (True, False)
    assert (SIZE.text in bench.blamed[DB], SWITCH.text in bench.blamed[DB]) == (False, True)
    bench.refuse(SHARED)
    assert all(SHARED.text in text and SIZE.text not in text for text in bench.blamed.values())
    assert set(bench.blamed) == {WEB, DB}


def test_since_when_stays_while_one_wrong_edit_follows_the_other_and_ends_with_a_right_one() -> None:
    bench = Bench()
    bench.refuse(SIZE)
    bench.clock.now += 60
    bench.refuse(SWITCH)
    assert "since 1970-01-01T00:00:00Z" in bench.blamed[DB]
    assert list(bench.blamed) == [DB]
    bench.refused(config_events.ConfigRight("ConfigMap"))
    assert (bench.refused.sentences, bench.blamed) == ([], {})
    bench.clock.now += 60
    bench.refuse(SIZE)
    assert "since 1970-01-01T00:02:00Z" in bench.blamed[WEB]


def test_config_map_and_secret_are_wrong_and_right_by_themselves() -> None:
    bench = Bench()
    bench.refuse(SIZE)
    bench.refuse(SIZE, kind="Secret")
    assert [text.split()[0] for text in bench.refused.sentences] == ["ConfigMap", "Secret"]
    bench.refused(config_events.ConfigRight("ConfigMap"))
    assert [text.split()[0] for text in bench.refused.sentences] == ["Secret"]
    assert bench.blamed[WEB].startswith("Secret a/b is invalid")


def test_a_module_that_comes_later_is_told_too() -> None:
    bench = Bench()
    bench.refuse(config_events.WrongKey("newOne", "newOne: must be a mapping"))
    assert bench.blamed == {}
    bench.states.replace([model.Module(ModuleName("new-one"), 1, pathlib.Path("new-one"))])
    assert "newOne: must be a mapping" in bench.blamed[ModuleName("new-one")]


def test_a_defect_that_keeps_an_edit_from_being_read_is_shown_without_its_text_until_it_is_settled() -> None:
    bench = Bench()
    error = TypeError("hunter2")
    bench.refused(config_events.ConfigNotRead("Secret", "Secret a/b", error, 5.0))
    (said,) = bench.refused.sentences
    assert said.startswith(
        "an edit of Secret a/b is not in force since 1970-01-01T00:00:00Z because of a bug"
    )
    assert "hunter2" not in said
    bench.refuse(SIZE, kind="Secret")
    assert len(bench.refused.sentences) == 1, "now it was read, and is wrong"
    bench.refused(config_events.ConfigRight("Secret"))
    assert bench.refused.sentences == []


def test_of_very_much_that_is_wrong_the_first_places_are_named() -> None:
    bench = Bench()
    bench.refuse(*(config_events.WrongKey("web", f"web.a{number}: wrong") for number in range(5000)))
    assert bench.blamed[WEB].endswith(f"web.a9: wrong; and 4990 more; {BOUNDS}")
    assert bench.refused.sentences[0] == bench.blamed[WEB]


def test_of_a_very_long_place_the_beginning_is_shown() -> None:
    bench = Bench()
    bench.refuse(config_events.WrongKey("web", f"web.{'x' * 1_000_000}: must be a string"))
    assert len(bench.blamed[WEB]) < 1000
    assert "web.xxx" in bench.blamed[WEB]

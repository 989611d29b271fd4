"""What an edit of the ConfigMap, or of values by a hook, leads to."""

import pathlib

import pytest

from addon_operator.engine import reactions, state
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model
from addon_operator.values import sources
from tests.support import rows

WEB, DB, SCRIPTED = ModuleName("web"), ModuleName("db"), ModuleName("scripted")
MODULES = [
    model.Module(WEB, 1, pathlib.Path("web")),
    model.Module(DB, 2, pathlib.Path("db")),
    model.Module(SCRIPTED, 3, pathlib.Path("scripted"), enabled_script=pathlib.Path("scripted/enabled")),
]
CONVERGE = reactions.Reaction(converge=True)
NOTHING = reactions.Reaction()


def change(
    *sections: ModuleName,
    everywhere: bool = False,
    flags: tuple[ModuleName, ...] = (),
    maintenance: tuple[ModuleName, ...] = (),
) -> sources.ConfigChange:
    return sources.ConfigChange(everywhere, frozenset(flags), frozenset(sections), frozenset(maintenance))


@rows.each(
    ("edit", "reaction"),
    [
        pytest.param(change(everywhere=True), CONVERGE, id="global values"),
        pytest.param(change(flags=(DB,)), CONVERGE, id="an Enabled flag"),
        pytest.param(change(SCRIPTED), CONVERGE, id="a section that an enabled script sees"),
        pytest.param(change(WEB), reactions.Reaction(runs=(WEB,)), id="one section"),
        pytest.param(change(SCRIPTED, WEB), CONVERGE, id="sections with and without a script"),
        pytest.param(change(WEB, maintenance=(WEB,)), reactions.Reaction(runs=(WEB,)), id="maintenance"),
        pytest.param(change(DB), NOTHING, id="a section of a disabled module"),
    ],
)
def test_when_idle(edit: sources.ConfigChange, reaction: reactions.Reaction) -> None:
    decided = reactions.to_config_change(
        edit, state=state.ConvergeState.IDLE, modules=MODULES, enabled=[WEB, SCRIPTED]
    )
    assert decided == reaction


def test_while_a_converge_runs_any_edit_starts_it_over() -> None:
    decided = reactions.to_config_change(
        change(WEB), state=state.ConvergeState.RUNNING, modules=MODULES, enabled=[WEB]
    )
    assert decided == CONVERGE


def test_before_the_first_converge_nothing_is_needed() -> None:
    decided = reactions.to_config_change(
        change(WEB, everywhere=True), state=state.ConvergeState.NOT_STARTED, modules=MODULES, enabled=[]
    )
    assert decided == NOTHING


@rows.each(
    ("owner", "reaction"),
    [
        pytest.param(None, CONVERGE, id="a global hook"),
        pytest.param(WEB, reactions.Reaction(runs=(WEB,)), id="a module's hook"),
        pytest.param(SCRIPTED, CONVERGE, id="a hook of a module with an enabled script"),
        pytest.param(DB, NOTHING, id="a hook of a disabled module"),
    ],
)
@rows.each("state", [state.ConvergeState.IDLE, state.ConvergeState.RUNNING], ids=str)
def test_values_that_a_hook_changed(
    owner: ModuleName | None, reaction: reactions.Reaction, state: state.ConvergeState
) -> None:
    decided = reactions.to_hook_effects(owner, state=state, modules=MODULES, enabled=[WEB, SCRIPTED])
    assert decided == reaction


@rows.each("owner", [None, WEB], ids=["global", "module"])
def test_values_that_a_hook_changed_before_the_first_converge_need_nothing(owner: ModuleName | None) -> None:
    assert (
        reactions.to_hook_effects(
            owner, state=state.ConvergeState.NOT_STARTED, modules=MODULES, enabled=[WEB]
        )
        == NOTHING
    )

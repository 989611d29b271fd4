"""The verdict on modules whose files are wrong."""

import pathlib

from addon_operator.engine.converge import module_discovery
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model
from addon_operator.values import sources
from tests.support import rows

WRONG = model.Module(ModuleName("web"), 1, pathlib.Path("web"), problem="values.yaml, line 2: it is wrong")
OFF = sources.Flag(False, "disabled by webEnabled in modules/values.yaml")
NOBODY = sources.Flag(False, "disabled by default: no source sets webEnabled", is_default=True)


@rows.each(
    ("flag", "is_there", "enabled"),
    [
        (sources.Flag(True, "enabled by webEnabled in values.yaml"), False, True),
        (OFF, True, False),
        (NOBODY, False, False),
        (NOBODY, True, True),
    ],
    ids=["on", "off", "nobody says", "nobody says, and it is there"],
)
def test_a_module_is_not_removed_because_its_switch_cannot_be_read(
    flag: sources.Flag, is_there: bool, enabled: bool
) -> None:
    verdict = module_discovery.verdict_on_wrong(WRONG, flag, is_there=is_there)
    assert verdict.enabled is enabled
    assert (WRONG.problem in verdict.reason) is not enabled, "a disabled one is said to be wrong, too"

"""A ``module.yaml`` of Deckhouse: it fails no module, and its requirements hold here."""

import pytest

from addon_operator.kernel.names import ModuleName
from addon_operator.modules import module_config
from tests.support import rows

FILE = """
name: storage
weight: 340
stage: "General Availability"
subsystems: [storage]
descriptions: {en: Mounts volumes, ru: Тома}
namespace: d8-storage
disable: {confirmation: true, message: Volumes stay behind}
exclusiveGroup: csi
requirements:
  deckhouse: ">= 1.72"
  kubernetes: ">= 1.30"
  modules:
    snapshots: ">= 0.1.0"
    monitoring: ">= 0.0.0 !optional"
"""


def parse(text: str) -> module_config.ModuleConfig:
    return module_config.parse(ModuleName("storage"), text, "340-storage/module.yaml")


def mistakes(text: str) -> str:
    with pytest.raises(module_config.ModuleConfigError) as caught:
        parse(text)
    return str(caught.value)


def test_its_requirements_are_ours_and_its_namespace_moves_no_release() -> None:
    found = parse(FILE)
    assert found.requires == module_config.Requirements(">= 1.30", (ModuleName("snapshots"),))
    assert found.requires.places == (
        "340-storage/module.yaml, line 14, column 5, requirements.modules.snapshots",
    )
    assert (found.namespace, found.chart, found.description) == (
        "",
        module_config.ChartConfig(),
        "Mounts volumes",
    )


def test_one_warning_names_all_keys_that_are_not_read() -> None:
    (warning,) = parse(FILE).warnings
    assert warning == (
        "340-storage/module.yaml: this is a module.yaml of Deckhouse: "
        "disable, exclusiveGroup, name, namespace, stage, subsystems, weight are not read here; "
        "'addon-operator module lint' says what takes the place of each key"
    )


def test_for_each_key_the_author_is_told_what_takes_its_place() -> None:
    told = {note.split(": ")[0].rpartition(", ")[2]: note.split(": ", 1)[1] for note in parse(FILE).notes}
    assert told["weight"] == (
        "not read here: the order is the number before the directory's name, such as 340-NAME"
    )
    assert "operator's namespace" in told["namespace"]
    assert "no Deckhouse" in told["requirements.deckhouse"]
    assert told["requirements.modules.snapshots"].startswith("the module is required, and '>= 0.1.0' is not")
    assert "may be missing" in told["requirements.modules.monitoring"]
    assert set(told) >= {"name", "stage", "subsystems", "disable", "exclusiveGroup"}


@rows.each("text", ["descriptions: {ru: Тома}\n", "weight: 1\nnew-key: {}\n", "requirements:\n"])
def test_a_file_with_keys_that_only_deckhouse_has_is_known_as_such(text: str) -> None:
    assert "module.yaml of Deckhouse" in parse(text).warnings[0]


@rows.each(
    ("text", "mistake"),
    [
        (
            "stage: Preview\nchart: {path: c}\n",
            "'stage' is not known here; it is a key of Deckhouse; remove it: description is for people; no",
        ),
        (
            "weight: 1\nrequires: {modules: [a]}\nrequirements: {}\n",
            "the key 'requirements' is not known here; it is a key of Deckhouse; write requires",
        ),
        ("name: web\n", "name: the key 'name' is not known here; a chart's name belongs below chart"),
        ("requirements: [a]\n", "requirements: this is not a mapping; write kubernetes: and modules:"),
        ("requirements:\n  modules: [a]\n", "requirements.modules: this is not a mapping; write NAME: RANGE"),
        ("requirements:\n  kubernetes: new\n", "line 2, column 3, requirements.kubernetes: "),
        ("requirements:\n  modules: {A_b: '*'}\n", "line 2, column 13, requirements.modules.A_b: "),
        ("requirements:\n  modules: {storage: '*'}\n", "a module cannot require itself"),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_its_place(text: str, mistake: str) -> None:
    assert mistake in mistakes(text)

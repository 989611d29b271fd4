"""Reading PodPresets, with the rules of the CustomResourceDefinition."""

import copy
from typing import Any

from addon_operator.podpreset import model
from tests.support import rows
from tests.unit.podpreset import cases


def stored(spec: object, **metadata: object) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "n", "resourceVersion": "7", **metadata}, "spec": spec}


def valid(spec: cases.Spec, **metadata: object) -> model.Preset:
    preset = model.parse(stored(spec, **metadata))
    assert isinstance(preset, model.Preset), preset
    return preset


def test_specs_that_the_api_server_accepts_are_valid() -> None:
    parsed = {name: model.parse(stored(spec)) for name, spec in cases.ACCEPTED_SPECS.items()}
    assert {name: preset for name, preset in parsed.items() if not isinstance(preset, model.Preset)} == {}


def test_specs_that_the_api_server_refuses_are_invalid_and_say_where_and_why() -> None:
    parsed = {name: model.parse(stored(case.spec)) for name, case in cases.REFUSED_SPECS.items()}
    assert {name: preset for name, preset in parsed.items() if not tells(preset, name)} == {}


def tells(preset: model.Preset | model.InvalidPreset, name: str) -> bool:
    case = cases.REFUSED_SPECS[name]
    reasons = preset.reasons if isinstance(preset, model.InvalidPreset) else ()
    return any(case.path in reason and case.says in reason for reason in reasons)


def test_every_mistake_is_reported_at_once() -> None:
    preset = model.parse(stored({"selector": {}, "env": [{"name": "1"}], "volumes": "v"}))
    assert isinstance(preset, model.InvalidPreset)
    assert [reason.partition(":")[0] for reason in preset.reasons] == [
        "spec.selector",
        "spec.env[0].name",
        "spec.volumes",
    ]


@rows.each("given", [{}, {"metadata": None}, {"spec": None}, {"spec": "x", "metadata": []}])
def test_an_object_without_a_spec_is_invalid(given: dict[str, Any]) -> None:
    preset = model.parse(given)
    assert isinstance(preset, model.InvalidPreset)
    assert preset.reasons[0].startswith("spec: ")


def test_an_invalid_preset_keeps_its_name_and_version() -> None:
    assert model.parse(stored({})) == model.InvalidPreset(
        "n", model.PresetName("p"), "7", ("spec.selector: is required",)
    )


def test_names_versions_and_times_come_from_the_metadata() -> None:
    preset = valid(cases.DESIGN_EXAMPLE, creationTimestamp="2017-02-07T16:56:12Z")
    assert (preset.namespace, preset.name, preset.resource_version) == ("n", "p", "7")
    assert preset.created.isoformat() == "2017-02-07T16:56:12+00:00"
    assert not preset.deleting


def test_a_preset_being_deleted_says_so() -> None:
    assert valid(cases.DESIGN_EXAMPLE, deletionTimestamp="2017-02-07T16:56:12Z").deleting


@rows.each("time", [None, "yesterday"])
def test_a_preset_without_a_creation_time_comes_last(time: str | None) -> None:
    later = valid(cases.DESIGN_EXAMPLE, creationTimestamp=time, name="a")
    earlier = valid(cases.DESIGN_EXAMPLE, creationTimestamp="2099-01-01T00:00:00Z", name="b")
    assert earlier.order < later.order


def test_a_number_in_a_variable_becomes_its_text() -> None:
    assert valid(cases.DESIGN_EXAMPLE).env[0].entry == {"name": "DB_PORT", "value": "6379"}


def test_entries_are_kept_as_written_without_nulls_and_unknown_fields() -> None:
    spec = cases.with_volume(secret={"secretName": "s", "optional": None, "colour": "red"}, secretName="x")
    assert valid(spec).volumes[0].entry == {"name": "v", "secret": {"secretName": "s"}}


def test_parsing_changes_nothing_in_the_object() -> None:
    given = stored(cases.DESIGN_EXAMPLE)
    before = copy.deepcopy(given)
    model.parse(given)
    assert given == before


def with_volumes(*volumes: dict[str, Any]) -> dict[str, Any]:
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    return stored({"selector": cases.SELECTOR, "volumes": list(volumes), "volumeMounts": mounts})


@rows.each(
    ("volume", "kind"),
    [({"hostPath": {"path": "/"}}, "hostPath"), ({"emptyDir": {}}, "emptyDir"), ({}, "emptyDir")],
    ids=["hostPath", "emptyDir", "no source"],
)
def test_a_volume_of_a_type_that_is_not_allowed_makes_a_preset_invalid(
    volume: dict[str, Any], kind: str
) -> None:
    given = with_volumes({"name": "fits", "configMap": {"name": "c"}}, {"name": "v", **volume})
    parsed = model.parse(given, ["secret", "configMap"])
    assert isinstance(parsed, model.InvalidPreset)
    (reason,) = parsed.reasons
    assert reason.startswith(f"spec.volumes[1].{kind}: volumes of this type are not allowed in presets here")
    assert reason.endswith("only configMap, secret (PODPRESET_VOLUME_TYPES)")
    assert isinstance(model.parse(given, [kind, "configMap"]), model.Preset)
    assert isinstance(model.parse(given), model.Preset)

"""Which values a field comes from, found with a bounded number of renders."""

import hashlib
import json
import math
from collections.abc import Callable

import pytest
import yaml

from addon_operator.debug import debug_why, field_causes
from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors
from addon_operator.kernel import json_types, names
from tests.support import rows

VALUES: json_types.JsonObject = {
    "web": {
        "color": "green", "size": 3, "on": True, "secret": "abc", "both": [True, True],
        **{f"other{number}": "x" for number in range(40)},
    }
}  # fmt: skip


@pytest.fixture(autouse=True)
def _all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_causes, "SECONDS", math.inf)


class FakeChart:
    """Renders one ConfigMap of the values, and counts."""

    def __init__(self, make: Callable[[dict[str, json_types.JsonValue]], object]) -> None:
        self.renders = 0
        self._make = make

    async def render(self, values: json_types.JsonObject) -> str:
        self.renders += 1
        section = values["web"]
        assert isinstance(section, dict)
        data = {"field": self._make(section)}
        return yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "web"}, "data": data})

    async def cause(self, *pointer: str) -> field_causes.Cause:
        base = await self.render(VALUES)
        self.renders = 0
        causes = field_causes.FieldCauses(self.render, VALUES, ("ConfigMap", "web"), base)
        return await causes.of(pointer or ("data", "field"))


async def test_a_field_that_holds_values_is_found_with_one_render() -> None:
    chart = FakeChart(lambda web: f"{web['color']}-{web['size']}")
    cause = await chart.cause()
    assert cause.values == (("web", "color"), ("web", "size"))
    assert (cause.is_derived, chart.renders) == (False, 1)


async def test_a_field_that_is_worked_out_from_a_value_is_found_by_halves() -> None:
    chart = FakeChart(lambda web: hashlib.sha256(str(web["secret"]).encode()).hexdigest())
    cause = await chart.cause()
    assert (cause.values, cause.is_derived) == ((("web", "secret"),), True)
    assert chart.renders <= field_causes.RENDERS


async def test_a_switch_is_found_although_it_has_no_mark() -> None:
    cause = await FakeChart(lambda web: "yes" if web["on"] else "no").cause()
    assert cause.values == (("web", "on"),)


async def test_a_field_that_no_value_changes_is_written_in_the_chart() -> None:
    cause = await FakeChart(lambda _: "constant").cause()
    assert (cause.values, cause.is_constant) == ((), True)


@rows.each("own", [7_000_000, 7_000_001.0, "x7_000_002 why7000003y", [7_008_192, 7_000_000]])
async def test_a_number_of_the_chart_itself_is_taken_for_no_value(own: object) -> None:
    cause = await FakeChart(lambda _: own).cause()
    assert (cause.values, cause.is_constant) == ((), True)
    beside = await FakeChart(lambda web: [own, web["size"], web["color"]]).cause()
    assert beside.values == (("web", "size"), ("web", "color"))


async def test_a_chart_with_all_numbers_of_marks_has_its_fields_told_without_them() -> None:
    cause = await FakeChart(lambda web: [*field_causes._FIRST, web["size"]]).cause()
    assert (cause.values, cause.is_derived) == ((("web", "size"),), True)


async def test_a_value_that_a_chart_only_compares_is_found() -> None:
    cause = await FakeChart(lambda web: "many" if int(str(web["size"])) > 2 else "few").cause()
    assert (cause.values, cause.is_derived) == ((("web", "size"),), True)


async def test_fields_of_one_object_share_the_renders() -> None:
    chart = FakeChart(lambda web: {f"f{number}": "constant" for number in range(40)} | {"on": not web["on"]})
    base = await chart.render(VALUES)
    causes = field_causes.FieldCauses(chart.render, VALUES, ("ConfigMap", "web"), base)
    found = [await causes.of(("data", "field", f"f{number}")) for number in range(40)]
    assert all(each.is_constant for each in found)
    assert (await causes.of(("data", "field", "on"))).values == (("web", "on"),)


async def test_a_chart_that_is_particular_about_lists_is_asked_without_them() -> None:
    def make(web: dict[str, json_types.JsonValue]) -> object:
        if web["both"] != [True, True]:
            raise helm_errors.HelmError(names.ModuleName("web"), "two switches are needed")
        return "constant"

    cause = await FakeChart(make).cause()
    assert (cause.values, cause.is_constant) == ((), True)


async def test_a_chart_that_takes_no_marks_is_unknown_and_ends() -> None:
    def make(web: dict[str, json_types.JsonValue]) -> object:
        if web["color"] != "green":
            raise helm_errors.HelmError(names.ModuleName("web"), "only green")
        return f"is {web['color']}"

    chart = FakeChart(make)
    cause = await chart.cause()
    assert (cause.values, cause.is_constant) == ((), False)
    assert chart.renders <= field_causes.RENDERS


async def test_a_chart_without_values_is_written_in_the_chart() -> None:
    chart = FakeChart(lambda _: "constant")

    async def render(_values: json_types.JsonObject) -> str:
        return await chart.render(VALUES)

    causes = field_causes.FieldCauses(render, {}, ("ConfigMap", "web"), await chart.render(VALUES))
    assert await causes.of(("data", "field")) == field_causes.Cause(is_constant=True, renders=3)


async def test_a_mark_that_takes_the_object_away_hides_no_others() -> None:
    """A chart decides by a text which object it renders, as between a Deployment and a DaemonSet."""
    values: json_types.JsonObject = {"kind": "Deployment", **{f"name{number}": "x" for number in range(6)}}

    async def render(values: json_types.JsonObject) -> str:
        kind = "Deployment" if values["kind"] == "Deployment" else "DaemonSet"
        return yaml.safe_dump({"kind": kind, "metadata": {"name": "web"}, "data": values["name5"]})

    causes = field_causes.FieldCauses(render, values, ("Deployment", "web"), await render(values))
    assert (await causes.of(("data",))).values == (("name5",),)


async def test_a_number_is_found_in_a_text_where_go_writes_it_with_an_exponent() -> None:
    cause = await FakeChart(lambda web: f"--port={web['size']:e}").cause()
    assert cause.values == (("web", "size"),)


@rows.each("wanted", ["Deployment/web", "deploy/web", "deployments/web", "DEPLOY/web"])
def test_kinds_are_taken_as_kubectl_takes_them(wanted: str) -> None:
    text = "# Source: web/templates/a.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    documents = list(manifest_diff.objects(manifest_diff.parse(text)))
    assert debug_why._chosen(documents, wanted).key.name == "web"
    with pytest.raises(debug_why.WhyError, match="there are: Deployment/web"):
        debug_why._chosen(documents, "sts/web")
    with pytest.raises(debug_why.WhyError, match="did you mean 'Deployment/web'"):
        debug_why._chosen(documents, "Deployment/wbe")


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app.kubernetes.io/name: web}}
spec: {replicas: 2, template: {spec: {containers: [{name: web, image: x}]}}}
"""


@rows.each(
    ("path", "hint"),
    [
        ("spec.replica", "did you mean spec.replicas?"),
        ("/spec/Replicas", "did you mean spec.replicas?"),
        ("replicas", "did you mean spec.replicas?"),
        ("image", "did you mean spec.template.spec.containers.0.image?"),
        ("metadata.label", "did you mean metadata.labels?"),
        ("/metadata/labels/app.kubernetes.io~1nam", "did you mean /metadata/labels/app.kubernetes.io~1name?"),
        ("nothing.of.it.at.all", "write it as /spec/replicas or spec.replicas, and leave it out to see all"),
        ("x" * 100_000, "write it as /spec/replicas or spec.replicas, and leave it out to see all"),
    ],
    ids=lambda text: text[:40],
)
def test_of_a_field_that_is_not_there_the_nearest_are_offered(path: str, hint: str) -> None:
    (document,) = manifest_diff.objects(manifest_diff.parse(f"# Source: web/templates/a.yaml\n{DEPLOYMENT}"))
    with pytest.raises(debug_why.WhyError) as caught:
        debug_why._pointer(document, path)
    assert str(caught.value) == f"Deployment web has no field {path}; {hint}"


@pytest.mark.slow
def test_paths_of_a_huge_object_cost_no_more_than_a_bound() -> None:
    text = json.dumps(
        {"kind": "ConfigMap", "metadata": {"name": "web"}, "data": {f"key-{n}": "" for n in range(5_000)}}
    )
    (document,) = manifest_diff.objects(manifest_diff.parse(text))
    assert len(debug_why._known(document, debug_why._all)) == debug_why._COMPARED
    with pytest.raises(debug_why.WhyError, match="did you mean"):
        debug_why._pointer(document, "data.key-1x")

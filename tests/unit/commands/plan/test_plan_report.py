"""A plan for people."""

import pathlib

import pytest
from msgspec import structs

from addon_operator.commands.plan import plan_report
from addon_operator.documents import manifest_diff
from addon_operator.helm.releases import keeper
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import keeping, manifests, model, plan
from tests.support import rows

WEB = ModuleName("web")


def module(name: str = "web", order: int = 1, *, has_chart: bool = True) -> model.Module:
    return model.Module(ModuleName(name), order, pathlib.Path(name), has_chart=has_chart)


def made(*, enabled: tuple[str, ...] = (), deletes: tuple[str, ...] = ()) -> plan.ConvergePlan:
    verdicts = {WEB: model.Verdict(WEB, "web" in enabled, "")}
    return plan.ConvergePlan(
        tuple(map(ModuleName, enabled)),
        tuple(map(ModuleName, deletes)),
        stages=(),
        purges=(),
        verdicts=verdicts,
    )


@rows.each(
    ("found", "planned", "maintenance", "step"),
    [
        pytest.param(
            module(), made(deletes=("web",)), "", plan_report.PlanStep.DELETE, id="disabled with a release"
        ),
        pytest.param(module(), made(), "", plan_report.PlanStep.NOTHING, id="disabled without a release"),
        pytest.param(
            module(has_chart=False), made(enabled=("web",)), "", plan_report.PlanStep.HOOKS, id="hooks only"
        ),
        pytest.param(
            module(), made(enabled=("web",)), "NoResourceReconciliation", plan_report.PlanStep.NOTHING,
            id="maintenance",
        ),
    ],
)  # fmt: skip
def test_some_releases_need_no_look(
    found: model.Module, planned: plan.ConvergePlan, maintenance: str, step: plan_report.PlanStep
) -> None:
    release = plan_report.without_release(found, planned, maintenance)
    assert release is not None
    assert release.step is step
    assert maintenance in release.reason


def test_a_disabled_module_whose_switch_cannot_be_read_is_not_known() -> None:
    wrong = structs.replace(module(), problem="web/values.yaml: cannot be read: Permission denied")
    release = plan_report.without_release(wrong, made(), "", switch_is_unread=True)
    assert release is not None
    assert release.step is plan_report.PlanStep.UNKNOWN
    assert release.reason == f"whether it is enabled is not known: {wrong.problem}"


def test_an_enabled_module_with_a_chart_needs_a_look_at_its_release() -> None:
    assert plan_report.without_release(module(), made(enabled=("web",)), "") is None


def reported(name: str, step: plan_report.PlanStep, order: int = 1) -> plan_report.ModuleReport:
    return plan_report.ModuleReport(
        ModuleName(name), order, True, "", plan_report.ReleaseReport(step, "as it is")
    )


@rows.each(
    ("step", "is_change", "is_failed"),
    [
        (plan_report.PlanStep.INSTALL, True, False),
        (plan_report.PlanStep.UPGRADE, True, False),
        (plan_report.PlanStep.DELETE, True, False),
        (plan_report.PlanStep.NOTHING, False, False),
        (plan_report.PlanStep.HOOKS, False, False),
        (plan_report.PlanStep.UNKNOWN, False, True),
    ],
)
def test_only_changes_of_releases_count(step: plan_report.PlanStep, is_change: bool, is_failed: bool) -> None:
    found = plan_report.PlanReport(
        "addons", (reported("a", plan_report.PlanStep.NOTHING), reported("b", step)), ()
    )
    assert (found.is_change, found.is_failed) == (is_change, is_failed)


def test_a_purge_is_a_change() -> None:
    assert plan_report.PlanReport("addons", (), (plan_report.Purge("gone", "x"),)).is_change
    assert not plan_report.PlanReport("addons", (), ()).is_change


@rows.each(("ours", "words"), [(True, "addon-operator made it"), (False, "HELM_PURGE is all")])
def test_a_purge_has_a_reason(ours: bool, words: str) -> None:
    observed = plan.Observed([], {}, {"gone": ours}, removals=plan.RemovalPolicy(plan.PurgePolicy.ALL))
    (purge,) = plan_report.purges(observed, plan.plan_converge(observed))
    assert purge.release == "gone"
    assert words in purge.reason


def document(kind: str, name: str, rest: str = "") -> str:
    return f"---\napiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n{rest}"


def taken_over(before: str, after: str) -> list[str]:
    changes = manifest_diff.diff((), manifest_diff.parse(after))
    release = plan_report.ReleaseReport(plan_report.PlanStep.INSTALL, "there is no release", changes=changes)
    modules = [
        reported("db", plan_report.PlanStep.NOTHING),
        plan_report.ModuleReport(WEB, 1, True, "", release),
    ]
    return list(plan_report.taken_over(plan_report.Purge("old", "x"), before, modules, lambda _: "addons"))


def test_objects_that_a_module_takes_over_from_a_purged_release_are_named() -> None:
    claims = "".join(document("PersistentVolumeClaim", f"data-{number}") for number in range(5))
    (found,) = taken_over(claims, document("ConfigMap", "web") + claims)
    assert "module web takes over PersistentVolumeClaim data-0, " in found
    assert "data-2 and 2 more from release old" in found
    assert "they stay" in found


def test_an_object_is_the_same_whether_it_names_the_namespace_of_the_releases_or_none() -> None:
    named = document("PersistentVolumeClaim", "data", "  namespace: addons\n")
    assert len(taken_over(named, document("PersistentVolumeClaim", "data"))) == 1
    elsewhere = document("PersistentVolumeClaim", "data", "  namespace: other\n")
    assert taken_over(elsewhere, document("PersistentVolumeClaim", "data")) == []


@rows.each(
    ("order", "kind", "by_chance", "said"),
    [
        (10, "ConfigMap", False, "ConfigMap addons/data: moves from module old to module web"),
        (30, "ConfigMap", False, "ConfigMap addons/data: moves from module old to module web"),
        (30, "Secret", True, "Secret addons/data (with new random content): moves from module old"),
    ],
    ids=["later", "earlier", "at random"],
)
def test_objects_that_move_to_another_module_are_named(
    order: int, kind: str, by_chance: bool, said: str
) -> None:
    text = manifest_diff.parse(document(kind, "data"))
    added = manifest_diff.diff((), manifest_diff.parse(document(kind, "data", "  namespace: addons\n")))
    at_random = frozenset(each.key for each in added if by_chance)
    reports = [
        plan_report.ModuleReport(
            ModuleName(name),
            number,
            True,
            "",
            plan_report.ReleaseReport(
                plan_report.PlanStep.UPGRADE, "x", changes=changes, by_chance=at_random
            ),
        )
        for name, number, changes in (
            ("old", 20, manifest_diff.diff(text, ())),
            ("web", order, added),
        )
    ]
    (found,) = plan_report.moves(reports, lambda _: "addons")
    assert found.startswith(said)
    assert list(plan_report.moves(reports[:1], lambda _: "addons")) == []


def test_what_a_removal_deletes_is_counted_and_what_stays_is_named() -> None:
    going = [
        manifests.ManifestResource("v1", kind, None, name)
        for kind, name in (("ConfigMap", "a"), ("ConfigMap", "b"), ("Service", "a"))
    ]
    kept = keeping.Kept("PersistentVolumeClaim", "addons", "data", keeping.Why.DATA)
    claims = [
        manifests.ManifestResource("v1", "PersistentVolumeClaim", None, name) for name in ("data", "old")
    ]
    staying = keeper.Staying(kept={claims[0]: kept}, looked_at=(*going, *claims), with_data={claims[1]: None})
    deleted, lost, left = plan_report.removed("module web", staying)
    counted = "2 ConfigMap, 1 PersistentVolumeClaim, 1 Service"
    assert deleted == f"the removal of module web deletes 4 objects ({counted})"
    assert lost == "PersistentVolumeClaim old of module web goes with its data, as removal.data says"
    assert left == (
        "PersistentVolumeClaim addons/data of module web stays: it holds data; "
        "'kubectl delete pvc data --namespace addons' removes it"
    )


def test_what_helm_keeps_stays_without_anybody_who_takes_it_over() -> None:
    kept = document("PersistentVolumeClaim", "data", "  annotations: {helm.sh/resource-policy: keep}\n")
    assert taken_over(kept, document("PersistentVolumeClaim", "data")) == []


def test_deletes_come_first_as_they_come_and_then_modules_in_run_order() -> None:
    modules = (
        reported("a", plan_report.PlanStep.NOTHING, 3),
        reported("x", plan_report.PlanStep.DELETE, 1),
        reported("b", plan_report.PlanStep.NOTHING, 2),
        reported("y", plan_report.PlanStep.DELETE, 2),
    )
    run_order = [model.Module(ModuleName(name), 1, pathlib.Path(name)) for name in "xybaz"]
    ordered = plan_report.in_order(made(deletes=("y", "x")), run_order, modules)
    assert [each.name for each in ordered] == ["y", "x", "b", "a"]

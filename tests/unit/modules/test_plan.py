"""Which modules a converge deletes, runs and purges."""

import pathlib
from collections.abc import Mapping

from msgspec import structs

from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, plan
from tests.support import rows


def observed(
    modules: Mapping[str, tuple[int, bool]],
    releases: Mapping[str, bool] | None = None,
    started: frozenset[str] = frozenset(),
    purge: plan.PurgePolicy = plan.PurgePolicy.OWN,
    ignored: frozenset[str] = frozenset(),
) -> plan.Observed:
    return plan.Observed(
        modules=[
            model.Module(name=ModuleName(name), order=order, path=pathlib.Path(name))
            for name, (order, _) in modules.items()
        ],
        verdicts={
            ModuleName(name): model.Verdict(ModuleName(name), enabled, "as the test says")
            for name, (_, enabled) in modules.items()
        },
        releases=releases or {},
        started=frozenset(map(ModuleName, started)),
        removals=plan.RemovalPolicy(purge, ignored),
    )


def test_modules_run_by_number_then_name_and_those_of_one_number_together() -> None:
    made = plan.plan_converge(
        observed({"web": (20, True), "b": (10, True), "a": (10, True), "off": (5, False)})
    )
    assert made.enabled == ("a", "b", "web")
    assert made.stages == (
        plan.Stage(10, (ModuleName("a"), ModuleName("b"))),
        plan.Stage(20, (ModuleName("web"),)),
    )


def test_disabled_modules_with_a_release_are_deleted_in_reverse_order() -> None:
    made = plan.plan_converge(
        observed(
            {"a": (1, False), "b": (2, False), "c": (3, False), "on": (4, True)},
            releases={"a": True, "c": False, "on": True},
        )
    )
    assert made.deletes == ("c", "a")


def test_a_disabled_module_of_hooks_only_that_ran_is_deleted_too() -> None:
    made = plan.plan_converge(observed({"a": (1, False), "b": (1, False)}, started=frozenset({"b"})))
    assert made.deletes == ("b",)


@rows.each(
    ("policy", "purged"),
    [
        ("off", ()),
        ("own", ("z", "mine", "b")),
        ("all", ("z", "theirs", "mine", "b")),
    ],
)
def test_releases_without_a_module_directory_are_purged_as_the_policy_says(
    policy: str, purged: tuple[str, ...]
) -> None:
    releases = {"a": True, "b": True, "z": True, "mine": True, "theirs": False}
    found = observed({"a": (1, True)}, releases, purge=plan.PurgePolicy(policy))
    assert plan.plan_converge(found).purges == purged


def test_own_releases_are_purged_and_none_is_ignored_unless_somebody_says_more() -> None:
    found = observed({"a": (1, False)})
    plain = plan.Observed(found.modules, found.verdicts, {"mine": True, "theirs": False})
    made = plan.plan_converge(plain)
    assert (made.deletes, made.purges) == ((), ("mine",))
    assert made.verdicts == found.verdicts
    assert plan.spared(structs.replace(plain, modules=())) == ("mine",)


def test_nothing_is_purged_while_a_module_yaml_cannot_be_read() -> None:
    found = observed({"a": (1, True), "b": (2, True)}, releases={"mine": True})
    good, other = found.modules
    broken = structs.replace(other, problem="module.yaml, line 1: the key is not known here")
    assert plan.plan_converge(structs.replace(found, modules=[good, broken])).purges == ()


def test_the_reason_of_a_purge_says_who_made_the_release() -> None:
    found = observed({}, releases={"mine": True, "theirs": False})
    assert [plan.purge_reason(found, name) for name in ("mine", "theirs")] == [
        "no module directory explains it, and an addon-operator made it",
        "no module directory explains it, and HELM_PURGE is all",
    ]
    moved = structs.replace(found, moved=frozenset({"mine"}))
    said = "its module has another release now, and it goes once that one is there"
    assert plan.purge_reason(moved, "mine") == said


def test_an_ignored_release_is_neither_deleted_nor_purged() -> None:
    found = observed(
        {"operator": (1, False)},
        releases={"operator": True, "self": True},
        ignored=frozenset({"operator", "self"}),
        purge=plan.PurgePolicy.ALL,
    )
    made = plan.plan_converge(found)
    assert (made.deletes, made.purges) == ((), ())


@rows.each(
    ("modules", "releases", "spared"),
    [
        ({}, {"web": True}, ("web",)),
        ({"hooks": (1, True), "templates": (1, False)}, {"web": True, "db": True}, ("web", "db")),
        ({"other": (1, True)}, {"web": True, "other": False}, ("web",)),
        ({"web": (1, False)}, {"web": True, "db": True}, ()),
        ({"other": (1, True)}, {"foreign": False}, ()),
        ({"other": (1, True)}, {"own": True}, ()),
        ({"other": (1, True)}, {}, ()),
    ],
    ids=[
        "none",
        "others",
        "a foreign release",
        "one is there",
        "no release of ours",
        "ignored",
        "no release",
    ],
)
def test_releases_stay_when_none_of_the_modules_that_have_one_is_there(
    modules: Mapping[str, tuple[int, bool]], releases: Mapping[str, bool], spared: tuple[str, ...]
) -> None:
    seen = observed(modules, releases, ignored=frozenset({"own"}))
    assert plan.spared(seen) == spared
    meant = structs.replace(seen, removals=structs.replace(seen.removals, allow_empty=True))
    assert plan.spared(meant) == ()


def test_a_release_that_its_module_left_is_that_of_a_module() -> None:
    seen = structs.replace(observed({"web": (1, True)}, {"old-web": True}), moved=frozenset({"old-web"}))
    assert plan.spared(seen) == ()
    assert plan.plan_converge(seen).purges == ("old-web",)


def test_a_module_without_a_release_may_be_what_one_of_a_purged_release_is_called_now() -> None:
    seen = observed({"web": (1, True), "new": (2, True)}, {"web": True, "old": True})
    assert plan.may_be_renamed(seen) == (), "hooks alone have no data"
    charts = [structs.replace(each, has_chart=True) for each in seen.modules]
    seen = structs.replace(seen, modules=charts)
    assert plan.may_be_renamed(seen) == ("old",)
    assert plan.may_be_renamed(structs.replace(seen, releases={**seen.releases, "new": True})) == ()


def test_nothing_is_purged_while_a_change_on_disk_is_taken_in_part_only() -> None:
    seen = observed({"web": (1, True)}, {"web": True, "old": True})
    assert plan.plan_converge(seen).purges == ("old",)
    held = structs.replace(seen, hidden_by="values.yaml, line 2: no")
    assert plan.plan_converge(held).purges == ()
    (text,) = plan.stays(held)
    assert text.startswith("release old stays for now: no module directory explains it, but ")
    assert text.endswith(": values.yaml, line 2: no")
    assert plan.stays(seen) == ()


def test_nothing_is_purged_as_long_as_a_directory_of_its_name_is_there_that_lost_all_of_a_module() -> None:
    seen = observed({"a": (1, True)}, {"a": True, "web": True, "old": True})
    emptied = structs.replace(seen, strays={"web": "/m/web is not a module"})
    assert plan.plan_converge(emptied).purges == ()
    assert [text.endswith(": /m/web is not a module") for text in plan.stays(emptied)] == [True, True]
    assert plan.spared(structs.replace(emptied, modules=())) == ("web", "old", "a")
    other = structs.replace(seen, strays={"docs": "/m/docs is not a module"})
    assert plan.plan_converge(other).purges == ("web", "old")


def test_a_release_whose_module_lost_its_chart_is_told_as_long_as_the_module_is_enabled() -> None:
    seen = observed({"web": (1, True), "off": (1, False), "new": (1, True)}, {"web": True, "off": True})
    (text,) = plan.chartless(seen).values()
    assert text.startswith("release web stays as it is, because module web has no chart any more: put ")
    assert "templates/ back into web, or disable the module" in text
    assert plan.plan_converge(seen).deletes == ("off",)
    assert plan.chartless(structs.replace(seen, releases={"web": False})) == {}, "it is another's"
    for fields in ({"has_chart": True}, {"problem": "module.yaml, line 1: no"}):
        modules = [structs.replace(module, **fields) for module in seen.modules]
        assert plan.chartless(structs.replace(seen, modules=modules)) == {}


def test_a_module_that_runs_is_one_of_those_that_are_meant() -> None:
    assert plan.spared(observed({"a": (1, True)}, {"mine": True}, frozenset({"a"}))) == ()


def test_modules_that_are_wrong_neither_hide_strangers_nor_count_as_such() -> None:
    found = observed({"a": (1, True), "b": (1, True)}, {"mine": True})
    wrong = structs.replace(found.modules[0], problem="its name is wrong")
    assert plan.spared(structs.replace(found, modules=[wrong, found.modules[1]])) == ("mine",)
    assert plan.spared(structs.replace(found, modules=[wrong])) == ()
    assert plan.spared(structs.replace(found, hidden_by="values.yaml, line 2: no")) == ("mine",)

"""What modules require: order, mistakes, and the reasons of verdicts."""

import pathlib
from collections.abc import Mapping, Sequence

import pytest
from msgspec import structs

from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config, requirements
from tests.support import rows
from tests.unit import costs

FACTS = requirements.ClusterFacts(
    "v1.31.2+k3s1",
    frozenset({"v1", "apps/v1", "monitoring.coreos.com/v1beta1"}),
    frozenset({"metrics.k8s.io/v1beta1"}),
)


def module(
    name: str,
    order: int = 1,
    requires: Sequence[str] = (),
    *,
    kubernetes: str = "",
    apis: Sequence[str] = (),
    problem: str = "",
) -> model.Module:
    wanted = module_config.Requirements(
        kubernetes,
        tuple(map(ModuleName, requires)),
        tuple(apis),
        tuple(f"{name}/module.yaml, line {line}" for line, _ in enumerate(requires, 1)),
    )
    config = module_config.ModuleConfig(requires=wanted)
    return model.Module(ModuleName(name), order, pathlib.Path(name), config=config, problem=problem)


@rows.each(
    ("modules", "expected"),
    [
        pytest.param([module("b", 2), module("a", 2), module("c")], "c a b", id="no edge"),
        pytest.param([module("a", 1, ["z"]), module("b"), module("z")], "b z a", id="an edge in one order"),
        pytest.param([module("a", 1, ["c"]), module("c", 1, ["d"]), module("d")], "d c a", id="a chain"),
        pytest.param(
            [module("a", 2, ["z"]), module("b", 2), module("z")], "z a b", id="an edge between orders"
        ),
        pytest.param(
            [module("a", 1, ["b"], problem="x"), module("b", 1, ["a"], problem="x")], "a b", id="a cycle"
        ),
        pytest.param([module("a", 1, ["gone"]), module("b")], "a b", id="an unknown module"),
    ],
)
def test_required_modules_come_first_within_an_order(modules: list[model.Module], expected: str) -> None:
    assert " ".join(each.name for each in requirements.in_run_order(modules)) == expected


def test_dependants_are_those_that_require_a_module_directly() -> None:
    found = requirements.dependants([module("a", 1, ["b"]), module("b", 1, ["c"]), module("c")])
    assert found == {"b": ["a"], "c": ["b"]}


@rows.each(
    ("modules", "expected"),
    [
        pytest.param([module("a", 2, ["b"]), module("b", 2)], {}, id="nothing wrong"),
        pytest.param(
            [module("a", 2, ["certs"]), module("cert")],
            {"a": "a/module.yaml, line 1: a → certs: there is no module 'certs'; did you mean 'cert'?"},
            id="unknown",
        ),
        pytest.param(
            [module("a", 2, ["b"]), module("b", 20)],
            {
                "a": "a/module.yaml, line 1: a → b: b has the higher number, 20, and runs after a, 2; "
                "give a a number of at least 20"
            },
            id="a higher order",
        ),
        pytest.param(
            [module("a", 1, ["x", "b"]), module("b", 1, ["c"]), module("c", 1, ["a"]), module("x")],
            {
                "a": "a/module.yaml, line 2: a → b → c → a: modules cannot wait for each other; "
                "remove one of these",
                "b": "b/module.yaml, line 1: b → c → a → b: modules cannot wait for each other; "
                "remove one of these",
                "c": "c/module.yaml, line 1: c → a → b → c: modules cannot wait for each other; "
                "remove one of these",
            },
            id="a cycle",
        ),
        pytest.param(
            [module("a", 1, ["010-b"]), module("b", 1)],
            {
                "a": "a/module.yaml, line 1: a → 010-b: there is no module '010-b'; write b, without the "
                "number of its directory"
            },
            id="the name of a directory",
        ),
        pytest.param(
            [module("a", 1, ["b"]), module("b", 1, ["a"], problem="it cannot be read")], {}, id="no cycle"
        ),
    ],
)
def test_mistakes_name_file_line_and_chain(modules: list[model.Module], expected: Mapping[str, str]) -> None:
    found = requirements.problems(modules)
    assert {name: "; ".join(mistakes) for name, mistakes in found.items()} == expected


def reason(wanted: model.Module, *, is_there: bool = False, **verdicts: model.Verdict) -> str | None:
    found = requirements.unmet(
        wanted, FACTS, {ModuleName(name): each for name, each in verdicts.items()}, is_there=is_there
    )
    return None if found is None else found.reason


@rows.each(
    ("wanted", "expected"),
    [
        pytest.param(module("a", kubernetes=">=1.29, <1.34", apis=["apps/v1"]), None, id="met"),
        pytest.param(
            module("a", kubernetes="^1.32"),
            "requires Kubernetes ^1.32, and the cluster has v1.31.2+k3s1",
            id="another version",
        ),
        pytest.param(
            module("a", apis=["example.com/v1"]),
            "requires the API example.com/v1, which the cluster does not serve",
            id="no such API",
        ),
        pytest.param(
            module("a", apis=["monitoring.coreos.com/v1"]),
            "requires the API monitoring.coreos.com/v1, which the cluster does not serve "
            "(of monitoring.coreos.com it serves v1beta1)",
            id="another version of the API",
        ),
        pytest.param(
            module("a", kubernetes="^1.32", apis=["example.com/v1"]),
            "requires Kubernetes ^1.32, and the cluster has v1.31.2+k3s1; "
            "requires the API example.com/v1, which the cluster does not serve",
            id="two reasons",
        ),
        pytest.param(module("a", kubernetes="^1.32", problem="it cannot be read"), None, id="a problem"),
    ],
)
def test_what_the_cluster_lacks_is_said_with_what_is_there(
    wanted: model.Module, expected: str | None
) -> None:
    assert reason(wanted) == expected


@rows.each(
    ("wanted", "lacking"),
    [
        (
            module("a", apis=["metrics.k8s.io/v1beta1"]),
            "requires the API metrics.k8s.io/v1beta1, whose server does not answer",
        ),
        (module("a", apis=["x.io/v1"]), "requires the API x.io/v1, which the cluster does not serve"),
        (module("a", kubernetes="^1.32"), "requires Kubernetes ^1.32, and the cluster has v1.31.2+k3s1"),
    ],
    ids=["silent", "gone", "version"],
)
def test_what_the_cluster_lacks_keeps_a_module_from_its_first_install_and_removes_none(
    wanted: model.Module, lacking: str
) -> None:
    assert reason(wanted) == lacking
    assert reason(wanted, is_there=True) is None
    assert requirements.lacking(wanted, FACTS, {}, is_there=True) == lacking


def test_an_api_that_another_module_brings_is_told_with_its_source() -> None:
    wanted = module("web", 2, apis=["example.com/v9"])
    on, off = ModuleName("certs"), ModuleName("off")
    verdicts = {off: model.Verdict(off, False, "disabled by default")}
    facts = structs.replace(FACTS, coming={"example.com/v9": [wanted.name, off, on]})

    def of(facts: requirements.ClusterFacts, *, is_there: bool) -> str | None:
        found = requirements.unmet(wanted, facts, verdicts, is_there=is_there)
        return None if found is None else found.reason

    lacking = "requires the API example.com/v9, which the cluster does not serve"
    assert of(facts, is_there=False) == f"{lacking} yet: enabled once it does; module certs brings it"
    told = requirements.lacking(wanted, facts, verdicts, is_there=True)
    assert told == f"{lacking} yet: module certs brings it"
    nobody = structs.replace(FACTS, coming={"example.com/v9": [wanted.name, off]})
    assert of(nobody, is_there=False) == lacking


def test_a_switch_that_is_off_is_explained_in_one_sentence() -> None:
    off = ModuleName("c")
    verdicts = {off: model.Verdict(off, False, "disabled by cEnabled in ConfigMap a/b")}
    found = requirements.unmet(module("a", 1, ["c"]), FACTS, verdicts, is_there=False)
    assert found is not None
    assert found.reason == "requires c, which is disabled by cEnabled in ConfigMap a/b"


def test_the_whole_chain_of_disabled_modules_is_named() -> None:
    verdicts = {
        ModuleName("c"): model.Verdict(ModuleName("c"), False, "its switch is off"),
        ModuleName("d"): model.Verdict(ModuleName("d"), True, "its switch is on"),
    }
    for name, requires in (("b", ["c", "d"]), ("a", ["b"])):
        found = requirements.unmet(module(name, 1, requires), FACTS, verdicts, is_there=False)
        assert found is not None
        verdicts[ModuleName(name)] = found
    assert verdicts[ModuleName("a")].reason == (
        "requires b, which requires c, which is disabled: its switch is off"
    )


def test_a_summary_has_all_that_is_required() -> None:
    wanted = module("a", 1, ["b"], kubernetes=">=1.30", apis=["apps/v1"])
    assert requirements.summary(wanted) == ("Kubernetes >=1.30", "apps/v1", "b")


def test_a_long_chain_takes_no_more_than_its_length() -> None:
    def chain(length: int) -> list[model.Module]:
        return [module(f"m{n}", 1, [f"m{n - 1}"] if n else []) for n in range(length)]

    def read(given: list[model.Module]) -> None:
        assert requirements.problems(given) == {}
        ordered = requirements.in_run_order(reversed(given))
        assert [each.name for each in ordered] == [each.name for each in given]

    assert costs.is_linear(chain, read, 250)


def test_a_cycle_of_three_is_told_by_each_of_them_and_by_nobody_else() -> None:
    modules = [module("a", 1, ["b"]), module("b", 1, ["c"]), module("c", 1, ["a"]), module("d", 1, ["a"])]
    found = requirements.problems(modules)
    assert set(found) == {"a", "b", "c"}
    assert "b → c → a → b: modules cannot wait for each other" in "".join(found[ModuleName("b")])


def test_what_is_said_of_many_modules_stays_short() -> None:
    circle = [module(f"m{number}", 1, [f"m{(number + 1) % 300}"]) for number in range(300)]
    found = requirements.problems(circle)
    assert len(found) == 300
    assert "m0 → m1 → m2 → m3 → m4 → m5 → … (289 more) → m295 → " in "".join(found[ModuleName("m0")])
    unknown = requirements.problems([module("a", 1, [f"x{number}" for number in range(100)])])
    assert "".join(unknown[ModuleName("a")]).count("there is no module") == 5


def test_many_modules_that_require_all_before_them_are_no_mistake() -> None:
    modules = [module(f"m{number}", 1, [f"m{other}" for other in range(number)]) for number in range(300)]
    assert requirements.problems(modules) == {}


def test_the_reason_of_a_verdict_does_not_grow_with_the_ways_to_it() -> None:
    verdicts = {
        ModuleName(f"m0-{side}"): model.Verdict(ModuleName("m0"), False, "its switch is off") for side in "ab"
    }
    for level in range(1, 30):
        for side in "ab":
            both = [f"m{level - 1}-{other}" for other in "ab"]
            found = requirements.unmet(module(f"m{level}-{side}", 1, both), FACTS, verdicts, is_there=False)
            assert found is not None
            verdicts[ModuleName(f"m{level}-{side}")] = found
    reason = verdicts[ModuleName("m29-a")].reason
    assert len(reason) <= requirements.MAX_REASON
    assert reason.startswith("requires m28-a, which requires m27-a")
    assert reason.endswith("its switch is off")


def test_a_module_that_goes_with_one_that_it_requires_is_named() -> None:
    requires = module_config.Requirements(modules=(ModuleName("db"),))
    config = module_config.ModuleConfig(requires=requires)
    web, db = (
        model.Module(ModuleName("web"), 1, pathlib.Path("web"), config=config),
        model.Module(ModuleName("db"), 1, pathlib.Path("db")),
    )
    assert list(requirements.removed_with([db, web], {db.name, web.name}, 3)) == [
        "module web requires db, and is removed with it"
    ]
    assert list(requirements.removed_with([db, web], {web.name}, 3)) == []

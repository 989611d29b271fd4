"""Several modules bring definitions of one name: which is applied, when, and what is said."""

import pathlib

import pytest

from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.objects import crds
from addon_operator.modules import model
from tests.unit.engine.definitions import crd_bench

NAME = "a.example.com"


def text(*versions: str, more: str = "") -> str:
    served = ", ".join(f"{{name: {each}, served: true}}" for each in versions)
    return (crd_bench.CRD % "a").replace("{name: v1}", served) + more


class Bench(crd_bench.Bench):
    def __init__(self, root: pathlib.Path) -> None:
        super().__init__(root)
        self.root = root
        self.modules: dict[str, model.Module] = {}

    def brings(self, module: str, *versions: str, order: int = 10, more: str = "") -> None:
        path = self.root / module / "crds" / "a.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(*versions, more=more))
        self.modules[module] = model.Module(ModuleName(module), order, self.root / module)

    async def start(self, *first: str) -> list[str]:
        """Start once more with these modules first; which definitions were asked for."""
        self.definitions = self.restarted()
        return await self.converge(*first)

    async def converge(self, *first: str) -> list[str]:
        self.cluster.asked.clear()
        due = await self.definitions.due(list(self.modules.values()))
        for name in sorted(due, key=lambda name: (name not in first, name)):
            await self.definitions.ensure(self.modules[name])
        return self.cluster.asked


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


async def test_the_newer_counts_whoever_starts_first_and_a_restart_writes_nothing(bench: Bench) -> None:
    bench.brings("old", "v1")
    bench.brings("new", "v1", "v2")
    assert await bench.start("old") == [NAME], "once, not by each module"
    assert bench.cluster.served[NAME] == ("v1", "v2")
    for first in ("new", "old"):
        assert await bench.start(first) == []
        assert bench.cluster.left_out.keys() == {"old"}
    assert "is that of module new" in bench.cluster.left_out["old"]
    bench.modules = dict(reversed(bench.modules.items()))
    assert await bench.start("old") == []


async def test_the_module_whose_definition_does_not_count_warns_once(bench: Bench) -> None:
    bench.brings("old", "v1")
    bench.brings("new", "v1", "v2")
    await bench.start()
    bench.brings("old", "v1", more="# changed\n")
    await bench.converge()
    [warned] = bench.cluster.warned
    del bench.modules["old"]
    await bench.converge()
    assert bench.cluster.left_out["old"] == ""
    assert warned.startswith(f"module old: CustomResourceDefinition {NAME} is that of module new")


async def test_a_version_that_only_the_other_has_is_served_besides(bench: Bench) -> None:
    bench.brings("old", "v1alpha1")
    bench.brings("new", "v1")
    for first in ("old", "new"):
        bench.cluster.there.clear()
        await bench.start(first)
        assert bench.cluster.served[NAME] == ("v1", "v1alpha1")
        assert bench.cluster.there[NAME].module == "new"
    assert await bench.start("old") == []
    bench.brings("old", "v1alpha2")
    assert await bench.converge() == [NAME]
    assert bench.cluster.served[NAME] == ("v1", "v1alpha2")


async def test_a_version_stays_served_when_the_module_that_added_it_is_disabled(bench: Bench) -> None:
    bench.brings("old", "v1alpha1")
    bench.brings("new", "v1")
    await bench.start()
    gone = bench.modules.pop("old")
    before = bench.cluster.there[NAME]
    for again in (bench.converge, bench.start):
        assert await again() == [], "its objects have to be deleted by it"
        assert bench.cluster.there[NAME] == before
    bench.brings("new", "v1", "v2")
    assert await bench.converge() == [NAME]
    assert bench.cluster.served[NAME] == ("v1", "v2", "v1alpha1")
    assert await bench.start() == []
    bench.modules["old"] = gone
    assert await bench.start() == []
    bench.brings("old", "v1")
    assert await bench.converge() == [NAME]
    assert bench.cluster.served[NAME] == ("v1", "v2"), "it has no such version any more"


async def test_equal_definitions_are_nothing_to_speak_of(bench: Bench) -> None:
    bench.brings("one", "v1")
    bench.brings("two", "v1")
    assert await bench.start() == [NAME]
    assert await bench.start("two") == []
    assert (bench.cluster.left_out, bench.cluster.warned) == ({}, [])


async def test_what_a_disabled_module_left_is_taken_over_only_if_no_served_version_goes(
    bench: Bench,
) -> None:
    bench.brings("old", "v1")
    bench.brings("new", "v1", "v2")
    await bench.start()
    before = bench.cluster.there[NAME]
    gone = bench.modules.pop("new")
    for again in (bench.converge, bench.start):
        assert await again() == []
        assert bench.cluster.there[NAME] == before
        assert f"{NAME} stays as module new left it: it serves v2" in bench.cluster.left_out["old"]
    bench.brings("old", "v1", "v2", "v3")
    assert await bench.converge() == [NAME]
    assert bench.cluster.there[NAME].module == "old"
    assert bench.cluster.left_out["old"] == ""
    bench.modules["new"] = gone
    assert await bench.converge() == []
    assert "is that of module old" in bench.cluster.left_out["new"]


async def test_a_module_may_drop_versions_of_its_own(bench: Bench) -> None:
    bench.brings("web", "v1", "v2")
    await bench.start()
    bench.brings("web", "v2")
    assert await bench.start() == [NAME]
    assert bench.cluster.served[NAME] == ("v2",)


async def test_when_the_newer_becomes_older_the_other_counts_at_once(bench: Bench) -> None:
    bench.brings("one", "v1", "v2")
    bench.brings("two", "v1", "v2", "v3")
    await bench.start()
    bench.brings("two", "v1")
    assert await bench.converge() == [NAME]
    assert bench.cluster.there[NAME].module == "one"
    assert bench.cluster.left_out["one"] == ""
    assert "is that of module one" in bench.cluster.left_out["two"]


async def test_a_definition_of_a_chart_that_is_still_to_be_pulled_is_left_alone(bench: Bench) -> None:
    bench.brings("old", "v1", order=20)
    bench.brings("new", "v1", more="# another one\n")
    await bench.start()
    before = bench.cluster.there[NAME]
    path = bench.root / "new" / "crds" / "a.yaml"
    content = path.read_text()
    path.write_text("a: [")
    bench.definitions = bench.restarted()
    bench.cluster.asked.clear()
    await bench.definitions.due(list(bench.modules.values()))
    await bench.definitions.ensure(bench.modules["old"])
    assert (bench.cluster.asked, bench.cluster.there[NAME]) == ([], before)
    path.write_text(content)
    await bench.definitions.ensure(bench.modules["new"])
    assert bench.cluster.asked == []
    await bench.definitions.ensure(bench.modules["old"])
    assert "is that of module new" in bench.cluster.left_out["old"]


async def test_what_the_api_server_refuses_fails_its_own_module_and_the_next_one_counts(bench: Bench) -> None:
    bench.brings("old", "v1")
    bench.brings("new", "v2")
    bench.cluster.invalid = ("v2",)
    bench.definitions = bench.restarted()
    await bench.definitions.due(list(bench.modules.values()))
    await bench.definitions.ensure(bench.modules["old"])
    assert bench.cluster.served[NAME] == ("v1",)
    with pytest.raises(errors.ModuleError, match=r"module new: .*a\.yaml, document 1: .*not structural"):
        await bench.definitions.ensure(bench.modules["new"])
    assert bench.cluster.left_out == {}
    assert bench.cluster.served[NAME] == ("v1",)


async def test_versions_that_the_api_server_refuses_are_not_added(bench: Bench) -> None:
    bench.brings("old", "v1beta1")
    bench.brings("new", "v1")
    bench.cluster.invalid = ("v1beta1",)
    await bench.start("new")
    assert bench.cluster.served[NAME] == ("v1",)
    assert "the API server refuses this one" in bench.cluster.left_out["old"]
    assert any("its versions of" in warned and "not structural" in warned for warned in bench.cluster.warned)


async def test_a_definition_of_another_modules_templates_is_left_to_helm(bench: Bench) -> None:
    bench.brings("web", "v1")
    bench.modules["db"] = model.Module(ModuleName("db"), 1, bench.root / "db")
    bench.cluster.there[NAME] = crds.Applied("", "", "db")
    assert await bench.start() == []
    assert "is one of the objects of module db, and stays with Helm" in bench.cluster.left_out["web"]
    del bench.modules["db"]
    assert await bench.start() == [NAME]


async def test_definitions_that_an_older_operator_applied_get_their_module_once(bench: Bench) -> None:
    bench.brings("web", "v1")
    await bench.start()
    digest = bench.cluster.there[NAME].digest
    bench.cluster.there[NAME] = crds.Applied(digest)
    assert await bench.start() == [], "no other module has it"
    bench.brings("db", "v1", order=20, more="# another one\n")
    assert await bench.start() == [NAME]
    assert bench.cluster.there[NAME].module == "web"
    assert await bench.start() == []


async def test_a_refused_newer_definition_takes_no_version_away_that_its_module_uses(bench: Bench) -> None:
    bench.brings("old", "v1")
    bench.brings("new", "v1", "v2")
    await bench.start()
    bench.cluster.invalid = ("v3",)
    bench.brings("new", "v1", "v2", "v3")
    bench.definitions = bench.restarted()
    await bench.definitions.due(list(bench.modules.values()))
    await bench.definitions.ensure(bench.modules["old"])
    assert bench.cluster.served[NAME] == ("v1", "v2")
    assert "stays as module new left it: it serves v2" in bench.cluster.left_out["old"]


async def test_a_file_that_cannot_be_read_whole_fails_its_own_module_alone(bench: Bench) -> None:
    bench.brings("old", "v1")
    bench.brings("new", "v2", more="other:\n  schema:\n    a: [\n")
    bench.definitions = bench.restarted()
    await bench.definitions.due(list(bench.modules.values()))
    with pytest.raises(errors.ModuleError, match=r"module new: .*a\.yaml"):
        await bench.definitions.ensure(bench.modules["new"])
    await bench.definitions.ensure(bench.modules["old"])
    assert bench.cluster.served[NAME] == ("v1",)


async def test_what_fails_otherwise_fails_the_module_whose_definition_counts(bench: Bench) -> None:
    bench.brings("old", "v1")
    bench.brings("new", "v1", "v2")
    await bench.start()
    bench.brings("new", "v1", "v2", "v3")
    bench.cluster.refuses = NAME
    bench.definitions = bench.restarted()
    await bench.definitions.due(list(bench.modules.values()))
    await bench.definitions.ensure(bench.modules["old"])
    with pytest.raises(errors.ModuleError, match=r"module new: .*no right"):
        await bench.definitions.ensure(bench.modules["new"])
    bench.cluster.there.clear()
    bench.definitions = bench.restarted()
    await bench.definitions.due(list(bench.modules.values()))
    with pytest.raises(errors.ModuleError, match=r"module old: .*no right"):
        await bench.definitions.ensure(bench.modules["old"])

"""When the definitions of a module are applied, and what is told when they cannot be."""

import io
import json
import os
import pathlib
import tarfile

import pytest
import yaml
from msgspec import structs
from typing_extensions import override

from addon_operator.engine.definitions import module_crds
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config
from tests.unit.engine.definitions.crd_bench import CRD, Bench


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


async def test_all_definitions_below_crds_are_applied_in_the_order_of_their_files(bench: Bench) -> None:
    bench.write("b.yaml", CRD % "b")
    bench.write("a.yaml", CRD % "new1" + "---\n" + CRD % "a2")
    bench.write("more/c.yaml", CRD % "c")
    bench.write("doc-a.yaml", "no definition")
    bench.write(".git/x.yaml", "no definition")
    assert await bench.due()
    await bench.definitions.ensure(bench.module)
    assert bench.cluster.asked == [f"{name}.example.com" for name in ("new1", "a2", "b", "c")]
    assert bench.cluster.written == [("web", "new1.example.com")]


async def test_nothing_is_asked_again_until_a_file_changes(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.definitions.ensure(bench.module)
    assert not await bench.due()
    await bench.definitions.ensure(bench.module)
    assert len(bench.cluster.asked) == 1
    os.utime(bench.crds / "a.yaml", (1, 1))
    assert await bench.due()
    await bench.definitions.ensure(bench.module)
    assert len(bench.cluster.asked) == 1, "its text is what was applied"
    bench.write("a.yaml", CRD % "a" + "more: 1\n")
    await bench.definitions.ensure(bench.module)
    assert len(bench.cluster.asked) == 2


async def test_a_newly_enabled_module_gets_its_definitions_again(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.definitions.ensure(bench.module)
    assert await bench.definitions.due([]) == []
    assert await bench.due()


async def test_a_module_without_definitions_is_never_due(bench: Bench) -> None:
    assert not await bench.due()
    bench.crds.rmdir()
    assert not await bench.due()
    await bench.definitions.ensure(bench.module)
    assert bench.cluster.asked == []


async def test_removed_files_remove_nothing_and_leave_nothing_due(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.definitions.ensure(bench.module)
    (bench.crds / "a.yaml").unlink()
    assert await bench.due()
    await bench.definitions.ensure(bench.module)
    assert not await bench.due()
    assert len(bench.cluster.asked) == 1


async def test_a_refused_definition_is_reported_with_module_file_and_document_and_stays_due(
    bench: Bench,
) -> None:
    bench.write("a.yaml", CRD % "a")
    bench.cluster.refuses = "a.example.com"
    with pytest.raises(errors.ModuleError) as caught:
        await bench.definitions.ensure(bench.module)
    assert str(caught.value) == f"module web: {bench.crds}/a.yaml, document 1: no right"
    assert await bench.due()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: Service", "a.yaml, document 1: not a CustomResourceDefinition"),
        ("a: [", "invalid YAML"),
        ("\udcff", "is not UTF-8 text"),
    ],
    ids=["other kind", "broken", "binary"],
)
async def test_a_wrong_file_keeps_all_definitions_of_the_module_back(
    bench: Bench, text: str, told: str
) -> None:
    bench.write("b.yaml", CRD % "b")
    (bench.crds / "a.yaml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(errors.ModuleError, match="module web: ") as caught:
        await bench.definitions.ensure(bench.module)
    assert told in str(caught.value)
    assert bench.cluster.asked == []


async def test_of_two_files_with_one_definition_the_later_counts_and_that_is_said_once(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "b" + "# first\n")
    bench.write("b.yaml", CRD % "b" + "# second\n")
    await bench.definitions.ensure(bench.module)
    assert "# second" in bench.cluster.there["b.example.com"].digest
    assert bench.cluster.asked == ["b.example.com"]
    said = f"{bench.crds}/b.yaml: b.example.com is defined by {bench.crds}/a.yaml, too; this one counts"
    assert [said in warning for warning in bench.cluster.warned] == [True]
    bench.write("c.yaml", CRD % "c")
    await bench.definitions.ensure(bench.module)
    assert len(bench.cluster.warned) == 1


async def test_after_a_restart_one_list_tells_that_nothing_is_to_be_done(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a" + "---\n" + CRD % "b")
    bench.write("c.yaml", CRD % "c")
    await bench.definitions.ensure(bench.module)
    bench.cluster.asked.clear()
    again = bench.restarted()
    bench.cluster.lists = 0
    other = model.Module(ModuleName("api"), 1, bench.module.path)
    for module in (bench.module, other):
        await again.ensure(module)
    assert (bench.cluster.asked, bench.cluster.lists) == ([], 1)
    assert await again.due([bench.module]) == []


async def test_after_a_restart_only_what_changed_meanwhile_is_applied(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    bench.write("b.yaml", CRD % "b")
    await bench.definitions.ensure(bench.module)
    bench.cluster.asked.clear()
    del bench.cluster.there["b.example.com"]
    await bench.restarted().ensure(bench.module)
    assert bench.cluster.asked == ["b.example.com"]


async def test_a_deleted_definition_is_restored_for_the_modules_that_have_it(bench: Bench) -> None:
    heard = Heard()
    bench.definitions.subscribe(heard)
    bench.write("a.yaml", CRD % "a")
    bench.write("b.yaml", CRD % "b")
    await bench.due()
    await bench.definitions.ensure(bench.module)
    assert heard.was_told
    assert bench.definitions.owners("a.example.com") == [bench.module]
    assert bench.definitions.owners("x.example.com") == []
    bench.cluster.asked.clear()
    del bench.cluster.there["a.example.com"]
    await bench.definitions.restore(bench.module)
    assert bench.cluster.asked == ["a.example.com"]
    await bench.definitions.due([])
    assert bench.definitions.owners("a.example.com") == [], "a disabled module defines nothing"


class Heard(module_crds.DefinitionListener):
    """Remembers that there are definitions."""

    was_told = False

    @override
    def defined(self) -> None:
        self.was_told = True

    @override
    def applied(self) -> None:
        """Kinds come with it."""


def chart(bench: Bench, path: str, about: str, crd: str = "", values: str = "") -> None:
    directory = bench.module.path / path
    (directory / "crds").mkdir(parents=True, exist_ok=True)
    (directory / "Chart.yaml").write_text(about)
    (directory / "values.yaml").write_text(values)
    if crd:
        (directory / "crds" / "crd.yml").write_text(CRD % crd)


async def applied_by(bench: Bench) -> list[str]:
    bench.cluster.asked.clear()
    await bench.definitions.ensure(bench.module)
    return [name.removesuffix(".example.com") for name in bench.cluster.asked]


async def test_definitions_of_charts_within_the_chart_are_applied_when_these_are_enabled(
    bench: Bench,
) -> None:
    dependencies = """\
name: web
dependencies:
- {name: always}
- {name: quiet, condition: "nothing.enabled,quiet.enabled"}
- {name: given, condition: web.given, alias: other}
- {name: deep}
- {name: tagged, tags: [extra]}
"""
    (bench.module.path / "Chart.yaml").write_text(dependencies)
    chart(bench, "charts/always", "name: always", "always")
    chart(bench, "charts/unlisted", "name: unlisted", "unlisted", values="a: 1\na: 2\n")
    chart(bench, "charts/quiet", "name: quiet", "quiet", values="enabled: false")
    chart(bench, "charts/given", "name: given", "given")
    chart(bench, "charts/tagged", "name: tagged", "tagged")
    about = "name: deep\ndependencies: [{name: inner, condition: inner.enabled}]"
    chart(bench, "charts/deep", about, "deep", values="inner: {enabled: true}")
    chart(bench, "charts/deep/charts/inner", "name: inner", "inner")
    bench.values = {"web": {"given": False}, "tags": {"extra": False}}
    assert sorted(await applied_by(bench)) == ["always", "deep", "inner", "unlisted"]
    bench.values = {"web": {"given": True}, "quiet": {"enabled": True}, "deep": {"inner": {"enabled": False}}}
    assert await bench.due()
    assert sorted(await applied_by(bench)) == ["given", "quiet", "tagged"]
    assert not await bench.due()


async def test_definitions_of_packed_charts_are_applied_and_those_of_the_module_win(bench: Bench) -> None:
    (bench.module.path / "Chart.yaml").write_text("name: web")
    (bench.module.path / "charts").mkdir()
    with tarfile.open(bench.module.path / "charts" / "dep-1.0.0.tgz", "w:gz") as packed:
        for name, text in {
            "dep/Chart.yaml": "name: dep",
            "dep/crds/a.yaml": CRD % "packed",
            "dep/crds/_left-out.yaml": "no definition",
            "dep/charts/inner/Chart.yaml": "name: inner",
            "dep/charts/inner/crds/b.yaml": CRD % "inner",
            "../escape/crds/c.yaml": CRD % "escape",
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text.encode()))
    bench.write("own.yaml", CRD % "packed" + "# own\n")
    assert await applied_by(bench) == ["packed", "inner"]
    assert "own" in bench.cluster.there["packed.example.com"].digest


async def test_a_chart_within_the_chart_that_cannot_be_read_is_an_error_of_the_module(bench: Bench) -> None:
    (bench.module.path / "Chart.yaml").write_text("name: web")
    (bench.module.path / "charts").mkdir()
    (bench.module.path / "charts" / "broken-1.tgz").write_bytes(b"no archive")
    with pytest.raises(errors.ModuleError, match="cannot read the charts"):
        await bench.definitions.ensure(bench.module)


async def test_a_file_that_is_put_back_soon_is_applied_again(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.definitions.ensure(bench.module)
    again = bench.restarted()
    await again.ensure(bench.module)
    for text in (CRD % "a" + "more: 1\n", CRD % "a"):
        bench.cluster.asked.clear()
        bench.write("a.yaml", text)
        await again.ensure(bench.module)
        assert bench.cluster.asked == ["a.example.com"]


async def test_files_that_a_stock_chart_ignores_do_not_count_as_definitions(bench: Bench) -> None:
    chart(bench, "chart/", "name: upstream")
    crds = bench.module.path / "chart" / "crds"
    (crds / "kustomization.yaml").write_text("kind: Kustomization")
    (crds / "things.yaml").write_text(CRD % "things")
    (crds.parent / ".helmignore").write_text("# for kustomize\ncrds/kustomization.yaml\n")
    bench.module = structs.replace(
        bench.module, stock=model.StockChart(bench.module.path / "chart", module_config.ValuesScope.ROOT)
    )
    assert await applied_by(bench) == ["things"]


async def test_what_a_chart_has_beside_its_definitions_is_created_and_a_list_is_its_items(
    bench: Bench,
) -> None:
    chart(bench, "chart/", "name: upstream")
    crds = bench.module.path / "chart" / "crds"
    policy = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy}\n"
    (crds / "things.yaml").write_text(f"{CRD % 'things'}---\n{policy}---\n# nothing\n")
    (crds / "listed.json").write_text(
        json.dumps({"kind": "List", "items": [yaml.safe_load(CRD % "listed"), yaml.safe_load(policy)]})
    )
    bench.module = structs.replace(
        bench.module, stock=model.StockChart(bench.module.path / "chart", module_config.ValuesScope.ROOT)
    )
    assert await applied_by(bench) == ["listed", "things"]
    assert bench.beside == [(bench.module.name, "ConfigMap")] * 2


async def test_a_list_in_the_definitions_of_a_module_is_an_error(bench: Bench) -> None:
    bench.write("a.yaml", "kind: List\nitems: []\n")
    with pytest.raises(errors.ModuleError, match="not a CustomResourceDefinition but List"):
        await bench.definitions.ensure(bench.module)
    assert bench.beside == []

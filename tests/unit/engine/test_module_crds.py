"""When the definitions of a module are applied, and what is told when they cannot be."""

import os
import pathlib

import pytest

from addon_operator.engine import module_crds
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import crd_files, model

WEB = ModuleName("web")
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.example.com}
spec: {group: example.com, versions: [{name: v1}]}
"""


class Cluster:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.applied: list[tuple[str, str]] = []
        self.refuses = ""

    async def ensure(self, crd: crd_files.Crd) -> bool:
        self.asked.append(crd.name)
        if crd.name == self.refuses:
            raise errors.AddonOperatorError("no right")
        return crd.name.startswith("new")

    def crd_applied(self, module: ModuleName, crd: str) -> None:
        self.applied.append((module, crd))


class Bench:
    def __init__(self, root: pathlib.Path) -> None:
        self.crds = root / "web" / "crds"
        self.crds.mkdir(parents=True)
        self.module = model.Module(WEB, 1, root / "web")
        self.cluster = Cluster()
        self.definitions = module_crds.ModuleCrds(self.cluster, self.cluster, ("doc-", "_"))

    def write(self, name: str, text: str) -> None:
        path = self.crds / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def due(self) -> bool:
        return self.definitions.due([self.module]) == [WEB]


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


async def test_all_definitions_below_crds_are_applied_in_the_order_of_their_files(bench: Bench) -> None:
    bench.write("b.yaml", CRD % "b")
    bench.write("a.yaml", CRD % "new1" + "---\n" + CRD % "a2")
    bench.write("more/c.yaml", CRD % "c")
    bench.write("doc-a.yaml", "no definition")
    bench.write(".git/x.yaml", "no definition")
    assert bench.due()
    await bench.definitions.ensure(bench.module)
    assert bench.cluster.asked == [f"{name}.example.com" for name in ("new1", "a2", "b", "c")]
    assert bench.cluster.applied == [("web", "new1.example.com")]


async def test_nothing_is_asked_again_until_a_file_changes(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.definitions.ensure(bench.module)
    assert not bench.due()
    await bench.definitions.ensure(bench.module)
    assert len(bench.cluster.asked) == 1
    os.utime(bench.crds / "a.yaml", (1, 1))
    assert bench.due()
    await bench.definitions.ensure(bench.module)
    assert len(bench.cluster.asked) == 2


async def test_a_newly_enabled_module_gets_its_definitions_again(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.definitions.ensure(bench.module)
    assert bench.definitions.due([]) == []
    assert bench.due()


async def test_a_module_without_definitions_is_never_due(bench: Bench) -> None:
    assert not bench.due()
    bench.crds.rmdir()
    assert not bench.due()
    await bench.definitions.ensure(bench.module)
    assert bench.cluster.asked == []


async def test_removed_files_remove_nothing_and_leave_nothing_due(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.definitions.ensure(bench.module)
    (bench.crds / "a.yaml").unlink()
    assert bench.due()
    await bench.definitions.ensure(bench.module)
    assert not bench.due()
    assert len(bench.cluster.asked) == 1


async def test_a_refused_definition_is_told_with_module_file_and_document_and_stays_due(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    bench.cluster.refuses = "a.example.com"
    with pytest.raises(errors.ModuleError) as caught:
        await bench.definitions.ensure(bench.module)
    assert str(caught.value) == f"module web: {bench.crds}/a.yaml, document 1: no right"
    assert bench.due()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: Service", "a.yaml, document 1: not a CustomResourceDefinition"),
        (CRD % "b", "b.yaml, document 1: b.example.com is defined by"),
        ("a: [", "invalid YAML"),
        ("\udcff", "is no UTF-8 text"),
    ],
    ids=["other kind", "twice", "broken", "binary"],
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

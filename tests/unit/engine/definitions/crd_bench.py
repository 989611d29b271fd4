"""A module whose definitions are applied to a cluster in memory."""

import pathlib
from collections.abc import Sequence

from typing_extensions import override

from addon_operator.engine import events
from addon_operator.engine.definitions import module_charts, module_crds
from addon_operator.kernel import errors, json_types
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import api_errors, paths
from addon_operator.kube.objects import crds
from addon_operator.loading import crd_sources
from addon_operator.modules import crd_files, model

WEB = ModuleName("web")
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.example.com}
spec: {group: example.com, versions: [{name: v1}]}
"""


class Cluster(crds.CrdInstaller):
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.written: list[tuple[str, str]] = []
        self.refuses = ""
        self.invalid: tuple[str, ...] = ()
        """Versions that the API server does not take."""
        self.left_out: dict[str, str] = {}
        self.there: dict[str, crds.Applied] = {}
        self.served: dict[str, tuple[str, ...]] = {}
        """By name."""
        self.lists = 0
        self.warned: list[str] = []

    @override
    async def ensure(
        self, crd: crd_files.Crd, note: crds.Applied | None = None, *, spares: bool = False
    ) -> bool:
        note = note or crds.Applied()
        served = tuple(api.rpartition("/")[2] for api in crd.apis)
        before = self.served.get(crd.name, ())
        stay = {each.split("/")[1] for each in note.added}.difference(served)
        served += tuple(version for version in before if version in stay)
        gone = tuple(version for version in before if version not in served)
        if spares and gone:
            raise crds.StillServedError(crd.name, gone)
        self.asked.append(crd.name)
        if crd.name == self.refuses:
            raise errors.AddonOperatorError("no right")
        if any(version in self.invalid for version in served):
            target = paths.Target("PATCH", "/apis/x")
            raise api_errors.Invalid(target, 422, "Invalid", "not structural")
        self.there[crd.name] = note
        self.served[crd.name] = served
        return crd.name.startswith("new")

    @override
    async def applied(self) -> dict[str, crds.Applied]:
        self.lists += 1
        return dict(self.there)

    @override
    def digest(self, text: str) -> str:
        return text.strip()

    def tell(self, event: events.Event) -> None:
        if isinstance(event, events.Warned):
            self.warned.append(event.text)
            return
        if isinstance(event, events.DefinitionsLeftOut):
            self.left_out[event.module] = event.text
            return
        assert isinstance(event, events.Noted)
        self.written.append((event.module, event.text.split()[1]))


class Charts(module_charts.ModuleCharts):
    """Every chart is there."""

    def __init__(self) -> None:
        """There is no directory."""

    @override
    async def ensure(self, module: model.Module) -> None:
        """Nothing is pulled."""


class Bench:
    def __init__(self, root: pathlib.Path) -> None:
        self.crds = root / "web" / "crds"
        self.crds.mkdir(parents=True)
        self.module = model.Module(WEB, 1, root / "web")
        self.cluster = Cluster()
        self.values: json_types.JsonObject = {}
        self.beside: list[tuple[ModuleName, str]] = []
        """Kinds of objects that lie beside definitions, and whose."""
        self.definitions = self.restarted()

    def restarted(self) -> module_crds.ModuleCrds:
        """As the next process has it."""
        return module_crds.ModuleCrds(
            self.cluster,
            self.cluster.tell,
            crd_sources.CrdSources(("doc-", "_"), lambda _: self.values),
            Charts(),
            self.create,
        )

    async def create(self, module: ModuleName, objects: Sequence[json_types.JsonObject]) -> None:
        self.beside += [(module, str(each["kind"])) for each in objects]

    def write(self, name: str, text: str) -> None:
        path = self.crds / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    async def due(self) -> bool:
        return await self.definitions.due([self.module]) == [WEB]

"""Fakes that the engine's tests share: a clock that is moved by hand, a list of what was reported."""

import pathlib
from collections.abc import Awaitable, Callable, Collection, Sequence

from typing_extensions import override

from addon_operator.engine import intents, module_states, tasks
from addon_operator.engine.modules import module_windows
from addon_operator.helm import memory, places
from addon_operator.helm.releases import left_objects, live_objects
from addon_operator.hook_contract.outputs import object_operations
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.client import client
from addon_operator.kube.objects import object_patches
from addon_operator.modules import manifests
from tests.support import clocks, engine, unused


class CallTask(tasks.Task):
    """A task that calls something, with attributes as a test wants them."""

    def __init__(
        self,
        kind: tasks.TaskKind,
        call: Callable[[tasks.Task], Awaitable[None]],
        *,
        owner: str = tasks.GLOBAL_OWNER,
        hook: str = "",
        binding: str = "",
        activation: str = "",
        **attributes: object,
    ) -> None:
        super().__init__(owner=owner, hook=hook, binding=binding, activation=activation)
        self.kind = kind
        self._call = call
        for name, value in attributes.items():
            if not hasattr(self, name):
                raise TypeError(f"a task has no attribute {name}")
            setattr(self, name, value)

    @override
    async def run(self) -> None:
        await self._call(self)


NOWHERE = pathlib.Path("/nowhere")


Heard = engine.Heard


class Inbox(intents.Inbox):
    """Remembers what was put into it."""

    def __init__(self) -> None:
        super().__init__()
        self.put_in: list[intents.Intent] = []

    @override
    def put_nowait(self, item: intents.Intent) -> None:
        self.put_in.append(item)
        super().put_nowait(item)

    @property
    def runs(self) -> list[intents.RunWanted]:
        return [intent for intent in self.put_in if isinstance(intent, intents.RunWanted)]


def ignore(event: object) -> None:
    """Nobody listens."""


class Objects(object_patches.ObjectPatcher):
    """Instead of a cluster: takes operations in, or refuses them."""

    def __init__(self) -> None:
        self.applied: list[tuple[object_operations.Operation, ...]] = []
        self.owners: list[str] = []
        self.error: errors.AddonOperatorError | None = None

    @override
    async def apply(
        self, operations: Sequence[object_operations.Operation], writer: object_patches.HookWriter
    ) -> None:
        if self.error is not None:
            raise self.error
        self.applied.append(tuple(operations))
        self.owners.append(writer.owner)


def always_open() -> module_windows.ModuleWindows:
    """Windows of modules that have none: nothing waits."""
    return module_windows.ModuleWindows(
        module_states.ModuleStates([], ignore), Inbox(), ignore, clocks.Clock()
    )


class Live(live_objects.LiveObjects):
    """The metadata of objects, by their names; what is not among these is gone."""

    def __init__(self) -> None:
        self.there: dict[str, manifests.Object] = {}
        self.looks = 0

    @override
    async def metadata(
        self, module: ModuleName, resources: Collection[manifests.ManifestResource]
    ) -> dict[manifests.ManifestResource, manifests.Object | None]:
        self.looks += 1
        return {each: self.there.get(each.name) for each in resources}


class Left(left_objects.LeftObjects):
    """What releases left, in a memory that nothing was saved in."""

    def __init__(self, time: clocks.Clock | None = None) -> None:
        self.live = Live()
        self.places = places.ReleaseLocations("addons")
        self.memory = memory.Memory(unused.unused(client.KubeClient), "addons", "addon-operator", ignore)
        super().__init__(self.memory, self.live, self.places, time or clocks.Clock())

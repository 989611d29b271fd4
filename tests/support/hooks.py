"""The one builder of hooks: functions (:class:`Hook`), texts (:func:`script`), models (:func:`known`)."""

import asyncio
import inspect
import json
import pathlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from typing_extensions import override

from addon_operator.engine import state
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import names
from tests.support import clocks, programs

NOWHERE: Final = pathlib.Path("/nowhere")


class Run:
    """One run of a hook: what it is given, and where it writes."""

    def __init__(self, call: programs.Call) -> None:
        self.call = call
        self.contexts: list[dict[str, Any]] = self._read("BINDING_CONTEXT_PATH")
        self.values: dict[str, Any] = self._read("VALUES_PATH")
        self.config_values: dict[str, Any] = self._read("CONFIG_VALUES_PATH")

    @override
    def __str__(self) -> str:
        """In brief: ``beforeHelm``, ``pods Synchronization a b, pods Added c``."""
        return ", ".join(map(_brief, self.contexts))

    def patch_values(self, *operations: Mapping[str, Any]) -> None:
        self._write("VALUES_JSON_PATCH_PATH", operations)

    def patch_config_values(self, *operations: Mapping[str, Any]) -> None:
        self._write("CONFIG_VALUES_JSON_PATCH_PATH", operations)

    def set_values(self, **sections: Any) -> None:  # noqa: ANN401 - JSON
        """Set keys of sections in the values, as ``set_values(web={"size": 1})``."""
        self.patch_values(*_setting(sections))

    def operate(self, *operations: Mapping[str, Any]) -> None:
        """Write operations on objects."""
        self._write("KUBERNETES_PATCH_PATH", operations)

    def measure(self, *metrics: Mapping[str, Any]) -> None:
        self._write("METRICS_PATH", metrics)

    def write(self, variable: str, text: str) -> None:
        """Write any text to the file that a variable names."""
        with self.call.file(variable).open("a") as file:
            file.write(text)

    def _write(self, variable: str, documents: tuple[Mapping[str, Any], ...]) -> None:
        self.write(variable, "".join(f"{json.dumps(document)}\n" for document in documents))

    def _read(self, variable: str) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.call.file(variable).read_bytes() or b"null")


def _setting(sections: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"op": "add", "path": f"/{section}/{key}", "value": value}
        for section, keys in sections.items()
        for key, value in keys.items()
    ]


def _brief(context: Mapping[str, Any]) -> str:
    words = [context["binding"], context.get("watchEvent") or context.get("type", "")]
    listed = context.get("objects", [context] if "object" in context else [])
    return " ".join([*words, *(item["object"]["metadata"]["name"] for item in listed)]).strip()


def _document(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration: its ``configVersion`` is ``v1`` unless it says something else; ``None`` for none."""
    document = {"configVersion": "v1", **config}
    return {key: value for key, value in document.items() if value is not None}


Act = Callable[[Run], Awaitable[None] | None]


class Hook:
    """A hook that is a function: it prints its configuration, and takes down its runs."""

    def __init__(
        self, config: Mapping[str, Any], act: Act | None = None, tell: Callable[[str], object] = str
    ) -> None:
        """``tell`` is told of each run in brief."""
        self._tell = tell
        self.config = _document(config)
        self.act = act
        """What a run does."""
        self.runs: list[Run] = []
        self.fails = 0
        """How many of the next runs fail."""
        self.gate: asyncio.Event | None = None
        """What each run waits for."""

    async def release(self) -> None:
        """Let the runs go on that wait, and all that follows happen."""
        assert self.gate is not None
        self.gate.set()
        self.gate = None
        await clocks.settle()

    def hold(self) -> None:
        """Let all further runs wait until they are released."""
        self.gate = asyncio.Event()

    @property
    def told(self) -> list[str]:
        """All runs in brief; forgets them."""
        found = [str(run) for run in self.runs]
        self.runs.clear()
        return found

    async def __call__(self, call: programs.Call) -> None:
        """See :data:`.Program`."""
        if call.arguments == ["--config"]:
            call.stdout.append(json.dumps(self.config))
            return
        run = Run(call)
        self.runs.append(run)
        self._tell(str(run))
        if self.gate is not None:
            await self.gate.wait()
        if self.act is not None:
            acting = self.act(run)
            if inspect.isawaitable(acting):
                await acting
        if self.fails > 0:
            self.fails -= 1
            raise programs.ProgramError("it fails as it was told")


def script(config: Mapping[str, Any], body: str = "") -> str:
    """The text of a hook that bash runs: it prints its configuration, or does what ``body`` says."""
    text = json.dumps(_document(config))
    return f"#!/bin/bash\nif [[ $1 == --config ]]; then cat <<'END'\n{text}\nEND\nexit; fi\n{body}\n"


def known(name: str, config: Mapping[str, Any], module: str | None = None) -> state.Hook:
    """A hook as the engine knows it, of a module or a global one, without a file."""
    text = json.dumps(_document(config))
    kind = hook_config.HookKind.GLOBAL if module is None else hook_config.HookKind.MODULE
    owner = None if module is None else names.ModuleName(module)
    return state.Hook(name, NOWHERE / name, hook_config.parse(text, kind, name), owner)

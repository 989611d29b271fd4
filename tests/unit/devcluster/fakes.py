"""Hand-written stand-ins that the tests of the local control plane share."""

import contextlib
import pathlib
from collections.abc import Iterator

from typing_extensions import override

from addon_operator.devcluster import reporters
from addon_operator.devcluster.binaries import components
from addon_operator.kernel import clock

GO_MOD = """\
// Pins of some tool.
module devcluster/tool

go 1.26.0

godebug default=go1.26

tool example.com/tool/cmd/tool

require (
\texample.com/helper v0.4.1-0.20260101000000-0123456789ab // indirect
\texample.com/tool v1.2.3 // indirect
\tk8s.io/client-go v0.36.3 // indirect
)

replace (
\texample.com/other => example.com/other v0.9.9
)
"""
MODULE = "example.com/tool"


class Recorder(reporters.Reporter):
    """A reporter that remembers what was said and counted."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.phases: list[tuple[str, str, int | None]] = []
        self.counted: list[int] = []
        self.described: list[str] = []

    @override
    def say(self, text: str) -> None:
        self.said.append(text)

    @contextlib.contextmanager
    @override
    def phase(
        self, subject: str, activity: str, unit: str, total: int | None = None
    ) -> Iterator[reporters.Phase]:
        self.phases.append((subject, activity, total))
        self.counted.append(0)
        yield Counted(self)


class Counted(reporters.Phase):
    """A phase whose steps are remembered."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(lambda *_: None, clock.SystemClock())
        self._recorder = recorder

    @override
    def advance(self, count: int = 1) -> None:
        super().advance(count)
        self._recorder.counted[-1] = self.done

    @override
    def describe(self, activity: str) -> None:
        super().describe(activity)
        self._recorder.described.append(activity)

    @override
    def expect(self, activity: str, unit: str, total: int | None) -> None:
        super().expect(activity, unit, total)
        self._recorder.phases.append((unit, activity, total))
        self._recorder.counted.append(0)


class Clock:
    """A clock that goes on only when told to, or when someone sleeps."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def write_pins(folder: pathlib.Path, go_mod: str = GO_MOD, go_sum: str = "sums\n") -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text(go_mod)
    (folder / "go.sum").write_text(go_sum)
    return folder


def stamps(pin: components.Pin) -> dict[str, str]:
    return {"example.com/tool.version": pin.version}


def component(
    *names: str, releases: components.Releases | None = None, name: str = "tool"
) -> components.Component:
    binaries = tuple(
        components.Binary(one, f"{MODULE}/cmd/{one}", MODULE, releases) for one in names or ("tool",)
    )
    return components.Component(name, MODULE, binaries, stamps)


def write_program(path: pathlib.Path, script: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path

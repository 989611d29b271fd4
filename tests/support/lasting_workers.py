"""Processes that last: to start them for each test takes longer than what the test asks of them."""

from collections.abc import Iterator

import pytest
from typing_extensions import override

from addon_operator.inspection import values_worker
from addon_operator.process.children import launcher


class LastingWorker(values_worker.ValuesWorker):
    """Goes on after its block, for the next one."""

    @override
    def __exit__(self, *_: object) -> None:
        pass


class LastingLauncher(launcher.Launcher):
    """Goes on after its block, for the next one."""

    @override
    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def _values_workers() -> Iterator[dict[float, LastingWorker]]:
    workers: dict[float, LastingWorker] = {}
    yield workers
    for worker in workers.values():
        worker.close()


@pytest.fixture(scope="session")
def _starter() -> Iterator[LastingLauncher]:
    starter = LastingLauncher()
    yield starter
    starter.close()


@pytest.fixture
def lasting_workers(
    _values_workers: dict[float, LastingWorker], _starter: LastingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have commands use the same launcher and values worker all along; another bound of time has its own."""

    def worker(seconds: float = values_worker.SECONDS) -> LastingWorker:
        return _values_workers.setdefault(seconds, LastingWorker(seconds))

    monkeypatch.setattr(values_worker, "ValuesWorker", worker)
    monkeypatch.setattr(launcher, "Launcher", lambda: _starter)

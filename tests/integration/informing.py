"""Informers on a real control plane, and writers that keep a record of what they did."""

import asyncio
import contextlib
import dataclasses
import pathlib
import random
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from addon_operator.aio import absences, waiting
from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import informers, reflector
from addon_operator.process.jq import jq_workers
from tests.support import histories, listeners

PATIENCE = 60.0
RecordProperty: TypeAlias = Callable[[str, object], None]
"""Keeps a figure of a test in the JUnit report of the run."""


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """Informers, the client they use, and what they count."""

    kube: client.KubeClient
    informers: informers.Informers
    failures: listeners.Failures
    jq: jq_workers.JqWorkers


@contextlib.asynccontextmanager
async def world(
    kubeconfig: pathlib.Path,
    tuning: reflector.Tuning | None = None,
    time: waiting.Time | None = None,
    absence: float = absences.SECONDS,
) -> AsyncIterator[World]:
    access = auth.load_access(kubeconfig, None, None, {})
    failures, time = listeners.Failures(), time or waiting.SystemTime()
    async with client.KubeClient(access) as kube, jq_workers.JqWorkers() as jq:
        kinds = discovery.Catalog(kube, time, absence)
        made = informers.Informers(kube, kinds, time, failures.watch_failed, tuning)
        try:
            yield World(kube, made, failures, jq)
        finally:
            await made.close()


class Writer:
    """Creates, changes and deletes ConfigMaps of a namespace; nobody else writes them."""

    def __init__(self, kube: client.KubeClient, namespace: str, prefix: str, seed: int) -> None:
        self._kube = kube
        self._namespace = namespace
        self.prefix = prefix
        self._dice = random.Random(seed)
        self._serial = 0
        self.writes: list[histories.Write] = []
        self.state: dict[histories.Key, str] = {}

    async def write(self, times: int) -> None:
        """That many random writes, of which the API server confirms each."""
        for _ in range(times):
            name = f"{self.prefix}{self._dice.randrange(4)}"
            if (self._namespace, name) in self.state and self._dice.randrange(4) == 0:
                await self._delete(name)
            else:
                await self._put(name)

    async def _put(self, name: str) -> None:
        self._serial += 1
        value = f"{self.prefix}{self._serial}"
        path = paths.of("v1", "configmaps", namespace=self._namespace, name=name)
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"mine": "yes"}},
            "data": {"value": value},
        }
        await self._kube.apply(path, body, force=True)
        self._note(name, value)

    async def _delete(self, name: str) -> None:
        path = paths.of("v1", "configmaps", namespace=self._namespace, name=name)
        with contextlib.suppress(api_errors.NotFound):
            await self._kube.delete(path)
        self._note(name, None)

    def _note(self, name: str, value: str | None) -> None:
        key = (self._namespace, name)
        self.writes.append(histories.Write(key, value))
        if value is None:
            self.state.pop(key, None)
        else:
            self.state[key] = value


async def storm(writer: Writer, stop: asyncio.Event) -> None:
    """Write until told to stop, whatever the API server says to it; a write without an answer is repeated."""
    while not stop.is_set():
        try:
            await writer.write(1)
        except api_errors.KubernetesError:
            await asyncio.sleep(0.05)

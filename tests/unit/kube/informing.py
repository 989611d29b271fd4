"""Informers on a fake API server, for the tests of this directory."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any

import jq as libjq  # type: ignore[import-not-found]  # an extension module without stubs
from typing_extensions import override

from addon_operator.hook_contract import jq_programs
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import (
    informers,
    object_selections,
    projections,
    reflector,
)
from addon_operator.kube.informers.informers import Subscription
from tests.support import api_server, listeners

CONFIG_MAPS = object_selections.ObjectSelection("ConfigMap", "v1")


class JqHere:
    """Runs jq in this process: tests of informers need no worker."""

    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        compiled = libjq.compile(f"(\n{program}\n) | tojson")
        answers: list[bytes | jq_programs.JqError] = []
        for document in documents:
            try:
                results = compiled.input_text(document.decode()).all()
            except ValueError as error:
                answers.append(jq_programs.error_of(str(error)))
            else:
                answers.append(f"[{','.join(results)}]".encode())
        return answers


def jq(program: str, *, keep_full: bool = False) -> projections.JqFiltered:
    return projections.JqFiltered(program, keep_full, JqHere())


class Yielding(api_server.Pauses):
    """Lets others have a turn in each pause."""

    @override
    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await asyncio.sleep(0)


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """A server, informers on it, and what they count."""

    server: api_server.ApiServer
    informers: informers.Informers
    failures: listeners.Failures
    pauses: api_server.Pauses

    def put(
        self,
        name: str,
        namespace: str = "a",
        kind: str = "ConfigMap",
        **fields: Any,  # noqa: ANN401 - JSON
    ) -> dict[str, Any]:
        place = None if kind == "Namespace" else namespace
        return self.server.put(api_server.an_object(kind, name, place, **fields))

    def delete(self, name: str, namespace: str = "a", kind: str = "ConfigMap") -> None:
        self.server.delete(kind, name, namespace)

    def state(self) -> dict[tuple[str, str], dict[str, Any]]:
        """All ConfigMaps."""
        found = self.server.objects("ConfigMap")
        return {(body["metadata"]["namespace"], body["metadata"]["name"]): body for body in found}

    def subscribe(
        self,
        selection: object_selections.ObjectSelection = CONFIG_MAPS,
        projection: projections.Projection | None = None,
    ) -> tuple[Subscription, listeners.Recorder]:
        recorder = listeners.Recorder()
        chosen = projection or projections.FullObject()
        return self.informers.subscribe(selection, chosen, recorder), recorder

    async def synced(
        self,
        selection: object_selections.ObjectSelection = CONFIG_MAPS,
        projection: projections.Projection | None = None,
    ) -> tuple[Subscription, listeners.Recorder]:
        subscription, recorder = self.subscribe(selection, projection)
        await recorder.until_synced()
        # A stream that the server has not opened yet would miss what a test does with all of them.
        await self.server.until(lambda: len(self.server.streams) >= len(self.informers.watches))
        return subscription, recorder


@contextlib.asynccontextmanager
async def world(tuning: reflector.Tuning | None = None) -> AsyncIterator[World]:
    pauses = Yielding()
    server = api_server.ApiServer()
    async with api_server.client_of(server, pauses) as kube:
        opened = _world(server, kube, pauses, tuning)
        try:
            yield opened
        finally:
            await opened.informers.close()


def _world(
    server: api_server.ApiServer,
    kube: client.KubeClient,
    pauses: api_server.Pauses,
    tuning: reflector.Tuning | None,
) -> World:
    failures = listeners.Failures()
    made = informers.Informers(
        kube,
        discovery.Catalog(kube, pauses),
        pauses,
        failures.watch_failed,
        tuning or reflector.Tuning(silence=5.0),
    )
    return World(server, made, failures, pauses)

"""Runs the tests of a chart (``helm test``), and says what the pods that failed wrote last."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import yaml

from addon_operator.documents import yaml_loader
from addon_operator.helm import helm_errors, release_types, verbs
from addon_operator.helm.releases import release_planning
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import connection

_LINES: Final = 5
_MOST_PODS: Final = 3
_LONGEST: Final = 500
_HOOK: Final = "helm.sh/hook"


class ChartTests:
    """Tests one release; used once."""

    def __init__(
        self, planner: release_planning.ReleasePlanner, request: release_types.ReleaseRequest
    ) -> None:
        self._planner = planner
        self._request = request

    async def run(self) -> None:
        """Run them; a chart without tests has passed.

        Raises :class:`.HelmError` when one fails.
        """
        record = await self._planner.records.read(self._request.module)
        if record is not None:
            # Helm runs what the record lists.
            await self._planner.records.check_labels(self._request.module)
            try:
                await self._planner.records.content(record)
            except helm_errors.ForeignRecordError as error:
                raise helm_errors.HelmError(
                    self._request.module, f"the chart's tests do not run: {error}"
                ) from None
        pods = await self._pods()
        if pods is not None and not pods:
            return
        try:
            await verbs.test(self._planner.helm, self._request.call, self._planner.options.timeout)
        except helm_errors.HelmError as error:
            told = await self._last_lines(pods or ())
            raise helm_errors.HelmError(
                self._request.module, f"the chart's tests failed: {error.message}{told}"
            ) from None

    async def _pods(self) -> tuple[str, ...] | None:
        """Return the names of the pods that test; ``None`` if other objects do, or it is not known."""
        record = await self._planner.records.get(self._request.module)
        try:
            content = None if record is None else await self._planner.records.content(record)
        except helm_errors.ReleaseRecordError:
            return None
        hooks = () if content is None else content.hooks
        tests = await asyncio.to_thread(lambda: [each for text in hooks for each in _tests(text)])
        return tuple(str(each["metadata"]["name"]) for each in tests if each.get("kind") == "Pod") or (
            None if tests else ()
        )

    async def _last_lines(self, pods: tuple[str, ...] | list[str]) -> str:
        namespace = self._planner.helm.places.of(self._request.module).namespace
        told = ""
        for pod in pods[:_MOST_PODS]:
            path = paths.of("v1", "pods", namespace=namespace, name=pod) + "/log"
            try:
                answer = await self._planner.records.kube.request(
                    connection.Request("GET", path, {"tailLines": str(_LINES)})
                )
            except api_errors.KubernetesError:
                continue
            lines = " | ".join(answer.body.decode("utf-8", "replace").split("\n")).strip(" |")
            if lines:
                told += f"; pod {pod} wrote last: {self._request.redact(lines[-_LONGEST:])}"
        return told


def _tests(text: str) -> Iterator[dict[str, Any]]:
    try:
        found = list(yaml.load_all(text, Loader=yaml_loader.Loader))
    except yaml.YAMLError:
        return
    for each in found:
        metadata = each.get("metadata") if isinstance(each, dict) else None
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        events = str((annotations or {}).get(_HOOK) or "").split(",")
        if any(event.strip() in ("test", "test-success") for event in events):
            yield each

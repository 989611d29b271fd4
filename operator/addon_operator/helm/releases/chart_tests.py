"""Runs the tests of a chart (``helm test``), and says what the pods that failed wrote last."""

import asyncio
from collections.abc import Iterator
from typing import Any

import yaml

from addon_operator.documents import manifest_diff, yaml_loader
from addon_operator.helm import helm_errors, release_types, verbs
from addon_operator.helm.releases import hook_objects, release_planning


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
            await self._planner.records.lists.check_labels(self._request.module)
            try:
                await self._planner.records.content(record)
            except helm_errors.ForeignRecordError as error:
                raise helm_errors.HelmError(
                    self._request.module, f"the chart's tests do not run: {error}"
                ) from None
        tests = await self._tests()
        if tests is not None and not tests:
            return
        live, module = self._planner.live, self._request.module
        # Else their names are taken, and no test ever succeeds again.
        await hook_objects.clear(live, module, tests or ())
        try:
            await verbs.test(self._planner.helm, self._request.call, self._planner.options.timeout)
        except helm_errors.HelmError as error:
            told = await hook_objects.last_lines(live, module, tests or (), self._request.redact)
            raise helm_errors.HelmError(module, f"the chart's tests failed: {error.message}{told}") from None

    async def _tests(self) -> tuple[str, ...] | None:
        """Return the manifests of the tests; ``None`` if these are not known."""
        record = await self._planner.records.get(self._request.module)
        try:
            content = None if record is None else await self._planner.records.content(record)
        except helm_errors.ReleaseRecordError:
            return None
        hooks = () if content is None else content.hooks
        return await asyncio.to_thread(lambda: tuple(text for text in hooks if any(_tests(text))))


def _tests(text: str) -> Iterator[dict[str, Any]]:
    try:
        found = list(yaml_loader.load_all(text))
    except yaml.YAMLError:
        return
    for each in found:
        metadata = each.get("metadata") if isinstance(each, dict) else None
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        events = str((annotations or {}).get(manifest_diff.HOOK) or "").split(",")
        if any(event.strip() in ("test", "test-success") for event in events):
            yield each

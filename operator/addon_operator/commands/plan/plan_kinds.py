"""Whether the API server serves the kinds of what a plan adds: Helm finds out when it is at it."""

import asyncio
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from addon_operator.commands.plan import plan_presence
from addon_operator.documents import manifest_diff
from addon_operator.kube.client import api_errors
from addon_operator.kube.discovery import discovery

_ADDED: Final = manifest_diff.ChangeKind.ADDED
_CRD: Final = "CustomResourceDefinition"


class Kinds:
    """Looks kinds up."""

    def __init__(self, catalog: plan_presence.Kinds, note: Callable[[str], None]) -> None:
        self._catalog = catalog
        self._note = note

    async def refused(
        self, changes: Iterable[manifest_diff.Change], definitions: Sequence[pathlib.Path]
    ) -> str | None:
        """Why Helm would not take the objects that are added; ``None`` if nothing is known against them.

        A kind that is served in no version may come with something else: unless a file below
        ``definitions``, or the manifest itself, may define it, that is noted.
        """
        added = [change.key for change in changes if change.kind is _ADDED and change.key.api_version]
        defines = any(key.kind == _CRD for key in added)
        for api_version, kind in dict.fromkeys((key.api_version, key.kind) for key in added):
            try:
                await self._catalog.find(kind, api_version)
            except discovery.NoSuchKind as error:
                if error.versions:
                    return str(error)
                if not defines and not await asyncio.to_thread(_is_defined, kind, definitions):
                    self._note(f"{error} It has to be there before it is used")
            except api_errors.KubernetesError:
                return None
        return None


def _is_defined(kind: str, definitions: Sequence[pathlib.Path]) -> bool:
    files = (path for directory in definitions for path in directory.rglob("*.y*ml"))
    return any(f"kind: {kind}" in path.read_text(errors="replace") for path in files if path.is_file())

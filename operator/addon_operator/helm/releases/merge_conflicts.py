"""Why an upgrade fails over what others wrote: Helm keeps it, and it does not go with what the chart says."""

import asyncio
import functools
import json
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from addon_operator.documents import json_pointers
from addon_operator.helm import helm_errors, messages
from addon_operator.helm.releases import live_objects
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.modules import manifests
from addon_operator.modules.drift import corrections, field_drift, others_fields

_MOST: Final = 3
"""How many objects, and fields of each, are told."""
_IMMUTABLE: Final = ("immutable",)
"""Of Secrets and ConfigMaps."""


async def explained(
    error: helm_errors.HelmError, live: live_objects.LiveObjects, manifest: str, description: str
) -> helm_errors.HelmError:
    """Return the error with what others wrote that is in its way, and the command that removes it.

    ``manifest`` is what Helm applied, and ``description`` what it said then. Nothing is added if nothing is
    known.
    """
    told: list[str] = []
    for name, said in messages.refused_changes(description)[:_MOST]:
        for resource, body in await asyncio.to_thread(_find, manifest, name):
            told.append(await _of_object(names.ModuleName(error.module), live, resource, body, said))
    cause = "; ".join(filter(None, told))
    return error.because(cause) if cause else error


def _find(
    manifest: str, name: messages.ObjectName
) -> list[tuple[manifests.ManifestResource, manifests.Object]]:
    found = manifests.find_objects(manifest, lambda each: (each.kind, each.name) == (name.kind, name.name))
    return list(found)[:_MOST]


async def _of_object(
    module: names.ModuleName,
    live: live_objects.LiveObjects,
    resource: manifests.ManifestResource,
    body: manifests.Object,
    refusal: str,
) -> str:
    try:
        there, namespace = await live.get(module, resource)
    except api_errors.KubernetesError:
        return ""
    blamed = await asyncio.to_thread(lambda: others_fields.blamed(others_fields.beside(body, there), refusal))
    would_take = functools.partial(live.would_take, module, resource)
    return await told(resource, namespace, there, blamed, would_take)


async def told(
    resource: manifests.ManifestResource,
    namespace: str,
    live: manifests.Object,
    blamed: Sequence[field_drift.Difference],
    would_take: Callable[[list[dict[str, Any]]], Awaitable[bool]],
) -> str:
    """Say who put what beside an object's fields of the chart, and how to remove it; empty if nobody did.

    ``would_take`` asks whether the API server takes a JSON patch of it. No value is shown but the names of
    items.
    """
    if not blamed:
        return ""
    operations = _removal(live, blamed)
    return _told(resource, namespace, blamed, operations if await would_take(operations) else None)


def _removal(live: manifests.Object, blamed: Sequence[field_drift.Difference]) -> list[dict[str, Any]]:
    """Return the JSON patch that takes away what others added.

    Alone it may not do: it may leave a list or a probe without anything.
    """
    return [*corrections.named(live, blamed), *corrections.removals(blamed)]


def _told(
    resource: manifests.ManifestResource,
    namespace: str,
    blamed: Sequence[field_drift.Difference],
    operations: Sequence[Mapping[str, Any]] | None,
) -> str:
    """``operations`` remove it, if that is enough."""
    target = f"{resource.kind.lower()} {resource.name}"
    kubectl = f"kubectl -n {namespace}" if namespace else "kubectl"
    return (
        f"{resource.kind} {resource.name}: {_who_added(blamed)}, and the API server does not take that "
        f"together with what the chart says; {_remedy(kubectl, target, blamed, operations)}"
    )


def _who_added(blamed: Sequence[field_drift.Difference]) -> str:
    managers = ", ".join(dict.fromkeys(each.manager for each in blamed if each.manager)) or "somebody"
    places = [json_pointers.render(each.live_path) for each in blamed]
    more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
    return f"{managers} added {', '.join(places[:_MOST])}{more}"


def _remedy(
    kubectl: str,
    target: str,
    blamed: Sequence[field_drift.Difference],
    operations: Sequence[Mapping[str, Any]] | None,
) -> str:
    """Return the command that helps; ``operations`` remove what is in the way, if that is enough."""
    if operations is not None:
        patch = shlex.quote(json.dumps(operations, separators=(",", ":")))
        return f"remove it with: {kubectl} patch {target} --type=json -p {patch}"
    if any(each.live_path == _IMMUTABLE for each in blamed):
        return f"nobody can undo that: delete it with '{kubectl} delete {target}', and Helm creates it again"
    return f"make it as the chart says with '{kubectl} edit {target}'"

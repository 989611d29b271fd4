"""The objects of Helm's hooks and tests: what tries that failed left of them, and whether one gets nowhere.

What is left is removed, as its names are taken otherwise; nothing that runs, and nothing that may hold data.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors
from addon_operator.helm.releases import live_objects
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.discovery import discovery
from addon_operator.modules import keeping, manifests
from addon_operator.modules.health import pod_causes, resource_health

_JOB: Final = "Job"
_WORK: Final = (_JOB, "Pod")
_REMOVED: Final = frozenset(
    {*_WORK, "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
)
_FAILED: Final = re.compile(r"\b(?:pre|post)-(?:install|upgrade|rollback)\b")
"""In errors of Helm about hooks."""
_MOST_PODS: Final = 3
_MOST_OF_CALL: Final = 20
"""Pods of a hook that are looked at while its call is under way."""
_ENDING: Final = ("SuccessCriteriaMet", "FailureTarget")
"""Conditions of a Job whose pods are on their way out."""
_Found = tuple[manifests.ManifestResource, manifests.Object]


async def clear(
    live: live_objects.LiveObjects, module: names.ModuleName, hooks: Iterable[str], since: float = 0.0
) -> None:
    """Remove what these hooks left; ``since``: when the first of them was made, in seconds since the epoch.

    Raises what the client raises.
    """
    found = [
        (resource, body)
        for resource, body in await _there(live, module, hooks, _REMOVED)
        if keeping.made_at(body) >= since
    ]
    running = {resource for resource, body in found if await _runs(live, body)}
    for resource, body in found:
        # What runs needs its account and its rights.
        if resource not in running and (resource.kind in _WORK or not running):
            await live.remove(module, resource, body)


async def last_lines(
    live: live_objects.LiveObjects,
    module: names.ModuleName,
    hooks: Iterable[str],
    redact: Callable[[str], str],
) -> str:
    """Say what the pods of hooks wrote last that have not succeeded; empty if nobody knows."""
    with contextlib.suppress(api_errors.KubernetesError):
        found = await _there(live, module, hooks, _WORK)
        pods = [pod for _, body in found for pod in await _pods(live, body) if not _has_succeeded(pod)]
        lines = {pod["metadata"]["name"]: await live.last_lines(pod) for pod in pods[:_MOST_PODS]}
        return "".join(f"; pod {pod} wrote last: {redact(text)}" for pod, text in lines.items() if text)
    return ""


async def explained(
    error: helm_errors.HelmError,
    live: live_objects.LiveObjects,
    hooks: Iterable[str],
    redact: Callable[[str], str],
) -> helm_errors.HelmError:
    """Return an error of Helm with what the pods of a hook that failed wrote last."""
    if not _FAILED.search(error.message):
        return error
    lines = await last_lines(live, names.ModuleName(error.module), hooks, redact)
    return error.followed_by(lines.removeprefix("; ")) if lines else error


async def free_jobs(
    live: live_objects.LiveObjects,
    module: names.ModuleName,
    namespace: str,
    before: Sequence[str],
    after: str,
) -> None:
    """Remove Jobs of a release that have ended and whose template is another one next: nobody can edit that.

    ``before``: the manifests of the deployed revision, and of tries since. Raises what the client raises.
    """
    for resource, body in await asyncio.to_thread(lambda: list(_changed_jobs(before, after, namespace))):
        try:
            there, _ = await live.get(module, resource)
        except (api_errors.NotFound, api_errors.Forbidden, discovery.NoSuchKind):
            continue
        if resource_health.has_ended({**body, **there}):
            await live.delete(module, resource)


async def at_work(
    live: live_objects.LiveObjects, module: names.ModuleName, hooks: Iterable[str]
) -> tuple[str, bool]:
    """Say which hook a call under way waits for, and how its pod is, and whether it gets nowhere.

    An image that is mistyped, a pod that no node takes, or a crash loop is waited for as long as
    ``HELM_TIMEOUT`` allows, and the edit that mends it would wait as long. A hook that works, such as a
    migration, is let end. Raises what the client raises.
    """
    for resource, body in await _there(live, module, hooks, _WORK):
        group = resource.api_version.rpartition("/")[0]
        if (group, resource.kind) in resource_health.WORK and not _ends(body):
            pods = await _pods(live, body, _MOST_OF_CALL)
            hook, pod = f"{resource.kind} {resource.name}", "".join(_named(pods[-1:]))
            if working := [each for each in pods if _has_running(each) or _has_succeeded(each)]:
                return f"{hook}: pod {''.join(_named(working[:1]))} works", False
            why = pod_causes.cause_of_pods(pods) or f"no container of {f'pod {pod}' if pod else 'it'} runs"
            return f"{hook}: {why}", True
    return "", False


def _named(pods: Iterable[manifests.Object]) -> Iterator[str]:
    return (str(pod["metadata"]["name"]) for pod in pods)


def _ends(body: manifests.Object) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return resource_health.has_ended(body) or any(
        each.get("type") in _ENDING and each.get("status") == "True" for each in conditions
    )


def _changed_jobs(before: Sequence[str], after: str, namespace: str) -> Iterator[_Found]:
    templates: dict[manifests.Identity, list[object]] = {}
    # To read a whole manifest for nothing takes as long as all else here.
    for manifest in (each for each in before if _JOB in each):
        for resource, body in manifests.find_objects(manifest, lambda each: each.kind == _JOB):
            templates.setdefault(resource.identity(namespace), []).append(
                (body.get("spec") or {}).get("template")
            )
    wanted = manifests.find_objects(after, lambda each: each.identity(namespace) in templates)
    for resource, body in wanted if templates else ():
        now = (body.get("spec") or {}).get("template")
        if any(each != now for each in templates[resource.identity(namespace)]):
            yield resource, body


async def _there(
    live: live_objects.LiveObjects, module: names.ModuleName, hooks: Iterable[str], kinds: Iterable[str]
) -> list[_Found]:
    named = await asyncio.to_thread(lambda: [each for one in hooks for each in manifests.hooks(one)])
    found = []
    for resource in dict.fromkeys(named):
        if resource.kind in kinds:
            try:
                body, _ = await live.get(module, resource)
            except (api_errors.NotFound, api_errors.Forbidden, discovery.NoSuchKind):
                continue
            if manifest_diff.HOOK in (body["metadata"].get("annotations") or {}):
                found.append((resource, body))
    return found


async def _pods(
    live: live_objects.LiveObjects, body: manifests.Object, most: int | None = None
) -> list[manifests.Object]:
    return [body] if body.get("kind") == "Pod" else await live.pods_of(body, most)


async def _runs(live: live_objects.LiveObjects, body: manifests.Object) -> bool:
    """Say whether a container of it runs; what waits for its image or a node does not."""
    if body.get("kind") not in _WORK or resource_health.has_ended(body):
        return False
    return any(map(_has_running, await _pods(live, body)))


def _has_running(pod: manifests.Object) -> bool:
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return any("running" in (each.get("state") or {}) for each in containers)


def _has_succeeded(pod: manifests.Object) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Succeeded")

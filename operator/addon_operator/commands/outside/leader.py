"""Finding the operator that leads: the Lease names its pod."""

import socket
from typing import Any, Final

from addon_operator.commands.outside import place as places
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, pod_exec
from addon_operator.kube.objects import lease

_MOST: Final = 10
"""Namespaces that are named in a sentence."""


class NoOperatorError(errors.AddonOperatorError):
    """There is no operator to ask where the user looks for one."""


async def find(kube: client.KubeClient, place: places.Place) -> pod_exec.Container:
    """Return the container of the operator that leads there.

    Raises :class:`NoOperatorError`, and what the client raises: ``Forbidden`` names the rule that is missing.
    """
    found = await _lease(kube, place)
    name = found["metadata"]["name"]
    holder = (found.get("spec") or {}).get("holderIdentity") or ""
    if not holder:
        raise NoOperatorError(
            f"no operator leads in {place} just now: nobody holds the Lease {name}; look at its pods"
        )
    pod = lease.pod_of(holder)
    try:
        leader = await kube.get(paths.of("v1", "pods", namespace=place.namespace, name=pod))
    except api_errors.NotFound:
        raise NoOperatorError(_gone(found, pod, place)) from None
    phase = (leader.get("status") or {}).get("phase")
    if phase != "Running":
        raise NoOperatorError(f"the leader {pod} in {place} does not run: it is {phase}; try again later")
    return pod_exec.Container.of(leader)


def _gone(found: Any, pod: str, place: places.Place) -> str:  # noqa: ANN401  # JSON
    how = (
        "without -n, --context and --kubeconfig, and with --debug-unix-socket PATH, where PATH is its "
        "DEBUG_UNIX_SOCKET"
    )
    if pod == socket.gethostname():
        return f"the leader in {place} runs on this machine, not in a pod: give the command again {how}"
    renewed = (found.get("spec") or {}).get("renewTime")
    last = f", renewed last at {renewed}," if renewed else ""
    kubectl = f"kubectl -n {place.namespace} get"
    return (
        f"the leader is gone: the Lease {found['metadata']['name']}{last} names {pod}, and there is no such "
        f"pod in {place}; if '{kubectl} pods' shows others of the operator, one of them leads within half a "
        f"minute: give the command again then, and see '{kubectl} modules' meanwhile; if {pod} is a machine, "
        f"the operator runs there: give the command there {how}"
    )


async def _lease(kube: client.KubeClient, place: places.Place) -> Any:  # noqa: ANN401  # JSON
    collection = paths.of(lease.API_VERSION, lease.PLURAL, namespace=place.namespace)
    try:
        return await kube.get(f"{collection}/{place.lease}")
    except api_errors.NotFound:
        if place.is_lease_named:
            raise _none(place) from None
    # One for a ConfigMap of another name has that in its own.
    listed = await kube.list_all(collection)
    found = [each for each in listed.items if each["metadata"]["name"].startswith(f"{place.lease}-")]
    if not found:
        raise _none(place, await _elsewhere(kube, place))
    if len(found) > 1:
        names = ", ".join(sorted(each["metadata"]["name"] for each in found))
        raise NoOperatorError(f"several operators work in {place}: choose one with LEASE_NAME: {names}")
    return found[0]


async def _elsewhere(kube: client.KubeClient, place: places.Place) -> str:
    """Say in which namespaces operators work, as far as the user may see that."""
    try:
        listed = await kube.list_all(paths.of(lease.API_VERSION, lease.PLURAL), metadata_only=True)
    except api_errors.ApiError:
        return ""
    found = [each["metadata"] for each in listed.items]
    namespaces = {each["namespace"] for each in found if each["name"].startswith(place.lease)}
    return f" (operators work in: {names.listed(sorted(namespaces), _MOST)})" if namespaces else ""


def _none(place: places.Place, elsewhere: str = "") -> NoOperatorError:
    return NoOperatorError(
        f"no operator is found in {place}: there is no Lease {place.lease}; name the operator's namespace "
        f"with --namespace{elsewhere}, another cluster with --context or --kubeconfig, and the Lease with "
        "LEASE_NAME"
    )

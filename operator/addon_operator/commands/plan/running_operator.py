"""Asking an operator that runs what its hooks gave: on its debug socket, or in its pod."""

import asyncio
import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import addon_operator
from addon_operator.debug import debug_client
from addon_operator.kernel import errors
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, pod_exec
from addon_operator.values.patches import hook_values, patches

_PATH: Final = "/hook-values.json"
_QUERY: Final = "showSensitive"
_COMMAND: Final = ("addon-operator", "raw", f"{_PATH}?{_QUERY}=true")
_UNKNOWN_PATH: Final = f"there is nothing at {_PATH}"
_DEPLOYMENTS: Final = frozenset({"deployment", "deployments", "deploy"})
_PODS: Final = frozenset({"pod", "pods", "po"})


class NotToldError(errors.AddonOperatorError):
    """No operator told what hooks gave."""


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorHookValues:
    """What hooks gave to an operator that runs."""

    who: str
    """For a person, such as ``the operator in pod addons/addon-operator-0``."""
    namespace: str
    server: str
    """URL of its API server."""
    shared: hook_values.Patches = dataclasses.field(repr=False)
    """Of global hooks."""
    switches: Mapping[str, bool]
    modules: Mapping[str, hook_values.Patches] = dataclasses.field(repr=False)
    """Of all modules that it knows."""
    pending: frozenset[str]
    """Modules whose hooks have not run yet."""

    @property
    def is_empty(self) -> bool:
        """Whether its hooks have not run yet, as far as can be seen."""
        gave = bool(self.shared or self.switches or any(self.modules.values()))
        return not gave and self.pending == frozenset(self.modules)


async def on_socket(path: pathlib.Path, seconds: float = debug_client.TIMEOUT_SECONDS) -> OperatorHookValues:
    """Ask on a socket, and wait for so long; raises :class:`NotToldError`."""
    who = f"the operator on {path}"
    try:
        answer = await asyncio.to_thread(debug_client.DebugClient(path, seconds).get, _PATH, {_QUERY: "true"})
    except errors.AddonOperatorError as error:
        raise _not_told(who, str(error)) from None
    return _read(answer, who)


async def in_pod(kube: client.KubeClient, target: str, namespace: str) -> OperatorHookValues:
    """Ask in a pod: ``[NAMESPACE/]POD`` or ``[NAMESPACE/]deployment/NAME``; raises :class:`NotToldError`.

    ``namespace`` is where names without one are looked up. Of a Deployment, the first pod that can tell does.
    """
    try:
        containers = await _containers(kube, target, namespace)
    except (api_errors.KubernetesError, ValueError) as error:
        raise NotToldError(f"{target} cannot be asked what hooks gave: {error}") from None
    refusals = [f"there is no running pod of {target}"]
    for container in containers:
        who = f"the operator in {container}"
        try:
            output = await pod_exec.output(kube, container, _COMMAND)
            return _read(_decoded(output, who), who)
        except api_errors.KubernetesError as error:
            refusals.append(str(_not_told(who, str(error).removeprefix("Error: "))))
        except NotToldError as error:
            refusals.append(str(error))
    raise NotToldError(refusals[-1])


def _not_told(who: str, reason: str) -> NotToldError:
    if _UNKNOWN_PATH in reason:
        reason = f"it is of another version than this command ({addon_operator.__version__}); use its own"
    return NotToldError(f"{who} does not tell what hooks gave: {reason}")


async def _containers(kube: client.KubeClient, target: str, namespace: str) -> list[pod_exec.Container]:
    kind, place, name = _parsed(target, namespace)
    if kind == "pod":
        try:
            pods = [await kube.get(paths.of("v1", "pods", namespace=place, name=name))]
        except api_errors.NotFound:
            raise ValueError(
                f"there is no pod {place}/{name}; for a Deployment, write {place}/deployment/{name}"
            ) from None
    else:
        owner = await kube.get(paths.of("apps/v1", "deployments", namespace=place, name=name))
        labels: Mapping[str, str] = owner["spec"]["selector"].get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        listed = await kube.list_all(paths.of("v1", "pods", namespace=place), label_selector=selector)
        pods = listed.items
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    return [pod_exec.Container.of(pod) for pod in running]


def _parsed(target: str, namespace: str) -> tuple[str, str, str]:
    """Return what is meant (``pod`` or ``deployment``), its namespace and its name."""
    match target.split("/"):
        case [name] if name:
            return "pod", namespace, name
        case [kind, name] if kind in _DEPLOYMENTS | _PODS and name:
            return "pod" if kind in _PODS else "deployment", namespace, name
        case [place, kind, name] if kind in _DEPLOYMENTS | _PODS and place and name:
            return "pod" if kind in _PODS else "deployment", place, name
        case [place, name] if place and name:
            return "pod", place, name
    raise ValueError("write [NAMESPACE/]POD or [NAMESPACE/]deployment/NAME")


def _decoded(output: bytes, who: str) -> Any:  # noqa: ANN401  # JSON
    try:
        return json.loads(output)
    except ValueError:
        raise _not_told(who, "its answer is not JSON") from None


def _read(answer: Any, who: str) -> OperatorHookValues:  # noqa: ANN401  # JSON of any shape
    try:
        modules: Mapping[str, Any] = answer["modules"]
        shared = answer["global"]
        return OperatorHookValues(
            who,
            str(answer["namespace"]),
            str(answer["server"]),
            list(_patches(shared["patches"], who)),
            {str(key): bool(value) for key, value in shared["switches"].items()},
            {name: list(_patches(module["patches"], who)) for name, module in modules.items()},
            frozenset(name for name, module in modules.items() if not module["hasRun"]),
        )
    except (KeyError, TypeError, AttributeError, patches.PatchError):
        raise _not_told(
            who,
            f"its answer is not one of this version ({addon_operator.__version__}); use its own command",
        ) from None


def _patches(groups: Any, who: str) -> Iterator[patches.ValuesPatch]:  # noqa: ANN401  # JSON of any shape
    for group in groups:
        yield patches.parse_patch(json.dumps(group), f"a patch of {who}")

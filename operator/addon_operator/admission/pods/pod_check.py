"""The validating webhook for pods: Events about conflicts and unresolved references.

A mutating webhook sees pods of controllers without a name and without a uid, and before other webhooks are
done with them. A validating one sees the pod as it will be stored: the name made of ``generateName``, the uid
and the result of all changes are there. So this handler allows every pod at once, and looks at it afterwards.
An Event is written only when the pod is really stored: others may refuse it yet.
"""

import asyncio
import logging
from typing import Final

import msgspec

from addon_operator.admission import events as admission_events
from addon_operator.admission import review_budget, reviews
from addon_operator.admission.pods import expansion_check, pod_handler
from addon_operator.aio import waiting
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kernel import json_types
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.objects import events
from addon_operator.podpreset import merge, selection

CONFLICT: Final = "conflict"
UNRESOLVED: Final = "UnresolvedVariable"
TOO_MUCH: Final = "PresetsTooLarge"
PENDING_MAX: Final = 5000
"""How many pods may wait to be looked at; more are skipped and counted."""

_AT_ONCE: Final = 8
# Other validating webhooks may take up to 30 seconds each, all at the same time.
_PAUSES: Final = (0.1, 0.4, 1.5, 4.0, 10.0, 18.0)

_log = logging.getLogger(__name__)


class _Note(msgspec.Struct, frozen=True):
    """One Event to write about a pod."""

    reason: str
    message: str
    component: str = events.COMPONENT


class _Finding(msgspec.Struct, frozen=True):
    """Everything to report about a pod."""

    notes: list[_Note]
    events: list[admission_events.Event]


class PodFindings:
    """Finds what there is to report about a pod."""

    def __init__(self, merger: pod_handler.Merger, expansions: expansion_check.ExpansionCheck | None) -> None:
        """Check references only if there are ``expansions``."""
        self._merger = merger
        self._expansions = expansions

    async def find(self, namespace: str, pod: json_types.KubernetesObject) -> _Finding:
        """Return all findings; raises :class:`.AddonOperatorError` when something needed cannot be read."""
        finding = _Finding([], [])
        try:
            merged = await self._merger.merge(namespace, pod)
        except merge.MergeCostError as error:
            finding.notes.append(_Note(TOO_MUCH, str(error)))
        else:
            if isinstance(merged, merge.Conflicted):
                finding.notes.extend(
                    _Note(CONFLICT, each.message, f"{selection.DOMAIN}/{each.preset}")
                    for each in merged.conflicts
                )
                presets = [each.preset for each in merged.conflicts]
                finding.events.append(admission_events.PresetsAnswered(namespace, presets, "conflicts"))
        unresolved = await self._expansions.check(namespace, pod) if self._expansions else []
        if unresolved:
            finding.notes.extend(_Note(UNRESOLVED, each.message) for each in unresolved)
            finding.events.append(
                admission_events.ReferencesUnresolved(sum(each.count for each in unresolved))
            )
        return finding


class PodCheck(reviews.ReviewHandler):
    """Looks at pods after they were allowed."""

    def __init__(
        self,
        findings: PodFindings,
        kube: client.KubeClient,
        recorder: events.EventWriter,
        tell: admission_events.Listener,
        account: review_budget.MemoryBudget,
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """Hold waiting pods on the account."""
        self._findings = findings
        self._kube = kube
        self._recorder = recorder
        self._tell = tell
        self._sleep = sleep
        self._account = account
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def decide(self, review: reviews.Review) -> reviews.ReviewVerdict:
        """Allow the pod, and look at it later."""
        pod = review.object
        if (
            review.operation == "CREATE"
            and not review.sub_resource
            and not review.dry_run
            and pod is not None
            # The API server has given it one by now.
            and (pod.get("metadata") or {}).get("uid")
        ):
            self._begin(review, pod)
        return reviews.ReviewVerdict()

    async def idle(self) -> None:
        """Wait until all pods so far have been looked at."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Give up what is not done."""
        for task in self._tasks:
            task.cancel()
        await self.idle()

    def _begin(self, review: reviews.Review, pod: json_types.KubernetesObject) -> None:
        try:
            if len(self._tasks) >= PENDING_MAX:
                raise review_budget.OverloadedError
            held = self._account.hold(review.memory)
        except review_budget.OverloadedError:
            self._tell(admission_events.Dropped("check"))
            return
        about = _reference(review.namespace, pod)
        task = asyncio.create_task(self._look(about, [pod], held))
        self._tasks.add(task)
        # A task that is cancelled before its first step would never give it back itself.
        task.add_done_callback(lambda _: held.release())
        task.add_done_callback(self._tasks.discard)

    async def _look(
        self,
        about: events.ObjectReference,
        pods: list[json_types.KubernetesObject],
        held: review_budget.Reservation,
    ) -> None:
        """Look at the one pod, which is taken out of ``pods``: nothing else may keep it while others wait."""
        namespace = about.namespace or ""
        try:
            async with self._at_once:
                finding = await self._findings.find(namespace, pods.pop())
            held.release()
            if finding.notes and await self._is_stored(about):
                for note in finding.notes:
                    self._recorder.record(
                        about, "Warning", note.reason, note.message, component=note.component
                    )
                for event in finding.events:
                    self._tell(event)
        except kernel_errors.AddonOperatorError as error:
            _log.warning("pod %s/%s was not checked: %s", namespace, about.name, error)
        except Exception:  # noqa: BLE001 - of a background task nobody would hear otherwise
            _log.exception("pod %s/%s was not checked", namespace, about.name)

    async def _is_stored(self, about: events.ObjectReference) -> bool:
        path = paths.of("v1", "pods", namespace=about.namespace, name=about.name)
        for pause in _PAUSES:
            await self._sleep(pause)
            try:
                async with self._at_once:
                    stored = await self._kube.get(path, metadata_only=True)
            except api_errors.NotFound:
                continue
            except api_errors.Forbidden:
                # Better an Event about a pod that was refused than none at all.
                return True
            if not about.uid or (stored.get("metadata") or {}).get("uid") == about.uid:
                return True
        return False


def _reference(namespace: str, pod: json_types.KubernetesObject) -> events.ObjectReference:
    metadata = pod.get("metadata") or {}
    return events.ObjectReference(
        "v1", "Pod", str(metadata.get("name") or ""), namespace, str(metadata.get("uid") or "")
    )

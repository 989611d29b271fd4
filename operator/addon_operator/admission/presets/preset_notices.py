"""Reviews of presets, and the presets of a pod that is being created: those in memory, or a fresh list.

The watch reports a change a moment after whoever made it has its answer, and a pod may be created in
between. The API server asks about the change before it stores it, so until the watch has reported it, pods of
that namespace are admitted from a fresh list.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.admission import reviews
from addon_operator.admission.presets import preset_cache
from addon_operator.aio import waiting
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.podpreset import model, selection, volume_types

SECONDS: Final = 1.0
"""How often a change that the watch did not report is looked for with a list."""
LIST_SECONDS: Final = 1.0
"""How long a pod waits for a fresh list at the most."""
PENDING_MAX: Final = 1000
"""How many changes are waited for; of more a pod learns when the watch reports them."""

_log = logging.getLogger(__name__)


class _Notice(msgspec.Struct, frozen=True):
    creates: bool
    """Whether the preset is there afterwards."""


class _FreshList(msgspec.Struct, frozen=True):
    """The presets of one namespace, as they were stored after whoever waits for the list came."""

    valid: Sequence[model.Preset]
    uids: frozenset[str]
    """Of those that are not being deleted."""


class FreshLists:
    """Lists of the presets of one namespace, each begun after whoever waits for it came."""

    def __init__(self, kube: client.KubeClient, cache: preset_cache.PresetCache) -> None:
        self._kube = kube
        self._cache = cache
        self._next: dict[str, asyncio.Task[_FreshList]] = {}
        self._current: dict[str, asyncio.Task[_FreshList]] = {}

    async def of(self, namespace: str) -> _FreshList:
        """Return what is stored now; raises ``KubernetesError`` when that cannot be listed."""
        task = self._next.get(namespace)
        if task is None:
            task = asyncio.create_task(self._after(namespace, self._current.get(namespace)))
            task.add_done_callback(_retrieve)
            self._next[namespace] = task
        return await asyncio.shield(task)

    async def _after(self, namespace: str, before: "asyncio.Task[_FreshList] | None") -> _FreshList:
        if before is not None:
            await asyncio.wait([before])
        # From here on nobody may join: the answer can be older than their request.
        task = self._current[namespace] = self._next.pop(namespace)
        try:
            return await self._list(namespace)
        finally:
            if self._current.get(namespace) is task:
                del self._current[namespace]

    async def _list(self, namespace: str) -> _FreshList:
        listed = await self._kube.list_all(paths.of(model.API_VERSION, model.PLURAL, namespace=namespace))
        valid: list[model.Preset] = []
        for number, item in enumerate(listed.items, start=1):
            if isinstance(parsed := self._cache.parsed(item), model.Preset):
                valid.append(parsed)
            if number % preset_cache.AT_ONCE == 0:
                await asyncio.sleep(0)
        return _FreshList(valid, frozenset(map(preset_cache.live_uid, listed.items)))


class PresetNotices(reviews.ReviewHandler):
    """Remembers which changes of presets are under way, and gives the presets as they are for sure.

    It refuses presets with volumes of types that a setting of the operator does not allow, which no CRD can
    know. While no operator answers, the API server stores these: they are invalid all the same.
    """

    def __init__(
        self,
        cache: preset_cache.PresetCache,
        lists: FreshLists,
        sleep: waiting.Sleep = asyncio.sleep,
        allowed_volumes: Collection[str] = volume_types.SOURCE_NAMES,
    ) -> None:
        self._cache = cache
        self._lists = lists
        self._allowed_volumes = allowed_volumes
        self._sleep = sleep
        self._pending: dict[str, dict[str, _Notice]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def decide(self, review: reviews.Review) -> reviews.ReviewVerdict:
        """Refuse a new preset that is in order but for what the setting says; else note what changes."""
        if review.operation == "CREATE" and not review.sub_resource and review.object is not None:
            parsed = model.parse(review.object, self._allowed_volumes)
            if isinstance(parsed, model.InvalidPreset) and isinstance(
                model.parse(review.object), model.Preset
            ):
                causes = [reviews.cause(reason) for reason in parsed.reasons]
                return reviews.ReviewVerdict(allowed=False, message="; ".join(parsed.reasons), causes=causes)
        if not review.dry_run and review.operation in ("CREATE", "DELETE"):
            creates = review.operation == "CREATE"
            stored = review.object if creates else review.old_object
            uid = str(((stored or {}).get("metadata") or {}).get("uid") or "")
            if uid and len(self._tasks) < PENDING_MAX:
                self._note(review.namespace, uid, _Notice(creates))
        return reviews.ReviewVerdict()

    async def match(self, namespace: str, labels: Mapping[str, str]) -> tuple[model.Preset, ...]:
        """Return the presets that apply to a pod with these labels, which is being created now."""
        self._settle(namespace)
        if namespace in self._pending:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LIST_SECONDS):
                    if (fresh := await self._fresh(namespace)) is not None:
                        return selection.matching(fresh.valid, labels)
        return self._cache.match(namespace, labels)

    async def close(self) -> None:
        """End what waits."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _note(self, namespace: str, uid: str, notice: _Notice) -> None:
        self._pending.setdefault(namespace, {})[uid] = notice
        task = asyncio.create_task(self._expire(namespace, uid, notice))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _expire(self, namespace: str, uid: str, notice: _Notice) -> None:
        """Drop the notice when the watch has reported the change, or a list shows that there is none."""
        try:
            await self._sleep(SECONDS)
            while self._is_pending(namespace, uid, notice):
                fresh = await self._fresh(namespace)
                if fresh is None or (uid in fresh.uids) != notice.creates:
                    break
                await self._sleep(SECONDS)
        finally:
            # A later notice about the same preset has its own time.
            if self._is_pending(namespace, uid, notice):
                self._drop(namespace, {uid})

    def _is_pending(self, namespace: str, uid: str, notice: _Notice) -> bool:
        self._settle(namespace)
        return self._pending.get(namespace, {}).get(uid) is notice

    async def _fresh(self, namespace: str) -> _FreshList | None:
        try:
            return await self._lists.of(namespace)
        except api_errors.KubernetesError as error:
            _log.warning("presets are served from memory, which may be late: %s", error)
            return None

    def _settle(self, namespace: str) -> None:
        """Drop the notices whose change has come."""
        pending = self._pending.get(namespace, {})
        self._drop(
            namespace, {uid for uid, notice in pending.items() if self._cache.holds(uid) == notice.creates}
        )

    def _drop(self, namespace: str, uids: set[str]) -> None:
        pending = self._pending.get(namespace)
        if pending is None:
            return
        for uid in uids:
            pending.pop(uid, None)
        if not pending:
            del self._pending[namespace]


def _retrieve(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()

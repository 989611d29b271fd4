"""The notifications of the operator that runs: its Secret is followed, the engine's events are taken in."""

import asyncio
import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from addon_operator.aio import threads, turns, waiting, warn_once
from addon_operator.app import kept_work
from addon_operator.engine import events, state
from addon_operator.helm import release_types
from addon_operator.kernel import fencing, names
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.kube.objects import events as kube_events
from addon_operator.kube.objects import module_objects
from addon_operator.settings import settings as settings_module
from addon_operator.status.notifications import notifier as notifying
from addon_operator.status.notifications import notify_config, sender
from addon_operator.telemetry import metrics

_PAUSES: Final = waiting.Backoff(1.0, 30.0)
"""Seconds between tries to learn what an operator before this one told."""
_REASON: Final = "InvalidNotifications"
_UNMATCHED: Final = "UnmatchedPattern"
_MOST_ENCODED: Final = notify_config.MAX_BYTES * 4 // 3 + 4


class Notifications(object_changes.ObjectListener):
    """Keeps a notifier informed: of modules, and of what the Secret says."""

    def __init__(
        self,
        notifier: notifying.Notifier,
        about: kube_events.ObjectReference,
        recorder: kube_events.EventWriter,
        meters: metrics.Metrics,
        log: warn_once.Log,
        *,
        is_named: bool,
    ) -> None:
        """``about`` is the Secret; ``is_named``: a setting names it, so that it has to be readable."""
        self.notifier: Final = notifier
        self._about = about
        self._recorder = recorder
        self._meters = meters
        self._log = log
        self._is_named = is_named
        self._trouble = warn_once.WarnOnce(log)
        self._subscription: informers.Subscription | None = None
        self._secret: Mapping[str, Any] | None = None
        self._unfollowed = ""
        self._wrong = ""
        self._arrived = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._time = waiting.SystemTime()

    def listen(self, event: events.Event) -> None:
        """Take in what becomes of modules; a :data:`.events.Listener`."""
        ledger, namespace, now = self.notifier.ledger, self._about.event_namespace, self._time.time()
        match event:
            case state.ModuleChanged(state=module):
                ledger.saw_state(module, namespace, now)
            case events.ReleaseEnsured(module=name, outcome=outcome):
                is_upgrade = outcome.action is release_types.ReleaseAction.UPGRADED
                ledger.released(name, namespace, outcome.revision, now, is_upgrade=is_upgrade)
            case events.ModuleGone(module=name):
                ledger.gone(name, now)
            case _:
                return
        self.notifier.wake()

    def begin(self, kube: client.KubeClient, watches: informers.Informers, tell: events.Listener) -> None:
        """Follow the Secret, and send from now on; ``tell`` is told of defects."""
        selection = object_selections.ObjectSelection(
            "Secret", "v1", names=(self._about.name,), namespaces=(self._about.event_namespace,)
        )
        self._subscription = watches.subscribe(selection, projections.FullObject(), self)
        self._tasks = [
            kept_work.kept("notify-secret", lambda: self._follow(kube), tell),
            kept_work.kept("notify", self.notifier.work, tell),
        ]

    def synced(self) -> None:
        """Read the Secret if it is there."""
        entries = [] if self._subscription is None else self._subscription.snapshot()
        self._take(orjson.loads(entries[0])["object"] if entries else None)

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Read the Secret anew; without one, nobody is told anything."""
        last = changes[-1]
        is_gone = last.type is object_changes.ChangeType.DELETED
        self._take(None if is_gone else orjson.loads(last.entry)["object"])

    def trouble(self, reason: str | None) -> None:
        """Say why the Secret cannot be followed just now."""
        if reason is None:
            self._trouble.over(f"Secret {self._place} is followed again")
        self._unfollowed = "" if reason is None else self._cannot_follow(reason)
        self._show()

    def _cannot_follow(self, reason: str) -> str:
        if self._is_named or self.notifier.has_targets:
            text = f"notifications are as they were, as Secret {self._place} is not followed: {reason}"
            self._trouble.warn(text)
        else:
            text = f"nobody is notified, as Secret {self._place} cannot be followed: {reason}"
            self._log.info(text)
        return text

    def _show(self) -> None:
        """Have ``notify list`` say what is wrong."""
        problem = "; ".join(filter(None, (self._unfollowed, self._wrong)))
        self.notifier.source = notifying.SourceDocument(secret=self._place, problem=problem)

    @property
    def _place(self) -> str:
        return f"{self._about.event_namespace}/{self._about.name}"

    def _take(self, secret: Mapping[str, Any] | None) -> None:
        self._secret = secret
        self._arrived.set()

    async def _follow(self, kube: client.KubeClient) -> None:
        """Learn what was told before, then put what the Secret says into force, until cancelled."""
        await self._restore(kube)
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self._read(self._secret)

    async def _restore(self, kube: client.KubeClient) -> None:
        namespace, now = self._about.event_namespace, self._time.time()

        def restore(found: client.Object) -> None:
            stored = (found.get("status") or {}).get("notifications") or {}
            self.notifier.ledger.restore(str(found["metadata"]["name"]), namespace, stored, now)

        await turns.mapped(restore, await self._listed(kube))

    async def _listed(self, kube: client.KubeClient) -> Sequence[client.Object]:
        """Return all Module objects; none without the definition, or the right to list them."""
        for pause in _PAUSES.pauses():
            try:
                return (await kube.list_all(module_objects.path_of(self._about.event_namespace))).items
            except (api_errors.NotFound, api_errors.Forbidden):
                break
            except api_errors.KubernetesError:
                await self._time.sleep(pause)
        return ()

    async def _read(self, secret: Mapping[str, Any] | None) -> None:
        try:
            if secret is None:
                config = notify_config.NOTHING
            else:
                config = await threads.run_apart(notify_config.parse, _text(secret))
        except notify_config.NotifyConfigError as error:
            self._refuse(str(error))
            return
        had_targets = self.notifier.has_targets
        self._meters.notifications.config_invalid.set(0)
        self.notifier.configure(config)
        self._wrong = "" if secret is not None else self._missing(is_gone=had_targets)
        self._show()
        if config.targets:
            told = names.listed([target.name for target in config.targets], notify_config.MOST_TARGETS)
            self._log.info(f"notifications go to {told}, as Secret {self._place} says")

    def _missing(self, *, is_gone: bool) -> str:
        """Say that there is no Secret, which is right where nobody is to be notified."""
        if is_gone:
            text = f"Secret {self._place} is gone, and nobody is notified from now on; create it again"
            self._log.warning(text)
        else:
            text = f"nobody is notified, as there is no Secret {self._place}"
            (self._log.warning if self._is_named else self._log.info)(text)
        return text

    def unmatched(self, text: str) -> None:
        """Write an Event about a pattern that matches no module."""
        end = "" if text.endswith("?") else "."
        self._record(_UNMATCHED, f"{text[0].upper()}{text[1:]}{end}")

    def _refuse(self, problem: str) -> None:
        follows = "what it said before stays in force" if self.notifier.has_targets else "nobody is notified"
        self._wrong = f"Secret {self._place} is wrong, and {follows}: {problem}"
        self._show()
        self._meters.notifications.config_invalid.set(1)
        self._log.warning(self._wrong)
        self._record(_REASON, f"{follows[0].upper()}{follows[1:]}. {problem}")

    def _record(self, reason: str, text: str) -> None:
        uid = str((self._secret or {}).get("metadata", {}).get("uid") or "")
        about = kube_events.ObjectReference("v1", "Secret", self._about.name, self._about.namespace, uid=uid)
        self._recorder.record(about, "Warning", reason, text)

    async def close(self) -> None:
        """Send nothing any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._subscription is not None:
            self._subscription.close()
        await self.notifier.close()


def _text(secret: Mapping[str, Any]) -> str:
    """Return the file in a Secret; raises :class:`.NotifyConfigError`."""
    data: Mapping[str, str] = secret.get("data") or {}
    if (encoded := data.get(notify_config.FILE)) is None:
        hint = names.did_you_mean(notify_config.FILE, data, "add it")
        raise notify_config.NotifyConfigError(f"the key {notify_config.FILE} is missing; {hint}")
    if len(encoded) > _MOST_ENCODED:
        raise notify_config.NotifyConfigError(
            f"{notify_config.FILE} has more than {notify_config.MAX_BYTES // 1024} KiB; name fewer targets"
        )
    try:
        return base64.b64decode(encoded).decode()
    except (UnicodeDecodeError, binascii.Error):
        raise notify_config.NotifyConfigError(
            f"{notify_config.FILE} is not a text; write it as UTF-8"
        ) from None


def of_settings(
    settings: settings_module.Settings,
    remember: notifying.Remember,
    recorder: kube_events.EventWriter,
    meters: metrics.Metrics,
    fence: fencing.Fence,
    log: warn_once.Log,
) -> Notifications | None:
    """Return the notifications that the settings ask for; ``None`` if there are to be none."""
    name = settings.notify_secret_name
    if name is None:
        return None
    counted = meters.notifications

    def tell(text: str) -> None:
        made.unmatched(text)

    outcomes = notifying.Outcomes(
        log,
        counted.notifications_total,
        counted.targets,
        counted.unmatched_patterns,
        tell,
    )
    notifier = notifying.Notifier(
        settings.namespace, sender.Sender(), remember, outcomes, fence, waiting.SystemTime()
    )
    about = kube_events.ObjectReference("v1", "Secret", name, settings.namespace)
    is_named = settings.notify_secret is not None
    made = Notifications(notifier, about, recorder, meters, log, is_named=is_named)
    return made

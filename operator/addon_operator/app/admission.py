"""Admission as a part of the operator: its objects, and the order in which they start and stop.

The admission server has a client of the API server of its own, without a limit of requests: a pod that is
being created must not wait for modules.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from addon_operator.admission import admission_log, config_check, events, review_budget, reviews
from addon_operator.admission.certificates import (
    certificate_store,
    certificate_store_files,
    certificate_store_secret,
    path_keys,
    tls,
)
from addon_operator.admission.conversions import conversion_registry, converter
from addon_operator.admission.hooks import hook_registry, hook_reviews
from addon_operator.admission.pods import env_sources_reader, expansion_check, pod_check, pod_handler
from addon_operator.admission.presets import (
    preset_cache,
    preset_notices,
    preset_status,
)
from addon_operator.admission.registration import registration
from addon_operator.admission.server import site
from addon_operator.aio import waiting, warn_once
from addon_operator.app import admission_webhooks, engine_listeners, kept_work
from addon_operator.documents import own_manifests
from addon_operator.kernel import errors
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, own_user
from addon_operator.kube.discovery import discovery
from addon_operator.kube.informers import reflector, shared_watches
from addon_operator.kube.objects import crds
from addon_operator.kube.objects import events as kube_events
from addon_operator.podpreset import crd
from addon_operator.settings import settings as settings_module
from addon_operator.status import health
from addon_operator.telemetry import metrics

SECRET: Final = "addon-operator-admission"  # noqa: S105 - a name, not a password
"""Where certificates are kept, in the operator's namespace."""

_AUTHORIZATION: Final = "authorization.k8s.io/v1"
_REVIEW_SECONDS: Final = 0.5
_EVENTS_WAITING_MAX: Final = 10_000
_RETRY_SECONDS: Final = 5.0
_KIND_SECONDS: Final = 1.0
"""Between two looks for the kind of PodPresets where the API server does not name it."""
_KEY_SECONDS: Final = 15.0
"""Between two looks of who leads at whether the random part of paths is to change."""
_LAST_CHECKS_SECONDS: Final = 1.0
_LAST_WRITES_SECONDS: Final = 2.0

Logger = structlog.typing.FilteringBoundLogger


class Admission(health.Part):
    """The admission server and everything that it answers from."""

    def __init__(
        self,
        settings: settings_module.Settings,
        kube: client.KubeClient,
        check: config_check.Check,
        meters: metrics.Metrics,
        log: Logger,
        instance: str = "",
    ) -> None:
        """``kube`` should have no limit of requests; ``instance`` is the pod's name."""
        self._settings = settings
        self._config = config_check.ConfigCheck(
            settings.namespace,
            settings.config_map,
            check,
            self._config_writer,
            self._may_read_secret,
            waiting.SystemTime(),
        )
        self._own_user = own_user.OwnUser(kube)
        self._kube = self.kube = kube
        self._log = log
        self._clock = waiting.SystemTime()
        self._recorder = kube_events.EventWriter(
            kube, self._clock, instance=instance, waiting_max=_EVENTS_WAITING_MAX
        )
        self._statuses = preset_status.PresetStatuses(kube, self._recorder, self._clock)
        self._cache = preset_cache.PresetCache(self._statuses.note, settings.podpreset_volume_types)
        kinds = discovery.Catalog(kube, self._clock, settings.absence)
        tuning = reflector.Tuning(kind_poll=_KIND_SECONDS)
        self._watches = shared_watches.SharedWatches(kube, kinds, self._clock, meters.watch_failed, tuning)
        lists = preset_notices.FreshLists(kube, self._cache)
        self._notices = preset_notices.PresetNotices(
            self._cache, lists, allowed_volumes=settings.podpreset_volume_types
        )
        self._show_event = admission_log.AdmissionLog(meters, log, self._clock)
        self._show_defect = engine_listeners.shown(meters, log)
        self._account = review_budget.MemoryBudget(review_budget.Limits())
        self._check, handler = self._handlers()
        self._tls = tls.LiveTls()
        keys = path_keys.PathKeys(
            kube, settings.namespace, SECRET, self._clock, alone=settings.admission_only
        )
        self._store = certificate_store.CertificateStore(
            self._certificates(), self._tls, keys, log, self._clock
        )
        self._registrar = self._make_registrar()
        self.hooks = hook_reviews.HookReviews()
        """Where hooks answer requests."""
        self.conversions = converter.DeclaredConversions()
        """What hooks convert."""
        authority = settings.webhook_client_ca
        self._clients = None if authority is None else tls.ClientAuthority(authority, self._tls, log)
        self._site = self._make_site(handler)
        self._tasks: list[asyncio.Task[None]] = []
        self._has_stopped = False
        self._show(meters)

    def _make_registrar(self) -> registration.Registrar:
        return registration.Registrar(
            self._kube,
            admission_webhooks.configurations(self._settings),
            admission_webhooks.client_address(self._settings),
            self._store,
            self._log,
            self._watches,
        )

    def lead(self, kube: client.KubeClient) -> hook_registry.HookRegistry:
        """Keep the webhooks of hooks registered from now on, by the client of who leads."""
        template = admission_webhooks.hooks_template(self._settings)
        registrar = registration.Registrar(
            kube,
            hook_registry.templates(template),
            admission_webhooks.client_address(self._settings),
            self._store,
            self._log,
            self._watches,
        )
        own = (self._settings.config_map, SECRET)
        registry = hook_registry.HookRegistry(kube, registrar, template, self.hooks, own)
        self._run("hook-webhooks", registry.keep)
        self._run("path-keys", functools.partial(self._change_keys, registry))
        return registry

    async def _change_keys(self, registry: hook_registry.HookRegistry) -> None:
        """Change the random part of paths from now on, as soon as all that is registered follows."""
        while True:
            try:
                await registry.adopt()
                break
            except errors.AddonOperatorError:
                # Whoever opens what it registers is told why that cannot be written.
                await asyncio.sleep(_RETRY_SECONDS)
        self._store.keys.lead()
        while True:
            with contextlib.suppress(errors.AddonOperatorError):
                await self._store.refresh()
            await asyncio.sleep(_KEY_SECONDS)

    def answers_for(self, place: tuple[str, str]) -> bool:
        """Say whether the engine of this process answers for a hook, by its module and name."""
        return place in self.hooks.places or place in self.conversions.places

    def lead_conversions(self, kube: client.KubeClient) -> conversion_registry.ConversionRegistry:
        """Keep definitions pointing here from now on that hooks convert, by the client of who leads."""
        registry = conversion_registry.ConversionRegistry(
            kube,
            self._settings.namespace,
            admission_webhooks.client_address(self._settings),
            self._store,
            self._log,
            self.conversions,
            self._watches,
            needs_certificate=self._clients is not None,
        )
        self._run("conversions", registry.keep)
        return registry

    def _tell(self, event: events.Event) -> None:
        self._statuses.note(event)
        self._show_event(event)

    def _show(self, meters: metrics.Metrics) -> None:
        meters.show_watch("podpresets", lambda: self._cache.health.is_up)
        meters.show_watch("webhooks", lambda: self._registrar.health.is_up)
        meters.admission.webhook_certificate_expiry_seconds.set_function(
            lambda: max(0.0, self._store.seconds_left())
        )

    @property
    def port(self) -> int:
        """The port that the site took."""
        return self._site.port

    def unready_reason(self) -> str | None:
        """Say why pods cannot be admitted yet, or ``None``.

        What was known once is served on, however old: a pod without its presets is worse.
        """
        return self._cache.unready_reason or self._store.unready_reason

    def trouble(self) -> str | None:
        """Return what keeps presets from being known, or pods from being sent here, or ``None``."""
        return self._cache.health.trouble or self._registrar.health.trouble

    async def _config_writer(self) -> str | None:
        return self._settings.config_writer or await self._own_user.name()

    async def _may_read_secret(self, review: reviews.Review) -> bool:
        name = self._settings.values_secret_name
        if name is None:
            return True
        about = {"namespace": self._settings.namespace, "verb": "get", "resource": "secrets", "name": name}
        spec = {"user": review.user, "groups": list(review.groups), "resourceAttributes": about}
        body = {"apiVersion": _AUTHORIZATION, "kind": "SubjectAccessReview", "spec": spec}
        with contextlib.suppress(TimeoutError, api_errors.KubernetesError):
            # Without the right to ask, nobody counts as one who may.
            async with asyncio.timeout(_REVIEW_SECONDS):
                answer = await self._kube.create(paths.of(_AUTHORIZATION, "subjectaccessreviews"), body)
                return (answer.get("status") or {}).get("allowed") is True
        return False

    def unhealthy_reason(self) -> str | None:
        """Say why the operator should be restarted, or ``None``."""
        if not self._watches.alive:
            return "the watch of PodPresets broke down"
        ended = next((task.get_name() for task in self._tasks if task.done()), None)
        return None if ended is None else f"the task {ended} has ended"

    async def start(self) -> None:
        """Listen and begin to serve; whatever needs the API server goes on in the background.

        Raises :class:`.AdmissionListenError`, and
        :class:`.CertificateError` for certificates in files.
        """
        if self._settings.admission_server_certs_dir is not None:
            await self._store.load()
        if self._clients is not None:
            await self._clients.load()
            self._run("client-authority", self._clients.keep)
        # Whoever needs it first would read it from the definition, and the loop would wait for that.
        await asyncio.to_thread(crd.spec)
        await self._site.start()
        self._log.info("admission server listens", port=self.port)
        self._run("events", self._recorder.run)
        self._run("preset-status", self._statuses.run)
        self._run("presets", self._follow_presets)
        self._run("webhooks", self._register)

    async def stop(self) -> None:
        """Answer what is being asked, report what is left to report, and end, unless that is done."""
        if self._has_stopped:
            return
        self._has_stopped = True
        await self._site.stop()
        await self._notices.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_CHECKS_SECONDS):
                await self._check.idle()
        await self._check.close()
        await self._finish()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._watches.ended()

    async def _finish(self) -> None:
        with contextlib.suppress(TimeoutError, errors.AddonOperatorError):
            async with asyncio.timeout(_LAST_WRITES_SECONDS):
                await self._statuses.flush()
                await self._recorder.flush()

    def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(kept_work.kept(f"admission-{name}", work, self._show_defect))

    def _handlers(self) -> tuple[pod_check.PodCheck, pod_handler.PodHandler]:
        sources = env_sources_reader.EnvSources(
            self._kube, self._clock, self._tell, self._settings.envfrom_sources
        )
        merger = pod_handler.Merger(self._notices, sources)
        expansions = expansion_check.ExpansionCheck(sources) if self._settings.expansion_events else None
        findings = pod_check.PodFindings(merger, expansions)
        check = pod_check.PodCheck(findings, self._kube, self._recorder, self._tell, self._account)
        return check, pod_handler.PodHandler(merger, self._tell, self._clock)

    def _make_site(self, handler: pod_handler.PodHandler) -> site.AdmissionSite:
        routes = admission_webhooks.routes(
            self._settings,
            mutate_pods=handler,
            check_pods=self._check,
            notice_presets=self._notices,
            check_config=self._config,
            ask_hooks=self.hooks,
            convert=converter.ConversionHandler(self.conversions),
            guard=self._store,
        )
        return site.AdmissionSite(
            routes,
            self._tls,
            site.ListenOptions(
                self._settings.admission_server_listen_address,
                self._settings.admission_server_listen_port,
                site.GRADUALLY,
            ),
            self._tell,
            self._account,
            ready=lambda: self._cache.filled,
        )

    def _certificates(self) -> certificate_store.CertificateSource:
        directory = self._settings.admission_server_certs_dir
        if directory is not None:
            return certificate_store_files.FileSource(directory)
        names = admission_webhooks.client_address(self._settings).server_names()
        about = kube_events.ObjectReference("v1", "Secret", SECRET, self._settings.namespace)
        return certificate_store_secret.SecretSource(self._kube, about, names, self._clock, self._repaired)

    def _repaired(self, about: kube_events.ObjectReference, text: str) -> None:
        self._log.warning(text)
        self._recorder.record(about, "Warning", "Repaired", f"{text}.")

    async def _follow_presets(self) -> None:
        trouble = warn_once.WarnOnce(self._log)
        while True:
            try:
                await apply_definition(self._kube, self._log)
                break
            except api_errors.KubernetesError as error:
                trouble.warn(f"the CustomResourceDefinition of PodPresets was not applied: {error}")
                if isinstance(error, api_errors.ApiError):
                    break
            await asyncio.sleep(_RETRY_SECONDS)
        await self._cache.follow(self._watches)

    async def _register(self) -> None:
        """Have webhooks registered as soon as they can be answered."""
        trouble = warn_once.WarnOnce(self._log)
        while True:
            try:
                await self._store.refresh()
                break
            except errors.AddonOperatorError as error:
                trouble.warn(f"the admission server has no certificate: {error}")
                self._registrar.health.falls(f"the admission server has no certificate: {error}")
            await asyncio.sleep(_RETRY_SECONDS)
        trouble.over("the admission server has a certificate")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._store.keep())
            await self._cache.wait_filled()
            await self._registrar.keep()


async def apply_definition(kube: client.KubeClient, log: warn_once.Log) -> None:
    """Bring the definition of PodPresets to what this version needs; without the right to do so, warn.

    Raises :class:`.KubernetesError` for anything else that goes wrong.
    """
    try:
        await crds.apply_own(kube, own_manifests.PODPRESETS)
    except api_errors.Forbidden as error:
        log.warning(f"the CustomResourceDefinition of PodPresets is not kept up to date: {error}")

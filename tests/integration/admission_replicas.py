"""Replicas of an admission server that mark ConfigMaps, in the test's own process."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
from collections.abc import AsyncIterator

from typing_extensions import override

from addon_operator.admission import events, review_budget, reviews
from addon_operator.admission.certificates import (
    certificate_rotation,
    certificate_store,
    certificate_store_secret,
    path_keys,
    tls,
)
from addon_operator.admission.registration import registration
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.admission.server import site
from addon_operator.aio import waiting
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.objects import events as kube_events
from tests.support import review_handlers, watches

PATH = "/mutate-config-maps"
SECRET = "webhook-certificates"
LIVES = certificate_rotation.Lives(authority=dt.timedelta(days=100), server=dt.timedelta(days=90))


class ShiftedClock(waiting.SystemTime):
    """The machine's clock, so far back that all rotations of a test lie in the API server's past."""

    def __init__(self) -> None:
        self.ahead = dt.timedelta(days=-70)

    @override
    def time(self) -> float:
        return super().time() + self.ahead.total_seconds()


class Observer:
    """Remembers what went wrong, and what was logged."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.lines: list[str] = []

    def note(self, event: events.Event) -> None:
        if isinstance(event, events.ReviewRefused):
            self.wrong.append(event.reason)
        elif isinstance(event, events.HandlerFailed):
            self.wrong.append(repr(event.error))

    def info(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(event)

    def warning(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(event)


class Marking:
    """Adds a key to ConfigMaps, and remembers the reviews."""

    def __init__(self) -> None:
        self.reviews: list[reviews.Review] = []

    async def __call__(self, review: reviews.Review) -> reviews.ReviewVerdict:
        self.reviews.append(review)
        return reviews.ReviewVerdict(patch=({"op": "add", "path": "/data/marked", "value": "yes"},))


@dataclasses.dataclass
class Replica:
    """One replica of an operator that does nothing but admission."""

    kube: client.KubeClient
    namespace: str
    clock: ShiftedClock
    handler: Marking
    observer: Observer
    store: certificate_store.CertificateStore
    tls: tls.LiveTls
    site: site.AdmissionSite
    configuration: specs.WebhookConfiguration
    registrar: registration.Registrar

    async def stored(self) -> client.Object:
        webhook: client.Object = (await self.kube.get(self.configuration.path))["webhooks"][0]
        return webhook

    async def create(self, name: str, value: str = "b") -> client.Object:
        body = {"metadata": {"name": name}, "data": {"a": value}}
        return await self.kube.create(paths.of("v1", "configmaps", namespace=self.namespace), body)


def configuration(namespace: str) -> specs.WebhookConfiguration:
    webhook = specs.WebhookSpec(
        name="config-maps.addon-operator.io",
        path=PATH,
        operations=("CREATE",),
        resource="configmaps",
        failure_policy="Fail",
        side_effects="NoneOnDryRun",
        reinvocation_policy="IfNeeded",
        namespace_selector={"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        match_conditions={"not-left-out": "object.metadata.name != 'left-out'"},
    )
    return specs.WebhookConfiguration(specs.ConfigurationKind.MUTATING, f"test-{namespace}", (webhook,))


async def withdraw(kube: client.KubeClient, configuration: specs.WebhookConfiguration) -> None:
    with contextlib.suppress(api_errors.NotFound):
        await kube.delete(configuration.path)


@contextlib.asynccontextmanager
async def replica(
    kube: client.KubeClient, namespace: str, wanted: specs.WebhookConfiguration | None = None
) -> AsyncIterator[Replica]:
    time, live, observer, handler = ShiftedClock(), tls.LiveTls(), Observer(), Marking()
    about = kube_events.ObjectReference("v1", "Secret", SECRET, namespace)
    source = certificate_store_secret.SecretSource(
        kube, about, {"127.0.0.1"}, time, lambda _, text: observer.warning(text), LIVES
    )
    keys = path_keys.PathKeys(kube, namespace, SECRET, time)
    store = certificate_store.CertificateStore(source, live, keys, observer, time)
    await store.refresh()
    served = site.AdmissionSite(
        {PATH: site.Route(review_handlers.Calling(handler))},
        live,
        site.ListenOptions("127.0.0.1", 0),
        observer.note,
        review_budget.MemoryBudget(review_budget.Limits()),
    )
    await served.start()
    wanted = wanted or configuration(namespace)
    # Replicas behind a Service have one address; here each has its own, and the first one's is registered.
    address = specs.url_address(f"https://127.0.0.1:{served.port}")
    registrar = registration.Registrar(kube, [wanted], address, store, observer, watches.shared(kube, time))
    await registrar.ensure()
    keeping = asyncio.create_task(registrar.keep())
    running = Replica(kube, namespace, time, handler, observer, store, live, served, wanted, registrar)
    try:
        yield running
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await served.stop()

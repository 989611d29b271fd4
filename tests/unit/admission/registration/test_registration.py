"""Configurations stay registered as they should be."""

import asyncio
import base64
import dataclasses
from typing import Any

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.admission.certificates import certificate_store, path_keys
from addon_operator.admission.registration import registration, rollout
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.aio import waiting
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.informers import shared_watches
from tests.support import api_server, logs, watches

KIND = "MutatingWebhookConfiguration"
OBJECT = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/addon-operator"
SPEC = specs.WebhookSpec("pods.addon-operator.io", "/mutate-pods", ("CREATE",), "pods")
WANTED = specs.WebhookConfiguration(specs.ConfigurationKind.MUTATING, "addon-operator", (SPEC,))
NEWER = structs.replace(WANTED, webhooks=(structs.replace(SPEC, timeout_seconds=9),))
ADDRESS = specs.ServiceAddress("system", "addon-operator")


class Bundle(certificate_store.CertificateStore):
    """The authorities, as the certificate store gives them."""

    def __init__(self, text: bytes | None = b"one") -> None:
        self.text = text
        self.calling_changed = waiting.News()
        self.key = "k1"
        self.keys = path_keys.PathKeys(
            api_server.client_of(api_server.ApiServer(), api_server.Pauses()),
            "system",
            "s",
            api_server.Pauses(),
        )

    @override
    async def refresh(self) -> certificate_store.Calling:
        return certificate_store.Calling(self.text, self.key)


class Stored:
    """One configuration of the API server."""

    def __init__(self, server: api_server.ApiServer) -> None:
        self._server = server
        self._by_others = 0

    @property
    def body(self) -> dict[str, Any] | None:
        found = self._server.objects(KIND)
        return found[0] if found else None

    @property
    def webhook(self) -> dict[str, Any]:
        found: dict[str, Any] = self._server.get(KIND, "addon-operator")["webhooks"][0]
        return found

    @property
    def owners(self) -> list[dict[str, str]]:
        metadata = self._server.get(KIND, "addon-operator")["metadata"]
        found: list[dict[str, str]] = metadata.get("ownerReferences", [])
        return found

    @property
    def bundle(self) -> bytes:
        return base64.b64decode(self.webhook["clientConfig"]["caBundle"])

    @property
    def writes(self) -> int:
        """How often the operator has changed it."""
        changes = [change for change in self._server.history if change.object["kind"] == KIND]
        return len(changes) - self._by_others

    def put(self, body: dict[str, Any]) -> None:
        """Write it as somebody else."""
        self._by_others += 1
        self._server.put(body)

    def edit(self, **fields: object) -> None:
        """Change fields of the webhook as somebody else."""
        self.put(self._server.get(KIND, "addon-operator") | {"webhooks": [self.webhook | fields]})

    def delete(self) -> None:
        """Delete it as somebody else."""
        self._by_others += 1
        self._server.delete(KIND, "addon-operator", None)


@pytest.fixture
def clock() -> api_server.Pauses:
    return api_server.Pauses()


@pytest.fixture
def kube(server: api_server.ApiServer, clock: api_server.Pauses) -> client.KubeClient:
    return api_server.client_of(server, clock)


@pytest.fixture
def stored(server: api_server.ApiServer) -> Stored:
    return Stored(server)


@pytest.fixture
def log() -> logs.Lines:
    return logs.Lines()


class Resting(waiting.SystemTime):
    """The clock of a test; the watch, which finds no server, rests after its first try."""

    def __init__(self, clock: api_server.Pauses) -> None:
        self._clock = clock

    @override
    def monotonic(self) -> float:
        return self._clock.monotonic()

    @override
    def time(self) -> float:
        return self._clock.monotonic()

    @override
    async def sleep(self, seconds: float) -> None:
        if seconds >= 1.0:
            await asyncio.Event().wait()

    @override
    def jitter(self) -> float:
        return 1.0


@dataclasses.dataclass
class Replicas:
    kube: client.KubeClient
    clock: api_server.Pauses
    log: logs.Lines

    @property
    def watches(self) -> shared_watches.SharedWatches:
        return watches.shared(self.kube, Resting(self.clock))

    def start(
        self, configuration: specs.WebhookConfiguration = WANTED, trust: Bundle | None = None
    ) -> registration.Registrar:
        return registration.Registrar(
            self.kube,
            [configuration],
            ADDRESS,
            trust or Bundle(),
            self.log,
            self.watches,
        )


@pytest.fixture
def replicas(kube: client.KubeClient, clock: api_server.Pauses, log: logs.Lines) -> Replicas:
    return Replicas(kube, clock, log)


async def test_a_missing_configuration_is_made(replicas: Replicas, stored: Stored) -> None:
    await replicas.start().ensure()
    assert stored.body is not None
    assert stored.body["kind"] == "MutatingWebhookConfiguration"
    assert stored.body["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "addon-operator"
    assert stored.bundle == b"one"
    assert replicas.log.lines == [("info", "MutatingWebhookConfiguration addon-operator has been registered")]


async def test_what_is_as_it_should_be_is_not_written(replicas: Replicas, stored: Stored) -> None:
    registrars = [replicas.start(), replicas.start()]
    for _ in range(3):
        for registrar in registrars:
            await registrar.ensure()
    assert stored.writes == 1


async def test_replicas_that_start_at_once_agree(replicas: Replicas, stored: Stored) -> None:
    await asyncio.gather(*(replicas.start().ensure() for _ in range(5)))
    assert stored.writes == 1


@pytest.mark.parametrize(
    "edit", [{"failurePolicy": "Fail"}, {"rules": []}, {"clientConfig": {"url": "https://e"}}]
)
async def test_an_edit_is_undone_and_reported(
    replicas: Replicas, stored: Stored, edit: dict[str, Any]
) -> None:
    registrar = replicas.start()
    await registrar.ensure()
    before = stored.webhook
    stored.edit(**edit)
    await registrar.ensure()
    assert stored.webhook == before
    assert replicas.log.lines[-1][1].endswith("was changed or removed by somebody and has been restored")


async def test_a_deleted_configuration_comes_back(replicas: Replicas, stored: Stored) -> None:
    registrar = replicas.start()
    await registrar.ensure()
    stored.delete()
    await registrar.ensure()
    assert stored.bundle == b"one"


async def test_labels_and_annotations_of_others_stay(replicas: Replicas, stored: Stored) -> None:
    registrar = replicas.start()
    await registrar.ensure()
    body = stored.body
    assert body is not None
    body["metadata"]["annotations"]["theirs"] = "yes"
    stored.put(body | {"webhooks": [stored.webhook | {"rules": []}]})
    await registrar.ensure()
    assert stored.body is not None
    assert stored.body["metadata"]["annotations"]["theirs"] == "yes"


async def test_new_authorities_are_registered_and_are_no_repair(replicas: Replicas, stored: Stored) -> None:
    trust = Bundle()
    registrar = replicas.start(trust=trust)
    await registrar.ensure()
    for number in range(20):
        trust.text = f"one, and {number}".encode()
        await registrar.ensure()
        assert stored.bundle == trust.text
    assert replicas.log.lines[-1][1].endswith("has got the new authorities of certificates, or new paths")


async def test_without_authorities_of_ours_those_of_others_stay(replicas: Replicas, stored: Stored) -> None:
    registrar = replicas.start(trust=Bundle(None))
    await registrar.ensure()
    injected = stored.webhook["clientConfig"] | {"caBundle": base64.b64encode(b"theirs").decode()}
    stored.edit(clientConfig=injected, rules=[])
    await registrar.ensure()
    assert stored.bundle == b"theirs"
    assert stored.webhook["rules"]


async def test_of_two_versions_the_one_that_started_last_wins(replicas: Replicas, stored: Stored) -> None:
    old, new = replicas.start(), replicas.start(NEWER)
    await old.ensure()
    await new.ensure()
    for _ in range(10):
        await old.ensure()
        await new.ensure()
        replicas.clock.now += 20
    assert stored.webhook["timeoutSeconds"] == 9
    assert stored.writes == 2


async def test_an_old_version_that_stays_alone_takes_over_at_last(replicas: Replicas, stored: Stored) -> None:
    old, new = replicas.start(), replicas.start(NEWER)
    await old.ensure()
    await new.ensure()
    await old.ensure()
    replicas.clock.now += 599
    await old.ensure()
    assert stored.webhook["timeoutSeconds"] == 9
    replicas.clock.now += 2
    await old.ensure()
    assert stored.webhook["timeoutSeconds"] == 5


async def test_an_old_version_that_is_started_again_during_a_rollout_replaces_nothing(
    replicas: Replicas, stored: Stored
) -> None:
    await replicas.start().ensure()
    replicas.clock.now += 3600
    await replicas.start(NEWER).ensure()
    replicas.clock.now += 100
    for _ in range(2):
        await replicas.start().ensure()
        assert stored.webhook["timeoutSeconds"] == 9
    assert replicas.log.lines[-1][1].endswith("stays as a newer replica wants it, for some minutes")


async def test_what_an_old_version_writes_all_the_same_is_replaced_at_once(
    replicas: Replicas, stored: Stored
) -> None:
    await replicas.start().ensure()
    assert stored.body is not None
    older = stored.body
    new = replicas.start(NEWER)
    await new.ensure()
    # One that knows nothing of the annotation keeps it.
    annotations = stored.body["metadata"]["annotations"] | older["metadata"]["annotations"]
    assert rollout.REPLACED in annotations
    stored.put(older | {"metadata": stored.body["metadata"] | {"annotations": annotations}})
    await new.ensure()
    assert stored.webhook["timeoutSeconds"] == 9


async def test_a_version_that_is_rolled_back_to_wins_at_once_when_the_rollout_is_long_over(
    replicas: Replicas, stored: Stored
) -> None:
    await replicas.start().ensure()
    await replicas.start(NEWER).ensure()
    replicas.clock.now += 601
    await replicas.start().ensure()
    assert stored.webhook["timeoutSeconds"] == 5


async def test_what_hooks_want_again_is_registered_at_once(replicas: Replicas, stored: Stored) -> None:
    registrar = replicas.start()
    for wanted in (WANTED, NEWER, WANTED, NEWER):
        await registrar.want([wanted])
        assert stored.webhook["timeoutSeconds"] == wanted.webhooks[0].timeout_seconds


async def test_a_restarted_replica_of_a_new_version_finds_its_own_again(
    replicas: Replicas, stored: Stored
) -> None:
    for _ in range(3):
        await replicas.start(NEWER).ensure()
    assert stored.writes == 1


async def test_whoever_undoes_every_repair_is_met_ever_more_slowly(
    replicas: Replicas, stored: Stored
) -> None:
    registrar = replicas.start()
    await registrar.ensure()
    for _ in range(40):
        stored.edit(failurePolicy="Fail")
        await registrar.ensure()
        replicas.clock.now += 15
    assert 8 <= stored.writes <= 20


async def test_that_somebody_undoes_every_repair_is_the_problem_until_a_repair_lasts(
    replicas: Replicas, stored: Stored
) -> None:
    registrar = replicas.start()
    kind = specs.ConfigurationKind.MUTATING
    await registrar.ensure()
    told = list[bool]()
    for _ in range(12):
        stored.edit(failurePolicy="Fail")
        await registrar.ensure()
        told.append(bool(registrar.problem(kind)))
        replicas.clock.now += 6
        await registrar.ensure()
        told.append(bool(registrar.problem(kind)))
    assert told == sorted(told), "what is told does not come and go with each repair"
    assert "MutatingWebhookConfiguration addon-operator as often as it is restored" in registrar.problem(kind)
    assert not registrar.problem(specs.ConfigurationKind.VALIDATING)
    for _ in range(3):
        replicas.clock.now += 130
        await registrar.ensure()
    assert not registrar.problem(kind)


async def test_an_edit_while_one_registrar_looks_is_not_taken_from_it_by_another_that_waits(
    server: api_server.ApiServer, stored: Stored, replicas: Replicas
) -> None:
    bundle, begun, go_on = Bundle(), asyncio.Event(), asyncio.Event()
    busy = replicas.start(trust=bundle)
    other = registration.Registrar(replicas.kube, [], ADDRESS, bundle, replicas.log, replicas.watches)
    await busy.ensure()
    again = asyncio.Event()

    async def refresh() -> certificate_store.Calling:
        (again if begun.is_set() else begun).set()
        await go_on.wait()
        return certificate_store.Calling(b"one", "k1")

    bundle.refresh = refresh  # type: ignore[method-assign]  # a certificate that takes its time
    keeping = [asyncio.create_task(each.keep()) for each in (other, busy)]
    await begun.wait()
    # What the watch of the edited object tells, too.
    bundle.calling_changed.set()
    for _ in range(20):
        await asyncio.sleep(0)
    go_on.set()
    async with asyncio.timeout(60):
        await again.wait()
    for task in keeping:
        task.cancel()
    await asyncio.gather(*keeping, return_exceptions=True)


async def test_a_guarded_path_follows_its_random_part_and_replicas_that_know_it_leave_each_other_alone(
    replicas: Replicas, stored: Stored
) -> None:
    trust = Bundle()
    guarded = structs.replace(WANTED, webhooks=(structs.replace(SPEC, is_guarded=True),))
    both = [replicas.start(guarded, trust=trust) for _ in range(2)]
    for key in ("k1", "k2"):
        trust.key = key
        for registrar in both:
            await registrar.ensure()
        assert stored.webhook["clientConfig"]["service"]["path"] == f"/{key}/mutate-pods"
        assert set(trust.keys.registered.values()) == {key}
    assert stored.writes == 2


async def test_one_edit_a_day_is_undone_at_once_every_day(replicas: Replicas, stored: Stored) -> None:
    registrar = replicas.start()
    await registrar.ensure()
    for _ in range(10):
        stored.edit(failurePolicy="Fail")
        await registrar.ensure()
        assert stored.webhook["failurePolicy"] == "Ignore"
        replicas.clock.now += 86400


async def test_a_missing_right_is_raised_by_name(replicas: Replicas, server: api_server.ApiServer) -> None:
    message = 'User "poor" cannot get resource "mutatingwebhookconfigurations"'
    server.on("GET", OBJECT, api_server.status(403, "Forbidden", message))
    with pytest.raises(api_errors.Forbidden, match=r'resources: \["mutatingwebhookconfigurations"\]'):
        await replicas.start().ensure()


class Rounds:
    """Ends a keeping registrar after some looks."""

    def __init__(self, replicas: "Replicas", server: api_server.ApiServer, stored: Stored) -> None:
        self._bundle = Bundle()
        self.left = 0
        self.done = asyncio.Event()
        self.registrar = replicas.start(trust=self._bundle)
        self._answer: api_server.Answer | None = None
        self._stored = stored
        server.on("GET", OBJECT, self._get)

    async def keep(self, rounds: int, answer: api_server.Answer | None = None) -> None:
        self.left, self._answer = rounds, answer
        self.done.clear()
        task = asyncio.create_task(self.registrar.keep())
        async with asyncio.timeout(60):
            await self.done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _get(self, asked: api_server.Asked) -> api_server.Answer:
        self.left -= 1
        if self.left < 0:
            self.done.set()
        else:
            self._bundle.calling_changed.set()
        if self._answer is not None:
            return self._answer
        return (
            api_server.Answer(self._stored.body) if self._stored.body else api_server.status(404, "NotFound")
        )


async def test_a_new_bundle_makes_it_look_at_once(
    replicas: Replicas, server: api_server.ApiServer, stored: Stored
) -> None:
    rounds = Rounds(replicas, server, stored)
    await rounds.keep(3)
    assert stored.writes == 1


CHARTS = structs.replace(WANTED, made_by_others=True)
EMPTY = api_server.an_object(
    KIND,
    "addon-operator",
    None,
    "admissionregistration.k8s.io/v1",
    labels={"app.kubernetes.io/managed-by": "Helm"},
)
OWNED = structs.replace(WANTED, namespace="system")
NAMESPACE = {"metadata": {"name": "system", "uid": "1"}}


async def test_what_the_chart_has_made_is_filled_and_stays_the_charts(
    replicas: Replicas, stored: Stored
) -> None:
    stored.put(EMPTY)
    await replicas.start(CHARTS).ensure()
    assert stored.bundle == b"one"
    assert stored.body is not None
    assert stored.body["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "Helm"}


async def test_what_the_chart_has_removed_is_not_made_again(
    replicas: Replicas, stored: Stored, server: api_server.ApiServer
) -> None:
    stored.put(EMPTY)
    registrar = replicas.start(CHARTS)
    await registrar.ensure()
    stored.delete()
    with pytest.raises(
        registration.ConfigurationMissingError, match=r"addon-operator does not exist.*helm upgrade"
    ):
        await registrar.ensure()
    assert stored.body is None
    assert not [asked for asked in server.asked if asked.method == "POST"]


async def test_one_that_is_missing_does_not_hold_up_the_others(
    kube: client.KubeClient, stored: Stored, log: logs.Lines, clock: api_server.Pauses
) -> None:
    missing = structs.replace(CHARTS, name="missing")
    registrar = registration.Registrar(
        kube, [missing, WANTED], ADDRESS, Bundle(), log, watches.shared(kube, Resting(clock))
    )
    with pytest.raises(registration.ConfigurationMissingError, match="missing"):
        await registrar.ensure()
    assert stored.bundle == b"one"


async def test_a_configuration_goes_away_with_the_namespace_of_the_operator(
    replicas: Replicas, stored: Stored, server: api_server.ApiServer
) -> None:
    server.on("GET", "/api/v1/namespaces/system", NAMESPACE)
    registrar = replicas.start(OWNED)
    await registrar.ensure()
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "system", "uid": "1"}
    assert stored.owners == [owner]
    await registrar.ensure()
    assert stored.writes == 1
    # Somebody has deleted the namespace, and with it the configuration, and made it again.
    stored.delete()
    server.on("GET", "/api/v1/namespaces/system", {"metadata": {"name": "system", "uid": "2"}})
    await registrar.ensure()
    assert stored.owners == [owner | {"uid": "2"}]


async def test_one_that_was_registered_without_an_owner_gets_it_beside_others(
    replicas: Replicas, stored: Stored, server: api_server.ApiServer
) -> None:
    await replicas.start(structs.replace(OWNED, namespace="")).ensure()
    body = stored.body
    assert body is not None
    body["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "system", "uid": "9"}]
    stored.put(body)
    server.on("GET", "/api/v1/namespaces/system", NAMESPACE)
    await replicas.start(OWNED).ensure()
    assert [one["kind"] for one in stored.owners] == ["Node", "Namespace"]


async def test_without_the_right_to_read_its_namespace_it_has_no_owner(
    replicas: Replicas, stored: Stored, server: api_server.ApiServer
) -> None:
    server.on("GET", "/api/v1/namespaces/system", api_server.status(403, "Forbidden"))
    await replicas.start(OWNED).ensure()
    assert stored.owners == []
    assert server.requests.count("GET /api/v1/namespaces/system") <= 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(
            api_server.status(403, "Forbidden", 'User "poor" cannot get it'),
            "the admission webhooks are not registered, or not repaired: poor may not get",
            id="no right",
        ),
        pytest.param(
            api_server.status(422, "Invalid"),
            "the admission webhooks cannot be registered now: the API server did not get",
            id="another error",
        ),
    ],
)
async def test_trouble_is_one_warning_and_its_end_one_line(
    replicas: Replicas, server: api_server.ApiServer, stored: Stored, answer: api_server.Answer, says: str
) -> None:
    rounds = Rounds(replicas, server, stored)
    await rounds.keep(3, answer)
    assert len(replicas.log.warnings) == 1
    assert replicas.log.warnings[0].startswith(says)
    troubled = rounds.registrar.health.trouble or ""
    assert troubled.startswith("the registration of webhooks has not come up: ")
    await rounds.keep(2)
    assert rounds.registrar.health.is_up
    assert replicas.log.lines[-1] == ("info", "the admission webhooks are registered")

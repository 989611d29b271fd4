"""What is served follows its source: files or a Secret."""

import asyncio
import base64
import contextlib
import datetime as dt
import pathlib
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.admission.certificates import (
    certificate_rotation,
    certificate_store,
    certificate_store_files,
    certificate_store_secret,
    certificates,
    path_keys,
    tls,
)
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.objects import events
from tests.support import api_server, logs, rows

LIFE = dt.timedelta(days=30)
SECRETS = "/api/v1/namespaces/system/secrets"
SECRET = f"{SECRETS}/webhook"
NAMES = frozenset({"addon-operator.system.svc"})


class EndOfTestError(Exception):
    """Ends a loop that would go on for ever."""


class Clock(api_server.Pauses):
    """Starts in 1970; each pause moves it on, and the last one ends the loop."""

    def __init__(self, pauses: int = 0) -> None:
        super().__init__()
        self.left = pauses

    @override
    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        self.left -= 1
        if self.left < 0:
            raise EndOfTestError

    def utc(self) -> dt.datetime:
        return certificate_store.utc(self)


class Source:
    """Gives one thing after the other, the last one for ever."""

    interval = 60.0

    def __init__(self, *steps: certificate_store.Material | kernel_errors.AddonOperatorError) -> None:
        self.steps = list(steps)

    async def load(self) -> certificate_store.Material:
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        return step


def material(clock: Clock) -> certificate_store.Material:
    authority = certificates.make_authority(clock.utc(), LIFE)
    return certificate_store.Material(
        certificates.make_server(authority, NAMES, clock.utc(), LIFE), authority.certificate
    )


def keys(clock: Clock) -> path_keys.PathKeys:
    return path_keys.PathKeys(api_server.client_of(api_server.ApiServer(), clock), "system", "webhook", clock)


class Served(tls.LiveTls):
    """Remembers what it served."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[certificates.KeyPair] = []

    @override
    def use(self, pair: certificates.KeyPair) -> None:
        super().use(pair)
        self.pairs.append(pair)


async def kept(clock: Clock, source: Source, log: logs.Lines) -> tuple[list[certificates.KeyPair], bool]:
    served = Served()
    store = certificate_store.CertificateStore(source, served, keys(clock), log, clock)
    await store.refresh()
    changed = store.calling_changed.follow()
    with pytest.raises(EndOfTestError):
        await store.keep()
    return served.pairs, changed.is_set()


async def test_a_new_bundle_is_reported() -> None:
    clock, log = Clock(3), logs.Lines()
    first, second = material(clock), material(clock)
    served, changes = await kept(clock, Source(first, first, second), log)
    assert (served, changes) == ([first.server, second.server], True)
    assert clock.seconds == [60.0] * 4
    assert log.lines == []


async def test_the_first_bundle_is_not_a_change() -> None:
    clock = Clock(1)
    assert (await kept(clock, Source(material(clock)), logs.Lines()))[1] is False


async def test_a_problem_is_reported_once_and_retried_sooner() -> None:
    clock, log = Clock(4), logs.Lines()
    first = material(clock)
    broken = certificates.CertificateError("it is broken")
    served, _ = await kept(clock, Source(first, broken, broken, first), log)
    assert served == [first.server]
    assert clock.seconds == [60, 10, 10, 60, 60]
    assert log.lines == [
        ("warning", "the certificate of the admission server cannot be renewed: it is broken"),
        ("info", "the certificate of the admission server is kept again"),
    ]


async def test_the_time_that_is_left_is_that_of_the_served_certificate() -> None:
    clock = Clock()
    store = certificate_store.CertificateStore(
        Source(material(clock)), tls.LiveTls(), keys(clock), logs.Lines(), time=clock
    )
    await store.refresh()
    clock.now += 3600
    assert store.seconds_left() == LIFE.total_seconds() - 3600


async def test_material_that_cannot_be_served_is_ignored() -> None:
    clock = Clock(1)
    good = material(clock)
    wrong = certificate_store.Material(certificates.KeyPair(good.server.certificate, b"no key"), b"bundle")
    served, changes = await kept(clock, Source(good, wrong), logs.Lines())
    assert (served, changes) == ([good.server], False)


# Files


def put(directory: pathlib.Path, pair: certificates.KeyPair, authority: bytes | None = None) -> None:
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    if authority is not None:
        (directory / "ca.crt").write_bytes(authority)


async def test_files_are_served_with_their_authority(tmp_path: pathlib.Path) -> None:
    given = material(Clock())
    put(tmp_path, given.server, given.bundle)
    assert await certificate_store_files.FileSource(tmp_path).load() == given


async def test_a_self_signed_certificate_is_its_own_authority(tmp_path: pathlib.Path) -> None:
    pair = certificates.make_authority(Clock().utc(), LIFE)
    put(tmp_path, pair)
    assert (await certificate_store_files.FileSource(tmp_path).load()).bundle == pair.certificate


async def test_without_an_authority_trust_is_left_to_others(tmp_path: pathlib.Path) -> None:
    put(tmp_path, material(Clock()).server)
    assert (await certificate_store_files.FileSource(tmp_path).load()).bundle is None


@rows.each(
    ("file", "content", "says"),
    [
        pytest.param("tls.crt", None, "cannot read .*tls.crt: No such file", id="no certificate"),
        pytest.param("tls.key", None, "cannot read .*tls.key: No such file", id="no key"),
        pytest.param("tls.crt", b"rubbish", "tls.crt: the text is not a certificate", id="rubbish"),
        pytest.param("ca.crt", b"rubbish", "ca.crt: the text is not a certificate", id="a wrong authority"),
        pytest.param("tls.key", b"rubbish", "tls.key is not the unencrypted PEM key", id="a wrong key"),
    ],
)
async def test_a_wrong_file_is_named(
    tmp_path: pathlib.Path, file: str, content: bytes | None, says: str
) -> None:
    given = material(Clock())
    put(tmp_path, given.server, given.bundle)
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(certificates.CertificateError, match=says):
        await certificate_store_files.FileSource(tmp_path).load()


# A Secret


class Secrets:
    """One Secret of an API server, with the rules of resourceVersion."""

    def __init__(self, server: api_server.ApiServer) -> None:
        self.stored: dict[str, Any] | None = None
        self.version = 0
        self.before_write: list[dict[str, Any] | None] = []
        self.writes = 0
        server.on("GET", SECRET, self._get)
        server.on("POST", SECRETS, self._create)
        server.on("PUT", SECRET, self._replace)

    def put(self, data: dict[str, bytes], **rest: object) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self._store({"kind": "Secret", "metadata": {"name": "webhook"}, "data": encoded, **rest})

    @property
    def data(self) -> dict[str, bytes]:
        assert self.stored is not None
        return {key: base64.b64decode(value) for key, value in self.stored["data"].items()}

    def _store(self, body: dict[str, Any]) -> None:
        self.version += 1
        metadata = body["metadata"] | {"resourceVersion": str(self.version)}
        self.stored = body | {"metadata": metadata}

    def _get(self, asked: api_server.Asked) -> api_server.Answer:
        return api_server.Answer(self.stored) if self.stored else api_server.status(404, "NotFound")

    def _intervene(self) -> None:
        if self.before_write:
            other = self.before_write.pop(0)
            if other is None:
                self.stored = None
            else:
                self._store(other)

    def _create(self, asked: api_server.Asked) -> api_server.Answer:
        self._intervene()
        if self.stored is not None:
            return api_server.status(409, "AlreadyExists")
        return self._taken(asked)

    def _replace(self, asked: api_server.Asked) -> api_server.Answer:
        self._intervene()
        if self.stored is None:
            return api_server.status(404, "NotFound")
        if asked.body["metadata"]["resourceVersion"] != self.stored["metadata"]["resourceVersion"]:
            return api_server.status(409, "Conflict")
        return self._taken(asked)

    def _taken(self, asked: api_server.Asked) -> api_server.Answer:
        self._store(asked.body)
        self.writes += 1
        return api_server.Answer(self.stored)


@pytest.fixture
def stored(server: api_server.ApiServer) -> Secrets:
    return Secrets(server)


@pytest.fixture
def clock() -> Clock:
    return Clock(pauses=100)


@pytest.fixture
def kube(server: api_server.ApiServer, clock: Clock) -> client.KubeClient:
    return api_server.client_of(server, clock)


def source(
    kube: client.KubeClient, clock: Clock, told: list[str] | None = None
) -> certificate_store_secret.SecretSource:
    about = events.ObjectReference("v1", "Secret", "webhook", "system")
    kept = [] if told is None else told
    return certificate_store_secret.SecretSource(kube, about, NAMES, clock, lambda _, text: kept.append(text))


async def test_a_missing_secret_is_made(kube: client.KubeClient, clock: Clock, stored: Secrets) -> None:
    given = await source(kube, clock).load()
    assert stored.stored is not None
    assert stored.stored["type"] == "kubernetes.io/tls"
    assert set(stored.data) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}
    assert (stored.data["tls.crt"], stored.data["ca.crt"]) == (given.server.certificate, given.bundle)


async def test_replicas_share_what_the_first_one_made(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    found = [await source(kube, clock).load() for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert stored.writes == 1


async def test_replicas_that_start_at_once_agree(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    found = await asyncio.gather(*(source(kube, clock).load() for _ in range(5)))
    assert len({one.server.certificate for one in found}) == 1
    assert stored.writes == 1


async def test_the_server_is_rotated_in_the_secret(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    replicas = [source(kube, clock), source(kube, clock)]
    before = await replicas[0].load()
    clock.now += 250 * 86400
    after = [await replica.load() for replica in replicas]
    assert after[0] == after[1]
    assert after[0].server != before.server
    assert after[0].bundle == before.bundle


async def test_a_new_authority_is_published_beside_the_former(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    first = await source(kube, clock).load()
    clock.now += 2434 * 86400
    signed = await source(kube, clock).load()
    assert first.bundle is not None
    assert signed.bundle is not None
    assert signed.bundle.endswith(first.bundle)
    assert certificates.is_signed_by(signed.server.certificate, signed.bundle)
    assert stored.data["former-ca.crt"] == first.bundle


@pytest.mark.parametrize(
    ("damage", "wrong"),
    [
        pytest.param(None, "was deleted", id="deleted"),
        pytest.param({}, "held no certificate that can be used", id="emptied"),
        pytest.param(
            {"tls.crt": b"x", "tls.key": b"x", "ca.crt": b"x", "ca.key": b"x"},
            "held no certificate that can be used",
            id="overwritten",
        ),
    ],
)
async def test_a_lost_secret_is_restored_from_what_is_served_and_that_is_told(
    kube: client.KubeClient, clock: Clock, stored: Secrets, damage: dict[str, bytes] | None, wrong: str
) -> None:
    told = list[str]()
    replica = source(kube, clock, told)
    before = await replica.load()
    assert told == [], "it was made"
    if damage is None:
        stored.stored = None
    else:
        stored.put(damage)
    assert await replica.load() == before
    assert stored.data["ca.crt"] == before.bundle
    await replica.load()
    (said,) = told
    assert said.startswith(f"Secret system/webhook {wrong}, and is written again from what is in use")


async def test_what_an_operator_before_left_damaged_is_told_and_what_is_rotated_is_not(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    told = list[str]()
    first = await source(kube, clock, told).load()
    clock.now += 250 * 86400
    await source(kube, clock, told).load()
    assert told == [], "only rotated"
    stored.put({**stored.data, "tls.crt": b"x"})
    assert (await source(kube, clock, told).load()).bundle == first.bundle
    stored.put({**stored.data, "ca.crt": b"x"})
    await source(kube, clock, told).load()
    ours, new = told
    assert "is written again with its own authority" in ours
    assert "with a new authority" in new


async def test_keys_of_others_in_the_secret_are_kept(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    stored.put({"note": b"mine"}, type="Opaque")
    await source(kube, clock).load()
    assert stored.data["note"] == b"mine"
    assert stored.stored is not None
    assert stored.stored["type"] == "Opaque"


async def test_a_secret_that_changes_under_the_pen_is_read_again(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    await source(kube, clock).load()
    others = stored.stored
    stored.stored = None
    stored.before_write = [others]
    assert (await source(kube, clock).load()).bundle == stored.data["ca.crt"]
    assert stored.writes == 1


async def test_a_secret_that_keeps_changing_is_reported(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    empty = {"kind": "Secret", "metadata": {"name": "webhook"}, "data": {}}
    stored.put({})
    stored.before_write = [empty] * 20
    with pytest.raises(api_errors.Conflict):
        await source(kube, clock).load()


async def test_the_secret_of_cert_manager_is_served_and_left_alone(
    kube: client.KubeClient, clock: Clock, stored: Secrets
) -> None:
    theirs = material(clock)
    assert theirs.bundle is not None
    stored.put({"tls.crt": theirs.server.certificate, "tls.key": theirs.server.key, "ca.crt": theirs.bundle})
    assert await source(kube, clock).load() == theirs
    assert stored.writes == 0


async def test_a_missing_right_is_named(
    kube: client.KubeClient, clock: Clock, server: api_server.ApiServer
) -> None:
    message = 'secrets "webhook" is forbidden: User "poor" cannot get resource "secrets"'
    server.on("GET", SECRET, api_server.status(403, "Forbidden", message))
    with pytest.raises(api_errors.Forbidden, match=r'resources: \["secrets"\], verbs: \["get"\]'):
        await source(kube, clock).load()


def test_certificates_last_a_year_and_their_authority_ten() -> None:
    lives = certificate_rotation.Lives()
    assert (lives.server.days, lives.authority.days) == (365, 3650)


async def test_without_a_certificate_that_holds_pods_cannot_be_admitted_and_why_is_told() -> None:
    clock = Clock()
    source = Source(kernel_errors.AddonOperatorError("may not get secrets"), material(clock))
    store = certificate_store.CertificateStore(source, tls.LiveTls(), keys(clock), logs.Lines(), clock)
    told = [store.unready_reason]
    with contextlib.suppress(kernel_errors.AddonOperatorError):
        await store.refresh()
    told.append(store.unready_reason)
    await store.refresh()
    told.append(store.unready_reason)
    clock.now += LIFE.total_seconds() + 1
    told.append(store.unready_reason)
    assert told == [
        "the admission server has no certificate yet",
        "the admission server has no certificate: may not get secrets",
        None,
        "the certificate of the admission server has expired",
    ]

"""Modules are discovered again when an API that one requires comes or goes."""

import dataclasses

import pytest
from typing_extensions import override

from addon_operator.engine import intents
from addon_operator.engine.converge import api_watch
from addon_operator.kernel import errors
from addon_operator.kube.discovery import discovery, presence
from addon_operator.kube.informers import informers, object_changes, object_selections, projections
from addon_operator.modules import requirements
from tests.support import unused
from tests.unit.engine import fakes

API, NAME = "example.com/v1", "v1.example.com"


@dataclasses.dataclass(eq=False)
class Subscription(informers.Subscription):
    selection: object_selections.ObjectSelection
    is_open: bool = True

    @override
    def close(self) -> None:
        self.is_open = False


class Kinds(discovery.Catalog):
    """Nothing is asked for; what settles is up to the test."""

    settles: float | None = None

    def __init__(self) -> None:
        """Without a cluster."""

    @property
    @override
    def settles_in(self) -> float | None:
        return self.settles


class Watch(api_watch.ApiWatch):
    """The cluster answers what the test says."""

    def __init__(self, watches: informers.Informers, inbox: intents.Inbox, heard: fakes.Heard) -> None:
        self.kinds = Kinds()
        super().__init__(
            self.kinds,
            unused.unused(presence.ObjectProbe),
            watches,
            inbox,
            heard.append,
        )
        self.now = requirements.ClusterFacts()
        self.asked = 0
        self.is_away = False

    @override
    async def ask(self) -> requirements.ClusterFacts:
        self.asked += 1
        if self.is_away:
            raise errors.AddonOperatorError("the API server does not answer")
        return self.now

    def require(self, *apis: str) -> None:
        """A discovery of modules looks at the cluster."""
        self.follow(frozenset(apis), self.now)


class Inbox(fakes.Inbox):
    """Discovers modules at once."""

    def __init__(self, bench: "Bench") -> None:
        super().__init__()
        self._bench = bench

    @override
    def put_nowait(self, item: intents.Intent) -> None:
        super().put_nowait(item)
        self._bench.watch.require(API)


class Watches(informers.Informers):
    """Takes down what is watched."""

    def __init__(self) -> None:
        self.subscriptions: list[Subscription] = []

    @override
    def subscribe(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.ObjectListener,
    ) -> informers.Subscription:
        subscription = Subscription(selection)
        self.subscriptions.append(subscription)
        return subscription


class Bench:
    def __init__(self) -> None:
        self.watches = Watches()
        self.heard = fakes.Heard()
        self.inbox = Inbox(self)
        self.watch = Watch(self.watches, self.inbox, self.heard)

    @property
    def discoveries(self) -> int:
        return self.inbox.put_in.count(intents.ApisChanged())

    def serve(self, *apis: str, unclear: tuple[str, ...] = ()) -> None:
        self.watch.now = requirements.ClusterFacts("v1.31.2", frozenset(apis), frozenset(unclear))

    def change(self, name: str) -> None:
        key = object_changes.ObjectKey("", name)
        self.watch.changed([object_changes.Change(object_changes.ChangeType.ADDED, key, b"{}", "1")])


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_nothing_is_watched_until_a_module_requires_an_api(bench: Bench) -> None:
    bench.watch.require()
    assert (await bench.watch.look(), bench.watches.subscriptions, bench.watch.asked) == (None, [], 0)
    bench.watch.require(API)
    bench.watch.require(API)
    (watched,) = bench.watches.subscriptions
    assert str(watched.selection) == "APIService of apiregistration.k8s.io/v1"
    bench.watch.require()
    assert not watched.is_open


async def test_an_api_that_only_one_look_lacks_is_looked_for_again_when_that_decides(bench: Bench) -> None:
    bench.serve(API)
    bench.watch.require(API)
    bench.watch.kinds.settles = 7.0
    assert (await bench.watch.look(), bench.discoveries) == (7.0, 0)


@pytest.mark.parametrize("comes", [True, False], ids=["it comes", "it goes"])
async def test_a_required_api_that_comes_or_goes_makes_one_discovery(bench: Bench, comes: bool) -> None:
    bench.serve(*() if comes else (API,))
    bench.watch.require(API)
    assert (await bench.watch.look(), bench.discoveries) == (None, 0)
    bench.serve(*(API,) if comes else (), "other.com/v1")
    assert (await bench.watch.look(), bench.discoveries) == (None, 1)
    assert (await bench.watch.look(), bench.discoveries) == (None, 1)


async def test_changes_of_other_apis_are_ignored(bench: Bench) -> None:
    bench.watch.require(API)
    bench.change("v1.other.com")
    assert not bench.watch._wake.is_set()
    bench.change(NAME)
    assert bench.watch._wake.is_set()


async def test_an_api_that_is_registered_is_looked_at_until_it_is_served(bench: Bench) -> None:
    bench.serve(unclear=(API,))
    bench.watch.require(API)
    pauses = [await bench.watch.look() for _ in range(3)]
    assert [pause and round(pause, 1) for pause in pauses] == [0.1, 0.2, 0.4]
    assert bench.discoveries == 0
    bench.serve(API)
    assert (await bench.watch.look(), bench.discoveries) == (None, 1)


async def test_an_api_whose_server_stops_answering_makes_no_discovery(bench: Bench) -> None:
    bench.serve(API)
    bench.watch.require(API)
    bench.serve(unclear=(API,))
    assert await bench.watch.look() is not None
    assert bench.discoveries == 0


async def test_an_unclear_api_that_is_gone_makes_a_discovery(bench: Bench) -> None:
    bench.serve(unclear=(API,))
    bench.watch.require(API)
    bench.serve()
    await bench.watch.look()
    assert bench.discoveries == 1


async def test_where_no_watch_is_possible_somebody_looks_from_time_to_time(bench: Bench) -> None:
    bench.watch.require(API)
    bench.watch.trouble("the operator may not list apiservices")
    bench.watch.trouble("the operator may not watch apiservices")
    assert bench.heard.warnings == [
        "APIs that modules require are looked for every 30 s only: the operator may not list apiservices"
    ]
    assert await bench.watch.look() == 30.0
    bench.watch.trouble(None)
    assert await bench.watch.look() is None
    bench.watch.is_away = True
    assert await bench.watch.look() == 30.0

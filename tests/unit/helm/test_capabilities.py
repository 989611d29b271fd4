"""How often the cluster is asked what it can do."""

from addon_operator.helm import capabilities
from tests.support import clocks


class Cluster:
    """Has another version each time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def read(self) -> capabilities.Capabilities:
        self.asked += 1
        return capabilities.Capabilities(f"v1.{self.asked}.0", frozenset())


async def test_what_is_true_now_is_always_asked_for() -> None:
    reader = capabilities.CapabilityReader(Cluster().read, clocks.Clock())
    assert [(await reader.now()).kube_version for _ in range(2)] == ["v1.1.0", "v1.2.0"]


async def test_what_was_true_within_a_minute_is_not_asked_for_again() -> None:
    clock, cluster = clocks.Clock(), Cluster()
    reader = capabilities.CapabilityReader(cluster.read, clock)
    await reader.recent()
    clock.now += 59
    await reader.recent()
    assert cluster.asked == 1
    clock.now += 1
    await reader.recent()
    assert cluster.asked == 2

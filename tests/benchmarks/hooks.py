"""What lies between an object and the hook that is bound to it."""

from tests.benchmarks import bound_pods, hook_events, measures, surroundings


def run() -> list[measures.Row]:
    """All measurements; takes about three minutes."""
    with surroundings.control_plane() as cluster:
        return [*hook_events.run(cluster), *bound_pods.run(cluster)]

"""When a watch counts as up, and what is said when it does not."""

import pytest

from addon_operator.kube.informers import watch_health


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def health(time: Time) -> watch_health.WatchHealth:
    return watch_health.WatchHealth("the watch of presets", grace=60, elapsed=time)


def test_a_watch_that_never_came_up_is_reported_at_once(health: watch_health.WatchHealth) -> None:
    assert health.trouble == health.never_came_up == "the watch of presets has not come up yet"
    health.falls("KeyError: 64535")
    health.falls()
    assert health.trouble == "the watch of presets has not come up: KeyError: 64535"
    assert not health.is_up


def test_a_watch_that_stands_is_not_a_problem(health: watch_health.WatchHealth) -> None:
    health.falls("refused")
    health.stands()
    assert (health.trouble, health.is_up, health.never_came_up) == (None, True, None)


def test_a_short_interruption_is_not_a_problem_and_a_long_one_is(
    health: watch_health.WatchHealth, time: Time
) -> None:
    health.stands()
    health.falls()
    time.now += 59
    health.falls("nobody answers")
    assert health.is_up
    time.now += 1
    assert health.trouble == "the watch of presets has been down for 60 s: nobody answers"
    assert health.never_came_up is None, "it stood once"
    health.stands()
    assert health.is_up


def test_each_interruption_has_a_grace_of_its_own(health: watch_health.WatchHealth, time: Time) -> None:
    for _ in range(3):
        health.stands()
        health.falls("away")
        time.now += 50
        assert health.is_up

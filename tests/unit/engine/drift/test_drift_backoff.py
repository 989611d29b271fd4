"""How soon a module is healed that somebody damages again and again."""

from addon_operator.engine.drift import drift_backoff


def test_the_first_healings_come_at_once() -> None:
    backoff = drift_backoff.DriftBackoff()
    for _ in range(drift_backoff.FREE):
        assert backoff.wait(100.0) == 0
        backoff.restored(100.0)
    assert backoff.wait(100.0) == drift_backoff.FIRST_PAUSE


def test_the_pause_doubles_up_to_a_limit() -> None:
    backoff, pauses = drift_backoff.DriftBackoff(count=drift_backoff.FREE, last=0.0), []
    now = 0.0
    for _ in range(8):
        pauses.append(backoff.wait(now))
        now += pauses[-1]
        backoff.restored(now)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]


def test_time_that_passed_counts() -> None:
    backoff = drift_backoff.DriftBackoff(count=drift_backoff.FREE, last=100.0)
    assert backoff.wait(103.0) == 2
    assert backoff.wait(106.0) == 0


def test_after_a_calm_time_the_count_begins_anew() -> None:
    backoff = drift_backoff.DriftBackoff(count=drift_backoff.FREE - 1, last=0.0)
    assert backoff.wait(drift_backoff.CALM - 1) == 0
    assert backoff.count == drift_backoff.FREE - 1
    assert backoff.wait(drift_backoff.CALM + 1) == 0
    assert backoff.count == 0


def test_a_pause_is_not_a_calm_time() -> None:
    backoff = drift_backoff.DriftBackoff(count=50, last=0.0)
    assert backoff.wait(2 * drift_backoff.MAX_PAUSE) == 0
    assert backoff.count == 50
    assert backoff.wait(4 * drift_backoff.MAX_PAUSE) == 0
    assert backoff.count == 0


def test_what_was_restored_lately_is_counted_until_it_is_calm() -> None:
    backoffs = drift_backoff.DriftBackoffs()
    backoffs.restored(["a"], 10.0)
    backoffs.restored(["a", "b"], 20.0)
    assert backoffs.recent(21.0) == {"a": 2, "b": 1}
    assert backoffs.recent(21.0 + drift_backoff.CALM) == {}

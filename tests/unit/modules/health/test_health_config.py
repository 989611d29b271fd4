"""What a module says of its health."""

from addon_operator.modules.health import health_config


def test_a_file_that_says_nothing_waits_for_nothing() -> None:
    found = health_config.read({})
    assert (found.wait, found.test, found.timeout, found.deadline) == (False, False, 300.0, 600.0)
    assert found.counts("Job", "migrate-1")


def test_what_is_ignored_is_named_by_kind_and_name_with_stars() -> None:
    found = health_config.read({"ignore": [{"kind": "Job", "name": "migrate-*"}, {"kind": "Shop"}]})
    assert not found.counts("Job", "migrate-1")
    assert found.counts("Job", "import")
    assert found.counts("job", "migrate-1")
    assert not found.counts("Shop", "any")

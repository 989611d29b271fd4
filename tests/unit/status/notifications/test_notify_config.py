"""``notify.yaml``: what it says, and what is said of a wrong one."""

import pytest

from addon_operator.modules import news
from addon_operator.status.notifications import notify_config
from tests.support import rows
from tests.unit import costs

KINDS = notify_config.KINDS
SECRET = "hooks.example/services/canary-5up3r"
RIGHT = f"""\
cluster: prod
targets:
- name: ops
  url: https://{SECRET}
  format: slack
- name: bus
  url: http://events.addons.svc:8080/{SECRET}
  format: cloudevents
  on: [failed, recovered, rolledBack]
  modules: ["we*", db]
  after: 10m
  hmacKey: canary-5up3r
"""


def wrong(text: str) -> str:
    with pytest.raises(notify_config.NotifyConfigError) as caught:
        notify_config.parse(text)
    assert "canary" not in str(caught.value)
    return str(caught.value)


def with_target(*lines: str, url: str = f"https://{SECRET}") -> str:
    return "\n".join(
        ["targets:", "- name: ops", f"  url: {url}", "  format: slack", *(f"  {line}" for line in lines)]
    )


def test_a_file_names_targets_and_what_each_is_told() -> None:
    found = notify_config.parse(RIGHT)
    ops, bus = found.targets
    assert found.cluster == "prod"
    assert (ops.name, ops.host, ops.format, ops.after, ops.modules) == (
        "ops",
        "hooks.example",
        "slack",
        120.0,
        ("*",),
    )
    usual = {news.FAILED, news.ROLLED_BACK, KINDS["unhealthy"], KINDS["hookFails"], KINDS["chartLost"]}
    assert ops.kinds == {*usual, news.RECOVERED}
    assert bus.kinds == {news.FAILED, news.RECOVERED, news.ROLLED_BACK}
    assert bus.after == 600.0
    assert [bus.wants(name) for name in ("web", "db", "cache")] == [True, True, False]
    assert (bus.hmac_key, bus.host) == ("canary-5up3r", "events.addons.svc")
    assert "canary" not in repr(found)


def test_no_targets_are_right_and_tell_nobody_anything() -> None:
    assert notify_config.parse("targets: []") == notify_config.NOTHING


@rows.each(
    ("text", "told"),
    [
        ("", "null is not a mapping; write the key targets with a list below it"),
        ("target: []", "the key 'target' is not known here; did you mean 'targets'?"),
        (
            with_target("modul: [web]"),
            (
                "notify.yaml, line 5, column 3, targets[0].modul: the key 'modul' is not "
                "known here; did you mean 'modules'?"
            ),
        ),
        (with_target("cluster: prod"), "write it beside targets, not below it"),
        (f"url: https://{SECRET}", "write it below an item of targets"),
        (
            with_target("on: [fail]"),
            'line 5, column 8, targets[0].on[0]: "fail" is not known here; write one of failed',
        ),
        (
            with_target("on: [recovered]"),
            "line 5, column 3, targets[0].on: recovered tells that something else is over",
        ),
        (with_target("on: failed"), "is not a list; write a list, such as [a, b]"),
        (with_target("after: 5"), "5 is not a text; write a time with its unit, such as 30s"),
        (with_target("after: 5 minutes"), "invalid duration '5 minutes'"),
        (with_target("after: 0s"), "'0s' is not longer than 0"),
        (with_target("hmacKey: canary"), "targets[0].hmacKey: only the format cloudevents is signed"),
        (with_target("hmacKey: [canary]"), "a list is not a text"),
        (with_target(url="[https://canary]"), "targets[0].url: a list is not a text"),
        (
            with_target(url="ftp://canary"),
            "targets[0].url: it is not an address that can be used; write that of",
        ),
        (with_target(url='"https://canary/with space"'), "it is not an address that can be used"),
        (with_target(url="https://"), "it is not an address that can be used"),
        (with_target(url="https://canary:99999999"), "it is not an address that can be used"),
        ("targets:\n- name: https://canary\n  url: https://x\n  format: slack", "targets[0].name: "),
        ("targets:\n- url: https://x\n  name: a\n  format: https://canary", "targets[0].format: "),
        ("targets:\n- https://canary: 1", "targets[0]"),
        ("targets:\n- https://canary", "targets[0]: "),
        ("targets:\n- {name: a, format: slack}", "the key 'url' is missing"),
        (RIGHT.replace("name: bus", "name: ops"), "another target has this name"),
        ("targets: [", "notify.yaml, line 2, column 1: invalid YAML"),
        (f"{RIGHT}  hmacKey: canary", "the key is already set"),
        (
            "targets:\n" + "".join(f"- {{name: t{n}, url: 'https://x', format: slack}}\n" for n in range(21)),
            "there are 21 targets, and 20 may be",
        ),
        (with_target(f"modules: [{', '.join('a' * 51)}]"), "at most 50 patterns"),
        (with_target(f"modules: [{'a' * 101}]"), "at most 50 patterns of 100 characters"),
        ("#" * (notify_config.MAX_BYTES + 1), "more than 32 KiB"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_nothing_of_the_secret(text: str, told: str) -> None:
    assert told in wrong(text)


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines() -> None:
    told = wrong(
        "targets:\n- name: Ops Team\n  url: hooks.example/canary\n  format: discord\n"
        "  on: [failed, recoverd]\n  after: 2 minutes\n  module: [web]\n"
        "- {name: ops, url: 'ftp://canary', format: slack, hmacKey: canary}"
    )
    places = [each.partition(": ")[0] for each in told.split("; notify.yaml, ")]
    keys = ["name", "url", "format", "on[1]", "after", "module"]
    assert [place.rpartition(", ")[2] for place in places] == [
        *(f"targets[0].{key}" for key in keys),
        "targets[1].url",
        "targets[1].hmacKey",
    ]
    assert "'Ops Team' is not a name that can stand here; use lower-case letters, digits and '-'" in told
    assert "namespace" not in told


@rows.each(
    ("host", "is_near"),
    [
        ("example.com", False),
        ("8.8.8.8", False),
        ("svc.example.com", False),
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("10.0.0.7", True),
        ("localhost", True),
        ("events", True),
        ("events.addons.svc:8080", True),
        ("events.addons.svc.cluster.local", True),
    ],
)
def test_http_is_for_receivers_in_the_cluster(host: str, is_near: bool) -> None:
    text = with_target(url=f"http://{host}/canary")
    if is_near:
        assert notify_config.parse(text).targets[0].host
    else:
        assert "targets[0].url: write https: an address is a secret" in wrong(text)


def test_only_the_first_mistakes_are_shown() -> None:
    keys = "".join(f"  key{number}: 1\n" for number in range(30))
    assert wrong(with_target() + "\n" + keys).endswith("20 more mistakes")


def test_a_file_full_of_mistakes_takes_no_longer_than_its_size_allows() -> None:
    def text(count: int) -> str:
        return with_target() + "\n" + "".join(f"  modulse{number}: 1\n" for number in range(count))

    assert costs.is_linear(text, wrong, 100)


KEY = "T0PS3CRETKEY/b64+x=="
MISPLACED = [
    "name: KEY", "name: {KEY: 1}", "format: KEY", "KEY: 1", "'hooks.example/KEY': x", "on: [KEY]", "on: KEY",
    "after: KEY",
    "hmacKey: [KEY]", "url: [KEY]", "hmacKey: KEY: x", "hmacKey: *KEY", "hmacKey: !KEY x", "hmacKey: 'KEY",
    "hmacKey: &KEY x\n  x: *KEYx", "KEY: 1\n  KEY: 2", "modules: KEY", "modules: {KEY: 1}",
    "modules: [{KEY: 1}]",
    "modules.KEY: 1", "after: KEYKEYKEYKEYKEYKEYKEYKEY", "hmacKey: |KEY", "hmacKey: >KEY", "%KEY", "? [KEY]",
    "name: a\n\tKEY",
]  # fmt: skip


@rows.each("line", [*MISPLACED, *(f"# at the top\n{line}" for line in MISPLACED)])
def test_a_key_at_any_wrong_place_is_in_no_sentence(line: str) -> None:
    secret = line.replace("KEY", KEY) if "hmacKEY" not in line else line
    text = secret if line.startswith("# at") else f"targets:\n- name: a\n  {secret}"
    with pytest.raises(notify_config.NotifyConfigError) as caught:
        notify_config.parse(text)
    assert "T0PS3" not in str(caught.value)
    assert "notify.yaml" in str(caught.value)

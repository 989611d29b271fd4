"""What people read: what happened, where, since when, and what happens next."""

import json

from msgspec import structs

from addon_operator.kernel import clock
from addon_operator.modules import news
from addon_operator.status.notifications import notify_config, problems, texts, transitions
from tests.support import rows

KINDS = notify_config.KINDS
Format = notify_config.Format
PLACE = texts.Place("addons", "prod")
BEGIN = clock.parse_rfc3339("2026-11-25T10:02:00Z")
NOW = BEGIN + 180


def an_item(
    module: str = "web",
    kind: news.NewsKind = news.FAILED,
    *,
    over: float | None = None,
    ended: str = "",
    text: str = "hook look.sh failed with exit code 1",
    follows: str = "",
    at: float | None = None,
    sooner: str = "",
    revision: int | None = None,
    namespace: str = "addons",
) -> transitions.Item:
    return transitions.Item(
        module, namespace, kind, BEGIN, problems.Problem(text, follows, at, sooner), over, ended, revision
    )


def several(kind: news.NewsKind, over: float | None = None) -> list[transitions.Item]:
    return [an_item(name, kind, over=over) for name in "abcd"]


def read(*items: transitions.Item, place: texts.Place = PLACE, now: float = NOW) -> list[str]:
    message = texts.Message(items, now)
    return [texts.title(message), *texts.lines(message, place)]


def test_one_failure_is_told_with_what_where_since_when_and_what_next() -> None:
    cause = ", or sooner: it waits for endpoints of Service shop/admission"
    assert read(an_item(follows="next try", at=BEGIN + 240, sooner=cause)) == [
        "web failed",
        "Module web (cluster prod, namespace addons).",
        (
            "It has failed since 10:02 UTC (3 min): hook look.sh failed with exit code 1. "
            "Next try at 10:06 UTC, or sooner: it waits for endpoints of Service shop/admission."
        ),
        "More: addon-operator module describe web -n addons",
    ]


@rows.each(
    ("item", "told"),
    [
        (
            an_item(over=BEGIN + 14 * 60),
            ["web works again, after 14 min", "It began at 10:02 UTC and ended at 10:16 UTC."],
        ),
        (
            an_item(over=BEGIN + 40, ended="it is disabled"),
            [
                "web no longer fails, after 40 s: it is disabled",
                "It began and ended at 10:02 UTC.",
            ],
        ),
        (
            an_item(kind=KINDS["unhealthy"], text="ImagePullBackOff: Deployment web"),
            [
                "web is unhealthy",
                (
                    "Its resources have not been healthy since 10:02 UTC (3 min): ImagePullBackOff: "
                    "Deployment web. The operator goes on watching them."
                ),
            ],
        ),
        (
            an_item(kind=KINDS["unhealthy"], over=BEGIN + 3 * 3600),
            ["web is healthy again, after 3 h", "It began at 10:02 UTC and ended at 13:02 UTC."],
        ),
        (
            an_item(kind=KINDS["drifted"], text="Deployment web: /spec/replicas (by kubectl)"),
            [
                "web was changed by others",
                (
                    "Others changed its resources, seen at 10:02 UTC (3 min ago): Deployment web: "
                    "/spec/replicas (by kubectl). That stays until somebody undoes it, or it is corrected."
                ),
            ],
        ),
        (
            an_item(
                kind=KINDS["heldBack"],
                text="upgrade to revision 3",
                follows="the window opens",
                at=BEGIN + 24 * 3600,
            ),
            [
                "web waits for a window",
                (
                    "It has waited since 10:02 UTC (3 min): upgrade to "
                    "revision 3. The window opens at 10:02 UTC on 26 November."
                ),
            ],
        ),
        (
            an_item(
                kind=KINDS["hookFails"],
                text="hook a.sh on pods failed 9 times: exit code 3",
                follows="it goes on by itself when that is mended",
            ),
            [
                "web has trouble with its hooks",
                (
                    "Its hooks have not worked since 10:02 UTC (3 min): hook a.sh on pods failed 9 times: "
                    "exit code 3. It goes on by itself when that is mended."
                ),
            ],
        ),
        (
            an_item(kind=news.ROLLED_BACK, text="timed out"),
            [
                "web was rolled back",
                (
                    "The upgrade failed, and the release went back to the last revision that "
                    "worked, at 10:02 UTC (3 min ago): timed out."
                ),
            ],
        ),
        (
            an_item(kind=news.UPGRADED, text="", revision=5),
            ["web was upgraded to revision 5", "It was upgraded at 10:02 UTC."],
        ),
    ],
    ids=lambda each: each.kind if isinstance(each, transitions.Item) else "",
)
def test_each_kind_has_its_words(item: transitions.Item, told: list[str]) -> None:
    title, _, line, _ = read(item)
    assert [title, line] == told


def test_what_came_back_is_told_with_how_often() -> None:
    title, _, line, _ = read(structs.replace(an_item(), times=3))
    assert title == "web failed, 3 times"
    assert line.startswith("It has failed since 10:02 UTC (3 min), with 2 breaks: hook look.sh")


def test_a_module_in_another_namespace_and_a_cluster_without_a_name_are_told_as_such() -> None:
    where = read(an_item(namespace="shop"), place=texts.Place("addons"))[1]
    assert where == "Module web in namespace shop (namespace addons)."


def test_another_day_is_told_with_the_date() -> None:
    assert "since 10:02 UTC on 25 November (2 d 1 h)" in read(an_item(), now=BEGIN + 49 * 3600)[2]


def test_many_at_once_are_counted_and_the_first_are_told_in_full() -> None:
    items = [an_item(f"module-{number}") for number in range(200)]
    title, where, *lines, more = read(*items)
    assert title == "200 modules failed"
    assert where == "In cluster prod, namespace addons:"
    assert len(lines) == 21
    assert lines[0].startswith("module-0 failed. It has failed since 10:02 UTC")
    assert lines[-1].startswith("And 180 more: module-20, module-21")
    assert lines[-1].endswith("and 120 more.")
    assert more == "More: addon-operator module list -n addons"


@rows.each(
    ("items", "title"),
    [
        ([an_item("a"), an_item("b"), an_item("c", over=NOW)], "a and b failed, c works again"),
        ([an_item("a"), an_item("b", KINDS["unhealthy"])], "a failed, b is unhealthy"),
        ([an_item("a"), an_item("a", KINDS["unhealthy"])], "a failed, a is unhealthy"),
        ([an_item("a", KINDS["unhealthy"]), an_item("b", KINDS["unhealthy"])], "a and b are unhealthy"),
        (
            [an_item("a"), an_item("b", news.UPGRADED), an_item("c", news.UPGRADED)],
            "a failed, b and c were upgraded",
        ),
        (several(KINDS["drifted"], over=NOW), "4 modules are as their charts say again"),
        (several(KINDS["heldBack"], over=NOW), "4 modules no longer wait for a window"),
        (several(KINDS["hookFails"]), "4 modules have trouble with their hooks"),
        (several(KINDS["hookFails"], over=NOW), "4 modules have no trouble with their hooks any more"),
        ([*several(news.FAILED, over=NOW), an_item("e")], "4 modules work again, 1 failed"),
        ([an_item("e"), *several(news.UPGRADED)], "1 module failed, 4 were upgraded"),
    ],
)
def test_a_title_names_a_few_modules_and_counts_many(items: list[transitions.Item], title: str) -> None:
    assert read(*items)[0] == title


@rows.each(
    ("after", "told"), [(0, "now"), (5, "at 10:05:05 UTC"), (59, "at 10:05:59 UTC"), (180, "at 10:08 UTC")]
)
def test_what_happens_in_the_minute_of_the_message_is_told_with_seconds(after: float, told: str) -> None:
    line = read(an_item(follows="next try", at=NOW + after))[2]
    assert line.endswith(f" Next try {told}.")


def a_target(format_: Format, key: str = "") -> notify_config.Target:
    return notify_config.Target("ops", "https://x", format_, hmac_key=key)


def test_slack_shows_foreign_texts_as_they_are() -> None:
    body = texts.body(
        a_target(Format.SLACK), texts.Message((an_item(text="<!channel> & *bold*"),), NOW), PLACE
    )
    text = json.loads(body.content)["text"]
    assert text.startswith("*prod: web failed*\n"), "one glance at a phone says where"
    assert "&lt;!channel&gt; &amp; *bold*" in text


def test_teams_gets_an_adaptive_card_of_plain_runs() -> None:
    body = texts.body(a_target(Format.MSTEAMS), texts.Message((an_item(text="[x](y)"),), NOW), PLACE)
    document = json.loads(body.content)
    (attachment,) = document["attachments"]
    assert (document["type"], attachment["contentType"]) == (
        "message",
        "application/vnd.microsoft.card.adaptive",
    )
    blocks = attachment["content"]["body"]
    assert {block["type"] for block in blocks} == {"RichTextBlock"}
    title, *lines = read(an_item(text="[x](y)"))
    assert [block["inlines"][0]["text"] for block in blocks] == [f"prod: {title}", *lines]


def test_a_cloud_event_is_signed_and_has_the_same_id_when_it_is_sent_again() -> None:
    target, item = a_target(Format.CLOUDEVENTS, "key"), an_item()
    first, again = (texts.body(target, texts.Message((item,), now), PLACE) for now in (NOW, NOW + 60))
    one, other = json.loads(first.content), json.loads(again.content)
    assert one["id"] == other["id"]
    assert one["time"] == "2026-11-25T10:05:00Z"
    assert (one["specversion"], one["type"], one["subject"]) == (
        "1.0",
        "io.addon-operator.modules.changed",
        "web",
    )
    assert one["data"]["cluster"] == "prod"
    assert first.headers["X-Signature"] != again.headers["X-Signature"]
    others = [structs.replace(item, over=NOW), structs.replace(item, since=BEGIN + 1), an_item("db")]
    bodies = [texts.body(target, texts.Message((each,), NOW), PLACE) for each in others]
    assert len({one["id"], *(json.loads(body.content)["id"] for body in bodies)}) == 4


def test_a_test_says_that_nothing_happened() -> None:
    assert read() == [
        "This is a test of notifications",
        "The operator in cluster prod, namespace addons can reach you. Nothing happened.",
    ]
    body = texts.body(a_target(Format.CLOUDEVENTS), texts.Message((), NOW), PLACE)
    assert json.loads(body.content)["type"] == "io.addon-operator.test"


@rows.each("format_", list(Format))
def test_the_largest_message_stays_below_what_receivers_take(format_: Format) -> None:
    items = tuple(an_item("m" * 53, text="x" * 300, follows="y" * 100) for _ in range(transitions.MOST_DUE))
    body = texts.body(a_target(format_), texts.Message(items, NOW), PLACE)
    assert (
        len(body.content)
        < {Format.SLACK: 40_000, Format.MSTEAMS: 28_000, Format.CLOUDEVENTS: 256_000}[format_]
    )

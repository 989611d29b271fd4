"""The page shows what is going on, and nothing that is nobody's business."""

import asyncio
import dataclasses
import gzip
import pathlib
from html import parser
from typing import Any, Final

import pytest
from typing_extensions import override

from addon_operator.aio import turns
from addon_operator.engine import introspection, module_states, state
from addon_operator.engine.queues import queue_set
from addon_operator.kernel import errors, names
from addon_operator.modules import model
from addon_operator.status import (
    converge_words,
    health,
    module_status,
    page_content,
    page_modules,
    status_page,
)
from tests.support import clocks, rows
from tests.unit.debug import inspected
from tests.unit.engine import bound_fakes, fakes
from tests.unit.status import page_samples

Group = page_modules.Group
COMPRESSED_MAX: Final = 200_000


class Seen(parser.HTMLParser):
    """The tags of a page, its texts by tag, and where it leads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(page)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]

    @override
    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data

    @override
    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass


class KeepsSecretError(errors.AddonOperatorError):
    @property
    @override
    def without_values(self) -> str:
        return "values are not valid"


def card_of(row: introspection.ModuleRow, **content: object) -> page_modules.Card:
    shown = page_content.Content(state="x", modules=[row], **content)  # type: ignore[arg-type]  # by name
    return page_modules.cards(shown)[0]


async def gathered(world: inspected.World, *shared: str) -> page_content.Content:
    content = page_content.PageContent(health.OperatorStatus())
    content.show(world.engine.views, inspected.Resources(*shared))
    return await content.gather()


def test_each_module_is_in_one_group_and_the_worst_come_first() -> None:
    cards = page_modules.cards(page_samples.every_state())
    assert [(card.name, str(card.group), card.word) for card in cards] == [
        ("ingress-nginx", "Failed", "Failed"),
        ("grafana", "Failed", "Unhealthy"),
        ("external-dns", "Needs attention", "Drifted"),
        ("storage", "Needs attention", "Suspended"),
        ("logging", "Needs attention", "Held back"),
        ("dns", "Needs attention", "Hook fails"),
        ("shops", "Needs attention", "Binding waits"),
        ("vpn", "Needs attention", "Not in force"),
        ("web", "In progress", "Progressing"),
        ("reports", "In progress", "Pending"),
        ("mail", "In progress", "Waits"),
        ("cert-manager", "Ready", "Ready"),
        ("legacy", "Disabled", "Disabled"),
        ("<script>alert('&')</script>", "Disabled", "Disabled"),
    ]


def test_a_sentence_says_what_a_person_has_to_know_first() -> None:
    said = {card.name: card.sentence for card in page_modules.cards(page_samples.every_state())}
    assert said["ingress-nginx"] == page_samples.FAILURE
    assert said["grafana"] == page_samples.UNHEALTHY
    assert said["external-dns"].startswith("Deployment external-dns: /spec/replicas")
    assert said["storage"].startswith("the disks are replaced")
    assert said["logging"] == "waits for a window: an upgrade"
    assert said["reports"] == "waits for ingress-nginx (Failed)"
    assert said["web"] == "2 of 5 pods updated: Deployment web"
    assert said["legacy"] == "disabled by ConfigMap addon-operator"
    assert said["cert-manager"] == "Certificates of the cluster"


@rows.each("status", [state.ModuleStatus.RUNNING, state.ModuleStatus.DELETING])
def test_what_failed_stays_failed_while_it_is_tried_again(status: state.ModuleStatus) -> None:
    card = card_of(page_samples.row("web", state=str(status)), errors={"web": "helm failed"})
    assert (card.group, card.sentence) == (Group.FAILED, "helm failed")


def test_a_module_whose_hook_the_api_server_does_not_ask_is_not_green() -> None:
    why = "kubernetesValidating d.e.f of hook guard.sh is not registered: a right is missing"
    answering = [{"hook": "guard.sh", "binding": "kubernetesValidating", "name": "a.b.c"}]
    row = page_samples.row("web", answering=answering, notRegistered=why)
    card = card_of(row)
    assert (card.group, card.word, card.sentence) == (Group.ATTENTION, "Not registered", why)
    assert dict(card.facts)["Answers the API server"] == ["kubernetesValidating a.b.c"]


def test_of_several_hooks_that_fail_the_others_are_facts() -> None:
    card = card_of(page_samples.row("web", hooksFail=["hook a failed", "hook b failed"]))
    assert (card.word, card.sentence) == ("Hook fails", "hook a failed")
    assert dict(card.facts)["Hook fails"] == ["hook b failed"]


def test_what_happens_next_stands_with_the_module() -> None:
    card = next(each for each in page_modules.cards(page_samples.every_state()) if each.word == "Failed")
    facts = dict(card.facts)
    assert facts["Next try"] == [
        page_modules.Moment(page_samples.LATER, kind="due"),
        "after 4 that failed",
        "or sooner: it waits for endpoints of Service ingress/ingress-admission",
    ]
    assert facts["Queue"] == ["first in main: run of the module, waits for its next try"]
    assert facts["Requires"] == ["module cert-manager"]
    assert facts["Revision"] == ["3"]
    assert [event["reason"] for event in card.events] == ["Failed"]


def test_it_is_said_since_when_a_module_is_as_it_is() -> None:
    since = {
        "Ready": "1",
        "Healthy": "2",
        "Drifted": "3",
        "Enabled": "4",
        "Suspended": "5",
        "ConfigValid": "6",
    }
    objects: dict[str, module_status.Shown] = {"web": {"since": since, "revision": 1, "events": []}}
    rows = {
        "1": page_samples.row("web", state="Failed"),
        "2": page_samples.row("web", health="Failed"),
        "3": page_samples.row("web", drift="x"),
        "4": page_samples.row("web", state="Disabled"),
        "5": page_samples.row("web", suspended="suspended: x"),
        "6": page_samples.row("web", wrongValues="x"),
    }
    assert {at: card_of(row, objects=objects).since for at, row in rows.items()} == {at: at for at in rows}
    assert card_of(page_samples.row("web")).since == "", "without Module objects it is not known"


@rows.each(
    ("row", "type_"),
    [
        ({}, "Ready"),
        ({"health": "Failed"}, "Healthy"),
        ({"health": "Progressing"}, "Healthy"),
        ({"state": "Failed", "health": "Failed"}, "Ready"),
        ({"state": "Pending", "health": ""}, "Ready"),
        ({"state": "Disabled", "health": ""}, "Enabled"),
    ],
)
async def test_commands_say_since_when_from_where_the_page_has_it(row: dict[str, Any], type_: str) -> None:
    async def recall() -> None:
        pass

    since = {each: each for each in ("Ready", "Healthy", "Enabled")}
    objects = page_content.Objects(lambda _: {"since": since, "revision": 1, "events": []}, recall)
    content = page_content.PageContent(health.OperatorStatus())
    content.show(inspected.make().engine.views, inspected.Resources(), objects)
    assert await content.since([page_samples.row("web", **row)]) == {"web": type_}


def test_totals_equal_the_lists() -> None:
    content = page_samples.every_state()
    page, cards = status_page.render(content), page_modules.cards(content)
    for group in Group:
        number = sum(card.group is group for card in cards)
        assert f'<b id="count-{group.name.lower()}">{number}</b>' in page
        assert page.count(f'<li class="{group.name.lower()}" ') == number
    assert '<b id="count-all">14</b>' in page
    assert "14 modules: 2 failed, 6 need attention, 3 in progress, 1 ready, 2 disabled." in page
    assert "<title>2 failed · addons · addon-operator</title>" in page


def test_what_looks_like_html_is_text() -> None:
    seen = Seen(status_page.render(page_samples.every_state()))
    assert seen.tags.count("script") == 1, "its own"
    assert "<script>alert('&')</script>" in "".join(seen.texts["span"])
    assert "<b>bold</b>" in "".join(seen.texts["span"])


def with_each_text(found: Any, text: str) -> Any:  # noqa: ANN401 - whatever a page is made of
    """Return the same with another text in place of each one that is not a time or a state."""
    if isinstance(found, dict):
        return {
            key: with_each_text(value, text) if key not in SAID else value for key, value in found.items()
        }
    if isinstance(found, list | tuple):
        return type(found)(with_each_text(value, text) for value in found)
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        fields = [field.name for field in dataclasses.fields(found) if field.name != "state"]
        return dataclasses.replace(
            found, **{name: with_each_text(getattr(found, name), text) for name in fields}
        )
    return text if isinstance(found, str) and found else found


SAID = ("name", "state", "health", "time", "since", "lastRun", "nextTry", "until")


@pytest.mark.slow
def test_no_text_makes_the_page_larger_than_all_may_be_together() -> None:
    usual = page_samples.every_state()
    few, many = (status_page.render(with_each_text(usual, "<&" * size)) for size in (1500, 1_000_000))
    assert len(many) == len(few)
    assert len(many) < 100 * 5 * status_page.TEXT_MAX


@rows.each("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'>&<!--", "\ud800<b>"])
def test_every_text_of_the_page_is_text(text: str) -> None:
    usual = Seen(status_page.render(page_samples.every_state()))
    made = Seen(status_page.render(with_each_text(page_samples.every_state(), text)))
    assert sorted(set(made.tags)) == sorted(set(usual.tags))
    assert made.tags.count("script") == 1


def test_nothing_comes_from_elsewhere() -> None:
    links = Seen(status_page.render(page_samples.every_state())).links
    assert all(link.startswith(("/", "#", "data:,")) and not link.startswith("//") for link in links)
    assert "default-src 'none'" in status_page.CONTENT_SECURITY_POLICY
    assert "unsafe" not in status_page.CONTENT_SECURITY_POLICY


@pytest.mark.slow
def test_a_thousand_modules_are_small_when_they_are_compressed() -> None:
    page = status_page.render(page_samples.many(1000)).encode()
    assert page.count(b"<li class=") == 1000
    assert len(gzip.compress(page, 5)) < COMPRESSED_MAX


def test_equal_states_make_equal_pages_whatever_the_time() -> None:
    content = page_samples.every_state()
    assert status_page.render(content) == status_page.render(page_samples.every_state())
    head = dict(content.queues[0], headAge=content.queues[0]["headAge"] + 2)
    assert head["headAge"] != content.queues[0]["headAge"]
    pages = {
        status_page.render(page_content.Content(state="x", queues=[{**content.queues[0], "headAge": age}]))
        for age in (312.0, 314.0)
    }
    assert len(pages) == 1, "an age is shown so roughly that it does not change with each look"


async def test_no_message_that_may_hold_values_is_shown() -> None:
    world = inspected.make()
    world.states.mark(inspected.WEB, state.ModuleStatus.FAILED, KeepsSecretError(inspected.SECRET))
    await inspected.fail_a_task(world)
    page = status_page.render(await gathered(world))
    assert "values are not valid" in page
    assert inspected.SECRET not in page


def test_what_happens_next_is_said_without_a_click() -> None:
    due = page_modules.Moment(page_samples.LATER, kind="due")
    said = {card.name: card.next for card in page_modules.cards(page_samples.every_state()) if card.next}
    assert said == {
        "ingress-nginx": [
            "next try ",
            due,
            ", or sooner: it waits for endpoints of Service ingress/ingress-admission",
        ],
        "logging": ["the window opens ", due],
        "vpn": ["the last good values stay"],
    }
    running = page_samples.row("web", state="Running")
    assert card_of(running, errors={"web": "helm failed"}).next == ["it is tried again now"]
    assert card_of(running).next == []
    page = status_page.render(page_samples.every_state())
    assert '<span class="next">next try <time class=due datetime="2026-11-25T03:17:10Z">' in page


async def test_a_failing_task_stands_with_its_module_and_its_queue() -> None:
    world = inspected.make()
    await inspected.fail_a_task(world)
    content = await gathered(world)
    assert content.places["web"]["state"] == introspection.BACKOFF
    page = status_page.render(content)
    assert '<td data-label="Queue">main</td><td data-label="Tasks">1</td>' in page
    assert "1 queue is empty." in page


def test_failing_global_hooks_stand_there() -> None:
    page = status_page.render(page_samples.every_state())
    assert "<li>hook nodes.sh on nodes failed 3 times: exit 1</li>" in page
    assert page.index("Global hooks that do not work") < page.index('<h2 id="modules">Modules</h2>'), (
        "what is broken comes first"
    )
    assert "Global hooks that do not work" not in status_page.render(page_samples.many(1))


async def test_objects_that_modules_share_stand_with_both_modules() -> None:
    world = inspected.make()
    assert "Shared objects" not in status_page.render(await gathered(world))
    page = status_page.render(await gathered(world, "ConfigMap x/<a>"))
    assert "kube-dns and web</td>" in page
    assert "ConfigMap x/&lt;a&gt;</td>" in page


async def test_of_very_many_shared_objects_the_first_are_shown() -> None:
    page = status_page.render(await gathered(inspected.make(), *[f"ConfigMap x/{n}" for n in range(201)]))
    assert "the first 200 of 201" in page
    assert "x/199<" in page
    assert "x/200<" not in page


def test_what_is_wrong_with_values_that_are_not_in_force_stands_above_all() -> None:
    content = page_content.Content(state="x", refusals=["ConfigMap a/b is invalid: web.size: <rule>"])
    page = status_page.render(content)
    assert "<li>ConfigMap a/b is invalid: web.size: &lt;rule&gt;</li>" in page
    assert page.index("<h2>Values that are not in force</h2>") < page.index('<h2 id="modules">Modules</h2>')
    assert "Not in force" not in status_page.render(page_content.Content(state="x"))


@rows.each(
    ("now", "said"),
    [
        ("CONVERGE_IN_PROGRESS", "a converge is under way"),
        ("ADMISSION_ONLY", "this process only admits pods"),
    ],
)
def test_it_is_said_what_the_operator_does(now: str, said: str) -> None:
    assert f"<p><b>ready</b>, {said}</p>" in status_page.render(page_content.Content(state=now))


def test_a_module_that_waits_for_others_is_still_said_to_be_suspended_and_held_back() -> None:
    held = {"what": "an upgrade", "until": page_samples.LATER, "since": page_samples.AT, "confirm": ""}
    waits = page_samples.row(
        "web", state="Pending", waitsFor=["db (Failed)"], suspended="the disks", heldBack=held
    )
    assert card_of(waits).sentence == "waits for a window: an upgrade; the disks; waits for db (Failed)"


def banner(**content: Any) -> str:  # noqa: ANN401 - fields of many types
    page = status_page.render(page_content.Content(**({"state": converge_words.DONE} | content)))
    return page.partition('class="operator ')[2].partition("</section>")[0]


def test_the_banner_is_green_only_if_nothing_failed() -> None:
    ill = [page_samples.row("a", state="Failed"), page_samples.row("b", health="Failed")]
    said = "all modules were run, and what failed is tried again"
    assert banner(modules=ill).startswith(f'failed">\n<p><b>2 modules failed</b>, {said}</p>')
    assert banner(modules=ill[:1]).startswith('failed">\n<p><b>1 module failed</b>, ')
    assert banner(modules=ill, unready="no").startswith('failed">\n<p><b>not ready</b>, ')
    assert banner(refusals=["x"]).startswith('attention">\n<p><b>ready</b>, ')
    assert banner(modules=[page_samples.row("web")], global_hooks=["hook a.sh failed"]).startswith(
        "attention"
    )
    odd = [page_samples.row("web", hooksFail=["hook a.sh failed"]), page_samples.row("db", drift="x")]
    assert banner(modules=odd[:1]).startswith('attention">\n<p><b>ready</b>, ')
    assert "; 1 module needs attention</p>" in banner(modules=odd[:1])
    assert "; 2 modules need attention</p>" in banner(modules=odd)
    page = status_page.render(page_content.Content(state=converge_words.DONE, modules=odd))
    assert "<title>2 need attention · addon-operator</title>" in page
    assert banner().startswith('ready">\n<p><b>ready</b>, ')


def test_why_it_is_not_ready_pushes_no_module_out_of_sight() -> None:
    ill = [page_samples.row("a", state="Failed"), page_samples.row("b", state="Failed")]
    long = "the first converge is not done: " + "module a failed 2 times: helm; " * 20
    said = banner(modules=ill, unready=long)
    assert "… (2 failed, all of them below)" in said
    assert len(said) < 500
    assert long in banner(unready=long), "where no module says it"


def test_an_operator_without_modules_says_so() -> None:
    assert "There is no module: MODULES_DIR holds none." in status_page.render(
        page_content.Content(state="x")
    )
    standby = page_content.Content(state="x", leader="pod-1", stored=page_content.Stored())
    assert "MODULES_DIR" not in status_page.render(standby)


def test_that_the_last_good_values_stay_is_said_once() -> None:
    said = "ConfigMap a/b is invalid; the last good values stay in force"
    assert card_of(page_samples.row("vpn", wrongValues=said)).next == []


def test_what_a_page_without_an_answer_shows_is_not_green() -> None:
    page = status_page.render(page_content.Content(state=converge_words.DONE))
    assert page.index('id="lost"') < page.index("<main>"), "the style looks for the one behind the other"
    assert "#lost:not([hidden]) ~ main .operator { border-color: var(--failed); }" in page


def test_a_standby_says_of_what_it_does_not_know_who_does_where_that_would_stand() -> None:
    page = status_page.render(page_samples.standby())
    place = page.index("<h2>Queues and global hooks</h2>")
    assert place > page.index('<ul class="modules">')
    assert (
        "Only the leader knows them. Either command opens its page: <code>kubectl -n addons " in page[place:]
    )
    assert "Queues and global hooks" not in status_page.render(page_samples.every_state())


def test_a_replica_that_stands_by_says_where_the_modules_are_shown_and_counts_none() -> None:
    standby = {"namespace": "addons", "state": "STANDBY: pod-1 leads", "port": 9650, "knows_modules": False}
    page = status_page.render(page_content.Content(**standby, leader="pod-1"))  # type: ignore[arg-type]
    assert "<title>stands by · addons · addon-operator</title>" in page
    assert 'class="operator attention">\n<p><b>standby</b>, this replica stands by: pod-1 leads</p>' in page
    assert "<code>kubectl -n addons port-forward pod/pod-1 9650</code>" in page
    assert "<code>addon-operator page -n addons</code>" in page
    assert 'id="count-' not in page
    assert 'id="modules"' not in page
    nobody = status_page.render(page_content.Content(**standby, leader=""))  # type: ignore[arg-type]
    assert "Nobody leads yet" in nobody
    assert "port-forward" not in nobody


async def test_modules_are_gathered_in_pieces_of_a_few_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PIECE_SECONDS", 0.0)
    modules = [model.Module(names.ModuleName(f"m-{n}"), n, pathlib.Path("x")) for n in range(10)]
    states = module_states.ModuleStates(modules, fakes.ignore)
    states.enabled = tuple(module.name for module in modules)
    clock = clocks.Clock()
    queues = queue_set.QueueSet(fakes.ignore, clock=clock)
    content = page_content.PageContent(health.OperatorStatus())
    views = introspection.Introspection(states, queues, bound_fakes.WaitingBindings(), (), clock)
    content.show(views, inspected.Resources())
    others, gathering = 0, asyncio.ensure_future(content.gather())
    while not gathering.done():
        await asyncio.sleep(0)
        others += 1
    assert len((await gathering).modules) == 10
    assert others >= 10, "others have a turn meanwhile"


@rows.each(
    "row",
    [
        page_samples.row(
            "web", suspended="suspended: the disks", reason="suspended: the disks; enabled by x"
        ),
        page_samples.row(
            "web",
            state="Failed",
            lastError="the disks",
            notRegistered="the disks",
        ),
        page_samples.row("web", health="Failed", healthMessage="the disks"),
        page_samples.row("web", drift="the disks"),
        page_samples.row("web", state="Disabled", reason="the disks"),
        page_samples.row("web", description="the disks"),
        page_samples.row("web", wrongValues="the disks"),
    ],
    ids=["suspended", "refused webhook", "health", "drift", "reason", "description", "values"],
)
def test_a_module_says_each_sentence_once(row: introspection.ModuleRow) -> None:
    card = card_of(row, errors={"web": row["lastError"]} if row["lastError"] else {})
    said = [card.sentence, *(str(text) for _, texts in card.facts for text in texts)]
    assert sum(text.count("the disks") for text in said) == 1, said
    assert card.sentence.count("suspended") == 0

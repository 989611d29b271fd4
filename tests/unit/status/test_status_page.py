"""The status page shows what is going on, and nothing that is nobody's business."""

import asyncio
import dataclasses
import pathlib
from html import parser
from typing import Any, Final

import pytest
from typing_extensions import override

from addon_operator.aio import turns
from addon_operator.engine import introspection, state
from addon_operator.engine.queues import queue_set
from addon_operator.kernel import errors, names
from addon_operator.modules import model
from addon_operator.status import health, page_content, status_page
from tests.fakes import clocks
from tests.unit.debug import inspected
from tests.unit.engine import bound_fakes, fakes


class Cells(parser.HTMLParser):
    """The texts of a page's table cells, and the tags that it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(page)

    @override
    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._in_cell = True
            self.rows[-1].append("")

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    @override
    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def made(**shown: Any) -> str:  # noqa: ANN401 - the fields of the content
    plain = status_page.Content(state="x")
    return status_page.render(dataclasses.replace(plain, **shown))


class KeepsSecretError(errors.AddonOperatorError):
    @property
    @override
    def without_values(self) -> str:
        return "values are not valid"


async def shown(world: inspected.World, *shared: str) -> str:
    content = page_content.PageContent(health.OperatorStatus())
    content.show(world.engine.views, inspected.Resources(*shared))
    return status_page.render(await content.gather())


async def test_modules_stand_with_state_reason_and_error() -> None:
    world = inspected.make()
    world.states.mark(inspected.WEB, state.ModuleStatus.FAILED, "helm failed")
    rows = Cells(await shown(world)).rows
    assert rows[0] == ["module", "order", "state", "health", "reason", "last run", "last error"]
    assert rows[2] == ["web", "20", "Failed", "", "not discovered yet", "", "helm failed"]


async def test_queues_stand_with_the_age_and_tries_of_their_head() -> None:
    world = inspected.make()
    await inspected.fail_a_task(world)
    rows = Cells(await shown(world)).rows
    assert ["main", "1", "backoff", "0 s", "1"] in rows
    assert ["idle", "0", "", "0 s", "0"] in rows


async def test_no_message_that_may_hold_values_is_shown() -> None:
    world = inspected.make()
    world.states.mark(inspected.WEB, state.ModuleStatus.FAILED, KeepsSecretError(inspected.SECRET))
    await inspected.fail_a_task(world)
    page = await shown(world)
    assert "values are not valid" in page
    assert inspected.SECRET not in page
    assert "the chart is broken" not in page, "errors of tasks may be what a hook wrote"


async def test_objects_that_modules_share_stand_with_both_modules() -> None:
    world = inspected.make()
    assert "Shared objects" not in await shown(world)
    rows = Cells(await shown(world, "ConfigMap x/<a>")).rows
    assert ["modules", "object"] in rows
    assert ["kube-dns and web", "ConfigMap x/<a>"] in rows


def test_of_very_many_shared_objects_the_first_are_shown() -> None:
    pair = names.ModuleName("db"), names.ModuleName("web")
    rendered = made(shared={pair: [f"ConfigMap x/{number}" for number in range(201)]})
    assert "the first 200 of 201" in rendered
    assert "x/199" in rendered
    assert "x/200" not in rendered


ROW: Final[introspection.ModuleRow] = {
    "name": "web",
    "description": "",
    "release": "edge/front",
    "order": 1,
    "enabled": True,
    "state": "Ready",
    "health": "Healthy",
    "healthMessage": "",
    "drift": "",
    "reason": "<script>alert('&')</script>",
    "suspended": "",
    "requires": [],
    "hooks": None,
    "lastRun": None,
    "nextTry": None,
    "cure": [],
    "waitsFor": [],
    "wrongValues": "",
    "lastError": "",
    "waitingBindings": [],
    "heldBack": None,
}


def test_what_looks_like_html_is_text() -> None:
    cells = Cells(made(modules=[ROW], state="<b>"))
    assert cells.rows[1][0] == "web (release edge/front)"
    assert cells.rows[1][4] == "<script>alert('&')</script>"
    assert not {"script", "b"} & set(cells.tags)


def test_what_a_module_is_for_and_what_it_requires_stand_there_if_a_module_says_it() -> None:
    described: introspection.ModuleRow = {**ROW, "description": "Ingress <controller>"}
    shown = Cells(made(modules=[described]))
    assert "Ingress <controller>" in shown.rows[1]
    needing: introspection.ModuleRow = {**ROW, "requires": ["Kubernetes >= 1.30", "module db"]}
    needs = Cells(made(modules=[needing]))
    assert "Kubernetes >= 1.30, module db" in needs.rows[1]
    plain = Cells(made(modules=[ROW]))
    assert len(plain.rows[1]) == len(shown.rows[1]) - 1


def test_what_is_wrong_with_values_that_are_not_in_force_stands_above_all() -> None:
    page = made(refusals=["ConfigMap a/b is invalid since 1970-01-01T00:00:00Z: web.size: <rule>"])
    assert "<li>ConfigMap a/b is invalid since 1970-01-01T00:00:00Z: web.size: &lt;rule&gt;</li>" in page
    assert page.index("<h2>Not in force</h2>") < page.index("<h2>Modules</h2>")
    assert "Not in force" not in made()


async def test_modules_are_gathered_in_pieces_of_a_few_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PIECE_SECONDS", 0.0)
    modules = [model.Module(names.ModuleName(f"m-{n}"), n, pathlib.Path("x")) for n in range(10)]
    states = state.ModuleStates(modules, fakes.ignore)
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

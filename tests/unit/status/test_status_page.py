"""The status page shows what is going on, and nothing that is nobody's business."""

from html import parser
from typing import Final, cast

from addon_operator.engine import introspection, state
from addon_operator.kernel import errors, names
from addon_operator.status import health, status_page
from tests.unit.debug import inspected


class Cells(parser.HTMLParser):
    """The texts of a page's table cells, and the tags that it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


class KeepsSecretError(errors.AddonOperatorError):
    @property
    def without_values(self) -> str:
        return "values are not valid"


def shown(world: inspected.World) -> str:
    return status_page.page("CONVERGE_WAIT_TASK", world.engine.views, is_ready=True)


def test_modules_stand_with_state_reason_and_error() -> None:
    world = inspected.make()
    world.states.mark(inspected.WEB, state.ModuleStatus.FAILED, "helm failed")
    rows = Cells(shown(world)).rows
    assert rows[0] == ["module", "order", "state", "reason", "last run", "last error"]
    assert rows[2] == ["web", "20", "Failed", "not discovered yet", "", "helm failed"]


async def test_queues_stand_with_the_age_and_tries_of_their_head() -> None:
    world = inspected.make()
    await inspected.fail_a_task(world)
    rows = Cells(shown(world)).rows
    assert ["main", "1", "backoff", "0 s", "1"] in rows
    assert ["idle", "0", "", "0 s", "0"] in rows


async def test_no_message_that_may_hold_values_is_shown() -> None:
    world = inspected.make()
    world.states.mark(inspected.WEB, state.ModuleStatus.FAILED, KeepsSecretError(inspected.SECRET))
    await inspected.fail_a_task(world)
    page = shown(world)
    assert "values are not valid" in page
    assert inspected.SECRET not in page
    assert "the chart is broken" not in page, "errors of tasks may be what a hook wrote"


def test_objects_that_modules_share_stand_with_the_other_modules() -> None:
    world = inspected.make()
    assert "Shared objects" not in shown(world)
    views, found = world.engine.views, health.OperatorStatus()
    found.show(views, lambda name: {"ConfigMap x/<a>": [names.ModuleName("db")]} if name == "web" else {})
    rows = Cells(found.page()).rows
    assert ["module", "object", "also of"] in rows
    assert ["web", "ConfigMap x/<a>", "db"] in rows


def test_of_very_many_shared_objects_the_first_are_shown() -> None:
    objects = {f"ConfigMap x/{number}": [names.ModuleName("db")] for number in range(201)}
    rendered = status_page.render("x", is_ready=True, shared={names.ModuleName("web"): objects})
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
    "reason": "<script>alert('&')</script>",
    "requires": [],
    "hooks": None,
    "lastRun": None,
    "nextTry": None,
    "lastError": "",
    "waitingBindings": [],
}


def test_what_looks_like_html_is_text() -> None:
    cells = Cells(status_page.render("<b>", is_ready=False, modules=[ROW]))
    assert cells.rows[1][0] == "web (release edge/front)"
    assert cells.rows[1][3] == "<script>alert('&')</script>"
    assert not {"script", "b"} & set(cells.tags)


def test_what_a_module_is_for_and_what_it_requires_stand_there_if_a_module_says_it() -> None:
    found = {**ROW, "description": "Ingress <controller>"}
    shown = Cells(status_page.render("x", is_ready=True, modules=[cast("introspection.ModuleRow", found)]))
    assert "Ingress <controller>" in shown.rows[1]
    needing = {**ROW, "requires": ["Kubernetes >= 1.30", "module db"]}
    needs = Cells(status_page.render("x", is_ready=True, modules=[cast("introspection.ModuleRow", needing)]))
    assert "Kubernetes >= 1.30, module db" in needs.rows[1]
    plain = Cells(status_page.render("x", is_ready=True, modules=[ROW]))
    assert len(plain.rows[1]) == len(shown.rows[1]) - 1

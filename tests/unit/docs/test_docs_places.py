"""What pages tell to type leads to the place that they mean, and shows what one sees there."""

import re
import tomllib
from collections.abc import Iterator

from addon_operator.engine.modules import module_run
from tests.unit.docs.pages import PAGES, ROOT, name

BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)
START = re.compile(r"addon-operator start (?:.*\\\n)*.*")
AWAY, BACK = re.compile(r"\bcd (?!\.\.|-)\S+"), re.compile(r"\bcd (?:\.\.|-)")


def starts_in_the_checkout(page: str) -> Iterator[str]:
    """Operators that a page starts in the checkout, with the global hooks that lie there."""
    for section in re.split(r"^## .*\n(?=(?:(?!^## ).*\n)*?make \.venv)", page, flags=re.MULTILINE):
        typed = "".join(BLOCK.findall(section))
        for found in START.finditer(typed):
            before = typed[: found.start()]
            is_away = len(AWAY.findall(before)) > len(BACK.findall(before))
            if not is_away and "--global-hooks-dir" not in found[0]:
                yield found[0]


def test_no_page_starts_an_operator_with_the_examples_of_the_checkout_by_mistake() -> None:
    wrong = [
        f"{name(page)}: {start}"
        for page in PAGES
        for start in starts_in_the_checkout(page.read_text("utf-8"))
    ]
    assert wrong == []


def test_such_a_start_is_found() -> None:
    page = "## A\n```bash\nwork=$(mktemp -d)\naddon-operator start --modules-dir \\\n  $work &\n```\n"
    assert [*starts_in_the_checkout(page)] == ["addon-operator start --modules-dir \\\n  $work &"]
    assert [*starts_in_the_checkout(page.replace("-d)", "-d) && cd $work"))] == []


def test_the_package_is_installed_from_where_it_is_and_no_index_has_it() -> None:
    named = re.compile(r"pip install [^`\n]*addon-operator[^`\n]*")
    texts = {name(page): page.read_text("utf-8") for page in PAGES}
    texts |= {path.name: path.read_text("utf-8") for path in (ROOT / "operator").rglob("*.py")}
    found = [(where, each) for where, text in texts.items() for each in named.findall(text)]
    assert len(found) > 2
    assert [each for each in found if not re.search(r"git\+|/path/to/addon-operator", each[1])] == []


def test_packages_that_messages_name_are_those_of_the_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {each for packages in project["optional-dependencies"].values() for each in packages}
    code = "".join(path.read_text("utf-8") for path in (ROOT / "operator").rglob("*.py"))
    named = set(re.findall(r"pip install '(.+?)'", code))
    assert named == {"pytest>=9.1", "kubernetes>=37,<38"}
    assert named <= extras


def test_what_somebody_on_call_types_names_the_namespace_of_the_operator() -> None:
    texts = {page.name: page.read_text("utf-8") for page in (ROOT / "docs" / "runbooks").glob("Addon*.md")}
    typed = [
        (where, command)
        for where, text in texts.items()
        for command in re.findall(r"`((?:addon-operator|helm|kubectl) [^`]+ [^`]+)`", text)
    ]
    assert len(typed) > 30
    everywhere = re.compile(
        r"get events -A|patch mutatingwebhookconfiguration|module suspend$|logs --previous$"
    )
    assert [each for each in typed if "-n NAMESPACE" not in each[1] and not everywhere.search(each[1])] == []


def test_modules_that_pages_list_are_in_the_order_in_which_kubectl_lists_them() -> None:
    listed = re.compile(r"^\$ kubectl .*get modules.*\n(NAME .*\n(?:\w.*\n)+)", re.MULTILINE)
    texts = {name(page): page.read_text("utf-8") for page in PAGES}
    tables = [
        (where, table.splitlines()[1:]) for where, text in texts.items() for table in listed.findall(text)
    ]
    assert len(tables) > 1
    assert [where for where, rows in tables if rows != sorted(rows)] == []


def test_pages_say_how_long_the_pauses_between_tries_of_a_module_become() -> None:
    assert module_run.ModuleRunTask.longest_delay == 5 * 60
    pages = {
        "explanation/lifecycle.md": "up to 5 minutes for a run of a module",
        "explanation/health.md": "grows from 5 seconds to 5 minutes",
        "how-to/migrate-from-the-go-operator.md": "to 5 minutes for runs of modules",
        "runbooks/AddonOperatorModuleFails.md": "at most five minutes",
        "runbooks/AddonOperatorModuleStalled.md": "at least every five minutes",
    }
    assert [
        page for page, text in pages.items() if text not in (ROOT / "docs" / page).read_text("utf-8")
    ] == []

"""Pages name only variables, commands, flags, metrics and values of the chart that there are.

Messages name settings as the pages do.
"""

import ast
import functools
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import click
import yaml

from addon_operator.cli import main
from addon_operator.settings import setting_names, settings
from addon_operator.telemetry import metrics
from tests.support import rows
from tests.unit.docs.pages import PAGES, ROOT, name

IN_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b")
PLACEHOLDER = re.compile(r"(ADDON|SHELL)_OPERATOR_X")
OF_EXAMPLES = {
    "expansion.md",
    "preview-a-pod.md",
    "podpreset.md",
    "first-podpreset.md",
    "podpresets-only.md",
    "plan-before-merge.md",
}
"""Pages with variables of pods, or of GitHub."""
COMMAND = re.compile(r"(?:^|\$ |-- |`|&& |\(|\")addon-operator (?P<rest>[a-z-][^`|#\n)]*)", re.MULTILINE)
SERIES = re.compile(
    r"`(?:addon_operator_)?(?P<name>[a-z]+(?:_[a-z]+)*_(?:total|seconds|bytes|objects|waiting|lag))\b"
)
OTHERS_SERIES = {"hooks.md", "migrate-from-the-go-operator.md", "benchmarks.md"}
"""Pages with metrics of hooks and of the Go operator."""
SERIES_OF_OTHERS = {"container_cpu_cfs_throttled_periods_total", "process_cpu_seconds_total"}
CHART_PAGES = {
    "install.md",
    "podpresets-only.md",
    "security.md",
    "troubleshoot.md",
    "upgrade.md",
    "migrate-from-the-go-operator.md",
}
VALUES: dict[str, Any] = yaml.safe_load((ROOT / "deploy/chart/addon-operator/values.yaml").read_text("utf-8"))
OPEN = {"settings", "labels", "annotations", "runbookBase"}
"""Values below which there may be anything."""


@functools.cache
def code() -> str:
    package = ROOT / "operator" / "addon_operator"
    modules = (*package.rglob("*.py"), *package.rglob("*.sh"))
    return "\n".join(module.read_text("utf-8") for module in modules)


def variables() -> set[str]:
    bare = {variable for row in settings.TABLE.values() for variable in row.variables}
    return (
        bare
        | {f"ADDON_OPERATOR_{variable}" for variable in bare}
        | set(setting_names.WITHOUT_MEANING)
        | {"NO_COLOR"}
    )


VARIABLES = variables()


def unknown_names(text: str) -> list[str]:
    found = {each for each in IN_CAPITALS.findall(text) if not PLACEHOLDER.fullmatch(each)}
    return sorted(each for each in found - VARIABLES if each.removeprefix("ADDON_OPERATOR_") not in code())


@functools.cache
def other_names() -> dict[str, str]:
    """The name that pages use for each setting, by the same with or without its prefix."""
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    prefix = "ADDON_OPERATOR_"
    shown = set(re.findall(r"^\| `([A-Z_]+)` \|", page, flags=re.MULTILINE)) & VARIABLES
    assert len(shown) > 50
    return {each.removeprefix(prefix) if each.startswith(prefix) else prefix + each: each for each in shown}


def names_with_other_prefix(text: str) -> list[str]:
    return sorted(
        {
            f"{each}: write {other_names()[each]}"
            for each in IN_CAPITALS.findall(text)
            if each in other_names()
        }
    )


def findings(find: Callable[[str], list[str]], pages: Iterable[pathlib.Path] = PAGES) -> dict[str, list[str]]:
    """What is found on each page that is not as it should be."""
    found = {name(page): find(page.read_text("utf-8")) for page in pages}
    return {page: texts for page, texts in found.items() if texts}


def test_names_in_capitals_are_those_of_settings_and_of_the_code() -> None:
    assert findings(unknown_names, (page for page in PAGES if page.name not in OF_EXAMPLES)) == {}


def test_pages_name_a_setting_as_its_table_does() -> None:
    pages = (page for page in PAGES if page.name != "settings.md")
    assert findings(names_with_other_prefix, pages) == {}


def test_a_setting_with_the_other_prefix_is_found() -> None:
    assert names_with_other_prefix("`ADDON_OPERATOR_HOOK_TIMEOUT`, `ADDON_OPERATOR_HA`") == [
        "ADDON_OPERATOR_HOOK_TIMEOUT: write HOOK_TIMEOUT"
    ]


def messages(source: str) -> Iterator[str]:
    """Texts of several words in the code that are not docstrings."""
    tree = ast.parse(source)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield from [node.value] if " " in node.value else []


def settings_named_otherwise(source: str) -> list[str]:
    # To parse all files takes seconds.
    return names_with_other_prefix("\n".join(messages(source))) if names_with_other_prefix(source) else []


def test_messages_name_a_setting_as_its_table_does() -> None:
    package = ROOT / "operator" / "addon_operator"
    found = {path: settings_named_otherwise(path.read_text("utf-8")) for path in package.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}
    assert settings_named_otherwise("raise E(f'{x} cannot be written: see TMP_DIR')") == [
        "TMP_DIR: write ADDON_OPERATOR_TMP_DIR"
    ]


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each command, as far as they are written on one line."""
    for found in COMMAND.finditer(text.replace("\\\n", " ")):
        yield re.sub(r"\$\([^)]*\)|'[^']*'|\"[^\"]*\"", "X", found["rest"]).split()


def mistake(words: list[str]) -> str | None:
    command: click.Command = main.cli
    context = click.Context(command, info_name="addon-operator")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return f"there is no command {words[0]}"
        command, words = found, words[1:]
    if command.ignore_unknown_options:
        return None
    known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    flags = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
    unknown = flags - known - {"--help", "--version"}
    return f"{command.name} has no {', '.join(sorted(unknown))}" if unknown else None


def mistakes(text: str) -> list[str]:
    return [found for words in commands(text) if (found := mistake(words))]


def test_commands_and_flags_are_there() -> None:
    assert findings(mistakes) == {}


@functools.cache
def series() -> frozenset[str]:
    families = {family.name for family in metrics.Metrics().registry.collect()}
    bare = {family.removeprefix("addon_operator_") for family in families}
    return frozenset(bare | {f"{each}_total" for each in bare})


def unknown_series(text: str) -> list[str]:
    return sorted({found["name"] for found in SERIES.finditer(text)} - series() - SERIES_OF_OTHERS)


def test_series_are_there() -> None:
    assert findings(unknown_series, (page for page in PAGES if page.name not in OTHERS_SERIES)) == {}


def values_named(text: str) -> Iterator[str]:
    alternatives = "|".join(VALUES)
    yield from re.findall(rf"(?:`|--set )((?:{alternatives})(?:\.\w+)+)", text)


def is_value(path: str, values: Mapping[str, Any] = VALUES) -> bool:
    first, _, rest = path.partition(".")
    if first in OPEN:
        return True
    if first not in values:
        return False
    return not rest or (isinstance(values[first], dict) and is_value(rest, values[first]))


@rows.each("page", [page for page in PAGES if page.name in CHART_PAGES], ids=name)
def test_values_of_the_chart_are_there(page: pathlib.Path) -> None:
    found = list(values_named(page.read_text("utf-8")))
    assert found
    assert [path for path in found if not is_value(path)] == []


def paths(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in values.items():
        inner = isinstance(value, dict) and value
        yield from paths(value, f"{above}{key}.") if inner else [above + key]


def test_values_of_the_install_guide_are_those_of_the_chart() -> None:
    text = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    found = [path for block in blocks for path in paths(yaml.safe_load(block))]
    assert "metrics.rules.labels.release" in found
    assert [path for path in found if not is_value(path)] == []


def test_names_that_are_not_there_are_found() -> None:
    assert unknown_names("`NO_SUCH_SETTING` and HELM_TIMEOUT") == ["NO_SUCH_SETTING"]
    assert mistakes("`addon-operator module shout web`\n$ addon-operator plan --namespace x --quick\n") == [
        "there is no command shout",
        "plan has no --quick",
    ]
    assert unknown_series("`addon_operator_naps_total`, `leader`, `hook_timeouts_total`") == ["naps_total"]
    assert not is_value("metrics.rules.anabled")

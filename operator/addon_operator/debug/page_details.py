"""What the page says of one module to people who may use the debug socket; sensitive values are masked."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.documents import yaml_writing
from addon_operator.kernel import shown_texts
from addon_operator.status import page_content, status_page

_MARKS: Final = {"+": "add", "-": "del"}


@dataclasses.dataclass(frozen=True, slots=True)
class Details:
    """Everything of one module."""

    name: str
    values: Mapping[str, Any]
    error: str
    """The last one, with what hooks and Helm wrote."""
    differences: Sequence[Mapping[str, Any]]
    """What others changed: ``resource``, ``path``, ``manager``, ``expected`` and ``live``."""
    revisions: str
    """How the last revision differs from the one before it, below a line with their numbers."""
    pending: str
    """What waits for a window; empty if nothing does."""
    outputs: Mapping[str, str]
    """What hooks wrote in their last runs, by hook."""


def render(details: Details, content: page_content.Content) -> str:
    """Return the page of a module: first what the page of all says of it."""
    name = shown_texts.as_html(details.name)
    # What values may not be shown of is longer in the sections.
    is_shown = content.errors.get(details.name, "") == details.error
    sections = "".join(_sections(dataclasses.replace(details, error="" if is_shown else details.error)))
    body = (
        f'<header>\n<h1>{name}</h1>\n<nav><a href="../">All modules</a></nav>\n</header>\n'
        f"<main>\n{status_page.only_card(content, details.name)}{sections}</main>\n"
    )
    return status_page.document(f"{details.name} · addon-operator", body)


def _sections(details: Details) -> Iterator[str]:
    if details.error:
        yield _section("Last error", f"<pre>{shown_texts.as_html(details.error)}</pre>")
    if details.pending:
        yield _section("Held back", _diff(details.pending))
    yield _section("Changed by others", _diff("".join(_changes(details.differences))) or "<p>Nothing.</p>")
    yield _section("Last revision", _diff(details.revisions) or "<p>There is none before it.</p>")
    for hook, text in details.outputs.items():
        yield _section(f"Last output of {hook}", f"<pre>{shown_texts.as_html(text) or 'Nothing.'}</pre>")
    yield _section("Values", f"<pre>{shown_texts.as_html(yaml_writing.dump(dict(details.values)))}</pre>")


def _changes(differences: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in differences:
        manager = f" (by {each['manager']})" if each["manager"] else ""
        yield f"{each['resource']}: {each['path']}{manager}\n"
        yield from (f"-{line}\n" for line in str(each["expected"]).splitlines())
        yield from (f"+{line}\n" for line in str(each["live"]).splitlines() if each["live"] is not None)


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{shown_texts.as_html(title)}</h2>\n{content}\n</section>\n"


def _diff(text: str) -> str:
    """Return a unified diff with its lines marked; empty for an empty one."""
    if not text:
        return ""
    lines = (
        f'<span class="{mark}">{shown_texts.as_html(line)}</span>'
        if (mark := _MARKS.get(line[:1])) and line[:3] not in ("+++", "---")
        else shown_texts.as_html(line)
        for line in text.splitlines()
    )
    return "<pre>{}</pre>".format("\n".join(lines))

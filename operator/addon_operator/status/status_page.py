"""The page: modules and queues as HTML, for whoever can reach the HTTP site.

Nobody is asked who they are there, so no values are shown, and no messages that may hold some. It is one
document with nothing from elsewhere. It works without its script, which only keeps it live.
"""

import base64
import collections
import dataclasses
import hashlib
import importlib.resources
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import addon_operator
from addon_operator.kernel import shown_texts
from addon_operator.status import converge_words, page_content, page_modules

_REFRESH_SECONDS: Final = 10
_LINKS: Final = ("/healthz", "/readyz", "/status/converge", "/metrics", "/discovery")
_FILES: Final = importlib.resources.files(__package__)
_STYLE: Final = _FILES.joinpath("page.css").read_text("utf-8")
_SCRIPT: Final = _FILES.joinpath("page.js").read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What browsers let the page do: apply its own style, run its own script, ask its own server."""

DEFAULT_PORT: Final = 9650
"""Of the page, if nobody says another one."""
TEXT_MAX: Final = 2000
"""Characters that are shown of one text: an error of Helm may have millions, and all modules may have one."""

Link = Callable[[str], str]
"""Returns the address of the page of a module; who has such pages has none of the endpoints."""


def no_link(_: str) -> str:
    """Have no pages of modules."""
    return ""


def render(content: page_content.Content, link: Link = no_link) -> str:
    """Return the page; slow enough to be run in a thread."""
    cards = page_modules.cards(content)
    counts = collections.Counter(card.group for card in cards)
    filters = _filters(len(cards), counts) if content.knows_modules else ""
    now = f"{_status(content, counts)}{_refused(content)}{_global_hooks(content)}"
    is_own = content.leader is None and content.stored is None
    modules = _modules(cards, counts, link, is_own=is_own) if content.knows_modules else ""
    live = f"{modules}{_shared(content)}{_queues(content)}"
    # What changes while somebody looks is around the filters, which stay.
    main = f'<main>\n<div id="now">\n{now}</div>\n{filters}<div id="live">\n{live}</div>\n</main>\n'
    body = f"{_head(content)}{main}{_foot(has_endpoints=link is no_link)}"
    return document(_title(content, counts), body)


def _text(text: str) -> str:
    """Return a text as HTML, up to its longest length."""
    return shown_texts.as_html(text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…")


def document(title: str, body: str) -> str:
    """Return a document in the style of the page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f'<noscript><meta http-equiv="refresh" content="{_REFRESH_SECONDS}"></noscript>\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{body}<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _title(content: page_content.Content, counts: collections.Counter[page_modules.Group]) -> str:
    """Return a title that says what is wrong where only titles are seen."""
    where = f" · {content.namespace}" if content.namespace else ""
    failed = counts[page_modules.Group.FAILED]
    stands_by = "" if content.leader is None else "stands by"
    attention = counts[page_modules.Group.ATTENTION]
    well = f"{attention} {_many(page_modules.Group.ATTENTION, attention)}" if attention else "ready"
    now = f"{failed} failed" if failed else "not ready" if content.unready else stands_by or well
    return f"{now}{where} · addon-operator"


def _head(content: page_content.Content) -> str:
    where = f" <small>in {_text(content.namespace)}</small>" if content.namespace else ""
    skip = '<a class="skip" href="#live">Skip to the modules</a>\n'
    return (
        f'{skip}<header>\n<h1>addon-operator{where}</h1>\n</header>\n<p id="lost" role="alert" hidden></p>\n'
    )


def _foot(*, has_endpoints: bool) -> str:
    links = " ".join(f'<a href="{link}">{link}</a>' for link in _LINKS if has_endpoints)
    nav = f' <nav aria-label="Endpoints">{links}</nav>' if links else ""
    return f"<footer>\naddon-operator {_text(addon_operator.__version__)}{nav}\n</footer>\n"


def _filters(total: int, counts: collections.Counter[page_modules.Group]) -> str:
    """Return the filters: they stand outside of what is replaced, and work without the script."""
    choices = [("all", "All", total)] + [(group.name.lower(), str(group), counts[group]) for group in _GROUPS]
    radios = "".join(
        f'<input type="radio" name="show" id="show-{key}" value="{key}"{" checked" if key == "all" else ""}>'
        f'<label for="show-{key}">{label} <b id="count-{key}">{count}</b></label>\n'
        for key, label, count in choices
    )
    return (
        '<h2 id="modules">Modules</h2>\n'
        f'<div role="search">\n<fieldset>\n<legend>Show modules</legend>\n{radios}'
        '<label class="find" hidden>Name '
        '<input type="search" id="find" autocomplete="off" spellcheck="false"></label>\n</fieldset>\n</div>\n'
    )


_UNREADY_MAX: Final = 300
"""Characters of why the operator is not ready, where modules say the rest."""
_GROUPS: Final = tuple(page_modules.Group)


def _status(content: page_content.Content, counts: collections.Counter[page_modules.Group]) -> str:
    """Return how the operator is, and what it does; green only if nothing is wrong."""
    failed, attention = counts[page_modules.Group.FAILED], counts[page_modules.Group.ATTENTION]
    word, look = _word(content, failed, attention)
    doing = _doing(content.state, failed)
    if attention:
        modules = "1 module needs" if attention == 1 else f"{attention} modules need"
        doing = f"{doing}; {modules} attention"
    why = f"<p>{_text(_unready(content.unready, failed))}</p>\n" if content.unready else ""
    return (
        f'<section aria-label="Operator" class="operator {look}">\n'
        f"<p><b>{word}</b>, {_text(doing)}</p>\n{why}{_leader(content)}</section>\n"
    )


def _unready(reason: str, failed: int) -> str:
    """Say why the operator is not ready; of much that modules say below in full, the first of it."""
    if not failed or len(reason) <= _UNREADY_MAX:
        return reason
    return f"{reason[:_UNREADY_MAX].rsplit(' ', 1)[0]} … ({failed} failed, all of them below)"


def _word(content: page_content.Content, failed: int, attention: int) -> tuple[str, str]:
    if content.unready is not None:
        return "not ready", "failed"
    if failed:
        return f"{failed} {'module' if failed == 1 else 'modules'} failed", "failed"
    if content.leader is not None:
        return "standby", "attention"
    is_troubled = bool(content.refusals or content.global_hooks or attention)
    return "ready", "attention" if is_troubled else "ready"


def _leader(content: page_content.Content) -> str:
    """Say whose view this is, and where there is more, if this replica does not lead."""
    if content.leader is None and content.stored is None:
        return ""
    return "".join(f"<p>{text}</p>\n" for text in [*_stored(content), *_more(content)])


def _stored(content: page_content.Content) -> Iterator[str]:
    """Say what is shown of the Module objects, how old it is, and what is wrong with it."""
    stored = content.stored
    if stored is None or not content.knows_modules:
        because = "" if stored is None or not stored.trouble else f": {_text(stored.trouble)}"
        yield f"This replica shows no modules{because}."
        return
    who = "the leader" if content.leader else "the last leader"
    when = f", last {_time(stored.written)}" if stored.written else ""
    yield f"The modules are shown as {who} wrote them into their Module objects{when}."
    if stored.trouble:
        since = f" {_time(stored.trouble_since, 'since')}" if stored.trouble_since else ""
        yield f"<b>They may be out of date</b>: they could not be followed{since}: {_text(stored.trouble)}."
    if stored.left_out:
        yield f"{stored.left_out} more modules are not shown here: they are too many."


def _more(content: page_content.Content) -> Iterator[str]:
    """Say where everything is shown."""
    if content.leader is None:
        yield "This replica begins to lead, and will soon show what it knows itself."
    elif not content.leader:
        yield "Nobody leads yet: look again in a moment."
    else:
        events = [] if content.stored is None or content.stored.has_events else ["Events"]
        *known, last = ["queues", "global hooks", *events]
        also = f"also shows {', '.join(known)} and {last}" if content.knows_modules else "shows them"
        yield f"The leader {also}. Either command opens its page: {_commands(content)}"


def _commands(content: page_content.Content) -> str:
    """Return the commands that open the page of the leader."""
    namespace = f" -n {content.namespace}" if content.namespace else ""
    forward = f"kubectl{namespace} port-forward pod/{content.leader} {content.port or DEFAULT_PORT}"
    page = f"addon-operator page{namespace}"
    return " ".join(f"<code>{_text(command)}</code>" for command in (forward, page))


_DOING: Final = {
    converge_words.NOT_STARTED: "the first converge has not begun",
    converge_words.STARTING: "the first converge is under way",
    converge_words.RUNNING: "a converge is under way",
    converge_words.DONE: "all modules were run, and changes are waited for",
    converge_words.ADMISSION_ONLY: "this process only admits pods",
}


def _doing(state: str, failed: int) -> str:
    """Say what the operator does."""
    word, _, leader = state.partition(": ")
    if failed and word == converge_words.DONE:
        return "all modules were run, and what failed is tried again"
    return f"this replica stands by: {leader}" if word == converge_words.STANDBY else _DOING.get(state, state)


def _refused(content: page_content.Content) -> str:
    if not content.refusals:
        return ""
    lines = "".join(f"<li>{_text(text)}</li>\n" for text in content.refusals)
    return (
        f'<section class="failed">\n<h2>Values that are not in force</h2>\n<ul>\n{lines}</ul>\n</section>\n'
    )


def _modules(
    cards: Sequence[page_modules.Card],
    counts: collections.Counter[page_modules.Group],
    link: Link,
    *,
    is_own: bool,
) -> str:
    """Return the modules; ``is_own``: this replica knows all of them itself."""
    if not cards:
        none = "There is no module: MODULES_DIR holds none." if is_own else "None are shown here."
        return f"<p>{none}</p>\n"
    said = ", ".join(f"{counts[group]} {_many(group, counts[group])}" for group in _GROUPS if counts[group])
    total = f"{len(cards)} {'module' if len(cards) == 1 else 'modules'}"
    items = "".join(_card(card, link) for card in cards)
    return (
        f'<p id="said" role="status">{total}: {said}.</p>\n'
        f'<ul class="modules">\n{items}</ul>\n<p class="none">No module is like that.</p>\n'
    )


def _many(group: page_modules.Group, number: int) -> str:
    is_many = group is page_modules.Group.ATTENTION and number > 1
    return "need attention" if is_many else str(group).lower()


def only_card(content: page_content.Content, name: str) -> str:
    """Return one module as the page shows it, opened; empty if there is no such module."""
    rows = [row for row in content.modules if row["name"] == name]
    found = page_modules.cards(dataclasses.replace(content, modules=rows))
    cards = "".join(_card(card, no_link) for card in found).replace("<details>", "<details open>", 1)
    return f'<ul class="modules">\n{cards}</ul>\n' if cards else ""


def _card(card: page_modules.Card, link: Link) -> str:
    name, key = _text(card.name), card.group.name.lower()
    since = _time(card.since, "since") if card.since else ""
    after = f'<span class="next">{"".join(map(_said, card.next))}</span>' if card.next else ""
    address = link(card.name)
    more = f'<p><a href="{_text(address)}">Values, differences and output of hooks</a></p>' if address else ""
    return (
        f'<li class="{key}" id="m-{name}"><details><summary>'
        f'<span class="word">{_text(card.word)}</span> <span class="name">{name}</span> '
        f'<span class="what">{_text(card.sentence)}</span> {since}{after}'
        f"</summary><dl>{''.join(_facts(card))}</dl>{_events(card)}{more}</details></li>\n"
    )


def _facts(card: page_modules.Card) -> Iterator[str]:
    for label, texts in card.facts:
        yield f"<dt>{label}</dt><dd>{', '.join(_said(text) for text in texts if text)}</dd>"


def _said(text: page_modules.Text) -> str:
    if isinstance(text, page_modules.Moment):
        return _time(text.at, text.kind)
    return _text(text)


def _events(card: page_modules.Card) -> str:
    lines = "".join(
        f"<li>{_time(event['time'])} <b>{_text(event['reason'])}</b> {_text(event['message'])}</li>"
        for event in card.events
    )
    return f"<h3>Events</h3><ul>{lines}</ul>" if lines else ""


def _time(at: str, kind: str = "") -> str:
    """Return a time; the script puts the age in its place, as its kind wants it."""
    readable = _text(at.replace("T", " ").replace("Z", " UTC"))
    said = f"since {readable}" if kind == "since" else readable
    return f'<time{f" class={kind}" if kind else ""} datetime="{_text(at)}">{said}</time>'


def _global_hooks(content: page_content.Content) -> str:
    if not content.global_hooks:
        return ""
    lines = "".join(f"<li>{_text(text)}</li>\n" for text in content.global_hooks)
    return (
        f'<section class="failed">\n<h2>Global hooks that do not work</h2>\n<ul>\n{lines}</ul>\n</section>\n'
    )


def _shared(content: page_content.Content) -> str:
    if not content.shared:
        return ""
    is_cut = content.shared_total > len(content.shared)
    title = "Shared objects" + (
        f", the first {len(content.shared)} of {content.shared_total}" if is_cut else ""
    )
    return _table(title, ("Modules", "Object"), content.shared)


def _queues(content: page_content.Content) -> str:
    if content.leader and content.knows_modules:
        said = f"<p>Only the leader knows them. Either command opens its page: {_commands(content)}</p>\n"
        return f"<section>\n<h2>Queues and global hooks</h2>\n{said}</section>\n"
    busy = [head for head in content.queues if head["tasksCount"]]
    idle = len(content.queues) - len(busy)
    if not content.queues:
        return ""
    rows = [
        (
            head["name"],
            head["tasksCount"],
            page_modules.task_state(head["status"]),
            _age(head["headAge"]),
            head["headTries"] or "",
        )
        for head in busy
    ]
    said = f"<p>{idle} {'queue is' if idle == 1 else 'queues are'} empty.</p>\n" if idle else ""
    columns = ("Queue", "Tasks", "First task", "Its age", "Failed tries")
    return _table("Queues", columns, rows, said)


_AGES: Final = ((86400, "d"), (3600, "h"), (60, "min"))


def _age(seconds: float) -> str:
    """Return an age so roughly that it does not change with each look."""
    for size, unit in _AGES:
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return "under a minute"


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], said: str = "") -> str:
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in columns)
    lines = "".join(f"<tr>{_cells(columns, row)}</tr>\n" for row in rows)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}</tbody>\n</table>\n" if lines else ""
    return f"<section>\n<h2>{_text(title)}</h2>\n{table}{said}</section>\n"


def _cells(columns: Sequence[str], row: Sequence[object]) -> str:
    return "".join(
        f'<td data-label="{_text(column)}">{_text(str(cell))}</td>'
        for column, cell in zip(columns, row, strict=True)
    )

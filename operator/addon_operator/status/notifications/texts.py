"""What people read, and the bodies in which receivers take it: one text for all of them.

A message says what happened to which module, where, since when, and what happens next; no values.
"""

import dataclasses
import datetime as dt
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from addon_operator.kernel import clock, names
from addon_operator.modules import news
from addon_operator.status.notifications import notify_config, transitions

Item = transitions.Item

_LINES: Final = 20
"""Of a message that is about more; the others are named."""
_NAMES: Final = 60
_TITLE_NAMES: Final = 3
"""How many things at most a title names one by one."""
SIGNATURE: Final = "X-Signature"
"""``sha256=`` and the HMAC of the body, in hexadecimal digits."""
_EVENT_TYPE: Final = "io.addon-operator.modules.changed"
_TEST_TYPE: Final = "io.addon-operator.test"
_NEAR_SECONDS: Final = 60.0


class Place(msgspec.Struct, frozen=True):
    """Which operator tells."""

    namespace: str
    cluster: str = ""

    def __str__(self) -> str:
        cluster = f"cluster {self.cluster}, " if self.cluster else ""
        return f"{cluster}namespace {self.namespace}"


class Message(msgspec.Struct, frozen=True):
    """Something to be sent to one target; without items a test."""

    items: tuple[Item, ...]
    at: float
    """When it was made, in seconds since the epoch."""


def title(message: Message) -> str:
    """Return the message in one line."""
    if not message.items:
        return "This is a test of notifications"
    if len(message.items) == 1:
        return _what(message.items[0])
    if len(message.items) <= _TITLE_NAMES:
        return _named(message)
    counts: dict[str, int] = {}
    for item in message.items:
        words = _words(item)
        counts[words] = counts.get(words, 0) + 1
    parts = [f"{number} {_plural(words) if number > 1 else words}" for words, number in counts.items()]
    first, *others = parts
    noun = "module" if first.startswith("1 ") else "modules"
    number, _, words = first.partition(" ")
    return ", ".join([f"{number} {noun} {words}", *others])


def _words(item: Item) -> str:
    return item.kind.began if item.over is None else item.kind.over


def _named(message: Message) -> str:
    """Return the title of a message about so few modules that they can be named."""
    named: dict[str, list[str]] = {}
    for item in message.items:
        named.setdefault(_words(item), []).append(item.module)
    return ", ".join(
        f"{' and '.join(modules)} {_plural(words) if len(modules) > 1 else words}"
        for words, modules in named.items()
    )


def _headline(message: Message, place: Place) -> str:
    """Return the title as it stands alone, on the screen of a phone that is locked: with the cluster."""
    return f"{place.cluster}: {title(message)}" if place.cluster else title(message)


def _plural(words: str) -> str:
    verb, _, rest = words.partition(" ")
    plural = {"is": "are", "was": "were", "works": "work", "waits": "wait", "has": "have"}.get(verb, verb)
    if rest.startswith("as its chart says"):
        return "are as their charts say again"
    if verb == "no":
        return "no longer wait for a window"
    return f"{plural} {rest.replace(' its ', ' their ')}".strip()


def _what(item: Item) -> str:
    if item.over is None:
        revision = f" to revision {item.revision}" if item.kind is news.UPGRADED and item.revision else ""
        return f"{item.module} {item.kind.began}{revision}{f', {item.times} times' if item.times > 1 else ''}"
    lasted = f", after {duration(item.over - item.since)}"
    if item.ended:
        return f"{item.module} {item.kind.no_longer or item.kind.over}{lasted}: {item.ended}"
    return f"{item.module} {item.kind.over}{lasted}"


def lines(message: Message, place: Place) -> list[str]:
    """Return what follows the title, one line each."""
    if not message.items:
        return [f"The operator in {place} can reach you. Nothing happened."]
    if len(message.items) == 1:
        (item,) = message.items
        elsewhere = "" if item.namespace == place.namespace else f" in namespace {item.namespace}"
        where = f"Module {item.module}{elsewhere} ({place})."
        return [
            where,
            _told(item, message.at),
            f"More: addon-operator module {item.kind.command} {item.module}{_of(place)}",
        ]
    shown = [f"{_what(item)}. {_told(item, message.at)}" for item in message.items[:_LINES]]
    if more := message.items[_LINES:]:
        rest = names.listed([item.module for item in more], _NAMES)
        shown.append(f"And {len(more)} more: {rest}.")
    return [f"In {place}:", *shown, f"More: addon-operator module list{_of(place)}"]


def _of(place: Place) -> str:
    return f" -n {place.namespace}"


def _told(item: Item, now: float) -> str:
    if item.over is not None:
        began, ended = moment(item.since, now), moment(item.over, now)
        if began == ended:
            return f"It began and ended at {ended}."
        return f"It began at {began} and ended at {ended}."
    since = f"{item.kind.since} {moment(item.since, now)}"
    lasts = duration(now - item.since)
    ago = f" ({lasts})" if item.kind.since.endswith("since") else f" ({lasts} ago)"
    told = f"{since}{ago if item.kind in notify_config.LASTING else ''}"
    if item.times > 1:
        told = f"{told}, with {'a break' if item.times == 2 else f'{item.times - 1} breaks'}"
    if item.problem.text:
        told = f"{told}: {item.problem.text}"
    return " ".join(_sentence(text) for text in (told, _follows(item, now)) if text)


def _follows(item: Item, now: float) -> str:
    """Say what happens next."""
    problem = item.problem
    if item.kind is news.ROLLED_BACK or not problem.follows:
        return item.kind.follows
    at = "" if problem.at is None else _when(problem.at, now)
    return f"{problem.follows}{at}{problem.sooner}"


def _when(at: float, now: float) -> str:
    """Say when something happens: with seconds, if that may be the minute of the message."""
    if at <= now:
        return " now"
    if at - now < _NEAR_SECONDS:
        return f" at {dt.datetime.fromtimestamp(at, tz=dt.UTC):%H:%M:%S} UTC"
    return f" at {moment(at, now)}"


def _sentence(text: str) -> str:
    text = text if text.startswith("'") else text[0].upper() + text[1:]
    return text if text.endswith((".", "…")) else f"{text}."


def moment(seconds: float, now: float) -> str:
    """Return a time of the day in UTC, with the date if that is not today's."""
    when = dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    is_today = when.date() == dt.datetime.fromtimestamp(now, tz=dt.UTC).date()
    return f"{when:%H:%M} UTC" if is_today else f"{when:%H:%M} UTC on {when.day} {when:%B}"


def duration(seconds: float) -> str:
    """Return a time span for people: ``40 s``, ``14 min``, ``3 h 5 min``, ``2 d 4 h``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """What is sent."""

    content: bytes = dataclasses.field(repr=False)
    headers: Mapping[str, str] = dataclasses.field(repr=False)


def body(target: notify_config.Target, message: Message, place: Place) -> Body:
    """Return the message as the target wants it."""
    document = _DOCUMENTS[target.format](message, place)
    content = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    if target.format is not notify_config.Format.CLOUDEVENTS:
        return Body(content, {"Content-Type": "application/json"})
    headers = {"Content-Type": "application/cloudevents+json; charset=UTF-8"}
    if target.hmac_key:
        digest = hmac.new(target.hmac_key.encode(), content, hashlib.sha256).hexdigest()
        headers[SIGNATURE] = f"sha256={digest}"
    return Body(content, headers)


def _slack(message: Message, place: Place) -> dict[str, Any]:
    head, rest = _headline(message, place), lines(message, place)
    return {"text": "\n".join([f"*{_escaped(head)}*", *map(_escaped, rest)])}


def _escaped(text: str) -> str:
    """Return a text that Slack shows as it is: no link, no mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _msteams(message: Message, place: Place) -> dict[str, Any]:
    head = {"type": "TextRun", "text": _headline(message, place), "weight": "Bolder", "size": "Medium"}
    runs = [head, *({"type": "TextRun", "text": line} for line in lines(message, place))]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": _headline(message, place),
        "msteams": {"width": "Full"},
        # Runs are shown as they are; a TextBlock would read Markdown in them.
        "body": [{"type": "RichTextBlock", "inlines": [run]} for run in runs],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _cloudevents(message: Message, place: Place) -> dict[str, Any]:
    items = [_item(item) for item in message.items]
    data = {
        "title": title(message),
        "lines": lines(message, place),
        "namespace": place.namespace,
        "items": items,
    }
    if place.cluster:
        data["cluster"] = place.cluster
    event = {
        "specversion": "1.0",
        "id": _identity(message, place),
        "source": f"/addon-operator/{place.namespace}",
        "type": _EVENT_TYPE if items else _TEST_TYPE,
        "time": clock.rfc3339(message.at),
        "datacontenttype": "application/json",
        "data": data,
    }
    return event | ({"subject": message.items[0].module} if len(items) == 1 else {})


def _identity(message: Message, place: Place) -> str:
    """Return an id that is the same when the same is sent once more, by whichever operator."""
    told = [[item.module, item.kind.key, round(item.since), item.over is not None] for item in message.items]
    stuff = json.dumps([str(place), told or round(message.at * 1000)])
    return hashlib.sha256(stuff.encode("utf-8", "replace")).hexdigest()[:32]


def _item(item: Item) -> dict[str, Any]:
    made: dict[str, Any] = {
        "module": item.module,
        "namespace": item.namespace,
        "kind": str(item.kind),
        "state": "over" if item.over is not None else "began",
        "since": clock.rfc3339(item.since),
        "text": _what(item),
    }
    if item.over is not None:
        made["over"] = clock.rfc3339(item.over)
    elif item.problem.text:
        made["message"] = item.problem.text
    if item.times > 1:
        made["times"] = item.times
    if item.kind is news.UPGRADED and item.revision is not None:
        made["revision"] = item.revision
    return made


_DOCUMENTS: Final[Mapping[notify_config.Format, Callable[[Message, Place], dict[str, Any]]]] = {
    notify_config.Format.SLACK: _slack,
    notify_config.Format.MSTEAMS: _msteams,
    notify_config.Format.CLOUDEVENTS: _cloudevents,
}

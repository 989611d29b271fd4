"""What status fields and conditions of custom resources mean, by the words that they use.

One table: words that mean well, ill, under way, or that somebody wishes it so. A name or value is cut into
its words, ``ControlPlaneReady`` into control, plane, ready, and the last that the table knows decides. No
kind is named here: kinds that say it in their own way have a rule in ``kinds.yaml``.
"""

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.kernel.json_types import KubernetesObject

_LONGEST: Final = 300
"""Characters of what a controller says that are shown."""
_MOST: Final = 200
"""Fields and lists of a status that are looked at."""


class Polarity(enum.IntEnum):
    """What a word means; the highest of an object decides."""

    WELL = 0
    UNDER_WAY = 1
    WISH = 2
    """Somebody wants it so: paused, suspended, stopped."""
    ILL = 3


class Word(msgspec.Struct, frozen=True):
    """What one condition or field of an object says."""

    polarity: Polarity
    said: str
    """What the controller says of it, or the word itself."""
    rule: str
    """Where it stands, for people."""
    is_final: bool = False
    """Whether the controller says that it has given up."""


_WORDS: Final[Mapping[Polarity, str]] = {
    Polarity.WELL: """
        ok ready running active available healthy green succeeded successful success successfully complete
        completed bound deployed exists valid accepted compliant synced sync up installed created initialized
        provisioned connected enabled established issued finished done normal applied online started stable
        programmed admitted reconciled resolved approved promoted synchronized verified attached registered
        released current joined passed published configured updated operational reachable discoverable
        schedulable resolvable usable""",
    Polarity.UNDER_WAY: """
        pending progress yellow init wait unknown reconcile planned queued partial scheduled""",
    Polarity.WISH: "paused suspended stopped hibernated disabled halted",
    Polarity.ILL: """
        failed fail failure failures error errors errored err red degraded unhealthy invalid rejected warn
        crashed crash offline broken unreachable denied unauthorized forbidden timeout conflict conflicted
        mismatch unsupported expired aborted retry exceeded misconfigured stalled orphan orphaned exception
        violation violations backoff fallback refused unresolved unable incompatible incorrect malformed
        undefined cannot missing failing warning""",
}
_POLARITIES: Final = {word: polarity for polarity, text in _WORDS.items() for word in text.split()}
_WHOLE: Final = {
    "inprogress": Polarity.UNDER_WAY,
    "new": Polarity.UNDER_WAY,
    "down": Polarity.ILL,
    "lost": Polarity.ILL,
    "notfound": Polarity.ILL,
    "noncompliant": Polarity.ILL,
    "notallowed": Polarity.ILL,
    "novalid": Polarity.ILL,
    "notpermitted": Polarity.ILL,
    "notvalid": Polarity.ILL,
    "notready": Polarity.UNDER_WAY,
    "submitted": Polarity.UNDER_WAY,
    "waitforfirstconsumer": Polarity.WISH,
}
"""What has a meaning only where nothing else stands beside it."""
_TURNED: Final = frozenset({"not", "non", "no", "un"})
"""What turns the word behind it."""
_VERDICTS: Final = frozenset({
    "accepted", "admitted", "applied", "compliant", "established", "resolved", "synced", "valid", "verified",
    "synchronized", "succeeded", "success", "healthy",
})  # fmt: skip
"""Words of conditions that are false only when something is wrong, and not while it is awaited."""
_SUMS: Final = frozenset({"ready", "available", "healthy"})
"""Conditions that sum up others, such as those of parts: ``WebhookReady``."""
_FREE: Final = frozenset({"active", "running", "warning", "missing"})
"""Words of conditions that are as often one way as the other while all is well."""
_UNDER_WAY: Final = frozenset({
    "reconciling", "progressing", "progress", "pending", "creating", "updating", "upgrading", "deleting",
    "terminating", "scaling", "provisioning", "deploying", "installing", "rolling", "migrating", "restoring",
    "initializing", "issuing",
})  # fmt: skip
"""Words of conditions; of others on ``ing`` some are work that is always under way, such as archiving."""
_ENDS: Final = frozenset({
    "available", "complete", "completed", "done", "finished", "ready", "running", "succeeded", "successful",
})  # fmt: skip
"""Last words of reasons for a condition under way that has come to its end."""
_ONLY_ENDS: Final = frozenset({"complete", "completed", "done", "finished"})
"""Words of conditions that say that something has ended; the reason says how."""
_PLACED: Final = "scheduled"
"""As a condition, something has its place; as a phase, it waits for its turn."""
_PARENTS_OF_OTHERS: Final = "NoMatchingParent"
"""The reason for a parent that another controller looks after."""
_WORK: Final = frozenset({
    "backup", "restore", "run", "job", "task", "workflow", "experiment", "migration", "build", "snapshot",
    "operation", "import", "export", "copy", "evaluation", "test", "request",
})  # fmt: skip
"""Last words of kinds whose objects end: while such an object runs, it is not done."""
_SPLIT: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FIELDS: Final = frozenset({"phase", "state", "status", "health", "compliant"})
_ROLLING: Final = "spec.updateStrategy."
_WISHES: Final = {
    "spec.paused": True,
    "spec.suspend": True,
    "spec.suspended": True,
    "spec.enabled": False,
    f"{_ROLLING}paused": True,
}
"""What fields of a spec are while somebody wants that nothing is done."""
_FLAGS: Final = {"ready": Polarity.UNDER_WAY, "healthy": Polarity.ILL, "readytouse": Polarity.UNDER_WAY}
"""Flags of a status, and what it means that one is false."""
_TROUBLES: Final = frozenset(
    {"error", "errormessage", "errmsg", "failuremessage", "failurereason", "lasterrors"}
)
"""Fields of a status that are there only in trouble."""
_COUNTS: Final = {
    "readyReplicas": "ready",
    "availableReplicas": "available",
    "updatedReplicas": "updated",
    "numberReady": "ready",
    "numberAvailable": "available",
    "updatedNumberScheduled": "updated",
}
"""Fields that count pods, and what those are."""
_LISTS: Final = ("parents", "ancestors", "ingress", "listeners")
"""Lists of a status whose entries have conditions: one for each parent of a route, say."""
_PAST: Final = frozenset({"history", "previous", "provider", "conditions", "spec"})


def words(text: str) -> list[str]:
    """Cut a name into its words."""
    return [word.lower() for word in _SPLIT.findall(text)]


def polarity_of(text: str) -> Polarity | None:
    """Return what a word of a status means, such as ``UpdateFailed``; ``None`` if the table has none of it.

    Something ill anywhere decides; else the last word that the table knows.
    """
    parts = words(text[:_LONGEST])
    if (whole := _WHOLE.get("".join(parts))) is not None:
        return whole
    found = [
        meaning
        for before, word in zip(["", *parts], parts, strict=False)
        if (meaning := _WHOLE.get(before + word) or _turned(before, _meaning(word))) is not None
    ]
    return Polarity.ILL if Polarity.ILL in found else found[-1] if found else None


def _meaning(word: str) -> Polarity | None:
    if (known := _POLARITIES.get(word)) is not None:
        return known
    return Polarity.UNDER_WAY if word.endswith("ing") and len(word) > len("thing") else None


def _turned(before: str, meaning: Polarity | None) -> Polarity | None:
    if before not in _TURNED or meaning is None:
        return meaning
    return Polarity.UNDER_WAY if meaning is Polarity.WELL else None


def said(condition: Mapping[str, Any]) -> str:
    """Return the message of a condition in one short line."""
    message = condition.get("message")
    text = " ".join(message[: 2 * _LONGEST].split()) if isinstance(message, str) else ""
    # Other texts follow behind it.
    return text.removesuffix(".") if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def conditions(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return what is a condition in the list ``conditions`` of a status, or of an entry of it."""
    found = part.get("conditions")
    yield from (one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def decisive(resource: KubernetesObject) -> Word | None:
    """Return what decides how a resource is; ``None`` if it has no word that the table knows."""
    spec, status = _mapping(resource.get("spec")), _mapping(resource.get("status"))
    strategy = _mapping(spec.get("updateStrategy"))
    rolling = {**strategy, **_mapping(strategy.get("rollingUpdate"))}
    for place, wished in _WISHES.items():
        key = place.rpartition(".")[2]
        if (rolling if place.startswith(_ROLLING) else spec).get(key) is wished:
            return Word(Polarity.WISH, f"{place} is {str(wished).lower()}", place)
    found = (
        *_of_conditions(status, _mapping(resource.get("metadata")).get("generation")),
        *_of_fields(str(resource.get("kind")), status),
        *_of_replicas(spec, status, rolling.get("partition")),
        *_of_no_replicas(spec, status),
    )
    return max(found, key=lambda word: word.polarity, default=None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _entries(value: object) -> list[Mapping[str, Any]]:
    found = value[:_MOST] if isinstance(value, list) else [value]
    return [one for one in found if isinstance(one, dict)]


def _of_conditions(status: Mapping[str, Any], generation: object) -> Iterator[Word]:
    lists = [("status.conditions", list(conditions(status)))]
    for key in _LISTS:
        place = f"status.{key}[].conditions"
        lists.extend((place, list(conditions(entry))) for entry in _entries(status.get(key)))
    seen = [one.get("observedGeneration") for _, every in lists for one in every]
    newest = max((number for number in seen if type(number) is int), default=None)
    if newest is not None and type(generation) is int and newest < generation:
        text = f"its controller has not seen the last change yet (generation {generation})"
        yield Word(Polarity.UNDER_WAY, text, "observedGeneration of its conditions")
    for place, every in lists:
        current = [one for one in every if one.get("observedGeneration") in (None, newest)]
        yield from _of_list(current, place, has_phase=not {"phase", "state"}.isdisjoint(status))


def _of_list(every: Sequence[Mapping[str, Any]], place: str, *, has_phase: bool) -> Iterator[Word]:
    named = [(words(str(one.get("type"))[:_LONGEST]), one) for one in every]
    is_summed_up = any(parts[0] in _SUMS for parts, _ in named if len(parts) == 1)
    for parts, one in named:
        if one.get("reason") == _PARENTS_OF_OTHERS:
            continue
        meaning, decides = _of_type(parts)
        # What sums up speaks for the parts.
        is_spoken_for = is_summed_up or (has_phase and one.get("status") == "Unknown")
        if meaning is Polarity.WELL and len(parts) > 1 and is_spoken_for:
            continue
        if (word := _of_condition(meaning, decides, one, place)) is not None:
            yield word


def _of_type(parts: Sequence[str]) -> tuple[Polarity | None, str]:
    """Return what it means that a condition is true, and the word that decides."""
    for before, word in reversed(list(zip(["", *parts], parts, strict=False))):
        if word in _FREE:
            return None, word
        if word == _PLACED:
            return Polarity.WELL, word
        if word in _UNDER_WAY:
            return Polarity.UNDER_WAY, word
        if (meaning := _POLARITIES.get(word)) is not None:
            is_turned = before in _TURNED and meaning is Polarity.WELL
            return Polarity.ILL if is_turned else meaning, word
    return None, ""


def _of_condition(meaning: Polarity | None, decides: str, one: Mapping[str, Any], place: str) -> Word | None:
    kind, reason = str(one.get("type")), str(one.get("reason") or "")
    status = str(one.get("status")).capitalize()
    of_reason = polarity_of(reason)
    has_ended = not _ENDS.isdisjoint(words(reason[:_LONGEST])[-1:])
    if (
        found := _of_status(meaning, status, of_reason, has_ended=has_ended, is_end=decides in _ONLY_ENDS)
    ) is None:
        return None
    if meaning is Polarity.WELL and status == "False" and of_reason in (None, Polarity.WELL):
        is_wrong = decides in _VERDICTS or _is_bad_news(said(one))
        found = Polarity.ILL if is_wrong else Polarity.UNDER_WAY
    because = f", reason {reason[:_LONGEST]}" if reason else ""
    text = said(one) or f"{kind[:_LONGEST]} is {status[:_LONGEST]}{because}"
    rule = f"{place}: {kind[:_LONGEST]}={status[:_LONGEST]}{because}"
    return Word(found, "" if found is Polarity.WELL else text, rule, is_final=kind == "Stalled")


def _of_status(
    meaning: Polarity | None, status: str, of_reason: Polarity | None, *, has_ended: bool, is_end: bool
) -> Polarity | None:
    if meaning is Polarity.UNDER_WAY:
        return _of_progress(status, of_reason, has_ended=has_ended)
    if meaning is Polarity.WELL:
        if status == "True":
            return Polarity.ILL if is_end and of_reason is Polarity.ILL else Polarity.WELL
        return Polarity.UNDER_WAY if of_reason in (None, Polarity.WELL) else of_reason
    if status == "False":
        # Of what the table does not know, only the reason says whether it is well that it is false.
        is_ill = meaning is None and of_reason is Polarity.ILL
        return Polarity.ILL if is_ill else Polarity.WELL if meaning is Polarity.ILL else None
    return meaning if status == "True" else None


def _of_progress(status: str, of_reason: Polarity | None, *, has_ended: bool) -> Polarity | None:
    if status == "Unknown":
        return Polarity.WISH if of_reason is Polarity.WISH else Polarity.UNDER_WAY
    if of_reason is Polarity.ILL:
        return Polarity.ILL
    if status == "False":
        return None
    return Polarity.WELL if has_ended else Polarity.UNDER_WAY


def _is_bad_news(message: str) -> bool:
    return any(_POLARITIES.get(word) is Polarity.ILL for word in words(message))


def _of_fields(kind: str, status: Mapping[str, Any]) -> Iterator[Word]:
    is_work = (words(kind[:_LONGEST]) or [""])[-1] in _WORK
    for key, value in list(status.items())[:_MOST]:
        names = words(key[:_LONGEST])
        if not names or not _PAST.isdisjoint(names):
            continue
        name, place = "".join(names), f"status.{key[:_LONGEST]}"
        if isinstance(value, bool) and name in _FLAGS:
            yield Word(Polarity.WELL if value else _FLAGS[name], "" if value else f"{key} is false", place)
        elif value and name in _TROUBLES:
            text = value.get("message") if isinstance(value, dict) else value
            yield Word(Polarity.ILL, f"{key}: {str(text)[:_LONGEST]}", place)
        elif isinstance(value, str) and names[-1] in _FIELDS:
            yield from _of_value(place, value, is_work=is_work)
        elif value and isinstance(value, list) and names[0] == "failed":
            yield Word(Polarity.ILL, f"{key} has {len(value)}", place)
        elif isinstance(value, dict | list):
            for entry in _entries(value):
                for inner in sorted(_FIELDS & entry.keys()):
                    yield from _of_value(f"{place}.{inner}", entry[inner], is_work=is_work)


def _of_value(place: str, value: object, *, is_work: bool) -> Iterator[Word]:
    if not isinstance(value, str):
        return
    meaning = polarity_of(value)
    if is_work and value.lower() == "running":
        meaning = Polarity.UNDER_WAY
    if meaning is not None:
        shown = value[:_LONGEST]
        text = "" if meaning is Polarity.WELL else f"{place.removeprefix('status.')} is {shown}"
        yield Word(meaning, text, f"{place} is {shown}")


def _of_replicas(spec: Mapping[str, Any], status: Mapping[str, Any], kept: object) -> Iterator[Word]:
    wanted = spec.get("replicas", status.get("replicas", status.get("desiredNumberScheduled")))
    for key, done in _COUNTS.items():
        count = status.get(key)
        # A partition says how many pods keep the old revision.
        spared = kept if done == "updated" and type(kept) is int else 0
        if type(wanted) is not int or type(count) is not int:
            continue
        if count < wanted - spared:
            yield Word(Polarity.UNDER_WAY, f"{count} of {wanted} pods {done}", f"status.{key}")
        else:
            yield Word(Polarity.WELL, "", f"status.{key}")


def _of_no_replicas(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[Word]:
    if type(spec.get("replicas")) is int and spec["replicas"] == 0 and not status.get("replicas"):
        yield Word(Polarity.WISH, "spec.replicas is 0", "spec.replicas")

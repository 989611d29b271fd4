"""How modules are shown: as rows of a table, and one described whole."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from addon_operator.cli import debug, printing
from addon_operator.kernel import names
from addon_operator.modules import findings

_COLUMNS: Final = ("MODULE", "ORDER", "STATE", "HEALTHY", "REVISION", "LAST RUN", "message")
_SPARED: Final = ("ORDER", "LAST RUN", "REVISION")
"""On a narrow terminal these go, so that there is room for what is wrong."""
_WIDE_COLUMNS: Final = (*_COLUMNS[:3], "SINCE", *_COLUMNS[3:-1], "shared objects", "last error", "reason")
_HEALTHY: Final = {"Healthy": "True", "Failed": "False", "Progressing": "Unknown"}
"""As kubectl shows the condition."""
_SHARED_SHOWN: Final = 5
_HEAD: Final = 12
_STYLES: Final = {"Ready": "green", "Failed": "red", "Running": "cyan", "Disabled": "dim"}
_HEALTH_STYLES: Final = {"Failed": "red", "Progressing": "cyan"}
_ATTENTION: Final = "yellow"
_RESOURCE_COLUMNS: Final = ("MODULE", "STATE", "resource", "reason")


def _modules(document: debug.Document, wide: bool) -> str:
    if wide:
        return _all_of_modules(document)
    modules = _failed_first(document["modules"])
    rows = [(*_row(module), _message(module)) for module in modules]
    listed = (
        printing.listing(_COLUMNS, rows, _styles(modules), wide=wide, spared=_SPARED)
        if rows
        else "no modules\n"
    )
    return _above(document) + listed


def _message(module: debug.Document) -> str:
    """Return what is wrong; of a module that is well what it is for, or why it is enabled."""
    if error := _wrong(module):
        return error
    is_well = module["state"] == "Ready" and not module.get("suspended")
    return (module["description"] if is_well else "") or _reason(module)


LISTED: Final = debug.Listed(
    _modules, "module", lambda document: [module["name"] for module in document["modules"]]
)


def _failed_first(modules: Sequence[debug.Document]) -> list[debug.Document]:
    """Sort for people: what does not work, and then all others, in run order both."""
    return sorted(modules, key=lambda module: not (module["lastError"] or module.get("health") == "Failed"))


def _above(document: debug.Document) -> str:
    """Return what is wrong and no module's alone: values that are not in force, and global hooks."""
    hooks = [f"global hooks: {text}" for text in document.get("globalHooks", ())]
    going = [each for each in document["modules"] if each["state"] == "Deleting" and not each.get("heldBack")]
    removals = [f"removals under way: {len(going)}"] if going else []
    return "".join(f"{text}\n" for text in [*document.get("wrongValues", ()), *hooks, *removals])


def _all_of_modules(document: debug.Document) -> str:
    modules = _failed_first(document["modules"])
    columns: tuple[str, ...] = _WIDE_COLUMNS
    rows = [_wide_row(module) for module in modules]
    if any(module["release"] != module["name"] for module in modules):
        columns = (*columns[:3], "RELEASE", *columns[3:])
        rows = [(*row[:3], module["release"], *row[3:]) for row, module in zip(rows, modules, strict=True)]
    for title, texts in (
        ("requires", [*map(_requirements, modules)]),
        ("answers", [*map(_answers, modules)]),
        ("description", [module["description"] for module in modules]),
        ("message", [_one_text([*_cure(module), *besides(module)]) for module in modules]),
    ):
        # Only if one of the modules says it.
        if any(texts):
            columns = (*columns[:-2], title, *columns[-2:])
            rows = [(*row[:-2], text or "-", *row[-2:]) for row, text in zip(rows, texts, strict=True)]
    listed = printing.listing(columns, rows, _styles(modules), wide=True) if rows else "no modules\n"
    return _above(document) + listed


def _answers(module: debug.Document) -> str:
    """Say how many webhooks and conversions the module's hooks answer, and how many of these are asked."""
    answering = module.get("answering", ())
    asked = sum(not each["notRegistered"] for each in answering)
    return f"{asked}/{len(answering)} registered" if answering else ""


def _requirements(module: debug.Document) -> str:
    return ", ".join(module.get("requires", ()))


def _row(module: debug.Document) -> tuple[str, ...]:
    return (
        module["name"],
        str(module["order"]),
        module["state"],
        _HEALTHY.get(module.get("health") or "", "-"),
        str(module.get("revision") or "-"),
        printing.ago(module["lastRun"]),
    )


def _wrong(module: debug.Document) -> str:
    """Return all that is not as it should be, in one line; empty if nothing is."""
    at_hook = "" if module.get("editWaits") else module.get("atHook") or ""
    return _one_text([*_cure(module), at_hook, module["lastError"], *besides(module)])


def _one_text(said: Sequence[str]) -> str:
    return " ".join("; ".join(filter(None, said)).split())


def besides(module: debug.Document) -> list[str]:
    """Return what there is to know besides the last error, and what a cure is waited for."""
    return findings.said([_without(module["lastError"], each) for each in module["findings"]], module["name"])


def _without(error: str, found: findings.FindingRow) -> findings.FindingRow:
    """Return a finding that does not say once more why something is so if the last error says it."""
    what, _, why = found["message"].partition(": ")
    return {**found, "message": f"{what}: see the last error"} if why and why in error else found


def _reason(module: debug.Document) -> str:
    """Return why it is enabled or not; a suspension stands among what is wrong already."""
    suspended = module.get("suspended") or ""
    reason: str = module["reason"]
    return reason.removeprefix(suspended).removeprefix("; ") if suspended else reason


def _cure(module: debug.Document) -> list[str]:
    cure = module.get("cure")
    return [f"waits for {', '.join(cure)}"] if cure else []


def _wide_row(module: debug.Document) -> tuple[str, ...]:
    first, error = _row(module), printing.one_line(module["lastError"])
    shared = [shared_text(each) for each in module.get("sharedObjects", ())]
    since = printing.ago(module.get("since")).removesuffix(" ago")
    return (*first[:3], since, *first[3:], names.listed(shared, _SHARED_SHOWN) or "-", error, _reason(module))


def _styles(modules: Sequence[debug.Document]) -> Callable[[Sequence[str]], str]:
    """Return how rows are painted: as the worst of what they say, so that nothing wrong is green."""
    styles = {module["name"]: _style(module) for module in modules}
    return lambda row: styles[row[0]]


def _style(module: debug.Document) -> str:
    own = _STYLES.get(module["state"], "")
    if module["state"] != "Ready":
        return _HEALTH_STYLES["Failed"] if module.get("health") == "Failed" else own
    return _HEALTH_STYLES.get(module.get("health") or "", _ATTENTION if _wrong(module) else own)


def _resources(document: debug.Document, wide: bool) -> str:
    rows = [line for module, resources in document.items() for line in _resource_rows(module, resources)]
    return printing.listing(_RESOURCE_COLUMNS, rows, wide=wide) if rows else "no enabled modules\n"


MONITORED: Final = debug.Listed(_resources, "module", list)


def _resource_rows(module: str, resources: debug.Document) -> Iterator[tuple[str, ...]]:
    if isinstance(resources, str):
        yield (module, resources, "-", "-")
        return
    for resource in resources:
        yield (module, resource["state"], resource["resource"], resource.get("reason") or "-")


def differences(rows: debug.Document) -> str:
    """Return what others changed of a module's resources: field, who wrote it, and both values."""
    lines = "".join(line for row in rows["differences"] for line in _difference(row))
    if lines or rows.get("compared", True):
        return lines or "no differences\n"
    return (
        "nothing is compared: the module has no release yet, drift.mode is ignore, or it is in maintenance\n"
    )


def _difference(row: debug.Document) -> Iterator[str]:
    by = f" (by {row['manager']})" if row["manager"] else ""
    yield f"{row['resource']}: {row['path']}{by}\n"
    for sign, text in (("-", row["expected"]), ("+", row["live"])):
        lines = ["(missing)"] if text is None else text.splitlines() or [""]
        yield from (f"  {sign} {line}\n" for line in lines)


def description(module: debug.Document) -> str:
    """Return all that is to know of one module."""
    return "".join(f"{line}\n" for line in [*_description_head(module), *_sections(module)])


def _description_head(module: debug.Document) -> Iterator[str]:
    title = "" if module["release"] == module["name"] else module["release"]
    revision = "" if module["revision"] is None else f"revision {module['revision']}"
    release = ", ".join(filter(None, (title, revision))) or "-"
    chart, namespace = module.get("chart"), module.get("namespace")
    for name, value in (
        ("Name", module["name"]),
        *((("Description", module["description"]),) if module["description"] else ()),
        ("State", module["state"]),
        *((("Since", _moment(since)),) if (since := module.get("since")) else ()),
        ("Health", ": ".join(filter(None, (module["health"], module["healthMessage"]))) or "-"),
        ("Reason", _reason(module)),
        ("Order", module["order"]),
        *((("Requires", required),) if (required := _requirements(module)) else ()),
        *((("Chart", chart),) if chart else ()),
        ("Release", release),
        *((("Namespace", namespace),) if namespace else ()),
        ("Last run", _moment(module["lastRun"])),
        *((("Tries", f"{module['tries']} failed"),) if module["tries"] else ()),
        ("Next try", module["nextTry"] or "-"),
    ):
        yield f"{name + ':':<{_HEAD}} {value}"


def _moment(moment: str | None) -> str:
    return "-" if moment is None else f"{moment} ({printing.ago(moment)})"


def _sections(module: debug.Document) -> Iterator[str]:
    yield from _section("Last error", module["lastError"].splitlines())
    by_word: dict[str, list[str]] = {}
    for each in module["findings"]:
        since = [f"since {_moment(each['since'])}"] if each["since"] else []
        by_word.setdefault(findings.kind_of(each).word, []).extend([each["message"], *since])
    for word, lines in by_word.items():
        yield from _section(word, lines)
    if running := module.get("runningHooks"):
        lines = [f"{each['hook']}, since {_moment(each['since'])}" for each in running]
        yield from _section("Running hooks", lines)
    if failing := module.get("failingHooks"):
        yield from _section("Failing hooks", [line for each in failing for line in _failing(each)])
    hooks = module["hooks"]
    lines = ["not known yet"] if hooks is None else [line for hook in hooks for line in _hook(hook)]
    yield from _section("Hooks", lines)
    if cure := _cure(module):
        yield from _section("Waiting", cure)
    if answering := module.get("answering"):
        told = [answering_text(each, module["lastError"]) for each in answering]
        yield from _section("Answers the API server", told)
    yield from _section("Shared objects", [shared_text(each) for each in module["sharedObjects"]])
    yield from _section("Absent objects", module["absentObjects"])
    restored = [f"{name} (times: {times})" for name, times in sorted(module["restoredObjects"].items())]
    yield from _section("Restored lately", restored)
    yield from _section("Events", [_event(each) for each in module.get("events", ())])


def _event(event: debug.Document) -> str:
    return f"{printing.ago(event['time'])}  {event['type']}  {event['reason']}  {event['message']}"


def _failing(module: debug.Document) -> Iterator[str]:
    times = "once" if module["tries"] == 1 else f"{module['tries']} times"
    yield f"{module['hook']}, binding {module['binding']}, queue {module['queue']}, failed {times}"
    yield from (f"  {line}" for line in module["lastError"].splitlines())


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        yield f"{title}: -"
        return
    yield f"{title}:"
    yield from (f"  {line}" for line in lines)


def _hook(hook: debug.Document) -> Iterator[str]:
    yield hook["name"]
    for bound in hook["bindings"]:
        about = _about(bound)
        name = f"{bound['binding']} {bound.get('name', '')}".rstrip() + (f" ({about})" if about else "")
        order = f", order {bound['order']}" if "order" in bound else ""
        # Hooks that answer the API server wait in no queue.
        queue = f", queue {bound['queue']}" if "queue" in bound else ""
        yield f"  {name}{order}{queue}"


def _about(bound: debug.Document) -> str:
    """Say what a binding is about."""
    if "crdName" in bound:
        return f"{bound['crdName']} {', '.join(bound.get('conversions', ()))}".rstrip()
    kind = f"{bound.get('apiVersion', '')} {bound.get('kind', '')}".strip()
    return str(bound.get("crontab") or bound.get("resources") or kind)


def answering_text(bound: debug.Document, error: str = "") -> str:
    """Say whether the API server asks a hook, and why not, or that the hook gives no answer.

    What ``error`` says, which is shown too, is not said again.
    """
    name, wrong = f"{bound['binding']} {bound['name']} of hook {bound['hook']}", bound.get("unanswered")
    if why := bound["notRegistered"]:
        return f"{name} is not registered: {'see the last error' if why in error else why}"
    return f"{name} is registered" + (f", and did not answer the last request: {wrong}" if wrong else "")


def shared_text(document: debug.Document) -> str:
    """Return an object that several modules have, with the other modules, and whose it is."""
    return (
        f"{document['resource']} (also of {', '.join(document['modules'])}; belongs to {document['owner']})"
    )

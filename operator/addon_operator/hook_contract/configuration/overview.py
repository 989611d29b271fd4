"""What a hook is bound to, told for people: one row for each binding."""

import dataclasses
from collections.abc import Iterator

from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel.json_types import JsonObject


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """One binding."""

    binding: str
    """The key in the configuration."""
    name: str = ""
    """Name of a schedule or kubernetes binding."""
    crontab: str = ""
    kind: str = ""
    api_version: str = ""
    order: int | None = None
    """ORDER of a step of life."""
    queue: str = bindings.MAIN_QUEUE


def bound(read: hook_config.HookConfig) -> Iterator[Bound]:
    """All bindings: steps of life first."""
    for step in hook_config.LifecycleBinding:
        if (order := read.order(step)) is not None:
            yield Bound(step.value, order=order)
    for schedule in read.schedules:
        yield Bound("schedule", schedule.name, schedule.crontab.text, queue=schedule.queue)
    for watched in read.kubernetes:
        yield Bound(
            "kubernetes",
            watched.name,
            kind=watched.kind,
            api_version=watched.api_version or "",
            queue=watched.queue,
        )


def document(found: Bound) -> JsonObject:
    """The binding for other programs, without what it does not have."""
    members: JsonObject = {
        "binding": found.binding,
        "name": found.name,
        "crontab": found.crontab,
        "apiVersion": found.api_version,
        "kind": found.kind,
        "order": found.order,
        "queue": found.queue,
    }
    return {key: value for key, value in members.items() if value not in ("", None)}

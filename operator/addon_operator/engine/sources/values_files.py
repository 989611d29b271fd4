"""What the values files say beside the ConfigMap and the Secret: what is wrong with them and not with those,
and sections of those that lie one level too deep.
"""

from collections.abc import Iterable, Iterator

from addon_operator.engine.sources import configured_object
from addon_operator.kernel import json_types, names
from addon_operator.kube.objects import config_maps
from addon_operator.values import checks, origins, sources, store
from addon_operator.values.schema import schema_violations


class ValuesFiles:
    """The values files of all modules, as one who blames them for what is wrong."""

    def __init__(self, values: store.ValuesStore) -> None:
        self._values = values
        self._checks = checks.Checks(values)

    def wrong(self, state: configured_object.ConfigState) -> tuple[schema_violations.Violation, ...]:
        """Return what is wrong that the objects neither set nor left out, and no single module."""
        unreadable = frozenset[str]().union(*(part.reading.unreadable for part in state.parts))
        return tuple(
            violation
            for violation in self._of_files(state)
            if (violation in state.broken or violation.keys[0] in unreadable)
            and not (self._is_modules_own(violation) or violation.is_unanswered)
        )

    def without_modules_own(
        self, state: configured_object.ConfigState
    ) -> tuple[schema_violations.Violation, ...]:
        """Return what is wrong, without what the files of one module break by themselves."""
        if not state.broken:
            return state.broken
        own = [violation for violation in self._of_files(state) if self._is_modules_own(violation)]
        # A program that gives no answer stops its module when that runs, and nothing else.
        return tuple(one for one in state.broken if one not in own and not one.is_unanswered)

    def _of_files(self, state: configured_object.ConfigState) -> list[schema_violations.Violation]:
        """Return what is wrong with the files, but for what somebody left out in objects that there are."""
        is_there = any(part.snapshot is not config_maps.ABSENT for part in state.parts)
        violations = self._checks.config_violations(sources.ConfigValues())
        return [one for one in violations if not (is_there and one.is_left_out)]

    def _is_modules_own(self, violation: schema_violations.Violation) -> bool:
        """Say whether it concerns one module, and no file that all modules share has set it."""
        shared = {layer.source for layer in self._values.layers(None)}
        return violation.keys[0] != names.GLOBAL_KEY and violation.origin not in shared

    def doubled(self, part: configured_object.ObjectState) -> Iterator[str]:
        """Yield a sentence for each section of an object that was copied into it with its key."""
        sections = part.reading.values.sections
        for owner in (None, *self._values.modules):
            key = names.GLOBAL_KEY if owner is None else names.values_key(owner)
            if (section := sections.get(key)) is None:
                continue
            files = self._values.layers(owner, sources.ConfigValues())
            if is_doubled(key, section, files):
                line = f"{key}:"
                yield (
                    f"{part.origin.source}: key {key!r} holds nothing but {key!r} again, so its values "
                    f"are not those of the files; remove the line {line!r} from its text"
                )


def is_doubled(key: str, section: json_types.JsonObject, files: Iterable[origins.Layer]) -> bool:
    """Say whether a section holds nothing but its own key, and below it what the files have beside that key.

    A chart may well have a subchart of the module's name: then the files say so, too.
    """
    inner = section.get(key)
    if len(section) != 1 or not isinstance(inner, dict):
        return False
    keys = set().union(*(layer.section for layer in files))
    return key not in keys and not keys.isdisjoint(inner)

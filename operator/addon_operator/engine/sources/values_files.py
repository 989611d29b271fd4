"""What is wrong at the start with the values files, and not with the ConfigMap or the Secret."""

from addon_operator.engine.sources import configured_object
from addon_operator.kernel import names
from addon_operator.kube.objects import config_maps
from addon_operator.values import checks, sources, store
from addon_operator.values.schema import schema_violations


class ValuesFiles:
    """The values files of all modules, as one who blames them for what is wrong."""

    def __init__(self, values: store.ValuesStore) -> None:
        self._values = values
        self._checks = checks.Checks(values)

    def are_wrong(self, state: configured_object.ConfigState) -> bool:
        """Say whether something is wrong that the objects neither set nor left out, and no single module."""
        unreadable = frozenset[str]().union(*(part.reading.unreadable for part in state.parts))
        return any(
            violation in state.broken or violation.keys[0] in unreadable
            for violation in self._of_files(state)
            if not (self._is_modules_own(violation) or violation.is_unanswered)
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

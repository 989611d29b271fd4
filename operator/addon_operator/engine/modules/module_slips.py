"""Slips of the keyboard in values and templates of modules, found once for each change."""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.aio import threads
from addon_operator.helm.charts import chart_slips
from addon_operator.kernel import errors, names
from addon_operator.modules import chart_values, model
from addon_operator.values import inspectors, store

SECONDS: Final = 5.0
"""For one module; what takes longer has none."""
MOST: Final = 10
"""How many are told of one module."""
_Given = Mapping[str, Mapping[str, Any]]


class ModuleSlips:
    """Has the worker look for them."""

    def __init__(self, values: store.ValuesStore) -> None:
        self._values = values
        self._found: dict[names.ModuleName, tuple[model.Module, _Given, list[str]]] = {}

    async def of(self, module: model.Module) -> list[str]:
        """Return what is probably a slip, one sentence each, without values.

        It is looked for again when the module was read anew from disk, or with other values.
        """
        section = self._values.section_of(module.name)
        if module.stock is not None:
            given: _Given = {each.source: each.section for each in self._values.layers(module.name)}
        else:
            given = {"": section.present}
        seen = self._found.get(module.name)
        if seen is None or seen[0] is not module or seen[1] != given:
            skipped = module.stock is None and section.has_values_schema
            found = [] if skipped else await threads.run(threads.EDITS, self._look, module, given)
            seen = self._found[module.name] = module, given, found
        return seen[2]

    def _look(self, module: model.Module, given: _Given) -> list[str]:
        inspector, directory = self._values.inspector, module.chart_directory
        question: tuple[Any, ...] = chart_slips.in_templates, module.name, directory, given.get("", {})
        if module.stock is not None:
            below = chart_values.has_section(module)
            question = chart_slips.in_values, module.name, directory, given, below
        try:
            with inspector.within(SECONDS):
                found: list[str] = inspector.call(*question, gives=list[str])
        except (inspectors.LostError, errors.AddonOperatorError):
            return []
        return found[:MOST]

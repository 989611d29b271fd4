"""What a hook's patch of the values would do, worked out beside the store."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import cast

from addon_operator.documents import json_documents
from addon_operator.kernel import json_types, names
from addon_operator.values import section
from addon_operator.values.patches import patches as json_patches
from addon_operator.values.schema import schemas as values_schemas


@dataclasses.dataclass(frozen=True, slots=True)
class PatchPlan:
    """What a values patch would do; it counts as long as what it was made from is in force."""

    patch: section.SectionPatch
    hook_switches: Mapping[str, bool]
    made_from: tuple[json_types.JsonObject, Mapping[str, bool]]
    """The values of the section and the hooks' switches before."""


def make(
    owner: names.ModuleName | None,
    patch: json_patches.ValuesPatch,
    kept: section.Section,
    hook_switches: Mapping[str, bool],
) -> PatchPlan:
    """What the patch of a hook of ``owner`` (``None``: a global hook) does to the section that is kept.

    Raises :class:`.PatchError` or
    :class:`.InvalidValuesError`.
    """
    json_patches.check_roots(owner, patch, switches=True)
    document: json_types.JsonObject = {kept.key: json_documents.copy(kept.present)}
    if owner is None:
        document.update(hook_switches)
    taken = json_patches.apply_strictly(document, patch)
    steps = [step for step in taken if step.path[0] == kept.key]
    value = cast("json_types.JsonObject", document.pop(kept.key))
    prepared = kept.prepare(value, steps)
    if found := kept.values_violations(prepared.value):
        raise values_schemas.InvalidValuesError(found, _blamed(patch, kept, found))
    switches_after = cast("dict[str, bool]", document) if owner is None else hook_switches
    return PatchPlan(prepared, switches_after, (kept.present, hook_switches))


def refused(patch: json_patches.ValuesPatch) -> str:
    """What stands before the violations that a patch brings about."""
    return f"{patch.source} makes values that are not valid"


def _blamed(
    patch: json_patches.ValuesPatch, kept: section.Section, found: Sequence[values_schemas.Violation]
) -> str:
    before = kept.values_violations(kept.present)
    if all(violation in before for violation in found):
        return f"the values of {kept.key} were not valid before {patch.source} changed them"
    return refused(patch)

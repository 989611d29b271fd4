"""What a hook's config values patch makes of the values ConfigMap.

The caller reads the ConfigMap, gives its data here, writes the result with the resourceVersion as
precondition, and on a conflict does the same with the fresh object.
"""

import dataclasses
from collections.abc import Mapping

from addon_operator.documents import json_documents, yaml_writing
from addon_operator.kernel import json_types, names
from addon_operator.values import sources
from addon_operator.values.patches import patches


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigPatchResult:
    """The section of the ConfigMap that a patch makes."""

    key: names.ValuesKey
    """The section's key in the ConfigMap."""
    section: json_types.JsonObject
    """The new values of the section."""
    changed: bool
    """Whether the patch changed its content; if not, nothing needs to be written."""


def patch_section(
    owner: names.ModuleName | None, patch: patches.ValuesPatch, config: sources.ConfigValues
) -> ConfigPatchResult:
    """Apply a config values patch of a module's hook (``None``: a global hook) to what the ConfigMap says.

    Raises :class:`.PatchError`.
    """
    patches.check_roots(owner, patch, switches=False)
    key = patches.root_key(owner)
    before = config.sections.get(key, {})
    document: json_types.JsonObject = {key: json_documents.copy(before)}
    patches.apply_strictly(document, patch)
    section = document[key]
    if not isinstance(section, dict):
        raise patches.PatchError(f"{patch.source}: section /{key} must stay a mapping")
    return ConfigPatchResult(key, section, not json_documents.equal(before, section))


def render(data: Mapping[str, str], result: ConfigPatchResult) -> dict[str, str]:
    """Return the ConfigMap's data with the section written anew; all other keys stay byte for byte.

    An emptied section loses its key. Where the section's key held the alias ``"false"``, the module stays
    disabled through its switch.
    """
    rendered = dict(data)
    if not result.changed:
        return rendered
    if rendered.get(result.key, "").strip() == sources.DISABLING_ALIAS:
        rendered.setdefault(result.key + names.ENABLED_SUFFIX, sources.DISABLING_ALIAS)
    if result.section:
        rendered[result.key] = yaml_writing.dump(result.section)
    else:
        rendered.pop(result.key, None)
    return rendered

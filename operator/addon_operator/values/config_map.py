"""What a hook's config values patch makes of the values ConfigMap.

The caller reads the ConfigMap, gives its data here, writes the result with the resourceVersion as
precondition, and on a conflict does the same with the fresh object. What the values Secret sets lies over the
ConfigMap, and never gets into it.
"""

from collections.abc import Iterable, Mapping

import msgspec

from addon_operator.documents import json_documents, json_pointers, yaml_writing
from addon_operator.kernel import json_types, names
from addon_operator.values import origins, sources
from addon_operator.values.patches import patches


class ConfigPatchResult(msgspec.Struct, frozen=True):
    """The section of the ConfigMap that a patch makes."""

    key: names.ValuesKey
    """The section's key in the ConfigMap."""
    section: json_types.JsonObject
    """The new values of the section."""
    changed: bool
    """Whether the patch changed its content; if not, nothing needs to be written."""
    hidden: tuple[str, ...] = ()
    """Paths that the patch wants otherwise, and that the Secret sets: they stay as that says."""


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
    secret = config.secret_section(key)
    below = _BelowSecret(key, secret) if secret else None
    patches.apply_strictly(document, patch, below.adapt if below else patches.as_it_is)
    section = document[key]
    if not isinstance(section, dict):
        raise patches.PatchError(f"{patch.source}: section /{key} must stay a mapping")
    hidden = below.hidden(before, section) if below else ()
    return ConfigPatchResult(key, section, not json_documents.equal(before, section), hidden)


class _BelowSecret:
    """Takes a patch, made for ConfigMap and Secret together, as one of the ConfigMap alone."""

    def __init__(self, key: names.ValuesKey, secret: json_types.JsonObject) -> None:
        self._key = key
        self._secret: json_types.JsonObject = {key: secret}
        self._not_removed: list[str] = []

    def adapt(self, document: json_types.JsonObject, item: patches.PatchStep) -> Iterable[patches.PatchStep]:
        """See :data:`.Adapt`."""
        if item.kind == "test":
            patches.apply_step(sources.merge(document, self._secret), item)
            return ()
        if item.origin is not None and self._is_secret(document, item.origin):
            raise patches.StepError(
                f"the values Secret sets {json_pointers.render(item.origin)!r}, which is never copied into "
                "the ConfigMap"
            )
        if not json_pointers.exists(self._secret, item.path) or json_pointers.exists(document, item.path):
            return (*self._parents(document, item.path), item)
        if item.kind == "remove":
            self._not_removed.append(json_pointers.render(item.path))
            return ()
        return (*self._parents(document, item.path), patches.step({**item.operation, "op": "add"}))

    def _is_secret(self, document: json_types.JsonObject, origin: json_pointers.Tokens) -> bool:
        """Say whether the value there is the Secret's; of a mapping, the ConfigMap's part may be taken."""
        for length in range(1, len(origin) + 1):
            below = json_pointers.find(self._secret, origin[:length], json_pointers.ABSENT)
            if not isinstance(below, dict):
                return below is not json_pointers.ABSENT
        return not json_pointers.exists(document, origin)

    def _parents(
        self, document: json_types.JsonObject, path: json_pointers.Tokens
    ) -> Iterable[patches.PatchStep]:
        """Add mappings that only the Secret has until now."""
        for length in range(2, len(path)):
            place = path[:length]
            if json_pointers.exists(document, place) or not json_pointers.exists(self._secret, place):
                continue
            pointer = json_pointers.render(place)
            if not isinstance(json_pointers.find(self._secret, place), dict):
                raise patches.StepError(f"the values Secret sets {pointer!r}, of which hooks change no part")
            yield patches.step({"op": "add", "path": pointer, "value": {}})

    def hidden(self, before: json_types.JsonObject, after: json_types.JsonObject) -> tuple[str, ...]:
        """See :attr:`ConfigPatchResult.hidden`."""
        places = [tuple(map(str, path)) for path, _ in origins.leaves(self._secret)]
        hidden = [place for place in places if _differs({self._key: before}, {self._key: after}, place)]
        return (*self._not_removed, *map(json_pointers.render, hidden))


def _differs(
    before: json_types.JsonObject, after: json_types.JsonObject, place: json_pointers.Tokens
) -> bool:
    values = [json_pointers.find(document, place, json_pointers.ABSENT) for document in (before, after)]
    if json_pointers.ABSENT in values:
        return values[0] is not values[1]
    return not json_documents.equal(*values)


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

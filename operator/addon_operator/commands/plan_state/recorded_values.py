"""The values ConfigMap, the values Secret and what hooks gave, without what nobody may see."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from addon_operator.commands.plan_state import hidden_values
from addon_operator.documents import json_pointers, yaml_writing
from addon_operator.kernel import errors, json_types, names
from addon_operator.values import config_map_reader, sources, store

_ENDINGS = (names.ENABLED_SUFFIX, names.MAINTENANCE_SUFFIX)
_WORDS = (*sources.SWITCHES, sources.NO_RESOURCE_RECONCILIATION, "")


class ValuesRecorder:
    """Rewrites texts and patches, and remembers where stand-ins are."""

    def __init__(self, values: store.ValuesStore, stand_ins: hidden_values.StandIns) -> None:
        """Let ``values`` say what is sensitive."""
        self._values = values
        self._stand_ins = stand_ins
        self._owners: dict[str, names.ModuleName | None] = {
            values.section_of(owner).key: owner for owner in (None, *values.modules)
        }
        self.hidden: dict[str, None] = {}
        """Places with stand-ins, as JSON pointers with their section's key."""

    def texts(self, data: Mapping[str, str], *, is_secret: bool = False) -> dict[str, str]:
        """Return the data of the ConfigMap or of the Secret; comments, too, are left out."""
        written = {key: self._text(key, text, is_secret=is_secret) for key, text in data.items()}
        return {key: text for key, text in written.items() if text is not None}

    def _text(self, key: str, text: str, *, is_secret: bool) -> str | None:
        if text.strip() in _WORDS:
            return text.strip()
        if key.endswith(_ENDINGS):
            return None
        try:
            section = config_map_reader.parse_section(key, text)
        except errors.AddonOperatorError:
            return None
        return yaml_writing.dump(self._section(key, section, is_secret=is_secret))

    def _section(self, key: str, section: json_types.JsonObject, *, is_secret: bool) -> json_types.JsonObject:
        if is_secret or key not in self._owners:
            shown = self._stand_ins.of(section, (key,))
        else:
            masked = self._values.section_of(self._owners[key]).masked(section)
            shown = self._stand_ins.where_masked(section, masked, (key,))
        self._note(section, shown, (key,))
        return cast("json_types.JsonObject", shown)

    def groups(self, owner: names.ModuleName | None) -> list[list[Any]]:
        """Return what hooks gave to a section, by what counts only together."""
        return [self._group(owner, each) for each in self._values.patch_groups(owner)]

    def _group(self, owner: names.ModuleName | None, group: Sequence[Any]) -> list[Any]:
        shown = []
        for operation, masked in zip(
            group, self._values.section_of(owner).masked_operations(group), strict=True
        ):
            if "value" not in operation:
                shown.append(operation)
                continue
            path = json_pointers.stable_prefix(json_pointers.parse(str(operation["path"])))
            value = self._stand_ins.where_masked(operation["value"], masked["value"], path)
            self._note(operation["value"], value, path)
            shown.append({**operation, "value": value})
        return shown

    def _note(
        self, value: json_types.JsonValue, shown: json_types.JsonValue, path: json_pointers.Tokens
    ) -> None:
        self.hidden |= dict.fromkeys(map(json_pointers.render, _differing(value, shown, path)))


def _differing(
    value: json_types.JsonValue, shown: json_types.JsonValue, path: json_pointers.Tokens
) -> Iterator[json_pointers.Tokens]:
    if isinstance(value, dict) and isinstance(shown, dict):
        for key, inner in value.items():
            yield from _differing(inner, shown[key], (*path, key))
    elif value != shown:
        # Items of lists come and go.
        yield path

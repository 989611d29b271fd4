"""What a section of the values is made of, and what a patch would make of it; shared with snapshots."""

from collections.abc import Mapping

import msgspec

from addon_operator.kernel import json_types
from addon_operator.values import sources
from addon_operator.values.patches import patch_log


class MergedValues(msgspec.Struct):
    """What the sources make together, shared with snapshots: whoever needs it first works it out."""

    present: json_types.JsonObject | None = None
    text: bytes | None = None
    """:attr:`present` as JSON."""
    config_text: bytes | None = None
    """What ConfigMap and Secret say, as JSON."""

    def is_within(self, most: int) -> bool:
        """Say whether both texts are worked out already, and have at most so many bytes."""
        return all(text is not None and len(text) <= most for text in (self.text, self.config_text))


class MergedFiles(msgspec.Struct):
    """What the files say, merged when somebody first needs it; shared with snapshots."""

    layers: tuple[json_types.JsonObject, ...] = ()
    _merged: json_types.JsonObject | None = None

    @property
    def merged(self) -> json_types.JsonObject:
        """What they say together; not to be changed."""
        if self._merged is None:
            self._merged = sources.merge(*self.layers)
        return self._merged


class AllowedValues(msgspec.Struct):
    """The last values that the values schema allowed, shared with snapshots: they are what is checked."""

    value: json_types.JsonObject | None = None


class SectionPatch(msgspec.Struct, frozen=True):
    """What a hook's patch makes of a section, worked out on a snapshot for :meth:`Section.take`."""

    value: json_types.JsonObject
    """The section as the patch leaves it."""
    text: bytes
    """:attr:`value` as JSON."""
    log: patch_log.PatchLog
    """All that hooks changed, with this."""
    changed: bool
    """Whether the content of the values differs."""
    hook_switches: Mapping[str, bool]
    """What hooks say of modules' switches then."""
    made_from: tuple[MergedValues, Mapping[str, bool]]
    """The values and the switches before."""

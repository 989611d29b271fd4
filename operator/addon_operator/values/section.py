"""One section of the values through all its sources."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from addon_operator.kernel import json_types, names
from addon_operator.values import json_documents, merge, patch_log, patches


@dataclasses.dataclass(frozen=True, slots=True)
class SectionPatch:
    """A patch that was applied to a copy and can be taken over."""

    value: json_types.JsonObject
    """The section as the patch leaves it."""
    steps: Sequence[patches.Step]


class Section:
    """The values under ``global`` or one module's key; results are kept until a source changes."""

    def __init__(self, key: names.ValuesKey, files: json_types.JsonObject) -> None:
        self.key: Final = key
        self._files = files
        self._config: json_types.JsonObject = {}
        self._log = patch_log.PatchLog()
        self._present: json_types.JsonObject | None = None
        self._text: bytes | None = None

    @property
    def config(self) -> json_types.JsonObject:
        """What the ConfigMap says; not to be changed."""
        return self._config

    @property
    def log(self) -> patch_log.PatchLog:
        """What hooks changed."""
        return self._log

    @property
    def present(self) -> json_types.JsonObject:
        """The values through all sources; not to be changed."""
        if self._present is None:
            self._present = self._replay()
        return self._present

    @property
    def text(self) -> bytes:
        """:attr:`present` as JSON."""
        if self._text is None:
            self._text = json_documents.encode(self.present)
        return self._text

    def set_config(self, config: json_types.JsonObject) -> bool:
        """Replace what the ConfigMap says; whether that changed its content."""
        if json_documents.equal(config, self._config):
            return False
        self._config = json_documents.copy(config)
        self._forget()
        return True

    def set_files(self, files: json_types.JsonObject) -> None:
        """Replace what the ``values.yaml`` files say."""
        self._files = files
        self._forget()

    def take(self, patch: SectionPatch) -> bool:
        """Take a patch over; whether it changed the content of the values."""
        before = self.present
        self._log.append(patch.steps)
        self._present, self._text = patch.value, None
        if self._log.is_excessive(len(self.text)):
            self._log.fold({self.key: self._lower()}, {self.key: patch.value})
        return not json_documents.equal(before, patch.value)

    def drop_patches(self) -> None:
        """Forget what hooks changed."""
        self._log = patch_log.PatchLog()
        self._forget()

    def _forget(self) -> None:
        self._present = self._text = None

    def _lower(self) -> json_types.JsonObject:
        return merge.merge(self._files, self._config)

    def _replay(self) -> json_types.JsonObject:
        document: json_types.JsonObject = {self.key: self._lower()}
        self._log.replay(document)
        value = document[self.key]
        return value if isinstance(value, dict) else {}

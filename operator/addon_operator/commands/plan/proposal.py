"""An edit of the values ConfigMap, or Secret, that nobody has made yet: what a plan takes for made."""

import pathlib
from collections.abc import Iterator
from typing import Any, Final, Self

import msgspec
from msgspec import structs

from addon_operator.commands import values_files
from addon_operator.documents import json_pointers, yaml_reading, yaml_writing
from addon_operator.engine.sources import configured_object
from addon_operator.kernel import errors, json_types, names
from addon_operator.kube.objects import config_maps
from addon_operator.values import sources

_FLAGS: Final = (names.ENABLED_SUFFIX, names.MAINTENANCE_SUFFIX)


class ProposalError(errors.ConfigurationError):
    """The edit cannot be made; says what is wrong with it."""


class Setting(msgspec.Struct, frozen=True):
    """A value that is set."""

    path: json_pointers.Tokens
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``key=value``; raises :class:`ProposalError`."""
        path, equals, value = text.partition("=")
        if not equals:
            raise ProposalError(f"--set {text}: write it as key=value, such as web.replicas=2")
        try:
            tokens = json_pointers.of_path(path)
        except ValueError as error:
            raise ProposalError(f"--set {text}: {error}") from None
        if len(tokens) == 1 and not tokens[0].endswith(_FLAGS):
            raise ProposalError(
                f"--set {text}: a section cannot be set as a whole; name a value in it, such as "
                f"{path}.replicas=2, or the switch {path}{names.ENABLED_SUFFIX}"
            )
        return cls(tokens, value)

    def apply(self, data: dict[str, str]) -> None:
        """Change the data of a ConfigMap."""
        key, *below = self.path
        if not below:
            data[key] = self.value
            return
        text = data.get(key, "")
        section = {} if text.strip() == sources.DISABLING_ALIAS else yaml_reading.load(text, f"key {key!r}")
        value = yaml_reading.load(self.value, f"--set {'.'.join(self.path)}")
        data[key] = yaml_writing.dump(_set(section, below, value, key))


class Proposal(msgspec.Struct, frozen=True):
    """What stands in for the values ConfigMap and the values Secret, or is changed in the ConfigMap."""

    config: pathlib.Path | None = None
    """A manifest, or sections as in ``modules/values.yaml``; ``None``: the ConfigMap in the cluster."""
    secret: pathlib.Path | None = None
    """The same in place of the Secret."""
    settings: tuple[Setting, ...] = ()
    """Values that are set over that."""

    def __bool__(self) -> bool:
        return bool(self.config or self.secret or self.settings)

    def changed(self, kind: str, snapshot: config_maps.Snapshot) -> config_maps.Snapshot:
        """Return the object, of this kind, as it would be.

        Raises a :class:`.ConfigurationError` for a file, or a value, that cannot be used.
        """
        file = self.secret if kind == configured_object.SECRET else self.config
        settings = () if kind == configured_object.SECRET else self.settings
        if file is None and not settings:
            return snapshot
        found = snapshot if file is None else values_files.object_in(file, kind)
        data = dict(found.data)
        for each in settings:
            each.apply(data)
        return structs.replace(snapshot, data=data, binary=found.binary)

    def notes(self) -> Iterator[str]:
        """Say what is not as it is in the cluster."""
        for file, kind in (
            (self.config, configured_object.CONFIG_MAP),
            (self.secret, configured_object.SECRET),
        ):
            if file is not None:
                yield f"this is planned with {file} in place of the values {kind}"
        if self.settings:
            places = ", ".join(".".join(each.path) for each in self.settings)
            yield f"this is planned as if the values ConfigMap set {places} as --set says"


NOTHING: Final = Proposal()
"""All is as the cluster says."""


def _set(value: object, path: list[str], wanted: json_types.JsonValue, place: str) -> Any:  # noqa: ANN401  # any JSON
    """Return the value with ``wanted`` at a path in it; mappings are made on the way."""
    if not path:
        return wanted
    step, *below = path
    if not isinstance(value, list):
        before = value if isinstance(value, dict) else {}
        return {**before, step: _set(before.get(step), below, wanted, f"{place}.{step}")}
    if not step.isdecimal() or int(step) > len(value):
        raise ProposalError(f"--set: {place} is a list of {len(value)} items, and has no place for {step!r}")
    index = int(step)
    item = _set(value[index] if index < len(value) else None, below, wanted, f"{place}[{step}]")
    return [*value[:index], item, *value[index + 1 :]]

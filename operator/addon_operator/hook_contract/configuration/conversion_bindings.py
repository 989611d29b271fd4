"""Bindings that convert custom resources, as their hook's configuration says them."""

from typing import Final

import msgspec

from addon_operator.hook_contract.configuration import bindings

KEY: Final = "kubernetesCustomResourceConversion"
"""Key in the configuration, and the name of a binding that has none."""


class ConversionRule(msgspec.Struct, frozen=True):
    """One step that a hook can convert objects by."""

    from_version: str
    """``group/version``, or ``version`` of the definition's own group, as the hook writes it."""
    to_version: str

    def full(self, crd_name: str) -> tuple[str, str]:
        """Return both as ``group/version``; without a group they are of the definition's own."""
        return full_version(self.from_version, crd_name), full_version(self.to_version, crd_name)


def full_version(version: str, crd_name: str) -> str:
    """Return ``group/version`` of a version that may be without group: then it is the definition's own."""
    return version if "/" in version else f"{crd_name.partition('.')[2]}/{version}"


class ConversionBinding(msgspec.Struct, frozen=True):
    """One item of ``kubernetesCustomResourceConversion``."""

    crd_name: str
    """``plural.group`` of the CustomResourceDefinition."""
    rules: tuple[ConversionRule, ...]
    name: str = KEY
    include_snapshots_from: tuple[str, ...] = ()
    """Names of the kubernetes bindings whose snapshots a run gets, those of its group included."""

    @property
    def key(self) -> str:
        """The key in the configuration."""
        return KEY

    @property
    def row(self) -> bindings.BindingRow:
        """The binding as people see it."""
        steps = [f"{rule.from_version} to {rule.to_version}" for rule in self.rules]
        return bindings.BindingRow(KEY, self.name, crd_name=self.crd_name, conversions=steps)

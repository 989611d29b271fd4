"""Which objects of the API somebody wants to follow, as a value."""

import dataclasses
from typing import Self


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectSelection:
    """Objects of one kind, chosen by the API server as far as it can.

    Selections whose :attr:`canonical` forms are equal are the same.
    """

    kind: str
    """Kind, plural, singular or short name, as ``kubectl`` takes it."""
    api_version: str | None = None
    """``v1`` or ``group/version``; ``None`` takes the API server's preferred one."""
    names: tuple[str, ...] = ()
    """Names of the objects, one watch each; with none every name will do."""
    label_selector: str = ""
    """In the API server's syntax."""
    field_selector: str = ""
    """In the API server's syntax."""
    namespaces: tuple[str, ...] | None = None
    """Names of namespaces, one watch each; ``None`` is the whole cluster."""
    namespace_labels: str | None = None
    """Label selector of namespaces: those that match are followed as they come and go, besides ``namespaces``
    (with ``None`` there, they alone)."""
    metadata_only: bool = False
    """Whether to transfer the metadata of the objects alone."""

    @property
    def canonical(self) -> Self:
        """The same selection with each name once and in order."""
        namespaces = None if self.namespaces is None else _unique(self.namespaces)
        return dataclasses.replace(self, names=_unique(self.names), namespaces=namespaces)

    def __str__(self) -> str:
        """For logs: ``Pod of v1 with labels app=x in namespace a``."""
        parts = [self.kind, f"of {self.api_version}" if self.api_version else ""]
        parts += [f"named {', '.join(self.names)}"] if self.names else []
        parts += [f"with labels {self.label_selector}"] if self.label_selector else []
        parts += [f"with fields {self.field_selector}"] if self.field_selector else []
        if self.namespaces:
            parts.append(f"in namespace {', '.join(self.namespaces)}")
        if self.namespace_labels is not None:
            parts.append(f"in namespaces with labels {self.namespace_labels}")
        return " ".join(part for part in parts if part)


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))

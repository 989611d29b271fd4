"""Objects that a chart rendered, or that a hook left, as plain mappings that are found by kind and name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from addon_operator.documents import manifest_diff
from addon_operator.kernel import errors, names

_SHOWN = 20


class NoSuchObjectError(errors.AddonOperatorError, AssertionError):
    """There is not exactly one object of that kind and name; the text lists those that there are."""


class Manifests(Sequence[dict[str, Any]]):
    """Objects in their order."""

    def __init__(self, objects: Iterable[dict[str, Any]], text: str = "") -> None:
        self._objects = list(objects)
        self.text = text
        """What Helm printed, if it did."""
        self.again: Callable[[], Manifests] | None = None
        """Renders the same once more, to show what varies; ``None`` for objects that no chart rendered."""

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._objects[index]

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._objects)

    def __repr__(self) -> str:
        return f"<{len(self)} objects: {names.listed(self.names, _SHOWN)}>"

    @property
    def names(self) -> list[str]:
        """Kind and name of each object, such as ``Deployment web``."""
        return [_named(each) for each in self._objects]

    def all(
        self, kind: str | None = None, name: str | None = None, namespace: str | None = None
    ) -> list[dict[str, Any]]:
        """Return all objects of that kind, name and namespace; what is ``None`` may be anything."""
        return [
            each
            for each in self._objects
            if kind in (None, each.get("kind"))
            and name in (None, _metadata(each).get("name"))
            and namespace in (None, _metadata(each).get("namespace"))
        ]

    def one(self, kind: str, name: str | None = None, namespace: str | None = None) -> dict[str, Any]:
        """Return the one object of that kind and name.

        Raises :class:`NoSuchObjectError`, with what there is, if there is none or several.
        """
        __tracebackhide__ = True
        found = self.all(kind, name, namespace)
        if len(found) == 1:
            return found[0]
        asked = " ".join(filter(None, (kind, f"{namespace}/{name}" if namespace and name else name)))
        if found:
            several = names.listed([_placed(each) for each in found], _SHOWN)
            raise NoSuchObjectError(
                f"{len(found)} objects are {asked}: {several}; say more of the one you mean"
            )
        raise NoSuchObjectError(f"there is no {asked}; {self.candidates(asked)}")

    def candidates(self, asked: str) -> str:
        """Return what there is, for a sentence that says that something is not."""
        if not self._objects:
            return "there are no objects at all"
        nearest = names.nearest(asked, self.names)
        there_are = f"did you mean {nearest}? There are" if nearest else "there are"
        return f"{there_are}: {names.listed(self.names, _SHOWN)}"


def rendered(text: str) -> Manifests:
    """Return the objects of a manifest; raises a :class:`.ConfigurationError` for a document that is none."""
    objects = []
    for document in manifest_diff.objects(manifest_diff.parse(text)):
        if document.body is None:
            raise errors.ConfigurationError(f"{document.key.kind} renders to something that is not an object")
        objects.append(document.body)
    return Manifests(objects, text)


def _metadata(body: dict[str, Any]) -> dict[str, Any]:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _named(body: dict[str, Any]) -> str:
    metadata = _metadata(body)
    return f"{body.get('kind')} {metadata.get('name') or metadata.get('generateName') or ''}".rstrip()


def _placed(body: dict[str, Any]) -> str:
    namespace = _metadata(body).get("namespace")
    kind, _, name = _named(body).partition(" ")
    return f"{body.get('apiVersion')} {kind} {namespace}/{name}" if namespace else _named(body)

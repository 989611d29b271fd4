"""What a module changes of what its chart renders: labels and annotations on all resources, and patches.

The words are kustomize's. Helm's hooks are left as they are: Helm 3 keeps them from post-renderers.
"""

import copy
import dataclasses
import fnmatch
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.modules import manifests
from addon_operator.modules.patching import null_fields, repeated_items, strategic_merge

MOST_PATCHES: Final = 50
MOST_ADDED: Final = 8 << 20
"""Characters of JSON that all changes may add to what a chart renders; a release has room for far less."""
_SHOWN: Final = 5
_NEEDED: Final = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from"}
"""What operations of RFC 6902 have to say beside their path."""
_GROUPS: Final = re.compile(r"|apps|batch|policy|autoscaling|extensions|[a-z.]+\.k8s\.io")
_PLAIN: Final = re.compile(r"[A-Za-z0-9*?-]*")
_SELECTOR: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<no>[\w./-]+)|(?P<key>[\w./-]+)\s*+(?:(?P<sign>==?|!=)\s*+(?P<value>[\w.-]*)"
    r"|(?<=\s)(?P<verb>in|notin)\s*\((?P<values>[^()]*)\))?)\s*+(?:,|\Z)"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """Resources that a patch is for; what is empty stands for all."""

    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    label_selector: str = ""
    annotation_selector: str = ""

    def __str__(self) -> str:
        """Name it for a person."""
        words = [f"{field.name.replace('_', ' ')} {getattr(self, field.name)}" for field in _FIELDS(Target)]
        return ", ".join(word for word in words if not word.endswith(" ")) or "all resources"


_FIELDS: Final = dataclasses.fields


@dataclasses.dataclass(frozen=True, slots=True)
class Patch:
    """A strategic merge patch (a mapping), or operations of RFC 6902 (a list)."""

    target: Target
    patch: Any


@dataclasses.dataclass(frozen=True, slots=True)
class ManifestChanges:
    """All that is changed."""

    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    patches: tuple[Patch, ...] = ()
    once: bool = False
    """Whether a variable that stands twice in ``env`` is to stand there once."""
    nulls: null_fields.Nulls = dataclasses.field(default_factory=dict)
    """Keys of custom resources that are left out where they have no value."""
    without: frozenset[manifests.Identity] = frozenset()
    """Resources that are left out: they belong to another release."""

    live: manifests.Fields = dataclasses.field(default_factory=dict)
    """Fields that keep what others made of them."""

    def __bool__(self) -> bool:
        is_plain = not (self.labels or self.annotations or self.patches)
        return not is_plain or bool(self.once or self.nulls or self.without or self.live)

    def over(self, common: "ManifestChanges") -> "ManifestChanges":
        """Return these changes over those that all modules make."""
        return ManifestChanges(
            {**common.labels, **self.labels},
            {**common.annotations, **self.annotations},
            (*common.patches, *self.patches),
        )

    def written(self) -> str:
        """Return the changes as text, the same for the same changes."""
        written = dataclasses.asdict(self)
        written["nulls"] = [[*kind, *map(list, sorted(paths))] for kind, paths in sorted(self.nulls.items())]
        written["without"] = sorted(self.without)
        written["live"] = [[identity, *each] for identity, each in sorted(self.live.items())]
        for key in ("once", "nulls", "without", "live"):
            if not written[key]:
                # Releases from before it keep their checksums.
                del written[key]
        return json.dumps(written, sort_keys=True)


NOTHING: Final = ManifestChanges()


def read(text: str) -> ManifestChanges:
    """Return what :meth:`ManifestChanges.written` wrote."""
    found = json.loads(text)
    patches = tuple(Patch(Target(**each["target"]), each["patch"]) for each in found["patches"])
    nulls = {(api, kind): frozenset(map(tuple, paths)) for api, kind, *paths in found.get("nulls", ())}
    without: frozenset[Any] = frozenset(map(tuple, found.get("without", ())))
    once = found.get("once", False)
    live: dict[Any, Any] = {tuple(identity): fields for identity, *fields in found.get("live", ())}
    return ManifestChanges(found["labels"], found["annotations"], patches, once, nulls, without, live)


def _is_left_out(document: Any, changes: ManifestChanges, namespace: str) -> bool:  # noqa: ANN401 - YAML
    resource = manifests.resource_of(document) if changes.without and isinstance(document, dict) else None
    return resource is not None and resource.identity(namespace) in changes.without


def problems(patch: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what is wrong with a patch that the schema allows: where in it, and what."""
    for key in ("labelSelector", "annotationSelector"):
        try:
            selects(patch["target"].get(key, ""), {})
        except strategic_merge.PatchError as error:
            yield ("target", key), str(error)
    body = patch["patch"]
    if not body:
        yield ("patch",), "the patch is empty; write what it changes"
    elif isinstance(body, list) and (said := _problem_of_operations(body)):
        yield ("patch",), said


def _problem_of_operations(operations: Sequence[Any]) -> str:
    import jsonpatch

    try:
        jsonpatch.JsonPatch(list(operations))
    except Exception as error:  # noqa: BLE001 - the library has errors of several roots
        return f"this is not a JSON patch (RFC 6902): {error}"
    missing = (
        f"operation {number} ({each['op']} {each['path']}) has no {key!r}"
        for number, each in enumerate(operations)
        if (key := _NEEDED.get(each["op"], "path")) not in each
    )
    return next(missing, "")


def changed(documents: Sequence[Any], changes: ManifestChanges, namespace: str) -> list[Any]:
    """Return the documents of a manifest as the module wants them; those of lists one by one.

    ``namespace`` is that of the release. Raises :class:`.PatchError` for a patch that matches nothing, or
    does not fit.
    """
    room = _Room()
    made = [each for document in documents for each in _objects(document)]
    for number, patch in enumerate(changes.patches):
        targets = [index for index, each in enumerate(made) if _matches(patch.target, each, namespace)]
        if not targets:
            raise strategic_merge.PatchError(
                f"patches[{number}] matches nothing: there is no {patch.target}; {_candidates(made, patch)}"
            )
        for index in targets:
            where = f"patches[{number}], {_title(made[index])}"
            made[index] = _patched(made[index], patch, where, room)
    made = [each for each in made if each is not None and not _is_left_out(each, changes, namespace)]
    if changes.once:
        for each in made:
            repeated_items.remove(each)
    if changes.nulls:
        for each in made:
            null_fields.remove(each, changes.nulls)
    made = [_labelled(each, changes, room) for each in made]
    for each in made if changes.live else ():
        if isinstance(each, dict):
            manifests.put_fields(each, changes.live, namespace)
    return made


class _Room:
    """How much may still be added: what is small in a patch may be in many resources, or be copied again."""

    def __init__(self) -> None:
        self._left = MOST_ADDED
        self._sizes: dict[int, int] = {}

    def take_patch(self, patch: Any) -> None:  # noqa: ANN401 - YAML
        """Take room for a part of the changes, which is measured once."""
        if id(patch) not in self._sizes:
            self._sizes[id(patch)] = _size(patch)
        self._take(self._sizes[id(patch)])

    def take_copy(self, document: Any, operation: Any) -> None:  # noqa: ANN401 - YAML
        """Take room for what an operation copies within a document."""
        import jsonpointer

        self._take(_size(jsonpointer.resolve_pointer(document, operation["from"])))

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise strategic_merge.PatchError(
                f"the changes add more than {MOST_ADDED >> 20} MiB to what the chart renders; patch fewer "
                "resources, and copy less"
            )


def _size(value: Any) -> int:  # noqa: ANN401 - YAML
    return len(json.dumps(value, default=str))


def _objects(document: Any) -> Iterator[Any]:  # noqa: ANN401 - YAML
    items = document.get("items") if isinstance(document, dict) else None
    if isinstance(items, list) and str(document.get("kind")).endswith("List"):
        yield from items
    elif document is not None:
        yield document


def _labelled(document: Any, changes: ManifestChanges, room: _Room) -> Any:  # noqa: ANN401 - YAML
    if (
        not isinstance(document, dict)
        or manifests.is_hook(document)
        or not (changes.labels or changes.annotations)
    ):
        return document
    metadata = dict(_mapping(document.get("metadata")))
    for key, more in (("labels", changes.labels), ("annotations", changes.annotations)):
        if more:
            room.take_patch(more)
            metadata[key] = {**_mapping(metadata.get(key)), **more}
    return {**document, "metadata": metadata}


def _patched(document: dict[str, Any], patch: Patch, where: str, room: _Room) -> Any:  # noqa: ANN401 - YAML
    try:
        room.take_patch(patch.patch)
        if isinstance(patch.patch, list):
            return _operated(copy.deepcopy(document), patch.patch, room)
        group = str(document.get("apiVersion") or "").rpartition("/")[0]
        is_built_in = _GROUPS.fullmatch(group) is not None
        return strategic_merge.merged(document, patch.patch, is_built_in=is_built_in)
    except strategic_merge.PatchError as error:
        raise strategic_merge.PatchError(f"{where}: {error}") from None


def _operated(document: dict[str, Any], operations: Sequence[Any], room: _Room) -> Any:  # noqa: ANN401 - YAML
    # Only these patches need it, and this runs in a process of its own.
    import jsonpatch

    for number, operation in enumerate(operations):
        try:
            if operation["op"] == "copy":
                room.take_copy(document, operation)
            document = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
        except strategic_merge.PatchError:
            raise
        except Exception:  # noqa: BLE001 - the library has errors of several roots
            # What it says itself quotes the object, which may be a Secret.
            raise strategic_merge.PatchError(
                f"operation {number} ({operation.get('op')} {operation.get('path')}) does not fit: there is "
                "no such place, or a test failed"
            ) from None
    return document


def _matches(target: Target, document: Any, namespace: str) -> bool:  # noqa: ANN401 - YAML
    if not isinstance(document, dict) or manifests.is_hook(document):
        return False
    metadata = _mapping(document.get("metadata"))
    group, _, version = str(document.get("apiVersion") or "").rpartition("/")
    texts = (
        (target.group, group),
        (target.version, version),
        (target.kind, str(document.get("kind") or "")),
        (target.name, str(metadata.get("name") or "")),
        (target.namespace, str(metadata.get("namespace") or namespace)),
    )
    return (
        all(not wanted or is_match(wanted, text) for wanted, text in texts)
        and selects(target.label_selector, _mapping(metadata.get("labels")))
        and selects(target.annotation_selector, _mapping(metadata.get("annotations")))
    )


def is_match(wanted: str, text: str) -> bool:
    """Say whether a name is one that a target means: with ``*``, or an anchored regular expression."""
    if _PLAIN.fullmatch(wanted):
        return fnmatch.fnmatchcase(text, wanted)
    # In linear time, whatever the expression is.
    import re2  # type: ignore[import-untyped]  # has no stubs

    try:
        return re2.fullmatch(wanted, text) is not None
    except re2.error:
        return fnmatch.fnmatchcase(text, wanted)


def selects(selector: str, labels: Mapping[str, Any]) -> bool:
    """Say whether labels are those of a selector, as kubectl writes them; raises :class:`.PatchError`."""
    return all(_meets(match, labels) for match in _requirements(selector))


def _requirements(selector: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(selector):
        match = _SELECTOR.match(selector, place)
        if match is None or match.end() == place:
            raise strategic_merge.PatchError(
                f"{selector!r} is not a selector; write one such as app=web,tier in (front, back)"
            )
        yield match
        place = match.end()


def _meets(match: re.Match[str], labels: Mapping[str, Any]) -> bool:
    if match["absent"]:
        return match["no"] not in labels
    there = labels.get(match["key"])
    if match["verb"]:
        is_in = there in [each.strip() for each in match["values"].split(",")]
        return is_in == (match["verb"] == "in")
    if match["sign"] is None:
        return match["key"] in labels
    return (there == match["value"]) != (match["sign"] == "!=")


def _candidates(documents: Sequence[Any], patch: Patch) -> str:
    """Name what the patch could have meant: first resources of its kind."""
    titles = [_title(each) for each in documents if isinstance(each, dict) and not manifests.is_hook(each)]
    of_kind = [title for title in titles if title.startswith(f"{patch.target.kind} ")] or titles
    more = f" and {len(of_kind) - _SHOWN} more" if len(of_kind) > _SHOWN else ""
    return (
        f"the chart renders {', '.join(of_kind[:_SHOWN])}{more}" if of_kind else "the chart renders nothing"
    )


def _title(document: Any) -> str:  # noqa: ANN401 - YAML
    return f"{document.get('kind')} {_mapping(document.get('metadata')).get('name')}"


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

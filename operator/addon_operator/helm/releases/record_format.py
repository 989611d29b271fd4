"""The text in which Helm stores a release: base64 of gzipped JSON, and base64 again in a Secret."""

import base64
import binascii
import contextlib
import dataclasses
import datetime as dt
import gzip
import json
import pathlib
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
import yaml

from addon_operator.documents import json_documents, manifest_diff
from addon_operator.modules import manifests

UNREADABLE: Final = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OSError,
    EOFError,
    RecursionError,
    zlib.error,
)
"""What decoding raises for what is no release."""
_SERVER_SIDE: Final = "ssa"
_DELETES: Final = "helm.sh/hook-delete-policy"
_WEIGHT: Final = "helm.sh/hook-weight"
_LOGS: Final = "helm.sh/hook-output-log-policy"
_GONE_BY: Final = ("name", "kind", "events", "weight", "delete_policies", "output_log_policies")
"""What Helm goes by in a hook, beside its manifest."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_BEFORE_REMOVAL: Final = "pre-delete"
_POLICIES: Final = ("before-hook-creation",)
_NEVER: Final = "0001"
"""The year that Go writes for no time at all."""
_FRACTION: Final = re.compile(r"(\.\d{6})\d+")
_PLAIN: Final = re.compile(r"[a-z_]+")
"""Keys of releases and hooks: Helm's language takes capitals, and some other letters, for the same."""
_MAX_CONTENT: Final = 64 * 1024 * 1024
"""How many bytes a record may unpack to: those that a manifest may have."""
_MOST_VALUES: Final = 250_000
"""Values in a record, and in the manifests of one of others: a few packed bytes can be millions."""
_QUOTE: Final = 0x22
_BEYOND: Final = 2.0**63
_OF_DOCUMENT: Final = 10
"""As many values a document of a manifest counts for at least."""
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.?+)*+"?+|[\[{,]', re.DOTALL)
"""A text, or what begins a value; matches in one pass whatever the content is."""


class TooMuchError(ValueError):
    """A record that takes more than others may have the operator spend on it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """What Helm keeps of a revision."""

    manifest: str
    hooks: tuple[str, ...]
    """Manifests of Helm's hooks."""
    is_server_side: bool
    """Whether the objects were made by server-side apply."""
    description: str
    """How the revision ended: for a failed one, Helm's error."""
    status: str = ""
    """Of the revision, as its label should say, too; empty if that is not stored."""
    began_before_removal: tuple[str, ...] = ()
    """Helm's hooks that were begun before the release was removed, by kind and name."""
    was_uninstalled: bool = False
    """Whether the release was uninstalled with it, whatever status the revision has had since."""
    hooks_ended: float = 0.0
    """When the last of the hooks ended, in seconds since the epoch; 0 if none ran."""
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    """What the chart was given."""
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    """What Helm laid below that: the chart's own ``values.yaml``."""
    chart: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    """The chart as Helm keeps it: without the charts within it."""

    @property
    def with_hooks(self) -> str:
        """The manifest, followed by those of the hooks."""
        return self.manifest + "".join(f"\n---\n{hook}" for hook in self.hooks)


Release = Mapping[str, Any]
"""A release as Helm knows it: what is stored, and what its verbs print as JSON."""


def made(printed: bytes) -> Release | None:
    """Return the release that a verb of Helm has printed; ``None`` if it is none."""
    try:
        found = orjson.loads(printed)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("manifest"), str | None) else None


def with_manifest(release: Release, change: Callable[[str], str]) -> Release:
    """Return a release with what ``change`` makes of its manifest."""
    return {**release, "manifest": change(str(release.get("manifest") or ""))}


def with_hooks_of(release: Release, event: str, change: Callable[[str], str]) -> Release:
    """Return a release with what ``change`` makes of its hooks before and after an event, if anything."""
    hooks = []
    for hook in release.get("hooks") or ():
        if {f"pre-{event}", f"post-{event}"}.isdisjoint(hook.get("events") or ()):
            hooks.append(hook)
        elif changed := change(str(hook.get("manifest") or "")):
            hooks.append({**hook, "manifest": changed})
    return {**release, "hooks": hooks}


def emptied(release: Release) -> Release:
    """Return a release without anything that Helm could delete or run."""
    return {**release, "manifest": "", "hooks": []}


def with_status(release: Release, status: str, description: str) -> Release:
    """Return a release with another status of its revision and why it has that."""
    info = {**(release.get("info") or {}), "status": status, "description": description}
    return {**release, "info": info}


def runs_as_written(release: Release) -> bool:
    """Say whether all that Helm goes by in a hook is what its manifest says, and nothing else is a hook."""
    held = manifest_diff.parse(str(release.get("manifest") or ""))
    return not any(_written(each.body, manifest_diff.HOOK) for each in held) and all(
        len(written := manifest_diff.parse(str(hook.get("manifest") or ""))) == 1
        and {key: hook.get(key) or None for key in _GONE_BY} == (made := _hook_of(written[0].body or {}))
        and made["events"]
        for hook in map(_settled, release.get("hooks") or ())
    )


def _settled(hook: Mapping[str, Any]) -> dict[str, Any]:
    """Return a hook with what Helm goes by where nothing is said; the order of events decides nothing."""
    policies = [*(hook.get("delete_policies") or _POLICIES)]
    return {**hook, "events": {*(hook.get("events") or ())}, "delete_policies": policies}


def _hook_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Helm makes of the manifest of a hook, as far as it goes by that later.

    Source: ``hookweight.go`` and ``execHook`` of Helm: hooks run by weight, name and kind, and those that are
    called definitions are not deleted.
    """
    metadata = body.get("metadata") or {}
    weight = str((metadata.get("annotations") or {}).get(_WEIGHT, ""))
    return {
        "name": metadata.get("name") or None,
        "kind": body.get("kind") or None,
        "events": {*map(_event, _written(body, manifest_diff.HOOK))} or None,
        "weight": (int(weight) if _NUMBER.fullmatch(weight) else 0) or None,
        "delete_policies": _written(body, _DELETES) or [*_POLICIES],
        "output_log_policies": _written(body, _LOGS) or None,
    }


def _written(body: Mapping[str, Any] | None, annotation: str) -> list[str]:
    annotations = ((body or {}).get("metadata") or {}).get("annotations") or {}
    return [word.strip().lower() for word in str(annotations.get(annotation, "")).split(",") if word.strip()]


def _event(word: str) -> str:
    return word.removesuffix("-success") if word.startswith("test") else word


def proven(release: Release) -> list[str]:
    """Return what a digest of a release is made over: all that a record says, but how its revision went."""
    parts = [str(release.get(key) or "") for key in ("name", "namespace", "version", "manifest")]
    # Not how it was applied: Helm 3 forgets that, and what is applied does not depend on it.
    parts.append(_alike([release.get("config") or {}, _chart(release)]))
    for hook in release.get("hooks") or ():
        # Helm writes the policy that it goes by where there is none as soon as it has run the hook.
        policies = hook.get("delete_policies") or _POLICIES
        settled = {"weight": hook.get("weight") or 0, "delete_policies": policies, "last_run": None}
        parts.append(_alike({**hook, **settled}))
    return parts


def _chart(release: Release) -> dict[str, Any]:
    """Return a chart without the times of its files: each Helm has others, or none."""
    chart = release.get("chart") or {}
    files = {
        key: [(each["name"], each.get("data")) for each in chart.get(key) or ()]
        for key in ("templates", "files")
    }
    return {**chart, **files, "modtime": None, "schemamodtime": None}


def _alike(part: object) -> str:
    """Return the same text for what Helm takes for the same: it reads each number as a floating one."""
    floating = json.loads(orjson.dumps(part), parse_int=float)
    return orjson.dumps(floating, option=orjson.OPT_SORT_KEYS).decode()


def put_back(release: Release, status: str, change: Callable[[str], str]) -> Release:
    """Return a release as if its removal had not begun; ``change`` makes the manifest what it was."""
    info = {key: value for key, value in (release.get("info") or {}).items() if key != "deleted"}
    info |= {"status": status, "description": "its removal was taken back"}
    return {**with_manifest(release, change), "info": info}


def encode(manifest: str, hooks: Sequence[str], *, is_server_side: bool, is_secret: bool) -> str:
    """Return a release as Helm stores it, with no more than manifests: the reverse of :func:`decode`."""
    release = {
        "manifest": manifest,
        "hooks": [{"manifest": hook} for hook in hooks],
        "apply_method": _SERVER_SIDE if is_server_side else "",
    }
    return stored(release, is_secret=is_secret, level=1)


def stored(release: Release, *, is_secret: bool, level: int = 9) -> str:
    """Return a release as Helm stores it."""
    content = base64.b64encode(gzip.compress(orjson.dumps(release), level))
    return (base64.b64encode(content) if is_secret else content).decode()


def content_of(decoded: Release) -> Content:
    """Return what a release tells; raises :class:`ValueError` and others for what is not one."""
    # Helm leaves empty fields out: a chart whose templates are all switched off has no manifest.
    manifest = decoded.get("manifest", "")
    if not isinstance(manifest, str):
        raise binascii.Error("the manifest is not a text")
    info = decoded.get("info") or {}
    return Content(
        manifest,
        tuple(str(hook.get("manifest") or "") for hook in decoded.get("hooks") or ()),
        is_server_side=decoded.get("apply_method") == _SERVER_SIDE,
        description=str(info.get("description") or ""),
        status=str(info.get("status") or ""),
        began_before_removal=tuple(
            f"{hook.get('kind')} {hook.get('name')}"
            for hook in decoded.get("hooks") or ()
            if _BEFORE_REMOVAL in (hook.get("events") or ()) and _began(hook)
        ),
        was_uninstalled=not str(info.get("deleted") or _NEVER).startswith(_NEVER),
        hooks_ended=max(map(_ended, decoded.get("hooks") or ()), default=0.0),
        values=decoded.get("config") or {},
        defaults=(decoded.get("chart") or {}).get("values") or {},
        chart=decoded.get("chart") or {},
    )


def write_chart(chart: Mapping[str, Any], directory: pathlib.Path) -> bool:
    """Write a chart that Helm keeps to a directory; ``False`` if it has others within it, which are lost.

    Raises :class:`ValueError` and others for what is no chart.
    """
    about = chart["metadata"]
    if about.get("dependencies") or chart.get("lock"):
        return False
    (directory / "Chart.yaml").write_bytes(orjson.dumps(about))
    (directory / "values.yaml").write_bytes(orjson.dumps(chart.get("values") or {}))
    for file in (*(chart.get("templates") or ()), *(chart.get("files") or ())):
        path = directory / file["name"]
        if not path.resolve().is_relative_to(directory.resolve()):
            raise ValueError(f"{file['name']} leads out of the chart")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(file.get("data") or ""))
    return True


def _began(hook: Mapping[str, Any]) -> bool:
    text = str((hook.get("last_run") or {}).get("started_at") or _NEVER)
    return not text.startswith(_NEVER)


def _ended(hook: Mapping[str, Any]) -> float:
    """Return when a hook ended; Go writes nanoseconds, and the year 1 for never."""
    text = str((hook.get("last_run") or {}).get("completed_at") or "")
    try:
        return max(0.0, dt.datetime.fromisoformat(_FRACTION.sub(r"\1", text)).timestamp())
    except (ValueError, OverflowError):
        return 0.0


def decode(stored: str, *, is_secret: bool) -> Release:
    """Return a release that is stored; raises :class:`ValueError` and others for what is not one."""
    content = base64.b64decode(stored, validate=True)
    if is_secret:
        content = base64.b64decode(content, validate=True)
    if content[:2] == b"\x1f\x8b":
        content = _unpacked(content)
    _check_values(content)
    decoded: Mapping[str, Any] | None = json.loads(
        content, object_pairs_hook=_each_once, parse_int=_whole_number
    )
    if not isinstance(decoded, dict):
        raise binascii.Error("the release is not an object")
    if not json_documents.can_be_written(decoded):
        raise ValueError("it cannot be written again")
    for part in (decoded, decoded.get("info") or {}, *(decoded.get("hooks") or ())):
        if not all(map(_PLAIN.fullmatch, part)):
            raise ValueError("it has keys that Helm may take for others")
    return decoded


def check_manifests(release: Release) -> None:
    """Raise :class:`TooMuchError` for manifests that somebody else wrote, and that it takes too much to read.

    They are gone through by libyaml, which keeps nothing of them.
    """
    left = _MOST_VALUES
    hooks = release.get("hooks") or ()
    for text in (release.get("manifest"), *(hook.get("manifest") for hook in hooks)):
        written = str(text or "")
        left -= _OF_DOCUMENT * (1 + written.count("\n---"))
        for document in manifests.documents(written) if left > 0 else ():
            with contextlib.suppress(yaml.YAMLError):
                for _ in yaml.parse(document, Loader=yaml.CSafeLoader):
                    left -= 1
                    if left <= 0:
                        break
        if left <= 0:
            raise TooMuchError(f"has more than {_MOST_VALUES} values in its manifests")


def _check_values(content: bytes) -> None:
    """Refuse what would take some hundred times its size in memory; most is let pass at a glance."""
    if sum(map(content.count, (b"[", b"{", b","))) <= _MOST_VALUES:
        return
    found = 0
    for each in _TOKEN.finditer(content):
        found += content[each.start()] != _QUOTE
        if found > _MOST_VALUES:
            raise TooMuchError(f"has more than {_MOST_VALUES} values")


def _whole_number(text: str) -> int | float:
    """Read a number as Go writes it: one that needs more than 64 bits is a floating one."""
    number = float(text)
    return int(text) if -_BEYOND <= number < _BEYOND else number


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON; Helm may make another one of keys that stand there twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands there twice")
    return made


def _unpacked(packed: bytes) -> bytes:
    """Return what was packed, as far as a release may need; a few packed bytes can be gigabytes of zeros."""
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    content = unpack.decompress(packed, _MAX_CONTENT)
    if not unpack.eof:
        raise ValueError(f"it is cut off, or more than {_MAX_CONTENT // 1024 // 1024} MiB")
    return content

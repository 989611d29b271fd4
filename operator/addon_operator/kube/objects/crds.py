"""Install CustomResourceDefinitions by server-side apply, and wait until their kinds are served.

A version that a file no longer has but in which objects may still be stored (``status.storedVersions``) is
not simply dropped, which the API server would refuse: it is kept unserved, all objects are written once more,
so that they are stored in the new version, and then it goes.
"""

import asyncio
import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from addon_operator.aio import waiting
from addon_operator.documents import own_manifests
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from addon_operator.kube.objects import stored_objects
from addon_operator.modules import crd_changes, crd_claims, crd_files

ESTABLISH_SECONDS: Final = 30.0
"""How long the API server may take until it serves a new definition."""
_ENDING: Final = (
    "{name} is being deleted, and is still there after {seconds:.0f} s: it or its objects have finalizers, "
    "see 'kubectl get crd {name} -o yaml' and 'kubectl get {name} --all-namespaces -o yaml'"
)
_TRIES: Final = 5
APPLIED: Final = "addon-operator.io/applied"
"""Annotation: what was applied, at which generation, and whose definition it is."""
_HELM_RELEASE: Final = "meta.helm.sh/release-name"
_DIGEST_LENGTH: Final = 40
_COLLECTION: Final = paths.of(crd_files.API_VERSION, crd_files.PLURAL)
_POLLS: Final = waiting.Backoff(0.05, 1.0)


class CrdError(api_errors.KubernetesError):
    """A definition was taken by the API server but is not served."""


class StillServedError(CrdError):
    """Applying the definition would end versions that it does not have and another module brought."""

    def __init__(self, name: str, versions: tuple[str, ...]) -> None:
        self.versions = versions
        super().__init__(f"{name} serves {', '.join(versions)}")


class Applied(NamedTuple):
    """What the metadata of a live definition say."""

    digest: str = ""
    """Of what was applied; empty if that is not known, or somebody changed it since."""
    module: str = ""
    """Whose definition it is; empty if that is not known."""
    release: str = ""
    """The Helm release that has it as one of its objects."""
    added: frozenset[str] = frozenset()
    """What was added from others: ``module/version/digest``."""


def path_of(name: str) -> str:
    """Return the path of the definition of that name."""
    return paths.of(crd_files.API_VERSION, crd_files.PLURAL, name=name)


async def apply_own(kube: client.KubeClient, name: str) -> None:
    """Bring a definition of the operator's own (see :mod:`.own_manifests`) to this version.

    Raises :class:`.KubernetesError`: ``Forbidden`` without the right to do so.
    """
    await _apply(kube, await asyncio.to_thread(own_manifests.load, name))


async def _apply(kube: client.KubeClient, definition: Mapping[str, Any]) -> None:
    await kube.apply(path_of(definition["metadata"]["name"]), definition, force=True)


class CrdInstaller:
    """Brings definitions of the cluster to what files say; never removes one."""

    def __init__(
        self,
        kube: client.KubeClient,
        kinds: discovery.Catalog,
        labels: Mapping[str, str],
        time: waiting.Time,
    ) -> None:
        """``labels`` are put on every definition."""
        self._kube = kube
        self._kinds = kinds
        self._labels = labels
        self._time = time

    async def applied(self) -> dict[str, Applied]:
        """Return what is known of all definitions that the cluster has and that are not being deleted.

        One request for metadata alone; empty without the right to ask.
        """
        try:
            listed = await self._kube.list_all(_COLLECTION, metadata_only=True)
        except (api_errors.Forbidden, api_errors.NotFound):
            return {}
        return dict(filter(None, map(_noted, listed.items)))

    def digest(self, text: str) -> str:
        """Return the digest of a definition's text, and of what is put on each definition."""
        labels = "".join(f"{key}={value}," for key, value in sorted(self._labels.items()))
        return hashlib.sha256(f"{labels}\0{text}".encode()).hexdigest()[:_DIGEST_LENGTH]

    async def ensure(self, crd: crd_files.Crd, note: Applied | None = None, *, spares: bool = False) -> bool:
        """Apply the definition if the live one differs, and wait until it is served; whether it was written.

        ``note`` is what :meth:`applied` will know of then; versions that it says were added stay as they are
        if the definition has them not. ``spares``: no version that is served may go, or
        :class:`StillServedError` is raised.
        Raises :class:`CrdError` when the API server does not come to serve it, and what
        :class:`.KubeClient` raises when it refuses it.
        """
        live = await self._lasting(crd)
        if live is not None and note is not None:
            crd = _with_added(crd, live, note)
        if spares and (gone := crd_changes.no_longer_served(crd, live)):
            raise StillServedError(crd.name, gone)
        lost = crd_changes.lost_versions(crd, live)
        changed = await self._apply(crd, live, lost)
        changed |= await self._established(crd)
        if lost:
            await stored_objects.move(self._kube, crd.name, crd.spec, crd_changes.storage_version(crd))
            await self._apply(crd, await self._lasting(crd), ())
            await self._established(crd)
        if changed or lost:
            await self._discovered(crd)
        if note is not None:
            await self._note(crd, note)
        return changed or bool(lost)

    async def _note(self, crd: crd_files.Crd, note: Applied) -> None:
        """Note down what was applied, with the generation, which a change by somebody else would raise."""
        live = await self._read(crd) or {}
        noted = dict(filter(None, [_noted(live)])).get(crd.name, Applied())
        if noted._replace(release=note.release) == note:
            return
        generation = live.get("metadata", {}).get("generation", 0)
        whose = "+".join((note.module, *sorted(note.added)))
        annotations = {APPLIED: f"{note.digest}.{generation}.{whose}".rstrip(".")}
        with contextlib.suppress(api_errors.NotFound):
            await self._kube.patch(path_of(crd.name), {"metadata": {"annotations": annotations}})

    async def _read(self, crd: crd_files.Crd) -> client.Object | None:
        try:
            return await self._kube.get(path_of(crd.name))
        except api_errors.NotFound:
            return None

    async def _lasting(self, crd: crd_files.Crd) -> client.Object | None:
        """Read the definition; if it is being deleted wait until it is gone: what is applied goes with it."""
        live: client.Object | None = None

        async def lasts() -> bool:
            nonlocal live
            live = await self._read(crd)
            return live is None or "deletionTimestamp" not in _metadata(live)

        problem = _ENDING.format(name=crd.name, seconds=ESTABLISH_SECONDS)
        await self._until(lasts, problem, self._deadline())
        return live

    async def _apply(self, crd: crd_files.Crd, live: client.Object | None, keeping: tuple[str, ...]) -> bool:
        for _ in range(_TRIES):
            wanted = crd_changes.desired(crd, self._labels, live)
            if live is not None:
                wanted = crd_changes.keeping(wanted, live, keeping)
                if not crd_changes.differs(wanted, live):
                    return False
                # The live conversion is applied as it was read: it must not have changed since.
                _metadata(wanted)["resourceVersion"] = live["metadata"]["resourceVersion"]
            try:
                await _apply(self._kube, wanted)
            except api_errors.Conflict:
                live = await self._read(crd)
            else:
                self._kinds.forget()
                return True
        raise CrdError(f"{crd.name} changes faster than it can be written; is somebody else at work on it?")

    async def _established(self, crd: crd_files.Crd) -> bool:
        """Wait until it is served; whether it had to be written anew, as somebody deleted it meanwhile."""
        is_anew = False

        async def is_established() -> bool:
            nonlocal is_anew
            live = await self._lasting(crd)
            if live is None:
                is_anew = await self._apply(crd, None, ())
                return False
            progress = crd_changes.progress(live)
            if progress.phase is crd_changes.CrdPhase.REFUSED:
                raise CrdError(f"the API server does not serve {crd.name}: {progress.message}")
            return progress.phase is crd_changes.CrdPhase.ESTABLISHED

        problem = f"{crd.name} is not Established after {ESTABLISH_SECONDS:.0f} s"
        await self._until(is_established, problem, self._deadline())
        return is_anew

    async def _discovered(self, crd: crd_files.Crd) -> None:
        """Wait until discovery lists the kind: Helm and hooks look it up there."""
        deadline = self._deadline()
        for version in crd_changes.served_versions(crd):
            await self._until(
                functools.partial(self._is_known, crd, version),
                f"{crd.name} is Established, but discovery does not list {version}",
                deadline,
            )

    def _deadline(self) -> float:
        return self._time.monotonic() + ESTABLISH_SECONDS

    async def _until(self, done: Callable[[], Awaitable[bool]], problem: str, deadline: float) -> None:
        for pause in _POLLS.pauses():
            if await done():
                return
            if self._time.monotonic() >= deadline:
                raise CrdError(problem)
            await self._time.sleep(pause)

    async def _is_known(self, crd: crd_files.Crd, version: str) -> bool:
        # Not what was known before: a definition that was deleted and is back may not be listed yet.
        return await self._kinds.serves(str(_names(crd).get("kind")), f"{_group(crd)}/{version}")


def _with_added(crd: crd_files.Crd, live: client.Object, note: Applied) -> crd_files.Crd:
    """Return the definition with those versions of the live one that it has not and that stay."""
    there = dataclasses.replace(crd, spec=live.get("spec") or {})
    served = crd_changes.served_versions(crd)
    stay = sorted({each.split("/")[1] for each in note.added}.difference(served))
    return crd_claims.joined(crd, [(version, there) for version in stay if version in there.versions])


def _noted(definition: client.Object) -> tuple[str, Applied] | None:
    metadata = definition.get("metadata") or {}
    if "name" not in metadata or "deletionTimestamp" in metadata:
        return None
    annotations = metadata.get("annotations") or {}
    digest, _, rest = str(annotations.get(APPLIED) or "").partition(".")
    generation, _, whose = rest.partition(".")
    module, *added = whose.split("+")
    is_current = generation == str(metadata.get("generation"))
    release = str(annotations.get(_HELM_RELEASE) or "")
    return metadata["name"], Applied(digest if is_current else "", module, release, frozenset(added))


def _metadata(wanted: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = wanted["metadata"]
    return metadata


def _group(crd: crd_files.Crd) -> str:
    return str(crd.spec.get("group"))


def _names(crd: crd_files.Crd) -> Mapping[str, Any]:
    names = crd.spec.get("names")
    return names if isinstance(names, dict) else {}

"""The records that Helm keeps of its releases: Secrets, or ConfigMaps with ``HELM_DRIVER=configmap``.

Only their metadata is read, in one list for all releases, and then renewed one by one: name, revision and
status are labels, and so are the checksums that this operator adds.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.helm import helm_errors, memory, messages, places, release_types
from addon_operator.helm.releases import record_format, record_lists, record_proofs, saved_places
from addon_operator.kernel import json_types
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.modules import keeping, manifests, release

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_HIGHEST: Final = 2**63 - 1
"""Helm counts no further."""
_NO_CHECKSUMS: Final = dict.fromkeys((release.INPUTS_LABEL, release.MANIFEST_LABEL))


class Record(msgspec.Struct, frozen=True):
    """The record of a release's last revision."""

    revision: release.Revision
    object_name: str
    resource_version: str
    made: float = 0.0
    """The second in which the API server stored it first, since the epoch; 0 if that is not known."""

    def as_it_was(self, status: str) -> "Record":
        """Return what it will be when the revision has that status."""
        return structs.replace(self, revision=structs.replace(self.revision, status=status))


class ReleaseRecords:
    """The records of all releases of modules, and what this process rendered for their last revisions."""

    def __init__(
        self,
        api: client.KubeClient,
        where: places.ReleaseLocations,
        remembered: memory.Memory,
        driver: str = "secret",
    ) -> None:
        """``driver`` is the setting ``HELM_DRIVER``: ``secret`` or ``configmap``."""
        self._api = self.kube = api
        self.kind = "Secret" if driver == "secret" else "ConfigMap"
        self._is_secret = driver == "secret"
        self.lists = record_lists.RecordLists(api, where, f"{driver}s", remembered)
        """Where they are, read as far as their metadata."""
        self.places = where
        self.memory = remembered
        self.proofs = record_proofs.RecordProofs(remembered, where)
        """Which of them are the operator's own."""
        self._records: dict[str, Record] = {}
        self._rendered: dict[str, tuple[int, release.Rendered]] = {}
        self._is_complete = False
        self._doubted: set[str] = set()
        self._touched: set[str] = set()
        self._cut: dict[str, str] = {}
        """Records of others that list nothing which a release loses, and the version in which they are so."""

    @property
    def known(self) -> Mapping[str, Record]:
        """The last revision of every release, as read last."""
        return self._records

    @property
    def unreadable(self) -> frozenset[str]:
        """Namespaces whose releases may not be read, so that nothing is known of those."""
        return self.lists.unreadable

    async def read_all(self) -> dict[str, Record]:
        """Read the last revision of every release anew, by what it goes by; one list request.

        Of other namespaces than the operator's only releases of modules, and those that we made, count.
        """
        self._touched = touched = set[str]()
        last_revisions = self._last_revisions(await self.lists.of_all())
        # What changed while the list was under way is known better than the list tells.
        listed = {name: record for name, record in last_revisions.items() if name not in touched}
        newer = {name: record for name, record in self._records.items() if name in touched}
        self._records = listed | newer
        self._doubted &= touched
        self._doubted |= {
            name for name in self.places.modules if self.places.of(name).namespace in self.unreadable
        }
        self._is_complete = True
        return dict(self._records)

    async def forget_namespaces(self) -> None:
        """Delete what builds without a memory remembered."""
        await self.lists.forget_namespaces()

    def forget(self, name: str) -> None:
        """Forget what is known of the release of a module, which is another one from now on."""
        self._records.pop(name, None)
        self._rendered.pop(name, None)
        self.doubt(name)

    async def get(self, name: str, *, fresh: bool = False) -> Record | None:
        """Return the last revision as read last; read it now if unknown, in doubt or it must be fresh."""
        if fresh or not self._is_complete or name in self._doubted:
            return await self.read(name)
        return self._records.get(name)

    async def read(self, name: str) -> Record | None:
        """Read the last revision of one release anew; ``None`` if there is none."""
        record = self._last_revisions(await self.lists.of(name)).get(name)
        self._keep(name, record)
        return record

    def doubt(self, name: str) -> None:
        """Read the release anew before it is used again: something was done to it that may have failed."""
        self._touched.add(name)
        self._doubted.add(name)

    def check_operator(self, record: Record | None) -> None:
        """Raise :class:`.HelmError` for a release that another operator made."""
        if record is None or not self.is_of_another(record.revision):
            return
        namespace, config_map = record.revision.operator, record.revision.config_map
        whose = f"the operator in namespace {namespace or self.places.own_namespace}"
        whose += f" with the ConfigMap {config_map}" if config_map else ""
        raise helm_errors.HelmError(
            record.revision.release,
            f"release {self.places.of(record.revision.release)} belongs to {whose}; give the module another "
            f"releaseName or namespace, or, if there is no such operator any more, remove the labels "
            f"{release.OPERATOR_LABEL} and {release.CONFIG_MAP_LABEL} from the record {self.title(record)}",
        )

    def is_of_another(self, revision: release.Revision) -> bool:
        """Say whether the labels of another operator claim a release."""
        return revision.operator not in ("", self.places.own_namespace) or revision.config_map not in (
            "",
            self.memory.owner,
        )

    def rendered(self, record: Record | None) -> release.Rendered | None:
        """Return what this process rendered for exactly this revision."""
        if record is None:
            return None
        number, rendered = self._rendered.get(record.revision.release, (0, None))
        return rendered if number == record.revision.number else None

    async def save(self, record: Record, rendered: release.Rendered, hook_places: str = "") -> None:
        """Save with a revision what it was rendered from, so that the next start of the operator knows.

        ``hook_places``: where hooks wrote to in the values; empty for nowhere.
        """
        name, number = record.revision.release, record.revision.number
        self._rendered[name] = (number, rendered)
        labels, annotations = saved_places.changes(record.revision.labels, hook_places)
        await self.add_labels(record, labels | rendered.labels(number) | self.marks(name), annotations)

    def others_write(self, name: str) -> bool:
        """Say whether others than the operator may write records of a release, and it can tell them apart."""
        return self.memory.is_known and not self.lists.is_private(name)

    def marks(self, name: str) -> dict[str, str]:
        """Return labels that say whose release it is, by ConfigMap and, if that is another one, namespace."""
        marks = {release.CONFIG_MAP_LABEL: self.memory.owner}
        if self.places.is_elsewhere(name):
            marks[release.OPERATOR_LABEL] = self.places.own_namespace
        return marks

    async def add_labels(
        self, record: Record, labels: Mapping[str, str | None], annotations: Mapping[str, str] = _NONE
    ) -> Record | None:
        """Add labels (``None`` removes one) and annotations to a revision, and give its record as it is then.

        A record that is gone or was touched meanwhile is left alone, and ``None`` is given.
        """
        if labels.items() <= record.revision.labels.items() and not annotations:
            return record
        metadata = {"labels": dict(labels), "resourceVersion": record.resource_version}
        if annotations:
            metadata["annotations"] = dict(annotations)
        changed = None
        with contextlib.suppress(api_errors.NotFound, api_errors.Conflict):
            changed = self._record(await self._api.patch(self.path_of(record), {"metadata": metadata}))
        if changed is None:
            self.doubt(record.revision.release)
        else:
            self._keep(record.revision.release, changed)
        return changed

    async def fail(self, record: Record) -> Record | None:
        """Let the record of an unfinished revision say that it failed, and give it as it is then.

        A record that is gone or was touched meanwhile is left alone. One that cannot be decoded is deleted:
        Helm could do nothing with it either.
        """
        description = f"interrupted: it was {record.revision.status} when its Helm was gone"
        try:
            await self._edit(
                record,
                lambda decoded: record_format.with_status(decoded, release.FAILED, description),
                {"status": release.FAILED},
                resource_version=record.resource_version,
            )
        except helm_errors.ReleaseRecordError:
            return await self.drop(record)
        except (api_errors.NotFound, api_errors.Conflict):
            pass
        return await self.read(record.revision.release)

    async def mark_uninstalled(self, record: Record, labels: Mapping[str, str]) -> None:
        """Let a record say that its release is gone, and hold nothing else.

        A record that cannot be decoded is deleted. Raises what the client raises.
        """
        try:
            await self._edit(
                record,
                lambda decoded: record_format.emptied(
                    record_format.with_status(decoded, release.UNINSTALLED, "removed without Helm")
                ),
                {**labels, "status": release.UNINSTALLED},
            )
        except helm_errors.ReleaseRecordError:
            await self.drop(record)

    async def drop(self, record: Record) -> Record | None:
        """Delete the record of a revision, and give the one before it.

        A record that is gone or was touched meanwhile is left alone.
        """
        with contextlib.suppress(api_errors.NotFound, api_errors.Conflict):
            await self._api.delete(self.path_of(record), resource_version=record.resource_version)
        return await self.read(record.revision.release)

    async def leave(
        self,
        record: Record,
        spared: Collection[manifests.ManifestResource],
        kept: Collection[manifests.ManifestResource],
    ) -> Record | None:
        """Let Helm leave objects at an uninstallation: what is spared is taken out, the rest gets its policy.

        Gives its record as it is then. Raises what :meth:`rewrite` raises.
        """
        return await self.rewrite(
            record,
            lambda text: manifests.with_policy(
                manifests.without(text, spared.__contains__), kept.__contains__
            ),
            # What is kept can be taken back.
            is_other=bool(spared),
        )

    async def put_back(
        self, record: Record, status: str, kept: Collection[manifests.ManifestResource]
    ) -> Record | None:
        """Let the record of a release say what it said before its removal began; see :meth:`leave`.

        Gives it as it is then. Raises what :meth:`rewrite` raises.
        """

        def change(decoded: record_format.Release) -> record_format.Release:
            return record_format.put_back(
                decoded, status, lambda text: manifests.without_policy(text, kept.__contains__)
            )

        labels = {"status": status, release.REMOVAL_LABEL: None}
        with contextlib.suppress(api_errors.NotFound, api_errors.Conflict):
            await self._edit(record, change, labels, only_own=True)
        return await self.read(record.revision.release)

    async def complete(self, record: Record) -> Record | None:
        """Put into a failed revision what only the deployed one has: Helm deletes what is in the last one.

        Gives its record as it is then. Raises what :meth:`rewrite` raises.
        """
        before = await self.upgraded_from(record)
        namespace = self.places.of(record.revision.release).namespace
        had, has = await self.manifest(before), await self.manifest(record)
        gone = frozenset(manifests.dropped(had, has, namespace))
        if not gone:
            return record
        left = manifests.without(had, lambda each: each not in gone)
        return await self.rewrite(record, lambda text: f"{text}\n---\n{left}")

    async def rewrite(
        self,
        record: Record,
        change: Callable[[str], str],
        *,
        is_other: bool = True,
        hooks: tuple[str, Callable[[str], str]] = ("", str),
    ) -> Record | None:
        """Change the manifest by which Helm knows a revision of ours, and give its record as it is then.

        ``is_other``: it is no longer what was rendered then, so the revision's checksums go, too. ``hooks``:
        see :func:`.with_hooks_of`.
        Raises :class:`.ReleaseRecordError` when it cannot be decoded, and what the client raises.
        """
        labels = _NO_CHECKSUMS if is_other else {}
        await self._edit(
            record,
            lambda decoded: record_format.with_manifest(record_format.with_hooks_of(decoded, *hooks), change),
            labels,
            only_own=True,
        )
        if is_other:
            self._rendered.pop(record.revision.release, None)
        return await self.read(record.revision.release)

    async def cut(self, record: Record, manifest: str) -> record_format.Content:
        """Let a revision that others made list only what ``manifest`` has, too, and give what it held.

        Helm, which goes on from it, then deletes nothing by it. Raises what :meth:`rewrite` raises.
        """
        namespace = self.places.of(record.revision.release).namespace

        def change(decoded: record_format.Release) -> record_format.Release:
            record_format.check_manifests(decoded)
            without_hooks = {**decoded, "hooks": []}
            return record_format.with_manifest(
                without_hooks, lambda text: manifests.common(text, manifest, namespace)
            )

        labels = {**_NO_CHECKSUMS, release.DIGEST_LABEL: None}
        held, self._cut[self.path_of(record)] = await self._edit(record, change, labels)
        await self.read(record.revision.release)
        return held

    async def may_be_used(self, record: Record) -> bool:
        """Say whether Helm may go by a record as it is now: it is our own, or :meth:`cut`."""
        return self._cut.get(self.path_of(record)) == record.resource_version or await self.is_own(record)

    async def _edit(
        self,
        record: Record,
        change: Callable[[record_format.Release], record_format.Release],
        labels: Mapping[str, str | None],
        *,
        only_own: bool = False,
        resource_version: str = "",
    ) -> tuple[record_format.Content, str]:
        """Change what a record holds; what was ours before is ours afterwards.

        Gives what it held, and the version that it has now.

        Raises :class:`.ReleaseRecordError` when it cannot be decoded, also for one of others with
        ``only_own``, and what the client raises.
        """
        stored = await self._api.get(self.path_of(record))
        decoded, content = await self._opened(record, stored)
        is_own = await self._is_own(record, stored, decoded, raises=only_own)
        with self._naming(record):
            text, digest = await asyncio.to_thread(self._changed, record, change, decoded)
        if is_own:
            await self.proofs.expect(record.revision, digest)
            labels = {**labels, release.DIGEST_LABEL: digest}
        version = resource_version or stored["metadata"]["resourceVersion"]
        metadata = {"resourceVersion": version, "labels": dict(labels)}
        body = {"metadata": metadata, "data": {"release": text}}
        changed = await self._api.patch(self.path_of(record), body)
        return content, str((changed.get("metadata") or {}).get("resourceVersion"))

    def _changed(
        self,
        record: Record,
        change: Callable[[record_format.Release], record_format.Release],
        decoded: record_format.Release,
    ) -> tuple[str, str]:
        """Return what is stored of a changed release, and its digest."""
        changed = change(decoded)
        digest = self.proofs.digest(record.revision.release, record.revision.number, changed)
        return record_format.stored(changed, is_secret=self._is_secret), digest

    async def confirm(self, record: Record, made: record_format.Release) -> Record:
        """Have the record of a revision say what Helm made, and that it is ours; gives it as it is then.

        Its last write may have been refused, and it may have been changed since.
        Raises what the client raises.
        """
        name, number = record.revision.release, record.revision.number
        if not (digest := await self._digest(record, made)):
            return record
        place = self.places.of(name)
        labels = {release.DIGEST_LABEL: digest, **self.marks(name)}
        if record.revision.status != release.DEPLOYED:
            record = await self._put_right(record, made, labels)
        while (changed := await self.add_labels(record, labels)) is None:
            # Somebody was faster: what they changed will not be what the digest says.
            record = await self.read(name) or record
            if record.revision.number != number:
                break
        self.memory.change(place, last=number, deployed=number, digests=(digest,), failed=())
        return changed or record

    async def _put_right(
        self, record: Record, made: record_format.Release, labels: Mapping[str, str]
    ) -> Record:
        """Write what Helm could not write any more."""
        deployed = record_format.with_status(made, release.DEPLOYED, "its record was put right")
        text = await asyncio.to_thread(record_format.stored, deployed, is_secret=self._is_secret)
        metadata = {"labels": {**labels, "status": release.DEPLOYED}}
        await self._api.patch(self.path_of(record), {"metadata": metadata, "data": {"release": text}})
        for each in await self.history(record.revision.release):
            if each.revision.status == release.DEPLOYED and each.revision.number < record.revision.number:
                await self._edit(
                    each,
                    lambda decoded: record_format.with_status(decoded, release.SUPERSEDED, ""),
                    {"status": release.SUPERSEDED},
                )
        return await self.read(record.revision.release) or record

    async def released(self, record: Record) -> record_format.Release:
        """Return what Helm keeps of a revision of ours; raises :class:`.ReleaseRecordError`."""
        stored = await self._api.get(self.path_of(record))
        decoded, _ = await self._opened(record, stored)
        await self._is_own(record, stored, decoded, raises=True)
        return decoded

    async def sign(
        self,
        record: Record,
        is_right: Callable[[record_format.Release], Awaitable[bool]] | None = None,
    ) -> Record | None:
        """Count a revision as ours as it is now, if that is right; gives its record as it is then.

        What others change while that is found out is not signed.
        Raises :class:`.ReleaseRecordError` when it cannot be decoded, and what the client raises.
        """
        stored = await self._api.get(self.path_of(record))
        decoded, _ = await self._opened(record, stored)
        if is_right is not None and not await is_right(decoded):
            return None
        self.proofs.begin(record.revision.release)
        if not (digest := await self._digest(record, decoded)):
            return record
        return await self.add_labels(
            structs.replace(record, resource_version=stored["metadata"]["resourceVersion"]),
            {release.DIGEST_LABEL: digest, **self.marks(record.revision.release)},
        )

    async def _is_own(
        self, record: Record, stored: client.Object, decoded: record_format.Release, *, raises: bool = False
    ) -> bool:
        """Say whether a record is ours as it is now; with ``raises``, raise an error if not."""
        found = self._record(stored)
        try:
            self.proofs.check(
                record.revision if found is None else found.revision, await self._digest(record, decoded)
            )
        except helm_errors.ForeignRecordError:
            if raises:
                raise
            return False
        return True

    async def _digest(self, record: Record, decoded: record_format.Release) -> str:
        name, number = record.revision.release, record.revision.number
        with self._naming(record):
            return await asyncio.to_thread(self.proofs.digest, name, number, decoded)

    async def _opened(
        self, record: Record, stored: client.Object
    ) -> tuple[record_format.Release, record_format.Content]:
        def work() -> tuple[record_format.Release, record_format.Content]:
            text = (stored.get("data") or {})["release"]
            decoded = record_format.decode(text, is_secret=self._is_secret)
            return decoded, record_format.content_of(decoded)

        with self._naming(record):
            # Unpacking a megabyte takes tens of milliseconds.
            return await asyncio.to_thread(work)

    async def read_deployed(self, name: str) -> tuple[Record, Record] | None:
        """Return the last deployed revision of a release, and its last one; ``None`` if none is deployed."""
        found = await self.lists.of(name)
        last = self._last_revisions(found).get(name)
        records = [record for record in map(self._record, found) if record is not None]
        deployed = [each for each in records if each.revision.status == release.DEPLOYED]
        if last is None or not deployed:
            return None
        return max(deployed, key=lambda record: record.revision.number), last

    async def deployed(self, name: str) -> release_types.Deployed | None:
        """Return what the release consists of, read now; ``None`` if no revision of it is deployed."""
        deployed = await self.read_deployed(name)
        if deployed is None:
            return None
        record, last = deployed
        content = await self.content(record)
        return release_types.Deployed(
            record.revision.number,
            content.manifest,
            content.hooks,
            content.is_server_side,
            is_busy=last.revision.is_busy,
            settled=content.hooks_ended,
            unchangeable=await self._unchangeable(last),
        )

    async def upgraded_from(self, last: Record) -> Record:
        """Return the revision from which Helm upgrades: what it has and the new one has not is deleted."""
        if last.revision.status == release.DEPLOYED:
            return last
        deployed = await self.read_deployed(last.revision.release)
        return last if deployed is None else deployed[0]

    async def history(self, name: str) -> list[Record]:
        """Return all revisions of a release that are kept, read now, in their order."""
        records = filter(None, map(self._record, await self.lists.of(name)))
        return sorted(records, key=lambda each: each.revision.number)

    async def annotation(self, record: Record, key: str) -> str:
        """Return an annotation of a revision, read now; empty without one."""
        stored = await self._api.get(self.path_of(record), metadata_only=True)
        return str((stored["metadata"].get("annotations") or {}).get(key, ""))

    async def manifest(self, record: Record, *, with_hooks: bool = False) -> str:
        """Return what Helm applied with this revision, followed by its hooks' manifests if they are wanted.

        Raises :class:`.ReleaseRecordError` when the record cannot be decoded.
        """
        content = await self.content(record)
        return content.with_hooks if with_hooks else content.manifest

    async def content(self, record: Record, *, whoever: bool = False) -> record_format.Content:
        """Return what a record holds; raises :class:`.ReleaseRecordError` when it cannot be decoded.

        So it does for a record that others made or changed, but not with ``whoever``.
        """
        stored = await self._api.get(self.path_of(record))
        return await self._content(record, stored, whoever=whoever)

    async def _content(
        self, record: Record, stored: client.Object, *, whoever: bool = False
    ) -> record_format.Content:
        decoded, content = await self._opened(record, stored)
        if not whoever:
            await self._is_own(record, stored, decoded, raises=True)
        else:
            with self._naming(record):
                await asyncio.to_thread(record_format.check_manifests, decoded)
        return content

    async def is_own(self, record: Record) -> bool:
        """Say whether a record is the operator's own as it is now; what cannot be decoded is not."""
        if not self.memory.is_known:
            return True
        try:
            await self.content(record)
        except (helm_errors.ReleaseRecordError, api_errors.NotFound):
            return False
        return True

    async def revision_inputs(self, name: str) -> release_types.RevisionInputs | None:
        """Return what the last revision of a release was made with; ``None`` if there is none.

        After a failed upgrade, that is what the deployed revision was made with.
        Raises :class:`.ReleaseRecordError` when the record cannot be decoded.
        """
        record = await self.get(name)
        if record is not None and record.revision.status == release.FAILED:
            record = await self.upgraded_from(record)
        return None if record is None or not record.revision.exists else await self.inputs(record)

    async def inputs(self, record: Record) -> release_types.RevisionInputs:
        """Return what a revision was made with; raises :class:`.ReleaseRecordError` if that is unreadable."""
        stored = await self._api.get(self.path_of(record))
        revision, content = record.revision, await self._content(record, stored)
        return release_types.RevisionInputs(
            revision.number,
            by_go_operator=revision.by_go_operator,
            values=content.values,
            hook_places=saved_places.read(revision, stored["metadata"].get("annotations") or {}),
            made_at=_seconds(revision.labels),
            defaults=content.defaults,
        )

    async def _unchangeable(self, last: Record) -> frozenset[messages.ObjectName]:
        if last.revision.status != release.FAILED:
            return frozenset()
        try:
            return messages.unchangeable((await self.content(last)).description)
        except helm_errors.ReleaseRecordError:
            return frozenset()

    def _keep(self, name: str, record: Record | None) -> None:
        self._touched.add(name)
        self._doubted.discard(name)
        if record is None:
            self._records.pop(name, None)
            self._rendered.pop(name, None)
        else:
            self._records[name] = record

    @contextlib.contextmanager
    def _naming(self, record: Record) -> Iterator[None]:
        try:
            yield
        except record_format.UNREADABLE as error:
            why = f"cannot be decoded ({type(error).__name__}), by Helm neither"
            if isinstance(error, record_format.TooMuchError):
                why = str(error)
            raise helm_errors.ReleaseRecordError(
                f"the record {self.title(record)} of release {record.revision.release} {why}: restore it, or "
                "delete it; the next run then goes on from the revision before, or installs the release, and "
                "takes over what is there"
            ) from error

    def title(self, record: Record) -> str:
        """Name the object of a record for a person."""
        return f"{self.places.of(record.revision.release).namespace}/{record.object_name}"

    def path_of(self, record: Record) -> str:
        """Return where the object of a record is in the API."""
        return f"{self.lists.path(self.places.of(record.revision.release).namespace)}/{record.object_name}"

    def _last_revisions(self, objects: Iterable[json_types.KubernetesObject]) -> dict[str, Record]:
        last: dict[str, Record] = {}
        for record in filter(None, map(self._record, objects)):
            later = last.get(record.revision.release)
            if later is None or later.revision.number < record.revision.number:
                last[record.revision.release] = record
        return {name: record for name, record in last.items() if self._counts(name, record)}

    def _record(self, secret: json_types.KubernetesObject) -> Record | None:
        """Return the record in an object's metadata; ``None`` if the object only looks like one of Helm's."""
        metadata: Mapping[str, Any] = secret.get("metadata") or {}
        labels: Mapping[str, str] = metadata.get("labels") or {}
        name, number = labels.get("name"), labels.get("version", "")
        if not name or not number.isdecimal() or int(number) > _HIGHEST:
            return None
        namespace = metadata.get("namespace") or self.places.own_namespace
        key = self.places.key(places.ReleaseLocation(namespace, name))
        revision = release.Revision(key, int(number), labels.get("status", "unknown"), dict(labels))
        version = metadata.get("resourceVersion", "")
        return Record(revision, metadata["name"], version, keeping.made_at(secret))

    def _counts(self, name: str, record: Record) -> bool:
        """Say whether it is a module's, made by this operator, or in its namespace and of no other one."""
        is_marked = record.revision.operator == self.places.own_namespace
        is_near = not record.revision.operator and not self.places.is_elsewhere(name)
        is_own = (is_marked or is_near) and not self.is_of_another(record.revision)
        return is_own or self.places.is_of_module(name)


def _seconds(labels: Mapping[str, str]) -> int:
    """Return when Helm made or changed a record, by its own labels."""
    times = (labels.get(key, "") for key in ("createdAt", "modifiedAt"))
    return max((int(text) for text in times if text.isdecimal()), default=0)

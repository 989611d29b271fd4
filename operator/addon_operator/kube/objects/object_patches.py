"""Carrying out what hooks wrote to ``KUBERNETES_PATCH_PATH``.

Operations run in their order; the first that fails ends it. All kinds are looked up before the first one
runs, so that a mistake in the last document changes nothing. Meaning of the operations: "Modifying Kubernetes
objects" of the shell-operator documentation; ``Apply`` is server-side apply.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import orjson

from addon_operator.aio import waiting
from addon_operator.hook_contract import jq_programs
from addon_operator.hook_contract.outputs import object_operations, patch_check
from addon_operator.kernel import clock, json_types
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, retries
from addon_operator.kube.discovery import api_resources, discovery
from addon_operator.kube.informers import projections
from addon_operator.kube.objects import own_deletions

CRD_SECONDS: Final = 10.0
"""How long an operation waits for a kind whose CustomResourceDefinition the same hook has just written."""
JQ_SECONDS: Final = 10.0
"""How long the expression of a ``JQPatch`` may take."""
MAX_RESULT_BYTES: Final = 3 << 20
"""What such an expression may give: the API server takes no request that is larger."""
_AT_ONCE: Final = 1000
_POLLS: Final = waiting.Backoff(0.05, 1.0)
_FIELD_MANAGER: Final = {"fieldManager": client.FIELD_MANAGER}
_SAYS_NOTHING: Final = "the server rejected our request due to an error in our request"
_CONFIDENTIAL: Final = "Secret"
"""Kind of objects that no message may quote."""
_WITH_OWN_KIND: Final = frozenset({"scale"})
"""Subresources that are read as another kind than their object."""

T = TypeVar("T")
Waiting: TypeAlias = Callable[[str], contextlib.AbstractContextManager[Callable[[], None]]]
"""Gives what raises an error as soon as there is nothing to wait for any more."""


def uninterrupted(_waits_for: str) -> contextlib.AbstractContextManager[Callable[[], None]]:
    """Wait to the end."""
    return contextlib.nullcontext(lambda: None)


class ObjectPatchError(api_errors.KubernetesError):
    """An operation could not be carried out; the text names its document."""


class _OperationTarget(msgspec.Struct, frozen=True):
    """Where an operation takes place."""

    target: object_operations.ObjectTarget
    resource: api_resources.Resource

    def path(self, *, subresource: str | None = None) -> str:
        """Return the path of the object, or of one of its subresources."""
        return paths.of(
            self.resource.api_version,
            self.resource.plural,
            namespace=self.target.namespace,
            name=self.target.name,
            subresource=subresource,
        )

    @property
    def whole(self) -> str:
        """The object, or the subresource that the operation names."""
        return self.path(subresource=self.target.subresource)

    @property
    def readable(self) -> str:
        """Where the object is read from before it is written to :attr:`whole`."""
        named = self.target.subresource
        return self.path(subresource=named if named in _WITH_OWN_KIND else None)

    @property
    def collection(self) -> str:
        """Where the object is created."""
        return self.resource.path(namespace=self.target.namespace)

    @property
    def key(self) -> own_deletions.DeletedObject:
        """What names the object."""
        group = self.resource.api_version.rpartition("/")[0]
        return own_deletions.DeletedObject(group, self.resource.kind, self.target.namespace, self.target.name)


class HookWriter(msgspec.Struct, frozen=True):
    """The run of a hook whose operations are carried out."""

    source: str
    """The hook, for errors."""
    owner: own_deletions.Owner
    field_manager: str
    """Who owns the fields that it applies."""
    seconds: float | None = None
    """How long it waits until a deleted object is gone; ``None``: without end."""
    waiting: Waiting = uninterrupted
    """Entered, with what it waits for, while it waits."""


class ObjectPatcher:
    """Carries out operations of hooks."""

    def __init__(
        self,
        kube: client.KubeClient,
        catalog: discovery.Catalog,
        deletions: own_deletions.OwnDeletions,
        jq: projections.JqRunner,
        time: waiting.Time,
    ) -> None:
        self._kube = kube
        self._catalog = catalog
        self._deletions = deletions
        self._jq = jq
        self._time = time

    async def apply(self, operations: Sequence[object_operations.Operation], writer: HookWriter) -> None:
        """Carry the operations out.

        Raises :class:`ObjectPatchError` for the first one that cannot be: those before it are done, those
        after it are not begun. A kind that does not exist, or a namespace that is missing or too much, is
        reported before anything is done.
        """
        source = writer.source
        await self._check(operations, source)
        for operation in operations:
            try:
                await self._one(operation, writer)
            except api_errors.ApiError as error:
                told = await self._told(error, operation)
                raise ObjectPatchError(f"{source}, {operation.origin}: {told}") from told
            except (
                api_errors.KubernetesError,
                jq_programs.JqError,
                object_operations.ObjectOperationError,
            ) as error:
                raise ObjectPatchError(f"{source}, {operation.origin}: {error}") from error

    async def _told(
        self, error: api_errors.ApiError, operation: object_operations.Operation
    ) -> api_errors.ApiError:
        """Return the error with the entry of a JSON patch that does not apply: the server names none."""
        entries: Any = operation.body if isinstance(operation, object_operations.Patch) else None
        if not isinstance(entries, list) or error.message != _SAYS_NOTHING:
            return error
        try:
            place = await self._place(operation.target)
            sent = orjson.dumps({"request": {"object": await self._kube.get(place.readable)}})
            await asyncio.to_thread(patch_check.check, sent, entries, "jsonPatch")
        except patch_check.PatchError as found:
            return error.reworded(str(found))
        except api_errors.KubernetesError:
            pass
        return error

    async def _check(self, operations: Sequence[object_operations.Operation], source: str) -> None:
        defines_kinds = False
        for number, operation in enumerate(operations, start=1):
            if number % _AT_ONCE == 0:
                # Kinds are known, so that nothing waits: others want a turn.
                await asyncio.sleep(0)
            try:
                await self._place(operation.target)
            except discovery.NoSuchKind as error:
                if not defines_kinds:
                    raise ObjectPatchError(f"{source}, {operation.origin}: {error}") from error
            except api_errors.KubernetesError as error:
                raise ObjectPatchError(f"{source}, {operation.origin}: {error}") from error
            defines_kinds = defines_kinds or _defines_kind(operation)

    async def _place(self, target: object_operations.ObjectTarget) -> _OperationTarget:
        resource = await self._catalog.find(target.kind, target.api_version)
        if resource.namespaced and target.namespace is None:
            raise api_errors.KubernetesError(f"{target} has no namespace; every {resource.kind} needs one")
        if not resource.namespaced and target.namespace is not None:
            raise api_errors.KubernetesError(f"{target}: a {resource.kind} is in no namespace; remove it")
        return _OperationTarget(target, resource)

    async def _one(self, operation: object_operations.Operation, writer: HookWriter) -> None:
        place = await self._awaited_place(operation.target)
        match operation:
            case object_operations.Create():
                await self._create(operation, place)
            case object_operations.Apply():
                await self._apply(operation, place, writer)
            case object_operations.Delete():
                await self._delete(operation, place, writer)
            case object_operations.Patch():
                await self._unless_missing(operation.ignore_missing, self._patch(operation, place))
            case object_operations.JqPatch():
                await self._unless_missing(
                    operation.ignore_missing, self._retried(lambda: self._jq_patch(operation, place))
                )
        if _defines_kind(operation):
            self._catalog.forget()

    async def _awaited_place(self, target: object_operations.ObjectTarget) -> _OperationTarget:
        # Every kind was there when the operations were checked, but for those that they define themselves.
        deadline = self._time.monotonic() + CRD_SECONDS
        while True:
            try:
                return await self._place(target)
            except discovery.NoSuchKind:
                if self._time.monotonic() >= deadline:
                    raise
            await self._time.sleep(_POLLS.longest)
            self._catalog.forget()

    async def _create(self, operation: object_operations.Create, place: _OperationTarget) -> None:
        if operation.if_exists is object_operations.IfExists.REPLACE:
            await self._retried(lambda: self._create_or_replace(operation.body, place))
            return
        try:
            await self._kube.create(place.collection, operation.body, query=_FIELD_MANAGER)
        except api_errors.AlreadyExists:
            if operation.if_exists is object_operations.IfExists.FAIL:
                raise

    async def _create_or_replace(self, body: Mapping[str, Any], place: _OperationTarget) -> None:
        try:
            await self._kube.create(place.collection, body, query=_FIELD_MANAGER)
        except api_errors.AlreadyExists:
            pass
        else:
            return
        try:
            await self._replace(place, body, await self._kube.get(place.readable, metadata_only=True))
        except api_errors.NotFound as error:
            # Deleted since the creation was refused: the next try creates it.
            raise error.around(kind=api_errors.Conflict) from error

    async def _replace(
        self, place: _OperationTarget, body: Mapping[str, Any], current: Mapping[str, Any]
    ) -> None:
        version = current["metadata"]["resourceVersion"]
        metadata = {**(body.get("metadata") or {}), "resourceVersion": version}
        await self._kube.replace(place.whole, {**body, "metadata": metadata}, query=_FIELD_MANAGER)

    async def _apply(
        self, operation: object_operations.Apply, place: _OperationTarget, writer: HookWriter
    ) -> None:
        manager = operation.field_manager or writer.field_manager
        try:
            await self._kube.apply(place.whole, operation.body, field_manager=manager, force=operation.force)
        except api_errors.Conflict as error:
            hint = "; leave these fields out, or take them over with 'force: true'"
            raise error.around(after=hint) from error

    async def _patch(self, operation: object_operations.Patch, place: _OperationTarget) -> None:
        body = operation.body
        type_ = client.PatchType.JSON if isinstance(body, list) else client.PatchType.MERGE

        async def send() -> None:
            await self._kube.patch(place.whole, body, type_, query=_FIELD_MANAGER)

        # A patch that asks for a certain version wants to fail on another one.
        await (send() if _asks_for_version(body) else self._retried(send))

    async def _jq_patch(self, operation: object_operations.JqPatch, place: _OperationTarget) -> None:
        current = await self._kube.get(place.readable)
        results = await self._results(operation.program, current)
        if len(results) != 1 or not isinstance(results[0], dict):
            printed = f"{len(results)} results" if len(results) != 1 else "something that is not an object"
            raise api_errors.KubernetesError(
                f"jqFilter gives {printed} for {place.target}; it has to give one object"
            )
        object_operations.check_writable(results[0])
        if _canonical(results[0]) != _canonical(current):
            await self._replace(place, results[0], current)

    async def _results(self, program: str, current: Mapping[str, Any]) -> list[json_types.JsonValue]:
        (answer,) = await self._jq.run(program, [orjson.dumps(current)], JQ_SECONDS)
        if isinstance(answer, jq_programs.JqError):
            is_secret = current.get("kind") == _CONFIDENTIAL
            raise jq_programs.JqError(f"jqFilter: {answer.discreet if is_secret else answer}")
        if len(answer) > MAX_RESULT_BYTES:
            raise jq_programs.JqError(
                f"jqFilter gives more than {MAX_RESULT_BYTES >> 20} MiB, which no object may have"
            )
        # orjson would round integers that are to be refused.
        results: list[json_types.JsonValue] = await asyncio.to_thread(json.loads, answer)
        return results

    async def _delete(
        self, operation: object_operations.Delete, place: _OperationTarget, writer: HookWriter
    ) -> None:
        whole_object = operation.target.subresource is None
        if whole_object:
            self._deletions.note(writer.owner, place.key)
        try:
            answer = await self._retried(
                lambda: self._kube.delete(place.whole, propagation=operation.propagation.value)
            )
        except api_errors.KubernetesError as error:
            self._deletions.forget(place.key)
            if operation.ignore_missing and isinstance(error, api_errors.NotFound):
                return
            raise
        if whole_object and operation.propagation is object_operations.Propagation.FOREGROUND:
            await self._wait_until_gone(place, _uid(answer), writer)

    async def _wait_until_gone(self, place: _OperationTarget, uid: str, writer: HookWriter) -> None:
        began, held = self._time.monotonic(), await self._held(place, uid)
        if held is None:
            return
        with writer.waiting(f"{place.target} to be gone{held}") as check:
            for pause in _POLLS.pauses():
                await self._time.sleep(pause)
                check()
                if (held := await self._held(place, uid)) is None:
                    return
                if writer.seconds is not None and self._time.monotonic() - began >= writer.seconds:
                    limit = clock.duration_text(writer.seconds)
                    raise api_errors.KubernetesError(
                        f"{place.target} is still there {limit} after its deletion{held}; "
                        "use DeleteInBackground to continue without waiting"
                    )

    async def _held(self, place: _OperationTarget, uid: str) -> str | None:
        """Say what holds an object that was deleted; ``None`` if it is gone."""
        try:
            current = (await self._kube.get(place.whole, metadata_only=True))["metadata"]
        except api_errors.NotFound:
            return None
        if uid and current.get("uid") != uid:
            return None
        finalizers = current.get("finalizers") or ()
        return f": the finalizers {', '.join(finalizers)} hold it" if finalizers else ""

    async def _unless_missing(self, ignore_missing: bool, work: Awaitable[None]) -> None:
        try:
            await work
        except api_errors.NotFound:
            if not ignore_missing:
                raise

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await retries.until_written(attempt, self._time.sleep)


def _defines_kind(operation: object_operations.Operation) -> bool:
    writes = isinstance(operation, object_operations.Create | object_operations.Apply)
    return writes and operation.target.kind == "CustomResourceDefinition"


def _asks_for_version(body: Mapping[str, Any] | list[Any]) -> bool:
    return isinstance(body, Mapping) and "resourceVersion" in (body.get("metadata") or {})


def _canonical(document: Mapping[str, Any]) -> bytes:
    # Python takes true and 1 for equal.
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _uid(answer: Mapping[str, Any]) -> str:
    """Return the UID of a deleted object; the answer is the object, or a Status about it."""
    about = answer.get("details") if answer.get("kind") == "Status" else answer.get("metadata")
    return str((about or {}).get("uid") or "")

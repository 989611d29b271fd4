"""Takes back a revision that failed: to the last one that was deployed, with ``helm rollback``.

What the failed revision brought and holds data stays. What was taken back is remembered with the release by
the checksum of its inputs, so that it is not tried again.
"""

import asyncio
import contextlib
import functools
from collections.abc import Sequence
from typing import Final

from addon_operator.helm import helm_errors, release_types, verbs
from addon_operator.helm.releases import (
    failed_tries,
    keeper,
    live_values,
    release_planning,
    release_records,
    uninstalling,
)
from addon_operator.kernel import errors
from addon_operator.kube import api_errors
from addon_operator.modules import manifests, release

_LONGEST: Final = 4000
"""Characters of an error that are saved with a release."""


class Rollback:
    """Takes back the last revision of one release; used once."""

    def __init__(
        self, planner: release_planning.ReleasePlanner, request: release_types.ReleaseRequest
    ) -> None:
        self._planner = planner
        self._records = planner.records
        self._request = request

    async def run(self, failed: Exception, *, unhealthy: bool) -> helm_errors.HelmError | None:
        """Take it back; return what to tell of that, or ``None`` if ``failed`` left nothing to take back.

        ``unhealthy``: the revision was deployed and did not become healthy; then only one that was will do.
        Raises the errors of the API client.
        """
        found = await self._records.history(self._request.module)
        if not found or not (unhealthy or found[-1].revision.status == release.FAILED):
            return None
        last, earlier = found[-1], found[:-1]
        target = await self._target(earlier, unhealthy=unhealthy)
        try:
            tries = self._planner.tries_of(self._request)
            await tries.read()
            await tries.clear_hooks()
            if target is None:
                if self._was_there(last, unhealthy=unhealthy) or await failed_tries.was_deployed(
                    self._records, earlier
                ):
                    return self._refused(failed, "no earlier revision was deployed and healthy")
                request = self._request
                removal = uninstalling.Uninstallation(
                    self._planner, request.call, request.others, request.directory
                )
                await removal.run(last)
                return self._told(failed, "the release is uninstalled, as there was none before")
            await self._let_read(target)
            await self._keep_live(last, target)
            made = {**await self._records.released(target), "version": last.revision.number + 1}
            try:
                manifest, had, gained = await self._roll_back(last, target)
            except helm_errors.HelmError:
                await self._planner.calls.end(self._request.module)
                raise
            # Before that, the record counts as one of others.
            back = await self._planner.calls.end(self._request.module, made)
            if back is not None:
                self._request.others.made(back.revision.number)
            await self._planner.clear_left(self._request.module, "", [had], manifest)
            retaining = self._planner.keeper_of(self._request.module, self._request.others)
            await retaining.take_back(manifest, gained)
        except (helm_errors.HelmError, helm_errors.ReleaseRecordError) as error:
            return self._refused(failed, f"the rollback failed, too: {_message(error)}")
        await self._remember(last, target, failed)
        told = self._told(
            failed,
            f"revision {last.revision.number} is taken back to revision {target.revision.number}; it is not "
            "tried again with the same chart and values: change them, or run 'addon-operator module retry "
            f"{self._request.module}'",
        )
        told.is_final = True
        return told

    async def _target(
        self, earlier: Sequence[release_records.Record], *, unhealthy: bool
    ) -> release_records.Record | None:
        """Return the last of these revisions that was deployed, and healthy if that is asked for.

        What was there before the release was uninstalled does not count, and neither do labels where others
        write them: there it is the revision that is remembered. An older build remembered none as healthy.
        """
        records, module = self._records, self._request.module
        known = records.memory.of(records.places.of(module))
        is_labelled = not records.others_write(module) or (unhealthy and not known.healthy)
        remembered = known.healthy if unhealthy else known.deployed
        for record in reversed(earlier):
            if record.revision.status == release.SUPERSEDED and await failed_tries.was_uninstalled(
                self._records, record
            ):
                return None
            if is_labelled:
                is_good = record.revision.status in (release.DEPLOYED, release.SUPERSEDED)
                is_wanted = is_good and (not unhealthy or record.revision.is_marked(release.HEALTHY_LABEL))
            else:
                is_wanted = record.revision.number == remembered
            if is_wanted and await self._records.is_own(record):
                return record
        return None

    def _was_there(self, last: release_records.Record, *, unhealthy: bool) -> bool:
        """Say whether a revision worked before the last one, whatever became of its record."""
        known = self._records.memory.of(self._records.places.of(self._request.module))
        number = last.revision.number
        if known.healthy > 0 or known.deployed not in (0, number if unhealthy else 0):
            return True
        # Where others write records, one that is missing, or says that it failed, proves nothing.
        is_first = {*range(1, number)} <= {*known.failed}
        return self._records.others_write(self._request.module) and not is_first

    async def _let_read(self, target: release_records.Record) -> None:
        """Let Helm read all of a revision that it is to apply."""
        _, _, unserved = await self._planner.serve(target, "rollback")
        if unserved and (gone := frozenset(await self._request.others.give_up(unserved))):
            change = functools.partial(manifests.without, is_spared=gone.__contains__)
            await self._records.rewrite(target, change)

    async def _keep_live(self, last: release_records.Record, target: release_records.Record) -> None:
        """Let objects keep what is not ours."""
        request, records, before = self._request, self._records, ""
        with contextlib.suppress(helm_errors.ReleaseRecordError):
            before = await records.manifest(last)
        after = await records.manifest(target)
        fields, *_ = await live_values.of_release(
            records, self._planner.live, request.module, before, after, request.others.written()
        )
        if fields:
            namespace = records.places.of(request.module).namespace
            change = functools.partial(manifests.with_fields, fields=fields, namespace=namespace)
            await records.rewrite(target, change, is_other=False)

    async def _roll_back(
        self, last: release_records.Record, target: release_records.Record
    ) -> tuple[str, str, Sequence[manifests.ManifestResource]]:
        """Have Helm do it; gives what the release has now, what it had, and what of it is new."""
        module = self._request.module
        content, had = await self._records.content(target), ""
        gained = await asyncio.to_thread(manifests.resources, content.manifest)
        await self._planner.set_aside(module, last, content.manifest)
        with contextlib.suppress(helm_errors.ForeignRecordError):
            last, now, unserved = await self._planner.serve(last)
            had, namespace = now.manifest, self._planner.helm.places.of(module).namespace
            made = await asyncio.to_thread(manifests.exchanged, had, content.with_hooks, (), namespace)
            gained = made.gained
            self._planner.left.moves.begin(module, gained, made.lost)
            source = keeper.Source(last.revision, now, tuple(dict.fromkeys((*made.lost, *unserved))))
            await self._planner.keep(self._request, last, source, made.hooked)
        await self._planner.calls.begin(self._request.module, "rollback", last.revision.number + 1)
        number, to = last.revision.number, target.revision.number
        await self._planner.calls.check_again(module, number, number, to)
        await verbs.rollback(
            self._planner.helm,
            self._request.call,
            self._planner.options,
            target.revision.number,
            is_server_side=content.is_server_side,
        )
        return content.manifest, had, gained

    async def _remember(
        self, last: release_records.Record, target: release_records.Record, failed: Exception
    ) -> None:
        """Save with the release what it is made from now, and what is not to be made so again, and why."""
        # The chart may have been changed while its revision failed: what it is now was not tried.
        if (tried := last.revision.saved) is None:
            inputs = (await self._planner.renderer.inputs(self._request)).checksum
        else:
            inputs = tried.inputs
        record = await self._records.read(self._request.module)
        if record is not None and record.revision.number > last.revision.number:
            labels = {release.REJECTED_LABEL: inputs, release.MANAGED_LABEL: "true"}
            if (before := target.revision.saved) is not None:
                labels |= before.labels(record.revision.number)
            because = {release.REJECTED_BECAUSE: self._without_module(failed)[:_LONGEST]}
            with contextlib.suppress(api_errors.ApiError):
                marked = labels | self._records.marks(self._request.module)
                await self._records.add_labels(record, marked, because)

    def _told(self, failed: Exception, text: str) -> helm_errors.RolledBackError:
        return helm_errors.RolledBackError(*self._both(failed, text))

    def _refused(self, failed: Exception, why: str) -> helm_errors.RollbackRefusedError:
        return helm_errors.RollbackRefusedError(*self._both(failed, f"there is no rollback: {why}"))

    def _both(self, failed: Exception, text: str) -> tuple[str, str, str]:
        both = failed, getattr(failed, "without_values", failed)
        shown, without_values = (f"{self._without_module(each)}; {text}" for each in both)
        return self._request.module, shown, without_values

    def _without_module(self, text: object) -> str:
        return str(text).removeprefix(f"module {self._request.module}: ")


def _message(error: errors.AddonOperatorError) -> str:
    return error.message if isinstance(error, helm_errors.HelmError) else str(error)

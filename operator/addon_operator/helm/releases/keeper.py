"""Sees to it that what must not be deleted of a release stays, before anything deletes its objects.

:mod:`.keeping` decides; here is read what that depends on. Helm is told by its own resource policy, on what
it looks at: the live object before an upgrade or a rollback, the record before an uninstallation. What other
releases have is taken out of the record.
"""

import asyncio
import pathlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from addon_operator.helm import command, places, release_types, remembered
from addon_operator.helm.releases import adopting, left_objects, live_objects, record_format, rendering
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.objects import crds
from addon_operator.modules import keeping, manifests, release

_SHOWN: Final = 5
_STATEFUL_SET: Final = "StatefulSet"


class Source(msgspec.Struct, frozen=True):
    """What of one revision is about to go."""

    revision: release.Revision
    content: record_format.Content
    going: tuple[manifests.ManifestResource, ...]
    is_foreign: bool = False
    """Whether others may have written what it says: that decides nothing."""


class Staying(msgspec.Struct, frozen=True):
    """What of that stays."""

    others: frozenset[manifests.ManifestResource] = frozenset()
    """What other releases have, and what was there before the release."""
    adopted: frozenset[manifests.ManifestResource] = frozenset()
    """What of that was there before."""
    kept: Mapping[manifests.ManifestResource, keeping.Kept] = msgspec.field(default_factory=dict)
    patches: Mapping[manifests.ManifestResource, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """What live objects lack, so that Helm leaves them."""
    looked_at: tuple[manifests.ManifestResource, ...] = ()
    """All that is about to go, and this."""
    with_data: Mapping[manifests.ManifestResource, int | None] = msgspec.field(default_factory=dict)
    """What of it holds data and goes, as somebody asked for that, and how many objects go along, if that can
    be counted."""
    moving: Mapping[manifests.ManifestResource, remembered.RememberedObject] = msgspec.field(
        default_factory=dict
    )
    """What goes later, unless a module that has yet to run gains it."""

    @property
    def going(self) -> tuple[manifests.ManifestResource, ...]:
        """What of it goes."""
        return tuple(each for each in self.looked_at if each not in self)

    def __contains__(self, resource: object) -> bool:
        return resource in self.others or resource in self.kept or resource in self.moving


class Keeper:
    """Looks at what one release is about to lose."""

    def __init__(
        self,
        helm: command.Helm,
        renderer: rendering.ChartRenderer,
        live: live_objects.LiveObjects,
        module: names.ModuleName,
        others: release_types.Others,
        adoptions: adopting.Adoptions,
        left: left_objects.LeftObjects,
        directory: pathlib.Path | None = None,
    ) -> None:
        """``directory``: that of the module's chart, if there is one."""
        self._helm = helm
        self._renderer = renderer
        self._live = live
        self._module = module
        self._others = others
        self._adoptions = adoptions
        self._left = left
        self._directory = directory
        self.proven: int | None = None
        """Where others write records, the one revision whose values and chart Helm itself has told."""
        self._place = helm.places.of(module)

    async def look(
        self,
        *sources: Source,
        data_goes: Collection[manifests.ManifestResource] = (),
        only_own: bool = False,
    ) -> Staying:
        """Say what stays of what is about to go; nothing is changed.

        ``data_goes``: what of it goes with its data, as somebody asked for that. ``only_own``: what Helm did
        not make for the release is not its to lose. Raises what the client raises when it cannot be asked.
        """
        going = tuple(dict.fromkeys(each for source in sources for each in source.going))
        if not going:
            return Staying()
        gained = self._left.moves.gained(self._module, going)
        # Asked first: a module that has run by then is seen in its record.
        may_gain = await self._others.may_gain()
        others = set(await self._others.give_up(going))
        bodies: dict[manifests.ManifestResource, manifests.Object] = {}
        for source in sources:
            bodies |= await asyncio.to_thread(
                manifests.bodies, source.content.manifest, frozenset(going) - others
            )
        live = await self._live.metadata(self._module, bodies)
        others |= {
            each for each, found in live.items() if found is not None and self._is_of_others(found, only_own)
        }
        adopted = frozenset(
            each for each, found in live.items() if found and self._adoptions.covers(self._module, found)
        )
        others |= adopted
        reasons = {
            each: keeping.decide(each, body, live[each], data_goes=each in data_goes)
            for each, body in bodies.items()
            if each not in others
        }
        claims = await self._claims(bodies)
        live |= claims
        reasons |= dict.fromkeys(claims, keeping.Why.DATA)
        if any(each.kind == keeping.CLAIM and why for each, why in reasons.items()):
            undecided = frozenset(each for each, why in reasons.items() if why is None and live[each])
            reasons |= dict.fromkeys(await self._secrets(sources, undecided), keeping.Why.NEEDED)
        own = {
            str(found["metadata"].get("uid"))
            for each, found in live.items()
            if found and not reasons.get(each, each in others)
        }
        for each in data_goes:
            if (found := live.get(each)) and not reasons.get(each, keeping.Why.DATA):
                reasons[each] = await self._why_not(each, found, own)
        lost = [each for each, why in reasons.items() if live[each] and why in (None, keeping.Why.DATA)]
        moving = {
            each: _moving(each, live[each] or {}, with_data=reasons[each] is None)
            for each in lost
            if may_gain or each in gained
        }
        kept = {
            each: await self._kept(each, live[each] or {}, why, bodies.get(each, {}))
            for each, why in reasons.items()
            if why is not None and each not in moving
        }
        marks = {**kept, **dict.fromkeys(moving)}
        patches = {each: patch for each in marks if (patch := self._patch(marks[each], live[each] or {}))}
        going_away = {
            each for each, why in reasons.items() if why is None and live.get(each) and each not in moving
        }
        with_data = {
            each: await self._objects_of(each, bodies.get(each, {}))
            for each in data_goes
            if each in going_away and keeping.holds_data(each)
        }
        return Staying(frozenset(others), adopted, kept, patches, going, with_data, moving)

    async def _why_not(
        self, resource: manifests.ManifestResource, live: manifests.Object, own: Collection[str]
    ) -> keeping.Why | None:
        """Say why something stays although its data may go; ``own``: the uids of what goes with it."""
        if resource.kind == keeping.DEFINITION:
            is_brought = crds.APPLIED in (live["metadata"].get("annotations") or {})
            return keeping.Why.BROUGHT if is_brought else None
        if resource.kind == keeping.NAMESPACE and await self._live.has_more(self._place, resource.name, own):
            return keeping.Why.INHABITED
        return None

    async def hold(self, staying: Staying) -> frozenset[manifests.ManifestResource]:
        """Mark what stays, and give back what was adopted; gives what could not be marked."""
        failed: set[manifests.ManifestResource] = set()
        for resource in staying.adopted:
            try:
                await self._adoptions.give_back(self._module, resource)
            except api_errors.ApiError as error:
                text = f"{resource} was there before the release, and cannot be made what it was: {error}"
                self._helm.warn(self._module, text)
        for resource, patch in staying.patches.items():
            try:
                await self._live.patch(self._module, resource, patch)
            except api_errors.ApiError as error:
                failed.add(resource)
                self._helm.warn(self._module, f"{resource} stays, but cannot be marked as kept: {error}")
        marked = {each: kept for each, kept in staying.kept.items() if kept.is_marked and each not in failed}
        self._left.keep(self._module, marked)
        if staying.moving:
            await self._left.move(self._place, staying.moving.values())
        return frozenset(failed)

    async def remember_left(self, going: Collection[manifests.ManifestResource]) -> None:
        """Remember what a Helm did not delete that says nothing of a deletion which was refused: Helm 3."""
        try:
            live = await self._live.metadata(self._module, going)
            left = {
                each: _moving(each, found, with_data=False)
                for each, found in live.items()
                if found
                and "deletionTimestamp" not in found["metadata"]
                and keeping.is_own(found, self._place.name, self._place.namespace)
            }
            if left:
                names_of = names.listed([str(each) for each in left], _SHOWN)
                self._helm.warn(
                    self._module, f"Helm could not delete {names_of}, which is tried again after each run"
                )
                await self._left.move(self._place, left.values())
        except api_errors.KubernetesError as error:
            self._helm.warn(
                self._module, f"it is not known whether Helm deleted what left the release: {error}"
            )

    async def let_go(self) -> tuple[tuple[keeping.Kept, ...], tuple[api_errors.ApiError, ...]]:
        """Delete what the release lost and no release has now.

        Gives what of it holds data, and stays, and what the API server refused: what that is about is not
        forgotten. Raises what the client raises when it cannot be asked.
        """
        moving = self._begin_to_let_go()
        live = await self._live.metadata(self._module, moving)
        bodies = await self._others.bodies(moving)
        kept: dict[manifests.ManifestResource, keeping.Kept] = {}
        refused: list[api_errors.ApiError] = []
        for resource, each in reversed(moving.items()):
            found = live[resource]
            if found == {} or (
                resource not in bodies and found and self._is_of_others(found, only_own=False)
            ):
                continue
            try:
                if found and found["metadata"].get("uid") == each.uid:
                    if resource in bodies:
                        if keeping.is_marked(found):
                            await self._live.patch(self._module, resource, keeping.unmark(bodies[resource]))
                    elif not keeping.holds_data(resource) or each.with_data:
                        await self._live.remove(self._module, resource, found)
                    elif keeping.is_marked(found):
                        body, _ = await self._live.get(self._module, resource)
                        kept[resource] = await self._kept(resource, found, keeping.Why.DATA, body)
            except api_errors.ApiError as error:
                refused.append(error)
            else:
                self._left.forget({each.uid})
        self._left.keep(self._module, kept)
        return tuple(kept.values()), tuple(refused)

    def _begin_to_let_go(self) -> dict[manifests.ManifestResource, remembered.RememberedObject]:
        """Return what the release lost, but what others gain just now."""
        moving = {left_objects.resource_of(each): each for each in self._left.moving.get(self._place, ())}
        gained = self._left.moves.begin_removal(self._module, moving)
        return {resource: each for resource, each in moving.items() if resource not in gained}

    def may_be_marked(self) -> manifests.Select:
        """Return what says whether an object may bear the mark of what stays, or moves."""
        is_moving = self._left.are_moving(self._place.namespace)
        return lambda resource: keeping.may_be_kept(resource) or is_moving(resource)

    async def take_back(self, manifest: str, added: Collection[manifests.ManifestResource]) -> None:
        """Have what was ``added`` to the release, again or from another one, be its own.

        The mark of what stays goes, and what Helm made of it for another release.
        """
        may_be_marked = self.may_be_marked()
        try:
            of_others = await self._others.bodies(added)
            looked_at = [each for each in added if each in of_others or may_be_marked(each)]
            wanted = {*looked_at, *(each for each in added if each.kind == _STATEFUL_SET)}
            bodies = await asyncio.to_thread(manifests.bodies, manifest, frozenset(wanted)) if wanted else {}
            live = await self._live.metadata(self._module, looked_at)
            live |= await self._claims(bodies)
            for resource, found in live.items():
                is_marked = bool(found) and keeping.is_marked(found or {})
                if is_marked:
                    await self._live.patch(self._module, resource, keeping.unmark(bodies.get(resource, {})))
                if found and resource in bodies and (is_marked or resource in of_others):
                    await self._live.take_over(self._module, resource, bodies[resource])
                if found:
                    self._left.forget({str(found["metadata"]["uid"])})
        except api_errors.KubernetesError as error:
            text = f"objects that the release has now may still be marked as another's, or as kept: {error}"
            self._helm.warn(self._module, text)

    def _is_of_others(self, live: manifests.Object, only_own: bool) -> bool:
        name, namespace = keeping.owner(live)
        if only_own:
            # A controller's objects bear the marks of what they were made for, as a ReplicaSet does.
            owners = live["metadata"].get("ownerReferences") or ()
            is_controlled = any(each.get("controller") for each in owners)
            return is_controlled or not keeping.is_own(live, self._place.name, self._place.namespace)
        if not name or (name, namespace) == (self._place.name, self._place.namespace):
            return False
        # What releases of ours have, their manifests say: one that gave an object up leaves its mark on it.
        return not self._others.is_known(places.ReleaseLocation(str(namespace), name))

    def _patch(self, kept: keeping.Kept | None, live: manifests.Object) -> Mapping[str, Any]:
        """Return what marks an object that stays; without ``kept``, one that moves."""
        if (kept is None or kept.is_marked) and not (keeping.is_marked(live) and manifests.is_kept(live)):
            return keeping.mark(self._place.name)
        return {} if manifests.is_kept(live) else keeping.policy()

    async def _kept(
        self,
        resource: manifests.ManifestResource,
        live: manifests.Object,
        why: keeping.Why,
        body: manifests.Object,
    ) -> keeping.Kept:
        metadata = live.get("metadata") or {"namespace": resource.namespace}
        count = await self._objects_of(resource, body)
        place, uid = str(metadata.get("namespace") or ""), str(metadata.get("uid") or "")
        return keeping.Kept(resource.kind, place, resource.name, why, count, uid)

    async def _objects_of(self, resource: manifests.ManifestResource, body: manifests.Object) -> int | None:
        """Count what goes with a definition or a Namespace."""
        if resource.kind == keeping.NAMESPACE:
            return await self._live.count_inside(resource.name)
        return await self._live.count(body) if resource.kind == keeping.DEFINITION else None

    async def _claims(
        self, bodies: Mapping[manifests.ManifestResource, manifests.Object]
    ) -> dict[manifests.ManifestResource, manifests.Object]:
        """Return the claims that StatefulSets leave behind."""
        found: dict[manifests.ManifestResource, manifests.Object] = {}
        for resource, body in bodies.items():
            patterns = tuple(keeping.claim_names(body)) if resource.kind == _STATEFUL_SET else ()
            if patterns:
                namespace = resource.namespace or self._place.namespace
                for claim in await self._live.claims(namespace):
                    name = str(claim["metadata"]["name"])
                    if any(pattern.fullmatch(name) for pattern in patterns):
                        found[manifests.ManifestResource("v1", keeping.CLAIM, namespace, name)] = claim
        return found

    async def _secrets(
        self, sources: Iterable[Source], wanted: Collection[manifests.ManifestResource]
    ) -> frozenset[manifests.ManifestResource]:
        """Return the Secrets whose content two renders do not give alike."""
        by_chance: set[manifests.ManifestResource] = set()
        for source in sources:
            secrets = [each for each in source.going if each in wanted and keeping.is_secret(each)]
            if secrets and (source.is_foreign or self.proven not in (None, source.revision.number)):
                by_chance.update(secrets)
            elif secrets:
                # A label is no proof of the chart: then it is the one in the record.
                labels = source.revision.labels if self.proven is None else {}
                checksum = labels.get(release.CHART_LABEL, "")
                renders = await self._renderer.of_record(
                    self._module, source.content, checksum, self._directory
                )
                alike = await asyncio.to_thread(_alike, renders, self._place.namespace)
                by_chance.update(
                    each for each in secrets if each.identity(self._place.namespace) not in alike
                )
        return frozenset(by_chance)


def _moving(
    resource: manifests.ManifestResource, live: manifests.Object, *, with_data: bool
) -> remembered.RememberedObject:
    metadata = live["metadata"]
    return remembered.RememberedObject(
        api_version=resource.api_version,
        kind=resource.kind,
        name=resource.name,
        namespace=str(metadata.get("namespace") or ""),
        uid=str(metadata.get("uid")),
        with_data=with_data,
    )


def _alike(renders: tuple[str, str] | None, namespace: str) -> frozenset[manifests.Identity]:
    """Return the Secrets that both renders give with the same content."""
    if renders is None:
        return frozenset()
    one, other = (
        {
            each.identity(namespace): (body.get("data"), body.get("stringData"))
            for each, body in manifests.find_objects(render, keeping.is_secret)
        }
        for render in renders
    )
    return frozenset(each for each, content in one.items() if other.get(each, ...) == content)

"""Runs a case and compares what came of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from addon_operator.kernel import errors, names
from addon_operator.testing import differences, snapshots, unchangeable
from addon_operator.testing.cases import case_file
from addon_operator.testing.given import kinds
from addon_operator.testing.modules import hook_runs, manifests, module, module_values

_SHOWN = 20
_COMPARED = 3
"""How many objects are compared field by field, of those that all have to have the same."""
_MISSPELT = 0.85
"""How much two names are alike if one is a slip; many kinds of others end or begin as those of Kubernetes."""


class CaseFailedError(errors.AddonOperatorError, AssertionError):
    """What came of a case is not what it expects."""


def run(
    case: case_file.Case, modules: module.Modules, tested: module.Module | None, snapshot: snapshots.Snapshot
) -> None:
    """Run a case of a module, or of global hooks if that is ``None``.

    Raises :class:`CaseFailedError`, or whatever the module fails with unexpectedly.
    """
    if case.kubernetes is not None:
        modules.kubernetes = case.kubernetes
        tested = tested and modules(tested.path.name)
    wanted = case.expect.get("error")
    if slips := list(_slips(case, modules.definitions)):
        raise CaseFailedError("\n".join(slips))
    try:
        if tested is None:
            _run_global(case, module.GlobalHooks(modules))
        else:
            _Run(case, tested, snapshot).run()
    except CaseFailedError:
        raise
    except errors.AddonOperatorError as error:
        if wanted is None:
            raise
        if wanted not in str(error):
            raise CaseFailedError(
                f"it fails as expected, but with another error than {wanted!r}:\n  {error}"
            ) from None
        return
    if wanted is not None:
        raise CaseFailedError(f"nothing fails; expected is an error with {wanted!r}")


def _slips(case: case_file.Case, definitions: module.Objects) -> Iterator[str]:
    """Yield a sentence for each kind that is nowhere because its name is misspelt."""
    known = {each.kind for each in kinds.of(case.objects, definitions)}
    for part in (case.expect, case.expect.get("hook", {})):
        kinds_of = {
            "absent": [each["kind"] for each in part.get("absent", ())],
            "count": part.get("count", ()),
        }
        for key, there in kinds_of.items():
            for kind in dict.fromkeys(there):
                near = names.nearest(kind, known, _MISSPELT)
                if kind not in known and near is not None:
                    yield f"{key}: {kind} is not a kind that is known; did you mean {near!r}?"


def _run_global(case: case_file.Case, tested: module.GlobalHooks) -> None:
    ran = _hook_run(case, tested, tested.values(case.values))
    if ran is not None and (found := _of_hook(case.expect.get("hook", {}), ran)):
        raise CaseFailedError("\n".join(found))


def _hook_run(
    case: case_file.Case, tested: module.Module | module.GlobalHooks, now: module_values.Values
) -> hook_runs.HookRun | None:
    hook = case.hook
    if hook is None:
        return None
    return tested.hook(hook.name).run(
        binding=hook.binding,
        objects=case.objects,
        events=hook.events,
        review=hook.review,
        convert=hook.convert,
        to=hook.to,
        values=now,
    )


class UpgradeRefusedError(errors.AddonOperatorError, AssertionError):
    """An upgrade changes what never changes."""


class _Run:
    def __init__(self, case: case_file.Case, tested: module.Module, snapshot: snapshots.Snapshot) -> None:
        self._case = case
        self._module = tested
        self._snapshot = snapshot

    def run(self) -> None:
        case, found = self._case, list[str]()
        now = self._module.values(case.values)
        if (wanted := case.expect.get("enabled")) is not None:
            found += _enabled(self._module.enabled(now, objects=case.objects), wanted=wanted)
        ran = _hook_run(case, self._module, now)
        if ran is not None:
            found += _of_hook(case.expect.get("hook", {}), ran)
        if case.renders:
            rendered = self._rendered(now, ran)
            found += of_objects(case.expect, rendered)
            if case.expect.get("snapshot"):
                self._snapshot(rendered)
        if found:
            raise CaseFailedError("\n".join(found))

    def _rendered(self, now: module_values.Values, ran: hook_runs.HookRun | None) -> manifests.Manifests:
        case = self._case
        if ran is not None:
            return self._module.render(ran.values, objects=ran.objects, upgrade=case.upgrade_from is not None)
        there, before = list(case.objects), manifests.Manifests(())
        if case.upgrade_from is not None:
            known = self._with_hook_values(self._module.values(case.upgrade_from))
            before = self._module.render(known, objects=there, hooks=self._runs_hooks)
        rendered = self._module.render(
            self._with_hook_values(now),
            objects=_together(there, before),
            hooks=self._runs_hooks,
            upgrade=case.upgrade_from is not None,
        )
        if refused := unchangeable.refused(before, rendered):
            raise UpgradeRefusedError(refused)
        return rendered

    @property
    def _runs_hooks(self) -> bool:
        return self._case.hook_values is None

    def _with_hook_values(self, now: module_values.Values) -> module_values.Values:
        return now.with_section(self._case.hook_values or {})


def _together(given: Sequence[Mapping[str, Any]], rendered: manifests.Manifests) -> list[Mapping[str, Any]]:
    """Return what is in the cluster once the release is: what is given has the status that others wrote."""
    known = {_key(each) for each in given}
    return [*given, *(each for each in rendered if _key(each) not in known and "kind" in each)]


def _key(body: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata = body.get("metadata") or {}
    return body.get("kind"), metadata.get("namespace") or "default", metadata.get("name")


def _enabled(verdict: module_values.Enabled, *, wanted: bool) -> list[str]:
    if verdict.enabled is wanted:
        return []
    state = "enabled" if verdict.enabled else "disabled"
    return [f"the module is {state}: {verdict.reason}"]


def of_objects(expect: Mapping[str, Any], there: manifests.Manifests) -> list[str]:
    """Return what is not as ``objects``, ``every``, ``absent`` and ``count`` expect it."""
    found = []
    for part in expect.get("objects", ()):
        wanted = dict(part)
        name = wanted.pop("name", None) or (wanted.get("metadata") or {}).get("name")
        namespace = (wanted.get("metadata") or {}).get("namespace")
        try:
            body = there.one(wanted["kind"], name, namespace)
        except manifests.NoSuchObjectError as error:
            found.append(str(error))
            continue
        found += _differences(f"{wanted['kind']} {name or ''}".rstrip(), wanted, body)
    for gone in expect.get("absent", ()):
        if listed := there.all(gone["kind"], gone.get("name")):
            found.append(
                f"expected is none, but there is {names.listed(manifests.Manifests(listed).names, _SHOWN)}"
            )
    return [*found, *_of_every(expect.get("every", ()), there), *_of_count(expect.get("count", {}), there)]


def _of_every(expect: Sequence[Mapping[str, Any]], there: manifests.Manifests) -> Iterator[str]:
    for part in expect:
        kind = part.get("kind")
        bodies = there.all(kind)
        if not bodies:
            yield f"every: there is no {kind or 'object'}; {there.candidates(kind or '')}"
        unlike = [body for body in bodies if differences.between(part, body, subset=True)]
        for body in unlike[:_COMPARED]:
            yield from _differences(manifests.Manifests([body]).names[0], part, body)
        if more := manifests.Manifests(unlike[_COMPARED:]).names:
            yield f"and so do {names.listed(more, _SHOWN)}"


def _of_count(expect: Mapping[str, int], there: manifests.Manifests) -> Iterator[str]:
    for kind, wanted in expect.items():
        listed = manifests.Manifests(there.all(kind))
        if len(listed) != wanted:
            found = f"there are {len(listed)}: {names.listed(listed.names, _SHOWN)}"
            if not listed:
                found = f"there is none; {there.candidates(kind)}"
            yield f"count: {wanted} of the kind {kind} are expected, but {found}"


def _of_hook(expect: Mapping[str, Any], ran: hook_runs.HookRun) -> list[str]:
    found = []
    for key, there in (("values", ran.values), ("configValues", ran.config_values)):
        if key in expect:
            found += _differences(key, expect[key], there)
    found += of_objects(expect, ran.objects)
    for wanted in expect.get("metrics", ()):
        if all(differences.between(wanted, each, subset=True) for each in ran.metrics):
            found.append(f"no metric is {wanted}; the hook wrote: {list(ran.metrics) or 'none'}")
    if (text := expect.get("log")) is not None and text not in ran.log:
        found.append(f"{text!r} is not in what the hook printed:\n{ran.log}")
    return [*found, *_of_answer(expect, ran)]


def _of_answer(expect: Mapping[str, Any], ran: hook_runs.HookRun) -> list[str]:
    """Return what differs of the answer to the API server."""
    found = []
    if (allowed := expect.get("allowed")) is not None and ran.allowed is not allowed:
        words = {None: "is asked for no review", True: "allows it", False: f"denies it: {ran.message}"}
        found.append(f"the hook {words[ran.allowed]}")
    if (text := expect.get("message")) is not None and text not in ran.message:
        found.append(f"{text!r} is not in the hook's message: {ran.message or 'there is none'}")
    found += [
        f"{text!r} is in no warning: {list(ran.warnings) or 'there are none'}"
        for text in expect.get("warnings", ())
        if not any(text in each for each in ran.warnings)
    ]
    if (patched := expect.get("patched")) is not None:
        found += _differences("patched", patched, ran.patched or {})
    if (converted := expect.get("converted")) is not None:
        found += _of_converted(converted, ran)
    return found


def _of_converted(expect: Sequence[Mapping[str, Any]], ran: hook_runs.HookRun) -> list[str]:
    if len(expect) != len(ran.converted):
        why = f": {ran.message}" if ran.message else ""
        return [f"the hook converted {len(ran.converted)} objects, and expected are {len(expect)}{why}"]
    pairs = enumerate(zip(expect, ran.converted, strict=True))
    return [each for index, (one, other) in pairs for each in _differences(f"converted[{index}]", one, other)]


def _differences(subject: str, wanted: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    unlike = differences.between(wanted, there, subset=True)
    if not unlike:
        return []
    return [f"{subject} differs (- expected, + now):\n{differences.shown(unlike)}"]

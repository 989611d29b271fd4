"""``module why`` without an operator: the same answer, made from files, or from a state file."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from addon_operator.commands import values_files
from addon_operator.commands.plan import given_values, plan_sources
from addon_operator.commands.plan_state import plan_state
from addon_operator.debug import debug_why
from addon_operator.helm import helm_errors
from addon_operator.kernel import json_types, names
from addon_operator.kube import paths
from addon_operator.kube.objects import module_objects
from addon_operator.modules import model
from addon_operator.settings import settings as app_settings
from addon_operator.settings import settings_loading
from addon_operator.values import checks, store

_NAMESPACE: Final = "default"
"""Where releases would be, if neither a state file nor a setting names it."""
_NAMESPACE_VARIABLES: Final = ("ADDON_OPERATOR_NAMESPACE", "NAMESPACE")
_VERSION: Final[json_types.JsonObject] = {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
"""What charts take for the cluster's."""
_HOOKS_ARE_MISSING: Final = (
    "hooks were not run: write what they give into the file of --values, or take a state file with --state"
)
_NO_KINDS: Final[json_types.JsonObject] = {"kind": "APIGroupDiscoveryList", "items": []}


class Given(msgspec.Struct, frozen=True):
    """What stands in for an operator and its cluster."""

    flags: Mapping[str, str | None]
    """Settings, by field."""
    config: pathlib.Path | None = None
    """The file that stands in for the values ConfigMap."""
    secret: pathlib.Path | None = None
    """The file that stands in for the values Secret."""
    state: plan_state.PlanState | None = None


class Answer(msgspec.Struct, frozen=True):
    """What is to be shown."""

    document: object
    """See :meth:`.Why.of`."""
    notes: tuple[str, ...]
    """What the answer does not know of."""


async def of(given: Given, environ: Mapping[str, str], module: str, wanted: str, path: str) -> Answer:
    """Tell of objects of a module, and of their fields, as :meth:`.Why.of` does.

    Raises :class:`.AddonOperatorError` for whatever is wrong with the files, and what that raises.
    """
    settings = settings_loading.load(given.flags, _with_namespace(environ))
    state = given.state or _nothing(settings)
    async with contextlib.AsyncExitStack() as stack:
        sources = await plan_sources.of_state(state, settings, environ, stack)
        asked = _chosen(sources, module)
        origin = await _prepare(sources, given)
        roots = (settings.global_hooks_dir, asked.path)
        has_hooks = any((root / given_values.HOOKS).is_dir() for root in roots)
        why = debug_why.Why(sources.parts.releases, sources.values, sources.parts.charts)
        try:
            document = await why.of(asked, wanted, path)
        except helm_errors.HelmError as error:
            if not has_hooks:
                raise
            raise debug_why.WhyError(f"{error}; {_HOOKS_ARE_MISSING}") from None
        notes = [*_notes(sources, asked.name), *([f"hooks were not run: {origin}"] if has_hooks else [])]
        return Answer(document, tuple(notes))


def _with_namespace(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables with a namespace: a state file names its own, and files alone need none."""
    is_named = any(environ.get(name) for name in _NAMESPACE_VARIABLES)
    return environ if is_named else {**environ, _NAMESPACE_VARIABLES[0]: _NAMESPACE}


def _chosen(sources: plan_sources.PlanSources, wanted: str) -> model.Module:
    modules = {files.module.name: files.module for files in sources.loaded.modules}
    name = names.find(wanted, list(modules))
    if name is None:
        raise debug_why.WhyError("global values have no chart; name a module")
    if modules[name].stopped_by:
        raise debug_why.WhyError(f"module {name} cannot run: {modules[name].stopped_by}")
    return modules[name]


async def _prepare(sources: plan_sources.PlanSources, given: Given) -> given_values.HookValuesOrigin:
    """Bring all values together, as a run has them; the result says where those of hooks are from."""
    modules = [files.module for files in sources.loaded.modules]
    # What is shown is hidden later: rendered Secrets have to keep the marks that are looked for.
    sources.parts.without_cluster(str)
    sources.parts.releases.places.assign(modules)
    await sources.parts.releases.observe_all()
    origin = await sources.take()
    _put(sources.values, given)
    sources.values.enabled = [each.name for each in modules if sources.values.flag(each.name).enabled]
    return origin


def _nothing(settings: app_settings.Settings) -> plan_state.PlanState:
    """Return the state of a cluster with nothing in it."""
    namespace = settings.namespace
    of_namespace = [paths.of("v1", kind, namespace=namespace) for kind in ("configmaps", "secrets")]
    return plan_state.PlanState(
        recorded_at=0,
        namespace=namespace,
        hash_key="",
        settings={},
        answers={"/version": _VERSION, "/api": _NO_KINDS, "/apis": _NO_KINDS},
        objects={paths.of("v1", "namespaces", name=namespace): {"metadata": {"name": namespace}}},
        absent=(),
        collections=[*of_namespace, module_objects.path_of(namespace)],
        releases=(),
        hook_values=plan_state.HookValues(
            source=str(given_values.Source.NOTHING),
            operator=None,
            releases={},
            shared=(),
            switches={},
            modules={},
        ),
    )


def _put(values: store.ValuesStore, given: Given) -> None:
    """Put files in the place of ConfigMap and Secret."""
    if given.config is not None:
        read = values_files.read_config(given.config, values.modules)
        values.set_config(dataclasses.replace(read, secret=values.config.secret))
    if given.secret is not None:
        read = values_files.read_config(given.secret, values.modules, "Secret")
        values.set_config(dataclasses.replace(values.config, secret=read))


def _notes(sources: plan_sources.PlanSources, name: names.ModuleName) -> Iterator[str]:
    yield from sources.notes
    yield from sources.values.config.warnings
    checker = checks.Checks(sources.values)
    yield from map(str, (each for part in (None, name) for each in checker.section_violations(part)))

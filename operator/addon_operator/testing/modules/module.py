"""A module under test, and the modules beside it: what the fixtures ``module`` and ``modules`` give."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from addon_operator.engine import state
from addon_operator.kernel import errors, names, version_ranges
from addon_operator.loading import hook_files, module_files
from addon_operator.testing.given import api, given_objects
from addon_operator.testing.modules import (
    definitions,
    enabling,
    hook_contexts,
    hook_runs,
    manifests,
    module_values,
    places,
    rendering,
    runtime,
)

Objects = Sequence[Mapping[str, Any]]
_WANTED: Final[Mapping[str, tuple[type, str]]] = {
    "objects": (Sequence, "a list of objects"),
    "events": (Sequence, "a list of events"),
    "convert": (Sequence, "a list of objects"),
    "values": (Mapping, "a mapping of sections and switches"),
    "binding": (str, "the name of a binding"),
    "to": (str, "a version"),
    "hooks": (bool, "True or False"),
    "upgrade": (bool, "True or False; the release before is a render of its own, given with objects="),
    "check": (bool, "True or False"),
}


def _check(**arguments: object) -> None:
    """Raise a :class:`.ConfigurationError` for an argument of another type: a test with it may pass."""
    __tracebackhide__ = True
    for name, value in arguments.items():
        kind, what = _WANTED[name]
        is_right = isinstance(value, kind) and (kind is str or not isinstance(value, str))
        if value is not None and not is_right:
            raise errors.ConfigurationError(f"{name} must be {what}, not {value!r:.80}")


class Modules:
    """The modules of one directory, as the operator loads them."""

    def __init__(self, running: runtime.Runtime, place: places.Place) -> None:
        """Load them; raises a :class:`.ConfigurationError` for what the operator would not start with."""
        self.runtime: Final = running
        self.place: Final = place
        self.loaded: Final = place.load()
        self._kubernetes = runtime.KUBERNETES

    @property
    def kubernetes(self) -> str:
        """The version of Kubernetes that charts and requirements see, such as ``v1.36.0``.

        To set what is not one raises a :class:`.ConfigurationError`.
        """
        return self._kubernetes

    @kubernetes.setter
    def kubernetes(self, version: str) -> None:
        if not version_ranges.is_cluster_version(str(version)):
            raise errors.ConfigurationError(
                f"{version!r} is not the version of a cluster; write one such as v1.34.0"
            )
        self._kubernetes = version

    def __call__(self, name: str) -> "Module":
        """Return a module by its name, or by that of its directory.

        Raises a :class:`.ConfigurationError` if there is none.
        """
        by_name = {each.module.name: each for each in self.loaded.modules}
        by_name |= {each.module.path.name: each for each in self.loaded.modules}  # type: ignore[misc]
        if name not in by_name:
            listed = [each.module.path.name for each in self.loaded.modules]
            hint = names.did_you_mean(name, by_name, f"there are: {names.listed(listed, 20) or 'none'}")
            raise errors.ConfigurationError(f"{self.place.modules} has no module {name!r}; {hint}")
        return Module(self, by_name[names.ModuleName(name)])

    def global_hook(self, name: str) -> "Hook":
        """Return a global hook by its path below their directory.

        Raises a :class:`.ConfigurationError` if there is none.
        """
        __tracebackhide__ = True
        return GlobalHooks(self).hook(name)

    @property
    def definitions(self) -> Objects:
        """The definitions that modules bring."""
        return definitions.of(self.loaded)


class Module:
    """One module."""

    def __init__(self, modules: Modules, files: module_files.ModuleFiles) -> None:
        self._modules = modules
        self._files = files
        self._runtime = modules.runtime

    def __repr__(self) -> str:
        return f"<module {self.name} in {self.path}>"

    @property
    def name(self) -> str:
        """Without the order."""
        return self._files.module.name

    @property
    def path(self) -> pathlib.Path:
        """Its directory."""
        return self._files.module.path

    @property
    def _runner(self) -> hook_runs.HookRunner:
        modules, module = self._modules, self._files.module
        root = module.path / hook_files.HOOKS_DIRECTORY
        # A test may set another version of Kubernetes at any time.
        return hook_runs.HookRunner(
            modules.runtime, root, module.name, modules.definitions, modules.kubernetes
        )

    def values(self, edits: Mapping[str, Any] | None = None, /, **sections: Any) -> module_values.Values:  # noqa: ANN401 - values
        """Return the values that the module gets if somebody edits the ConfigMap so, checked as that edit is.

        Sections and switches by their keys: ``values(web={"replicas": 3}, webGuardEnabled=False)``.
        ``global`` is a word of Python, so ``global_`` means it, too.

        Raises :class:`.AddonOperatorError` for what the operator would refuse.
        """
        __tracebackhide__ = True
        _check(values=edits)
        return module_values.of(self._modules.loaded, self._files, {**(edits or {}), **sections})

    def render(
        self,
        given: Mapping[str, Any] | None = None,
        *,
        objects: Objects = (),
        hooks: bool = False,
        upgrade: bool = False,
    ) -> manifests.Manifests:
        """Return what the chart renders to.

        ``given``: what :meth:`values` or a run of a hook returned, or edits for :meth:`values`. ``objects``
        are what ``lookup`` finds, and their kinds what ``.Capabilities`` has beside those of Kubernetes. With
        ``hooks``, those that the operator runs before Helm run first, in its order. ``upgrade`` is
        ``.Release.IsUpgrade``.

        Raises :class:`.AddonOperatorError` for whatever the operator would fail with.
        """
        __tracebackhide__ = True
        _check(objects=objects, hooks=hooks, upgrade=upgrade)
        now = self._given(given)
        if hooks:
            now, objects = self.run_hooks(now, objects=objects)
        work = rendering.Rendering(self._runtime, self._modules.loaded)
        cluster = self._cluster(objects)

        def render() -> manifests.Manifests:
            stored = now.stored()
            return self._runtime.call(work.render(self._files.module, stored, cluster, is_upgrade=upgrade))

        rendered = render()
        rendered.again = render
        return rendered

    def run_hooks(
        self, given: Mapping[str, Any] | None = None, *, objects: Objects = ()
    ) -> tuple[module_values.Values, manifests.Manifests]:
        """Run the hooks that run before Helm when the module starts, in the operator's order.

        That is ``onStartup``, the bindings' first look at all objects, ``beforeHelm``. Return the values and
        the objects afterwards. Raises :class:`.HookFailedError` for one that fails.
        """
        __tracebackhide__ = True
        _check(objects=objects)
        now, left = self._given(given), manifests.Manifests([dict(each) for each in objects])
        for hook, binding in hook_contexts.steps_before_helm(self._runtime.call(self._runner.all())):
            run = Hook(self._runner, hook, self._given).run(binding=binding, objects=left, values=now)
            now, left = run.values, run.objects
        return now, left

    def hook(self, name: str) -> "Hook":
        """Return a hook by its path below ``hooks/``.

        Raises a :class:`.ConfigurationError` if there is none, or if its configuration is wrong.
        """
        __tracebackhide__ = True
        return Hook(self._runner, self._runtime.call(self._runner.hook(name)), self._given)

    def enabled(
        self, given: Mapping[str, Any] | None = None, *, objects: Objects = ()
    ) -> module_values.Enabled:
        """Return whether the operator would enable the module, and why: true or false itself.

        Switches, ``requires`` and ``enabled`` scripts count, those of the modules before it, too.
        """
        __tracebackhide__ = True
        _check(objects=objects)
        work = enabling.verdict(
            self._modules.loaded,
            self._files.module,
            self._given(given).stored(),
            self._runner.processes(hook_runs.HookLines()),
            self._cluster(objects),
        )
        verdict = self._runtime.call(work)
        return module_values.Enabled(verdict.enabled, verdict.reason)

    def _given(self, given: Mapping[str, Any] | None) -> module_values.Values:
        return given if isinstance(given, module_values.Values) else self.values(given)

    def _cluster(self, given: Objects) -> api.GivenApi:
        return api.GivenApi(
            given_objects.GivenObjects(given, self._modules.definitions),
            self._modules.kubernetes,
            # Without them, the module would not be installed at all.
            self._files.module.config.requires.apis,
        )


class GlobalHooks:
    """The global hooks beside the modules: what the fixture ``global_hooks`` gives."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        root = hook_files.global_hooks_root(modules.place.global_hooks)
        self._runner = hook_runs.HookRunner(
            modules.runtime, root, None, modules.definitions, modules.kubernetes
        )

    def values(self, edits: Mapping[str, Any] | None = None, /, **sections: Any) -> module_values.Values:  # noqa: ANN401 - values
        """Return the values that global hooks get if somebody edits the ConfigMap so.

        See :meth:`Module.values`.
        """
        __tracebackhide__ = True
        return module_values.of(self._modules.loaded, None, {**(edits or {}), **sections})

    def hook(self, name: str) -> "Hook":
        """Return a global hook by its path below ``hooks/``.

        Raises a :class:`.ConfigurationError` if there is none, or if its configuration is wrong.
        """
        __tracebackhide__ = True
        return Hook(self._runner, self._modules.runtime.call(self._runner.hook(name)), self._given)

    def _given(self, given: Mapping[str, Any] | None) -> module_values.Values:
        return given if isinstance(given, module_values.Values) else self.values(given)


class Hook:
    """One hook of a module, or a global one."""

    def __init__(
        self,
        runner: hook_runs.HookRunner,
        hook: state.Hook,
        given: Callable[[Mapping[str, Any] | None], module_values.Values],
    ) -> None:
        """``given`` makes the values of what a test gives for them."""
        self._runner = runner
        self._hook = hook
        self._given = given

    @property
    def bindings(self) -> list[str]:
        """The names of its bindings."""
        return list(hook_contexts.bindings_of(self._hook))

    def run(
        self,
        *,
        binding: str | None = None,
        objects: Objects = (),
        events: Objects = (),
        review: Mapping[str, Any] | None = None,
        convert: Objects | None = None,
        to: str | None = None,
        values: Mapping[str, Any] | None = None,
        check: bool = True,
    ) -> hook_runs.HookRun:
        """Run the hook's process once, with the files of a real run.

        ``binding`` is the name of a binding; it may be left out if the hook has one. ``objects`` are what the
        cluster holds: snapshots are selected and filtered from them as the bindings say. ``events`` are
        ``{"type": "Added", "object": {…}}``; they happen to the objects before the run. Without them, a
        ``kubernetes`` binding runs for all objects, as when it starts.

        Raises :class:`.HookFailedError` if the hook fails or gives back something wrong; with ``check=False``
        the result says so.
        """
        __tracebackhide__ = True
        _check(binding=binding, objects=objects, events=events, convert=convert, to=to, check=check)
        now = self._given(values)
        given = hook_contexts.Given(now, binding, objects, events, review, convert, to)
        run = self._runner.runtime.call(self._runner.run(self._hook, given))
        return hook_runs.checked(self._hook.name, run) if check else run

"""Running ``helm``: flags and environment that all verbs have in common, its errors and its warnings."""

import asyncio
import contextlib
import json
import pathlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from addon_operator.helm import binary, helm_bounds, helm_errors, messages, places
from addon_operator.helm.charts import chart_files, plain_files, template_yaml
from addon_operator.kernel import json_types, names
from addon_operator.process.children import children
from addon_operator.values import redaction
from addon_operator.values.schema import schemas

Redact: TypeAlias = Callable[[str], str]
"""Replaces sensitive values in a text that is about to be shown."""
WarningHandler: TypeAlias = Callable[[names.ModuleName, str], None]

# What of the operator's environment Helm may see: the rest would redirect its caches or its target.
_KEPT: Final = frozenset({"HELM_DRIVER", "HELM_QPS", "HELM_BURST_LIMIT"})
_PREFIX: Final = "HELM_"
_PLUGINS_SINCE: Final = 4
"""Major version of Helm from which on a post-renderer is a plugin."""
_PLUGIN: Final = "addon-operator-changes"
_NO_ENVIRONMENT: Final[Mapping[str, str]] = {}
_STDERR_BYTES: Final = 4 * 1024 * 1024
"""An object that Helm quotes in an error may have some megabytes."""
_LONG_VALUE: Final = 8
"""Shorter values are words that stand everywhere."""
MOST_WARNINGS: Final = 50
"""Different warnings of one call that are handed on; of each object of a chart there may be one."""
MOST_CHARS: Final = 20_000
"""Characters that all warnings of one call have together."""
_LONGEST_WARNING: Final = 2000
_NO_YAML: Final = re.compile(r"YAML parse error on ([^:]{1,4096}): ")
_ABOUT_THE_KUBECONFIG: Final = "Kubernetes configuration file is "
"""Begins warnings that no module is the cause of: they are logged once, not with each call."""


class HelmTarget(msgspec.Struct, frozen=True):
    """The cluster, the namespaces of releases, and what a process of Helm may take."""

    namespace: str
    """The operator's, where releases are unless their module says something else."""
    kubeconfig: tuple[pathlib.Path, ...] = ()
    """Files as in ``KUBECONFIG``; empty for the pod's service account."""
    context: str | None = None
    server: str | None = None
    """URL of the API server, if not that of the kubeconfig."""
    memory: int = msgspec.field(default_factory=helm_bounds.default_memory)
    """In bytes."""


class Call(msgspec.Struct, frozen=True):
    """For whom Helm runs: the module's name goes into errors and warnings, values that are secret do not."""

    module: names.ModuleName
    redact: Redact = str
    chart: pathlib.Path | None = None
    """The module's chart as its author knows it, for advice."""
    values: json_types.JsonObject = msgspec.field(default_factory=dict)
    """Those of the chart, which may stand in what it says itself."""
    create_namespace: bool = False
    """Whether a release creates its namespace if that is missing."""
    skips_schemas: bool = False
    """Whether Helm does not check the values by the chart's schemas."""
    on_unknown_field: Callable[[str], None] | None = None
    """Gets warnings of fields that the API server does not know, in place of who gets all others."""
    is_install: bool = False
    """Whether there is no release yet: for Helm's users, its first upgrade is an install."""

    def called(self, verb: str) -> str:
        """Return what people call a verb of Helm."""
        return "install" if self.is_install and verb == "upgrade" else verb


class _Said(msgspec.Struct):
    """The warnings of one call so far."""

    texts: set[str] = msgspec.field(default_factory=set)
    chars: int = 0
    left_out: int = 0
    """Lines with more warnings; the same one may be in several."""

    def is_news(self, text: str) -> bool:
        """Note a warning; whether it is to be handed on."""
        if text in self.texts:
            return False
        chars = min(len(text), _LONGEST_WARNING)
        if len(self.texts) >= MOST_WARNINGS or self.chars + chars > MOST_CHARS:
            self.left_out += 1
            return False
        self.texts.add(text)
        self.chars += chars
        return True


class Helm:
    """A helm binary, the cluster it works on, and how it is started.

    ``workspace`` is a private directory for Helm's caches; ``on_warning`` gets the module and each warning,
    ``on_doubt`` those that are true of the release as it is, not only of the call that is made.
    """

    def __init__(
        self,
        binary: binary.HelmBinary,
        target: HelmTarget,
        environ: Mapping[str, str],
        workspace: pathlib.Path,
        programs: children.Children,
        on_warning: WarningHandler,
        on_doubt: WarningHandler = lambda *_: None,
    ) -> None:
        self.binary = binary
        self.workspace = workspace.absolute()
        self.places = places.ReleaseLocations(target.namespace)
        """Where the releases of modules are."""
        self._target = target
        self._environ = child_environment(environ, target, self.workspace)
        self._programs = programs
        self._bounds = children.ChildBounds(target.memory, cpu_seconds=helm_bounds.CPU_SECONDS)
        self.warn = on_warning
        """Hands on a warning about what is done with a module's release."""
        self._on_doubt = on_doubt
        self._said: set[str] = set()

    def doubt(self, module: names.ModuleName, text: str) -> None:
        """Hand on a warning that is true of a module's release as it is."""
        self.warn(module, text)
        self._on_doubt(module, text)

    async def run_changing(
        self,
        call: Call,
        arguments: Sequence[str],
        timeout: float,
        changes: pathlib.Path | None,
        capture_stdout: int | None = None,
    ) -> children.ChildResult:
        """Run a helm command that renders; :mod:`.post_renderer_main` makes the changes, if there are some.

        Raises what :meth:`run` raises.
        """
        if changes is None:
            return await self.run(call, arguments, timeout, capture_stdout)
        namespace = self.places.of(call.module).namespace
        renderer, environ = await asyncio.to_thread(self._post_renderer)
        arguments = [*arguments, *renderer]
        for argument in (str(changes), namespace):
            arguments += ["--post-renderer-args", argument]
        return await self.run(call, arguments, timeout, capture_stdout, environ)

    def _post_renderer(self) -> tuple[list[str], dict[str, str]]:
        """Return the flags that name the program, and the environment in which Helm finds it.

        Helm 3 takes a program, Helm 4 a plugin. Plugins of others stay unknown to Helm.
        """
        script = str(pathlib.Path(__file__).parent / "post_renderer_main.py")
        if self.binary.major < _PLUGINS_SINCE:
            return ["--post-renderer", sys.executable, "--post-renderer-args", script], {}
        plugins = self.workspace / "plugins"
        plugin = plugins / _PLUGIN / "plugin.yaml"
        if not plugin.exists():
            plugin.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            plugin.write_text(json.dumps(_plugin(script)), encoding="utf-8")
        return ["--post-renderer", _PLUGIN], {"HELM_NO_PLUGINS": "", "HELM_PLUGINS": str(plugins)}

    async def run(
        self,
        call: Call,
        arguments: Sequence[str],
        timeout: float,
        capture_stdout: int | None = None,
        environ: Mapping[str, str] = _NO_ENVIRONMENT,
    ) -> children.ChildResult:
        """Run one helm command in the namespace of the module's release.

        ``timeout`` is in seconds, and ``environ`` is added to Helm's environment.
        Raises :class:`helm_errors.HelmError` with Helm's own message when it fails, and
        :class:`helm_errors.HelmTimeoutError` when it does not end in time.
        """
        said = _Said()
        try:
            result = await self._programs.run(
                [self.binary.path, *arguments, *self._target_flags(call)],
                env={**self._environ, **environ},
                timeout=timeout,
                on_stderr_line=lambda line: self._read(line, call, said),
                capture_stdout=capture_stdout,
                capture_stderr=_STDERR_BYTES,
                bounds=self._bounds,
            )
        except children.ChildEndedError as ended:
            what = f"'helm {call.called(arguments[0])}' was ended by a person after {ended.seconds:.0f} s"
            raise helm_errors.HelmError(call.module, what) from None
        finally:
            if said.left_out:
                more = f"helm {call.called(arguments[0])}: {said.left_out} more lines with warnings"
                self.doubt(call.module, f"{more} are left out; the first {len(said.texts)} are shown")
        if result.timed_out:
            raise helm_errors.HelmTimeoutError(
                call.module,
                f"'helm {call.called(arguments[0])}' did not end within {timeout:.0f} s and was stopped",
            )
        if result.exit_code != 0:
            await self._fail(call, call.called(arguments[0]), result)
        return result

    async def _fail(self, call: Call, verb: str, result: children.ChildResult) -> None:
        if exceeded := helm_bounds.exceeded(result, self._bounds, verb):
            raise helm_errors.HelmError(call.module, exceeded)
        namespace = self.places.of(call.module).namespace
        error, only_for_the_log = await asyncio.to_thread(_explained, call, namespace, verb, result)
        if only_for_the_log:
            self.warn(call.module, only_for_the_log)
        raise error

    async def run_apart(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        timeout: float,
        capture: int,
        bounds: children.ChildBounds,
    ) -> children.ChildResult:
        """Run a helm command that is not about a release or the cluster.

        ``environ`` is added to the environment of helm; ``timeout`` is in seconds; ``capture`` is how many
        bytes of each output are kept. Whether it failed, and why, is for the caller to see: also when it
        needs more than ``bounds``.
        """
        return await self._programs.run(
            [self.binary.path, *arguments],
            env={**self._environ, **environ},
            timeout=timeout,
            capture_stdout=capture,
            capture_stderr=capture,
            bounds=bounds,
        )

    def _target_flags(self, call: Call) -> list[str]:
        flags = ["--namespace", self.places.of(call.module).namespace]
        if self._target.context is not None:
            flags += ["--kube-context", self._target.context]
        if self._target.server is not None:
            flags += ["--kube-apiserver", self._target.server]
        return flags

    def _read(self, line: str, call: Call, said: _Said) -> None:
        """Hand on a line that is a warning: Helm repeats them for every request that it makes."""
        text = messages.warning_text(line)
        if text is None or text in self._said or not said.is_news(text):
            return
        is_of_ours = text.startswith(_ABOUT_THE_KUBECONFIG)
        if is_of_ours and len(self._said) < MOST_WARNINGS:
            self._said.add(text)
        if call.on_unknown_field is not None and messages.unknown_field(text) is not None:
            call.on_unknown_field(text)
            return
        shown = call.redact(text)
        is_long = len(shown) > _LONGEST_WARNING
        hand_on = self.warn if is_of_ours else self.doubt
        hand_on(call.module, f"{shown[:_LONGEST_WARNING]}…" if is_long else shown)


def _plugin(script: str) -> dict[str, object]:
    """Return the description of the plugin; JSON is YAML, too."""
    return {
        "apiVersion": "v1",
        "type": "postrenderer/v1",
        "name": _PLUGIN,
        "version": "1.0.0",
        "runtime": "subprocess",
        "runtimeConfig": {"platformCommand": [{"command": sys.executable, "args": [script]}]},
    }


def time_limit(step: float) -> float:
    """Return the seconds after which helm is stopped from outside; its own limit is for each step."""
    return 2 * step + 60.0


def child_environment(
    environ: Mapping[str, str], target: HelmTarget, workspace: pathlib.Path
) -> dict[str, str]:
    """Return helm's environment: the operator's, without what would redirect Helm, with private caches."""
    inherited = {
        name: value for name, value in environ.items() if not name.startswith(_PREFIX) or name in _KEPT
    }
    return inherited | {
        "HELM_CACHE_HOME": str(workspace / "cache"),
        "HELM_CONFIG_HOME": str(workspace / "config"),
        "HELM_DATA_HOME": str(workspace / "data"),
        "HELM_NO_PLUGINS": "1",
        "KUBECACHEDIR": str(workspace / "kube-cache"),
        **helm_bounds.environment(target.memory),
        # An empty file keeps ~/.kube/config out when the operator itself uses the service account.
        "KUBECONFIG": ":".join(str(path.absolute()) for path in target.kubeconfig) or "/dev/null",
    }


def _explained(
    call: Call, namespace: str, verb: str, result: children.ChildResult
) -> tuple[helm_errors.HelmError, str]:
    """Return the error, and what only the log may show of it."""
    said = messages.explanation(result.stderr.decode(errors="replace"), result.exit_code)
    chart = str(call.chart) if call.chart is not None else "CHART"
    advice = messages.advice(said.text, chart, namespace, creates=call.create_namespace)
    if call.chart is not None and messages.is_too_large(said.text):
        with contextlib.suppress(OSError):
            large = chart_files.largest(call.chart)
            advice += f"; {large}" if large else ""
    advice += _wrong_line(call, said.text)
    text = messages.cause_first(verb, _in_module(call, call.redact(said.text)))
    if said.without_values is None:
        sentence = f"helm {verb} failed with a text that may hold values; the operator's log shows it"
        return helm_errors.HelmError(call.module, sentence + advice), text
    hidden = _without_values_of_chart(call, call.redact(said.without_values))
    shown = messages.cause_first(verb, _in_module(call, hidden))
    return helm_errors.HelmError(call.module, text + advice, shown + advice), ""


def _wrong_line(call: Call, text: str) -> str:
    """Say where the template is no YAML of which Helm says so, if its text alone shows it."""
    found = _NO_YAML.search(_in_module(call, text))
    if call.chart is None or found is None:
        return ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        path = pathlib.Path(found[1])
        if path.resolve().is_relative_to(call.chart.resolve()) and path.is_file():
            said = template_yaml.wrong_line(plain_files.read_text(path))
            return f"; see {path.name}, {said}" if said else ""
    return ""


def _in_module(call: Call, text: str) -> str:
    return text if call.chart is None else messages.in_module(text, call.chart)


def _without_values_of_chart(call: Call, text: str) -> str:
    """Hide the values in what a chart says itself, by ``fail`` or ``required``."""
    head, mark, rest = text.partition(messages.WORDS_OF_THE_CHART)
    if not mark:
        return text
    values = redaction.sensitive_texts(call.values, schemas.HIDDEN)
    hide = redaction.redactor(value for value in values if len(value) >= _LONG_VALUE)
    return head + mark + hide(rest)

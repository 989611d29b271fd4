"""From the start of a hook's process to its exit code."""

from __future__ import annotations

import functools
import json
import os
import sys

from addon_operator.hook import contexts as binding_contexts
from addon_operator.hook import conversions, failures, files, metrics, objects, reviews
from addon_operator.hook import values as hook_values
from addon_operator.kernel import errors

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Any, Final

    from addon_operator.hook.aliases import Config, Main
    from addon_operator.kernel.json_types import JsonObject

_CONTEXTS: Final = "BINDING_CONTEXT_PATH"
_VALUES: Final = "VALUES_PATH"
_CONFIG_VALUES: Final = "CONFIG_VALUES_PATH"
_OFF: Final = frozenset({"", "0", "false", "no", "off"})
_LEVELS: Final = ("LOG_LEVEL", "ADDON_OPERATOR_LOG_LEVEL")


class Run:
    """One run of a hook: why it runs, what it may read, and what it gives back.

    What is not given here, as tests of a hook do, is read when it is first asked for, from the files that
    the operator names in ``environ``.
    """

    def __init__(
        self,
        *,
        contexts: Sequence[JsonObject] | None = None,
        values: JsonObject | None = None,
        config_values: JsonObject | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._given = {_CONTEXTS: contexts, _VALUES: values, _CONFIG_VALUES: config_values}
        self._environ = environ
        self._patch: list[JsonObject] = []
        self._config_patch: list[JsonObject] = []
        self._answer: JsonObject | None = None
        self.kubernetes = objects.Kubernetes()
        """Changes of Kubernetes objects."""
        self.metrics = metrics.Metrics()
        """Operations on metrics."""
        self.answers = reviews.Answers()
        """Answers to the API server, of a hook with ``kubernetesValidating`` or ``kubernetesMutating``."""

    @functools.cached_property
    def contexts(self) -> list[binding_contexts.Context]:
        """Why the hook runs; at least one reason."""
        return [binding_contexts.Context(raw) for raw in self._input(_CONTEXTS)]

    @functools.cached_property
    def snapshots(self) -> binding_contexts.Snapshots:
        """The snapshots of all contexts; those of one name are the same in each."""
        return binding_contexts.merged_snapshots(self.contexts)

    @functools.cached_property
    def values(self) -> hook_values.Values:
        """The merged values; changes live in the operator's memory."""
        return hook_values.Values(self._input(_VALUES), self._patch)

    @functools.cached_property
    def config_values(self) -> hook_values.Values:
        """The values of the operator's ConfigMap; changes are written there."""
        return hook_values.Values(self._input(_CONFIG_VALUES), self._config_patch)

    def convert(self) -> bool:
        """Convert what the run is to convert, with the functions of ``@hook.convert``.

        ``hook.run`` does so. Says whether nothing else is to be done in this run.
        """
        if not conversions.STEPS:
            return False
        asked = [context for context in self.contexts if context.type == conversions.TYPE]
        for context in asked:
            self._answer = conversions.answer(context)
        return len(asked) == len(self.contexts)

    def outputs(self) -> dict[str, str]:
        """Return what the run gives back, as texts by their files' variables; empty if there is nothing."""
        return {
            "CONFIG_VALUES_JSON_PATCH_PATH": _array(self._config_patch),
            "VALUES_JSON_PATCH_PATH": _array(self._patch),
            "METRICS_PATH": _stream(self.metrics.operations),
            "KUBERNETES_PATCH_PATH": _stream(self.kubernetes.operations),
            reviews.VARIABLE: self.answers.text(),
            "CONVERSION_RESPONSE_PATH": "" if self._answer is None else f"{json.dumps(self._answer)}\n",
        }

    def outputs_of_failure(self) -> dict[str, str]:
        """Return what the operator takes even from a hook that failed: patches of ``status`` that say so."""
        wanted = [operation for operation in self.kubernetes.operations if operation.get("ignoreHookError")]
        return {"KUBERNETES_PATCH_PATH": _stream(wanted)}

    def _input(self, variable: str) -> Any:  # noqa: ANN401 - a list or a mapping, by the variable
        given = self._given[variable]
        return files.read_json(variable, self._environ) if given is None else given


_current: list[Run] = []
"""The run of this process, for functions that are called without it."""


def current() -> Run:
    """Return the run of this process.

    Raises :class:`.HookError` outside of one.
    """
    if not _current:
        raise failures.HookError("nothing runs here; call it in the function that hook.run is given")
    return _current[0]


def deny(message: str) -> None:
    """Deny what the API server asks; the user sees the message.

    Raises :class:`.HookError` outside of a run.
    """
    current().answers.deny(message)


def allow(warnings: Sequence[str] = ()) -> None:
    """Allow what the API server asks; the user sees the warnings.

    Raises :class:`.HookError` outside of a run.
    """
    current().answers.allow(warnings)


def patch_object(operations: Sequence[Mapping[str, Any]]) -> None:
    """Allow what the API server asks, and have it change the object by a JSON patch (RFC 6902).

    Raises :class:`.HookError` outside of a run, and for what is not JSON.
    """
    current().answers.patch_object(operations)


def _nothing(_run: Run) -> None:
    """Do nothing in runs that are not for a conversion."""


def run(config: Config, main: Main = _nothing) -> None:
    """Do all that a hook's process does: print its configuration for ``--config``, or call ``main``.

    In runs for a conversion the functions of ``@hook.convert`` are called instead, if there are some.

    What the run gives back is written when ``main`` has returned. A hook fails by raising an exception: the
    process then writes one line to standard error and ends with exit code 1, and nothing is given back but
    patches of ``status`` with ``ignore_hook_error``. The traceback is written, too, if the variable ``DEBUG``
    is set or the operator's log level is ``debug``.
    """
    this = Run()
    _current[:] = [this]
    try:
        if "--config" in sys.argv[1:]:
            _print(config)
        else:
            _succeed(this, main)
    except Exception as error:  # noqa: BLE001 - the last one who can say what happened
        _fail(this, main, error)


def _print(config: Config) -> None:
    if not isinstance(config, str):
        config = json.dumps(hook_values.json_copy(config, "the configuration"))
    sys.stdout.write(f"{config}\n")


def _succeed(this: Run, main: Main) -> None:
    try:
        if not this.convert():
            main(this)
    except SystemExit as ended:
        is_failure = ended.code not in (None, 0)
        files.write_texts(this.outputs_of_failure() if is_failure else this.outputs(), os.environ)
        raise
    files.write_texts(this.outputs(), os.environ)


def _fail(this: Run, main: Main, error: Exception) -> None:
    if _is_debugging():
        sys.excepthook(type(error), error, error.__traceback__)
    sys.stderr.write(f"Error: {_sentence(error)}{_place(error.__traceback__, main)}\n")
    try:
        # There is none with --config, nor is there a file for it then.
        files.write_texts(this.outputs_of_failure(), os.environ)
    except failures.HookError as second:
        sys.stderr.write(f"Error: {_sentence(second)}\n")
    sys.exit(1)


def _sentence(error: Exception) -> str:
    name = "" if isinstance(error, errors.AddonOperatorError) else f"{type(error).__name__}: "
    return name + " ".join(str(error).split())


def _place(trace: TracebackType | None, main: Main) -> str:
    """Return the last line of the hook's own file on the way to the error."""
    own = getattr(getattr(main, "__code__", None), "co_filename", None)
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == own:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" ({os.path.basename(own)}, line {line})" if own and line else ""  # noqa: PTH119 - see files


def _is_debugging() -> bool:
    levels = {os.environ.get(name, "").lower() for name in _LEVELS}
    return "debug" in levels or os.environ.get("DEBUG", "").lower() not in _OFF


def _array(operations: list[JsonObject]) -> str:
    return f"{json.dumps(operations)}\n" if operations else ""


def _stream(operations: list[JsonObject]) -> str:
    return "".join(f"{json.dumps(operation)}\n" for operation in operations)

"""What hooks say of themselves, and what is wrong with it: everything, not the first thing."""

import asyncio
import collections
import logging
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec
import structlog
from msgspec import structs

from addon_operator.app import hook_environment
from addon_operator.commands.checks import hook_places
from addon_operator.devcluster import api_schemas, locations
from addon_operator.engine.hooks import hook_configurations, hook_lines, hook_processes
from addon_operator.helm.charts import plain_files
from addon_operator.hook_contract import jq_programs
from addon_operator.hook_contract.configuration import (
    batch_config,
    bindings,
    conversion_bindings,
    hook_config,
)
from addon_operator.inspection import values_worker
from addon_operator.kernel import names
from addon_operator.loading import hook_files
from addon_operator.process import start_errors
from addon_operator.process.children import children, launcher

_AT_ONCE_PER_CPU: Final = 2
_AT_MOST_AT_ONCE: Final = 16
_Versions = Mapping[str, AbstractSet[str]]
"""In which versions there are kinds."""
_ALIKE: Final = 0.85
"""A kind that is less like one of Kubernetes is most likely another one."""
_NO_LIBRARY: Final = "/shell_lib.sh: No such file"
_LIBRARY_HINT: Final = (
    f"; the library is there in the image only: source ${{{hook_environment.SHELL_VARIABLE}:-/shell_lib.sh}}"
)
_WRITES: Final = re.compile(
    rb"\b(CONFIG_VALUES_JSON_PATCH_PATH|KUBERNETES_PATCH_PATH)\b|\bkubernetes::[a-z_]+|\.kubernetes\.[a-z_]+\("
)
"""What a hook says that changes objects, with the libraries or without them."""
_MOST_READ: Final = 1 << 20
ENABLED: Final = "enabled"
"""What stands in the place of a binding for ``enabled`` scripts."""
READINESS: Final = "readiness"
SETTINGS_CHECK: Final = "settings check"
"""The same for what a program with many hooks is asked for its module."""


class CheckedFile(msgspec.Struct, frozen=True):
    """A hook, an ``enabled`` script, or a file that looks like one."""

    path: pathlib.Path
    owner: str
    """Name of the module, or ``global``."""
    nested: str = ""
    """Name and number of one of the hooks of a program that holds many."""
    bindings: tuple[hook_config.BindingRow, ...] = ()
    errors: tuple[str, ...] = ()
    """Why the operator would refuse it, one sentence each."""
    warnings: tuple[str, ...] = ()
    """What the operator would take, and its author might not have meant."""
    is_program: bool = True
    """Whether it is a hook or a script; else it only looks like one, or cannot be read."""

    @property
    def shown(self) -> str:
        """As people find it: the path, and what it is in a program."""
        return f"{self.path}:{self.nested}" if self.nested else str(self.path)


class HooksReport(msgspec.Struct, frozen=True):
    """All that was found, by place and path."""

    files: tuple[CheckedFile, ...]

    def failed(self, *, strict: bool) -> bool:
        """Return whether there is an error, or a warning when these count as such."""
        return any(file.errors or (strict and file.warnings) for file in self.files)


def check(
    places: Sequence[hook_places.HookRoot],
    hook_env: Sequence[str] = ("*",),
    environ: Mapping[str, str] = os.environ,
) -> HooksReport:
    """Ask all hooks for their configuration, several at once; ``hook_env`` is the setting of that name."""
    with (
        tempfile.TemporaryDirectory(prefix="addon-operator-hooks-") as directory,
        launcher.Launcher() as starter,
        values_worker.ValuesWorker(values_worker.JQ_SECONDS) as worker,
        jq_programs.checking_with(worker.check_jq),
    ):
        inherited = hook_environment.inherited(environ, hook_env)
        offered = hook_environment.offered(inherited, pathlib.Path(directory))
        kinds = api_schemas.load(locations.locate(environ).cache)
        return asyncio.run(_HooksCheck(pathlib.Path(directory), offered, starter, kinds).run(places))


class _Asked(msgspec.Struct, frozen=True):
    """A hook and what it printed, or why it did not."""

    path: pathlib.Path
    printed: hook_configurations.Printed | None
    errors: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about how it answered."""
        return (self.printed.warning,) if self.printed is not None and self.printed.warning else ()


class _HooksCheck:
    def __init__(
        self,
        directory: pathlib.Path,
        variables: Mapping[str, str],
        starter: launcher.Launcher,
        kinds: api_schemas.ApiSchemas | None,
    ) -> None:
        self._kinds = kinds
        self._runner = hook_processes.HookProcesses(
            tmp_dir=directory,
            environment=variables,
            default_timeout=None,
            log=hook_lines.HookLog(_silent()),
            programs=children.Children(starter, leaves_nothing=True),
        )
        at_once = min(_AT_MOST_AT_ONCE, _AT_ONCE_PER_CPU * (os.cpu_count() or 1))
        self._turns = asyncio.Semaphore(at_once)

    async def run(self, places: Sequence[hook_places.HookRoot]) -> HooksReport:
        checked = await asyncio.gather(*map(self._place, places))
        files = list(_with_queues([file for files in checked for file in files]))
        files = list(_with_kinds(files, self._kinds))
        return HooksReport(tuple(_with_rivals(files)))

    async def _place(self, place: hook_places.HookRoot) -> list[CheckedFile]:
        try:
            found = hook_files.discover(place.root)
        except hook_files.HookFilesError as error:
            return [CheckedFile(place.root, place.owner, errors=(str(error),), is_program=False)]
        asked = await asyncio.gather(*(self._ask(path) for path in _chosen(found.executables, place)))
        files = [*_read(asked, place, place.kind or _kind(asked)), *_passed_over(found, place)]
        wrong = (
            [CheckedFile(place.root.parent, place.owner, errors=(place.problem,))] if place.problem else []
        )
        return [*wrong, *_script(place), *sorted(files, key=lambda file: file.path)]

    async def _ask(self, path: pathlib.Path) -> _Asked:
        async with self._turns:
            try:
                return _Asked(path, await self._runner.configurations.ask(path))
            except hook_config.HookConfigError as error:
                said = (text + _LIBRARY_HINT * (_NO_LIBRARY in text) for text in error.violations)
                return _Asked(path, None, tuple(said))


def _silent() -> structlog.typing.FilteringBoundLogger:
    """Drop what hooks write beside their configuration: it is in their errors."""
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        None, wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)
    )
    return logger


def _chosen(files: Sequence[hook_files.HookFile], place: hook_places.HookRoot) -> list[pathlib.Path]:
    """Return the files that matter, as they were named if one was."""
    if place.only is None:
        return [file.path for file in files]
    return [place.only for file in files if file.path.absolute() == place.only.absolute()]


def _kind(asked: Sequence[_Asked]) -> hook_config.HookKind:
    """Say whose hooks they are most likely: the kind with which fewer of them are wrong."""

    def mistakes(kind: hook_config.HookKind) -> int:
        return sum(isinstance(_parsed(one, kind), tuple) for one in asked)

    return min((hook_config.HookKind.MODULE, hook_config.HookKind.GLOBAL), key=mistakes)


def _parsed(
    asked: _Asked, kind: hook_config.HookKind
) -> hook_config.HookConfig | batch_config.BatchConfig | tuple[str, ...]:
    """Return the configuration, or what is wrong with it, one sentence each."""
    if asked.printed is None:
        return asked.errors
    try:
        return asked.printed.of_program(kind) if asked.printed.is_batch else asked.printed.of_hook(kind)
    except hook_config.HookConfigError as error:
        return error.violations


def _read(
    asked: Sequence[_Asked], place: hook_places.HookRoot, kind: hook_config.HookKind
) -> Iterator[CheckedFile]:
    ready: pathlib.Path | None = None
    for one in asked:
        read = _parsed(one, kind)
        if isinstance(read, tuple):
            yield CheckedFile(one.path, place.owner, errors=read, warnings=one.warnings)
        elif isinstance(read, hook_config.HookConfig):
            yield _checked(
                CheckedFile(one.path, place.owner, warnings=one.warnings), read, f"hook {one.path}"
            )
        else:
            yield _program(one, place.owner, read, ready)
            for hook in read.hooks:
                nested = CheckedFile(one.path, place.owner, f"{hook.name}:{hook.number}")
                yield _checked(nested, hook.config, hook.source)
            ready = one.path if read.has_readiness else ready


def _checked(checked: CheckedFile, read: hook_config.HookConfig, source: str) -> CheckedFile:
    said = (warning.removeprefix(f"{source}: ") for warning in read.warnings)
    warnings = (*checked.warnings, *said, *_twins(read), *_side_effects(checked.path, read))
    return structs.replace(checked, bindings=tuple(hook_config.rows(read)), warnings=warnings)


def _program(
    asked: _Asked, owner: str, read: batch_config.BatchConfig, ready: pathlib.Path | None
) -> CheckedFile:
    """Return a program itself, with what it can be asked for its whole module."""
    asks = {READINESS: read.has_readiness, SETTINGS_CHECK: read.has_settings_check}
    rows = tuple(hook_config.BindingRow(ask) for ask, can in asks.items() if can)
    twice = f"{ready} says whether the module is ready, too; only one program may do that"
    wrong = (twice,) if ready is not None and read.has_readiness else ()
    return CheckedFile(asked.path, owner, bindings=rows, errors=wrong, warnings=asked.warnings)


def _twins(read: hook_config.HookConfig) -> Iterator[str]:
    counts = collections.Counter(schedule.name for schedule in read.schedules)
    for name, count in counts.items():
        if count > 1:
            yield f"schedule: {count} bindings share the name {name!r}, and the hook cannot tell them apart"


def _side_effects(path: pathlib.Path, read: hook_config.HookConfig) -> Iterator[str]:
    """Yield the webhooks that say they have none, of a hook that runs for requests alone and writes."""
    runs_beside = any(each.execute_on_event or each.execute_on_synchronization for each in read.kubernetes)
    if runs_beside or read.orders or read.schedules:
        # Which of its runs write is not known then.
        return
    silent = [each for each in read.webhooks if each.side_effects == "None"]
    if silent and (word := _WRITES.search(plain_files.read_head(path, _MOST_READ))):
        what = word[0].decode().removeprefix(".").removesuffix("(")
        for each in silent:
            yield (
                f"{each.key} {each.name}: the hook writes ({what}), and requests with dryRun are sent to it "
                "as to one without effects; write 'sideEffects: NoneOnDryRun'"
            )


def _passed_over(files: hook_files.HookFiles, place: hook_places.HookRoot) -> Iterator[CheckedFile]:
    for file, said in files.told if place.only is None else files.suspects:
        for path in _chosen([file], place):
            yield CheckedFile(path, place.owner, warnings=(f"it {said}",), is_program=False)
    for file, said in files.refused:
        for path in _chosen([file], place):
            yield CheckedFile(path, place.owner, errors=(f"it {said}",), is_program=False)
    known = (*files.executables, *(file for file, _ in (*files.suspects, *files.refused)))
    if place.only and not place.script and not _chosen(known, place):
        said = "it is ignored: it is data or a library, is hidden, or is in a directory lib or venv"
        yield CheckedFile(place.only, place.owner, warnings=(said,))


def _script(place: hook_places.HookRoot) -> Iterator[CheckedFile]:
    """Yield the ``enabled`` script, which cannot be run: what it says depends on values."""
    path = place.script
    if path is None:
        return
    checked = CheckedFile(path, place.owner, bindings=(hook_config.BindingRow(ENABLED),))
    if not start_errors.is_executable(path):
        yield structs.replace(checked, errors=(f"it {start_errors.not_executable(path)}",))
    elif problem := start_errors.start_problem(path):
        yield structs.replace(checked, errors=(str(problem),))
    else:
        yield checked


def _with_queues(files: Sequence[CheckedFile]) -> Iterator[CheckedFile]:
    """Yield the files with warnings of names of queues that look like the same and are not."""
    uses = collections.Counter(bound.queue for file in files for bound in file.bindings)
    uses[bindings.MAIN_QUEUE] += 1
    usual: dict[str, str] = {}
    for queue, _ in sorted(uses.items(), key=lambda item: (item[0] != bindings.MAIN_QUEUE, -item[1])):
        usual.setdefault(_folded(queue), queue)
    for file in files:
        queues = dict.fromkeys(bound.queue for bound in file.bindings)
        said = [
            f"queue {queue!r} is another one than {usual[_folded(queue)]!r}; is it meant to be?"
            for queue in queues
            if usual[_folded(queue)] != queue
        ]
        said += [
            f"queue {queue!r} has spaces in its name; write {'-'.join(queue.split())!r}"
            for queue in queues
            if any(map(str.isspace, queue))
        ]
        yield structs.replace(file, warnings=(*file.warnings, *said))


def _with_kinds(files: Sequence[CheckedFile], known: api_schemas.ApiSchemas | None) -> Iterator[CheckedFile]:
    """Yield the files with errors for kinds that Kubernetes' own groups do not have.

    Without ``apiVersion``, a kind that is nearly one of them may be that of a definition: a warning.
    """
    if known is None:
        yield from files
        return
    of_kinds = _versions_of_kinds(known)
    for file in files:
        wrong = [_unknown_kind(bound, of_kinds, known.version) for bound in file.bindings]
        odd = [_doubtful_kind(bound, of_kinds, known.version) for bound in file.bindings]
        yield structs.replace(
            file,
            errors=(*file.errors, *dict.fromkeys(filter(None, wrong))),
            warnings=(*file.warnings, *dict.fromkeys(filter(None, odd))),
        )


def _versions_of_kinds(known: api_schemas.ApiSchemas) -> _Versions:
    of_kinds: dict[str, set[str]] = {}
    for name in known.kinds:
        of_kinds.setdefault(name.rpartition("/")[2], set()).add(name.rpartition("/")[0])
    return of_kinds


def _doubtful_kind(bound: hook_config.BindingRow, of_kinds: _Versions, of_kubernetes: str) -> str:
    kind = bound.kind
    if not kind or bound.api_version or any(kind.lower() in _forms(each) for each in of_kinds):
        return ""
    if (near := names.nearest(kind, of_kinds, _ALIKE)) is None:
        return ""
    return (
        f"kubernetes {bound.name}: Kubernetes {of_kubernetes} has no kind {kind!r}; did you mean {near!r} of "
        f"{', '.join(sorted(of_kinds[near]))}? If not, write apiVersion"
    )


def _unknown_kind(bound: hook_config.BindingRow, of_kinds: _Versions, of_kubernetes: str) -> str:
    version, kind = bound.api_version, bound.kind
    groups = frozenset().union(*of_kinds.values())
    # A resource of its name will do, in the plural and in any case.
    folded = {form for each in of_kinds for form in _forms(each) if version in of_kinds[each]}
    if not kind or version not in groups or kind.lower() in folded:
        return ""
    near = [each for each in of_kinds if kind.lower() in _forms(each)] or list(
        filter(None, [names.nearest(kind, [each for each in of_kinds if version in of_kinds[each]])])
    )
    hint = "correct one of them"
    if near:
        hint = f"did you mean {near[0]!r} of {', '.join(sorted(of_kinds[near[0]]))}?"
    return f"kubernetes {bound.name}: Kubernetes {of_kubernetes} has no kind {kind!r} in {version}; {hint}"


def _forms(kind: str) -> tuple[str, ...]:
    """Return how a kind may be called: also as its resource."""
    low = kind.lower()
    return low, f"{low}s", f"{low}es", f"{low[:-1]}ies"


def _folded(queue: str) -> str:
    return "".join(filter(str.isalnum, queue.casefold()))


def _with_rivals(files: Sequence[CheckedFile]) -> Iterator[CheckedFile]:
    """Yield the files with what an earlier hook claims, too, and only one may have.

    Of two modules that is a warning: perhaps they are never enabled together.
    """
    first: dict[tuple[str, ...], CheckedFile] = {}
    for file in files:
        errors, warnings = list(file.errors), list(file.warnings)
        for claim, said in (claim for bound in file.bindings for claim in _claims(bound)):
            other = first.setdefault(claim, file)
            if other is not file:
                told = errors if other.owner == file.owner else warnings
                told.append(f"{said} is also what {other.shown} declares, and only one hook may; change one")
        yield structs.replace(file, errors=tuple(errors), warnings=tuple(warnings))


def _claims(bound: hook_config.BindingRow) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what only one hook may declare, and how it is called."""
    if bound.resources:
        yield (bound.binding, bound.name), f"{bound.binding} {bound.name}"
    for step in bound.conversions:
        before, _, after = step.partition(" to ")
        edge = conversion_bindings.ConversionRule(before, after).full(bound.crd_name)
        yield (bound.crd_name, *edge), f"the conversion of {bound.crd_name} from {edge[0]} to {edge[1]}"

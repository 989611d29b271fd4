"""What of a plan comes from a change of files: another plan of the files before it tells."""

import contextlib
import dataclasses
import itertools
import os
import pathlib
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from typing import Final

from msgspec import structs

from addon_operator.commands.plan import plan_report
from addon_operator.kernel import errors
from addon_operator.process.children import children, launcher
from addon_operator.settings import settings as settings_module

_SECONDS: Final = 60.0
_MAX_BYTES: Final = 1 << 30
"""How large a file of a commit may be."""
_AS_CHECKED_OUT: Final = ("-c", "core.sparseCheckout=false", "-c", "core.fsmonitor=false")
_SUBMODULES: Final = 8
"""How deep repositories within repositories are looked at."""
_SUBMODULE: Final = "160000"
"""The mode of a submodule."""
_BOUNDS: Final = children.ChildBounds(4 << 30, _MAX_BYTES)
_OUTPUT: Final = 64 * 1024


class BaseError(errors.ConfigurationError):
    """The files before a change cannot be had."""


@contextlib.asynccontextmanager
async def settings_of(
    base: str, settings: settings_module.Settings, environ: Mapping[str, str]
) -> AsyncIterator[settings_module.Settings]:
    """Give the settings with directories as they are in ``base``: a directory, or what git calls a commit.

    The directories of the settings are looked up there as they are below the working directory.
    Raises :class:`BaseError`.
    """
    here = pathlib.Path.cwd()
    directory = here / base
    with tempfile.TemporaryDirectory(prefix="addon-operator-base-", ignore_cleanup_errors=True) as private:
        with launcher.Launcher() as started:
            git = _Git(children.Children(started), environ, pathlib.Path(private))
            if directory.is_dir():
                await _check_is_meant(git, base)
                yield _moved(settings, here, directory)
                return
            top, commit = await git.commit(base)
            tree = pathlib.Path(tempfile.mkdtemp(dir=private))
            await git.check_out(top, commit, tree)
        place = tree / here.resolve().relative_to(top)
        if not place.is_dir():
            raise BaseError(f"{base} has no directory {here.resolve().relative_to(top)}; name another base")
        yield _moved(settings, here, place)


async def _check_is_meant(git: "_Git", base: str) -> None:
    """Refuse a directory that a commit is called like: a change could bring it to be compared with itself."""
    try:
        await git.commit(base)
    except BaseError:
        return
    raise BaseError(
        f"{base} is a directory and what git calls a commit; write ./{base} for the directory, or the "
        "commit's own hash"
    )


def _moved(
    settings: settings_module.Settings, here: pathlib.Path, there: pathlib.Path
) -> settings_module.Settings:
    def moved(path: pathlib.Path) -> pathlib.Path:
        relative = os.path.relpath(path.absolute(), here)
        if relative.startswith(".."):
            raise BaseError(f"{path} is outside of the working directory {here}, so --base does not tell it")
        return there / relative

    directories = [moved(path) for path in settings.modules_dirs]
    existing = tuple(path for path in directories if path.is_dir())
    if not existing:
        raise BaseError(f"the base has no {', '.join(map(str, settings.modules_dirs))}; name another one")
    hooks = moved(settings.global_hooks_dir)
    origins = {**settings.origins, "global_hooks_dir": "default"}
    return dataclasses.replace(
        settings, modules_dirs=existing, global_hooks_dir=hooks, origins=origins, warnings=()
    )


class _Git:
    def __init__(
        self, programs: children.Children, environ: Mapping[str, str], private: pathlib.Path
    ) -> None:
        self._programs = programs
        self._private = private
        self._numbers = itertools.count()
        self._environ = {**environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    async def commit(self, name: str) -> tuple[pathlib.Path, str]:
        """Return the top of the repository of the working directory, and the commit that is meant."""
        top = await self._output("rev-parse", "--show-toplevel")
        if top is None:
            raise BaseError(
                f"{name} is not a directory, and the working directory is not in a git repository"
            )
        commit = await self._output(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        if commit is None:
            raise BaseError(
                f"{name} is neither a directory nor a commit that git knows here; in a workflow, fetch it "
                "first (actions/checkout with fetch-depth: 0)"
            )
        return pathlib.Path(top), commit

    async def check_out(
        self, top: pathlib.Path, commit: str, tree: pathlib.Path, depth: int = _SUBMODULES
    ) -> None:
        """Write the files of a commit to ``tree``, as a checkout has them, with those of its submodules.

        An archive would lack what ``export-ignore`` leaves out. The index of the repository stays as it is.
        """
        git_dir = await self._output("-C", str(top), "rev-parse", "--absolute-git-dir")
        index = {"GIT_INDEX_FILE": str(self._private / f"index-{next(self._numbers)}")}
        into = (*_AS_CHECKED_OUT, f"--git-dir={git_dir}", f"--work-tree={tree}", "read-tree", "--reset", "-u")
        if git_dir is None or await self._output(*into, commit, **index) is None:
            raise BaseError(f"git cannot check out {commit[:12]}; fetch all of it, or name a directory")
        for path in await self._submodules(tree):
            entry = await self._output("-C", str(top), "ls-tree", commit, "--", path)
            mode, _, inner = (entry or "").partition("\t")[0].partition(" commit ")
            # What the working directory lacks is missing in what is compared with the commit, too.
            if depth and mode == _SUBMODULE and (top / path / ".git").exists():
                await self.check_out(top / path, inner, tree / path, depth - 1)

    async def _submodules(self, tree: pathlib.Path) -> list[str]:
        listed = ("config", "--file", str(tree / ".gitmodules"), "--get-regexp", r"^submodule\..*\.path$")
        found = await self._output(*listed) if (tree / ".gitmodules").is_file() else None
        return [line.partition(" ")[2] for line in (found or "").splitlines()]

    async def _output(self, *arguments: str, **environ: str) -> str | None:
        try:
            result = await self._programs.run(
                ["git", *arguments],
                env={**self._environ, **environ},
                timeout=_SECONDS,
                capture_stdout=_OUTPUT,
                capture_stderr=_OUTPUT,
                bounds=_BOUNDS,
            )
        except children.ChildStartError as error:
            raise BaseError(f"git cannot be started: {error}; name a directory as the base") from None
        if result.exit_code != 0:
            return None
        return (result.stdout or b"").decode(errors="replace").strip()


def compared(
    head: plan_report.PlanReport, base: plan_report.PlanReport, only: Collection[str] = ()
) -> plan_report.PlanReport:
    """Return the plan of the files now; what would happen with those before, too, is marked as pending.

    ``only``: the modules that are looked at, all if there are none.
    """
    before = {module.name: _core(module) for module in base.modules}
    modules = tuple(
        structs.replace(module, is_pending=before.get(module.name) == _core(module))
        for module in head.modules
    )
    purged = {purge.release for purge in base.purges}
    purges = tuple(structs.replace(purge, is_pending=purge.release in purged) for purge in head.purges)
    notes = dict.fromkeys([*head.notes, *_only_before(head, base, only)])
    return structs.replace(head, modules=modules, purges=purges, notes=tuple(notes))


def _core(module: plan_report.ModuleReport) -> object:
    release = module.release
    return (
        module.enabled,
        release.step,
        [(change.kind, change.key, change.diff) for change in release.changes],
    )


def _only_before(
    head: plan_report.PlanReport, base: plan_report.PlanReport, only: Collection[str]
) -> Iterator[str]:
    """Yield what would have become of modules that the change takes back."""
    now = {module.name: module for module in head.modules}
    for module in base.modules:
        after = now.get(module.name)
        if (only and module.name not in only) or not module.is_change:
            continue
        if after is None or not after.is_change:
            wanted, reason = module.release.step, module.release.reason
            yield f"without this change, the step for module {module.name} would be {wanted}: {reason}"

"""What a plan without a cluster cannot know of a module, by name."""

from typing import Final

from addon_operator.engine.hooks import hook_processes
from addon_operator.helm.releases import render_inputs
from addon_operator.kernel import errors, names
from addon_operator.loading import hook_files
from addon_operator.modules import model

_KINDS: Final = 5
_HOOKS: Final = 20
"""So many hooks are named, and the others counted."""


class Unknowns:
    """Names what only a run would show."""

    def __init__(self, runner: hook_processes.HookProcesses) -> None:
        self._runner = runner

    def of_chart(self, inputs: render_inputs.RenderInputs) -> list[str]:
        """Say what a chart asks the cluster for."""
        return (
            ["what 'lookup' finds in its templates: rendered as if nothing was there"]
            if inputs.looks_up
            else []
        )

    async def of_hooks(self, module: model.Module) -> list[str]:
        """Say which hooks were not run, and which objects they follow."""
        try:
            files = hook_files.discover(module.path / hook_files.HOOKS_DIRECTORY)
        except hook_files.HookFilesError:
            return []  # It is what stops the module.
        shown = [await self._of_hook(module, file) for file in files.executables[:_HOOKS]]
        more = len(files.executables) - len(shown)
        return [*shown, *([f"and {more} more hooks"] if more else [])]

    async def _of_hook(self, module: model.Module, file: hook_files.HookFile) -> str:
        name = file.path.relative_to(module.path)
        said = f"what hook {name} would give now"
        try:
            held = await self._runner.read(file, module.name)
        except errors.AddonOperatorError:
            return said
        followed = (binding.kind for hook in held.hooks for binding in hook.config.kubernetes)
        kinds = list(dict.fromkeys(followed))
        return f"{said} (kubernetes bindings: {names.listed(kinds, _KINDS)})" if kinds else said

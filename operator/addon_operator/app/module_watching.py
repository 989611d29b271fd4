"""Taking in what changes in the modules directories while the operator runs, as the settings want it."""

from addon_operator.engine import engine, events, reactions
from addon_operator.engine.modules import (
    module_files,
    module_loader,
    module_reload,
    module_scan,
    module_watch,
)
from addon_operator.settings import settings as settings_module
from addon_operator.values import store


def watch(
    settings: settings_module.Settings,
    loaded: module_files.LoadedModules,
    values: store.ValuesStore,
    reload: module_reload.ModuleReload,
    running: engine.Engine,
    tell: events.Listener,
) -> module_watch.ModuleWatch | None:
    """Who looks at the directories, or ``None`` with ``WATCH_MODULES=no``."""
    if not settings.watch_modules:
        return None
    directories = settings.modules_dirs
    first = module_scan.scan(directories)
    loader = module_loader.ModuleLoader(
        directories,
        settings.unnumbered_module_order,
        loaded,
        first,
        module_reload.config_check(values),
    )

    async def take(loading: module_loader.Loading) -> None:
        async def taken() -> reactions.Reaction:
            return await reload.take(loading)

        await running.reload(taken)

    def refused(problem: str) -> None:
        tell(events.ReloadRefused(problem))

    return module_watch.ModuleWatch(directories, loader, first, take=take, refused=refused)

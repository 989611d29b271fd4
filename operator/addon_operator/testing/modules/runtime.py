"""What runs hooks and Helm for tests: one event loop in a thread, with what is started once for all tests."""

import asyncio
import contextlib
import os
import pathlib
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, Final, Self, TypeVar

from addon_operator.app import hook_environment
from addon_operator.commands import authors_helm
from addon_operator.devcluster.binaries import components
from addon_operator.engine import state
from addon_operator.engine.hooks import hook_processes
from addon_operator.helm import binary, command
from addon_operator.inspection import values_worker
from addon_operator.kernel import names
from addon_operator.loading import hook_files
from addon_operator.process.children import children, launcher
from addon_operator.process.jq import jq_filters, jq_workers
from addon_operator.testing.given import api, given_objects

Result = TypeVar("Result")

KUBERNETES: Final = f"v{components.DEFAULT_VERSION}.0"
"""What charts take for the cluster's version, if a test says nothing else."""
_INHERITED: Final = ("*",)
_OF_CLUSTERS: Final = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


class Runtime:
    """Runs what is asynchronous for tests, which are not; a context manager for a whole test run."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = {name: value for name, value in environ.items() if name not in _OF_CLUSTERS}
        self._closing = contextlib.ExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="module-tests", daemon=True)
        self._helm: binary.HelmBinary | None = None
        self._server = api.LoopbackServer()
        self._hooks: dict[tuple[object, ...], tuple[state.Hook, ...]] = {}

    def __enter__(self) -> Self:
        stack = self._closing
        self.workspace = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="addon-operator-test-"))
        )
        self.programs = children.Children(stack.enter_context(launcher.Launcher()), leaves_nothing=True)
        self.worker = stack.enter_context(values_worker.ValuesWorker(values_worker.JQ_SECONDS))
        self._kubeconfig = self.workspace / "kubeconfig"
        self._workers = jq_workers.JqWorkers()
        self.jq = jq_filters.JqFilters(self._workers)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        self._closing.close()

    async def _close(self) -> None:
        await self._server.close()
        await self._workers.close()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run it to its end, and return what it returns or raise what it raises."""
        __tracebackhide__ = True
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        except BaseException:
            done.cancel()
            raise

    async def helm(self) -> command.Helm:
        """Return the operator's Helm, for the cluster that :meth:`serving` serves.

        Raises :class:`.HelmBinaryError` if there is none.
        """
        if self._helm is None:
            self._helm = await authors_helm.find_helm(self._environ, self.programs)
        target = command.HelmTarget(given_objects.NAMESPACE, (self._kubeconfig,))
        workspace = self.workspace / "helm"
        return command.Helm(self._helm, target, self._environ, workspace, self.programs, _ignore)

    async def serve(self, cluster: api.GivenApi) -> None:
        """Show this cluster to Helm, and to what hooks start, from now on."""
        self._server.api = cluster
        await self._server.open(self._kubeconfig)

    async def hooks_of(
        self,
        file: hook_files.HookFile,
        module: names.ModuleName | None,
        processes: hook_processes.HookProcesses,
    ) -> tuple[state.Hook, ...]:
        """Return the hooks that a file holds; it is asked again only if it has changed.

        Raises :class:`.HookConfigError`.
        """
        status = await asyncio.to_thread(file.path.stat)
        key = (file.path, module, status.st_mtime_ns, status.st_size, status.st_mode)
        if key not in self._hooks:
            self._hooks[key] = (await processes.read(file, module)).hooks
        return self._hooks[key]

    def environment_of_hooks(self) -> dict[str, str]:
        """Return what hooks get: the environment of the tests, the libraries, no way to a real cluster."""
        inherited = hook_environment.inherited(self._environ, _INHERITED)
        return hook_environment.offered({**inherited, "KUBECONFIG": str(self._kubeconfig)}, self.workspace)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of the tests, without ways to a real cluster."""
        return self._environ


def _ignore(_module: names.ModuleName, _warning: str) -> None:
    """Ignore it: the operator logs what Helm warns of."""

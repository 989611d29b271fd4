"""Clusters of this machine: start, stop, look at them.

Every command takes the state of the machine as it finds it. A cluster whose ``up`` was killed, or whose
programs are gone since a reboot, is found, and what still runs of it is ended, or completed.
"""

import dataclasses
import datetime as dt
import pathlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from addon_operator.devcluster import (
    api,
    api_schemas,
    bootstrap,
    errors,
    handle,
    layout,
    locations,
    locks,
    reporters,
    state,
)
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.devcluster.controlplane import certificates, controlplane, kubeconfigs, simulation
from addon_operator.kernel import clock as clocks
from addon_operator.process import daemons

_PORT_ATTEMPTS: Final = 4
_REPAIR_ATTEMPTS: Final = 3

Condition = Literal["running", "degraded", "stopped", "starting", "interrupted"]
"""``degraded``: some programs have ended; ``interrupted``: ``up`` did not come to its end."""


class ClusterRequest(msgspec.Struct, frozen=True):
    """What ``up`` is asked for."""

    name: layout.ClusterName = layout.DEFAULT_NAME
    version: str | None = None
    """Minor version of Kubernetes, as in ``1.36``; ``None`` is the default, or whatever runs already."""
    nodes: bool = False
    """Whether pods of Deployments become ready."""
    export: pathlib.Path | None = None
    """Where the kubeconfig is written, too."""


class Status(msgspec.Struct, frozen=True):
    """What is known about a cluster."""

    name: str
    condition: Condition
    version: str | None = None
    url: str | None = None
    kubeconfig: str | None = None
    components: Mapping[str, int | None] = msgspec.field(default_factory=dict)
    """Pid of each component; ``None`` when it has ended."""


class ClusterManager:
    """All clusters below one directory."""

    def __init__(
        self,
        root: pathlib.Path,
        reporter: reporters.Reporter,
        clock: clocks.Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = root
        self._reporter = reporter
        self._clock = clock or clocks.SystemClock()
        self._sleep = sleep
        self._processes = daemons.ProcessTable()

    def up(self, request: ClusterRequest, source: binaries.BinaryStore) -> handle.DevCluster:
        """Start a cluster, or see to it that it runs as asked.

        Raises :class:`.DevClusterError` when it cannot be started, or runs
        another version.
        """
        where = self._layout(request.name)
        if request.export is not None:
            kubeconfigs.check_export(request.export, request.name)
        locations.create_private(self._root, locations.STATE_VARIABLE)
        with locks.directory(where.root, self._waiting_for(request.name)):
            before = state.load(where.state)
            exports = _exports(request, before)
            found = before and self._revive(where, request, source, before)
            return self._finish(where, exports, found or self._create(where, request, source))

    def down(self, name: layout.ClusterName) -> bool:
        """End a cluster at once and remove all of it; false when there was none."""
        where = self._layout(name)
        if not where.root.is_dir():
            return False
        with locks.directory(where.root, self._waiting_for(name)):
            known = state.load(where.state)
            self._kill(where)
            for export in known.exports if known else ():
                kubeconfigs.remove_export(pathlib.Path(export), name)
            shutil.rmtree(where.root)
        return True

    def get(self, name: layout.ClusterName) -> handle.DevCluster:
        """Return a cluster that runs.

        Raises :class:`.DevClusterError` when it does not.
        """
        where = self._layout(name)
        found = state.load(where.state)
        condition = self._condition(where, found)
        if condition == "starting":
            raise errors.DevClusterError(
                f"the cluster {name} is still starting; try again when 'addon-operator devcluster status' "
                "shows it as running"
            )
        if found is None or condition not in {"running", "degraded"}:
            raise errors.DevClusterError(
                f"the cluster {name} does not run; start it with "
                f"'addon-operator devcluster up{_option(name)}'"
            )
        return _cluster(where, found)

    def status(self) -> list[Status]:
        """Return every cluster there is, by name."""
        directories = sorted(self._root.iterdir()) if self._root.is_dir() else []
        return [self._status(layout.Layout(path)) for path in directories if path.is_dir()]

    def _layout(self, name: layout.ClusterName) -> layout.Layout:
        return layout.Layout(self._root / name)

    def _revive(
        self,
        where: layout.Layout,
        request: ClusterRequest,
        source: binaries.BinaryStore,
        found: state.ClusterState,
    ) -> state.ClusterState | None:
        """Return the existing cluster with what is missing started; ``None`` if it is of no use."""
        if found.phase == "starting" or not any(map(self._is_alive, found.components.values())):
            self._reporter.say(f"The cluster {request.name} has ended, or never came up: starting over")
            return None
        _check_version(request, found)
        starter = bootstrap.Starter(where, found, self._clock, self._sleep)
        try:
            self._repair(where, request, source, starter)
        except (errors.ComponentError, daemons.DaemonError) as error:
            self._reporter.say(f"The cluster {request.name} cannot be repaired ({error}): starting over")
            return None
        return starter.state

    def _repair(
        self,
        where: layout.Layout,
        request: ClusterRequest,
        source: binaries.BinaryStore,
        starter: bootstrap.Starter,
    ) -> None:
        for _ in range(_REPAIR_ATTEMPTS - 1):
            try:
                return self._start_missing(where, request, source, starter)
            except errors.ComponentError as error:
                # One that was about to end when we looked, or did not survive the end of another.
                self._reporter.say(f"{error}: trying again")
        return self._start_missing(where, request, source, starter)

    def _start_missing(
        self,
        where: layout.Layout,
        request: ClusterRequest,
        source: binaries.BinaryStore,
        starter: bootstrap.Starter,
    ) -> None:
        known = starter.state
        dead = [name for name, part in known.components.items() if not self._is_alive(part)]
        for name in dead:
            self._reporter.say(f"{name} of the cluster {request.name} has ended: starting it again")
            starter.start(name, known.components[name].argv)
        starter.wait_for_api_server()
        missing = [
            name for name in controlplane.component_names(nodes=request.nodes) if name not in known.components
        ]
        if missing:
            found = source.ensure(_wanted(known.version))
            for name in missing:
                starter.start(name, controlplane.command(name, where, known.port, found))
            _link(where, found)
        if controlplane.NODES[0] in starter.state.components:
            starter.wait_for_node()

    def _create(
        self, where: layout.Layout, request: ClusterRequest, source: binaries.BinaryStore
    ) -> state.ClusterState:
        self._clear(where)
        try:
            found = source.ensure(_wanted(request.version))
            made = self._create_on_a_free_port(where, request, found)
            api_schemas.save(source.cache, made.version, api.ApiClient(where, made.url))
            return made
        except errors.ComponentError:
            # The logs stay for whoever wants to know why.
            self._kill(where)
            raise
        except BaseException:
            self._clear(where)
            where.root.rmdir()
            raise

    def _create_on_a_free_port(
        self, where: layout.Layout, request: ClusterRequest, found: Mapping[str, pathlib.Path]
    ) -> state.ClusterState:
        for _ in range(_PORT_ATTEMPTS - 1):
            try:
                return self._start(where, request, found)
            except errors.PortTakenError:
                self._clear(where)
        return self._start(where, request, found)

    def _start(
        self, where: layout.Layout, request: ClusterRequest, found: Mapping[str, pathlib.Path]
    ) -> state.ClusterState:
        self._reporter.say(f"Starting the cluster {request.name}")
        [port] = bootstrap.unused_ports(1)
        version = request.version or components.DEFAULT_VERSION
        begun = state.ClusterState(version, "starting", port)
        _write_files(where, begun.url, found, self._clock.time())
        starter = bootstrap.Starter(where, begun, self._clock, self._sleep)

        def start(names: Sequence[str]) -> None:
            for name in names:
                starter.start(name, controlplane.command(name, where, port, found))

        start(controlplane.CORE)
        starter.wait_for_api_server()
        start([*controlplane.CONTROLLERS, *(controlplane.NODES if request.nodes else ())])
        if request.nodes:
            starter.wait_for_node()
        starter.wait_for_controllers()
        return dataclasses.replace(starter.state, version=starter.server_version(), phase="ready")

    def _finish(
        self, where: layout.Layout, exports: tuple[str, ...], found: state.ClusterState
    ) -> handle.DevCluster:
        for export in map(pathlib.Path, exports):
            if kubeconfigs.may_replace(export, where.name):
                document = kubeconfigs.document(where, found.url, certificates.ADMIN_USER)
                kubeconfigs.write(export, document)
        state.save(where.state, dataclasses.replace(found, exports=exports))
        return _cluster(where, found)

    def _clear(self, where: layout.Layout) -> None:
        """End what runs of a cluster and empty its directory; the directory itself is our lock."""
        self._kill(where)
        for path in where.root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _kill(self, where: layout.Layout) -> None:
        known = state.load(where.state)
        recorded = [part.process for part in known.components.values()] if known else []
        marked = self._processes.marked(bootstrap.MARK, str(where.root))
        self._processes.kill([*recorded, *marked])

    def _status(self, where: layout.Layout) -> Status:
        found = state.load(where.state)
        condition = self._condition(where, found)
        if found is None:
            return Status(where.name, condition)
        pids = {
            name: part.process.pid if self._is_alive(part) else None
            for name, part in found.components.items()
        }
        url, kubeconfig = found.url, str(where.kubeconfig)
        return Status(where.name, condition, found.version, url, kubeconfig, pids)

    def _condition(self, where: layout.Layout, found: state.ClusterState | None) -> Condition:
        if found is None or found.phase == "starting":
            # Programs outlive an 'up' that is killed; its hold of the directory does not.
            return "starting" if locks.is_held(where.root) else "interrupted"
        alive = [self._is_alive(part) for part in found.components.values()]
        if all(alive):
            return "running"
        return "degraded" if any(alive) else "stopped"

    def _is_alive(self, part: state.StartedProgram) -> bool:
        return self._processes.is_alive(part.process)

    def _waiting_for(self, name: layout.ClusterName) -> locks.OnWait:
        return lambda _: self._reporter.say(f"Waiting for another process that works on the cluster {name}")


def _wanted(version: str | None) -> list[binaries.Wanted]:
    """Return everything that a cluster of the version needs, with nodes or without: it is built together."""
    minor = ".".join((version or components.DEFAULT_VERSION).removeprefix("v").split(".")[:2])
    if minor == components.DEFAULT_VERSION:
        return [binaries.Wanted(components.CONTROL_PLANE)]
    others = (components.ETCD, components.HELM, components.KWOK)
    return [
        binaries.Wanted(components.kubernetes(minor)),
        binaries.Wanted(components.CONTROL_PLANE, others),
    ]


def _exports(request: ClusterRequest, before: state.ClusterState | None) -> tuple[str, ...]:
    known = before.exports if before else ()
    asked = () if request.export is None else (str(request.export.absolute()),)
    return tuple(dict.fromkeys((*known, *asked)))


def _check_version(request: ClusterRequest, found: state.ClusterState) -> None:
    if request.version is not None and not found.version.startswith(f"v{request.version}."):
        raise errors.DevClusterError(
            f"the cluster {request.name} runs Kubernetes {found.version}, not {request.version}; end it with "
            f"'addon-operator devcluster down{_option(request.name)}', or give the new one another --name"
        )


def _write_files(where: layout.Layout, url: str, found: Mapping[str, pathlib.Path], now: float) -> None:
    where.make()
    where.stages.touch(mode=0o600)
    where.stages.write_text(simulation.stages(), encoding="utf-8")
    users = [certificates.ADMIN_USER, *controlplane.USERS.values()]
    certificates.write_all(where.pki, users, dt.datetime.fromtimestamp(now, tz=dt.UTC))
    for name, user in controlplane.USERS.items():
        path = controlplane.kubeconfig_of(name, where)
        kubeconfigs.write(path, kubeconfigs.document(where, url, user))
    kubeconfigs.write(where.kubeconfig, kubeconfigs.document(where, url, certificates.ADMIN_USER))
    _link(where, found)


def _link(where: layout.Layout, found: Mapping[str, pathlib.Path]) -> None:
    for name, path in found.items():
        link = where.bin / name
        target = path.resolve()
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _cluster(where: layout.Layout, found: state.ClusterState) -> handle.DevCluster:
    return handle.DevCluster(where.name, found.version, found.url, where.kubeconfig, where.bin)


def _option(name: layout.ClusterName) -> str:
    return "" if name == layout.DEFAULT_NAME else f" --name {name}"

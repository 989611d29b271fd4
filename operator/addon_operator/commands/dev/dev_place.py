"""Where the loop of edits takes place: which modules, and which cluster."""

import contextlib
import json
import os
import pathlib
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.commands import values_files
from addon_operator.commands.outside import dev_operators
from addon_operator.devcluster import bootstrap, cluster, handle, layout, locations, locks, reporters
from addon_operator.devcluster.binaries import binaries
from addon_operator.devcluster.controlplane import controlplane
from addon_operator.kernel import errors
from addon_operator.kube.access import auth, kubeconfig
from addon_operator.loading import module_directories, module_files

CLUSTER: Final = layout.ClusterName("dev")
NAMESPACE: Final = "addon-operator-dev"
NO_GLOBAL_HOOKS: Final = "no-global-hooks"
"""An empty directory: that of the working directory is not meant unless it is named."""
_LOCK: Final = "dev.lock"


class DevError(errors.AddonOperatorError):
    """The loop cannot begin."""


class Modules(msgspec.Struct, frozen=True):
    """The modules that are being written."""

    modules_dir: pathlib.Path
    """What the operator is told: where they lie, or links to them."""
    global_hooks_dir: pathlib.Path | None
    shown: pathlib.Path
    """Where they lie."""


class Target(msgspec.Struct, frozen=True):
    """The cluster on which the operator works, and nothing else."""

    title: str
    kubeconfigs: Sequence[pathlib.Path]
    """The first one that names a current context decides, as for kubectl."""
    context: str | None
    namespace: str
    named: Sequence[str]
    """The options of a command that asks the operator there."""
    helm: pathlib.Path | None = None
    webhook_port: int | None = None
    """Of this machine, where the API server finds what hooks answer; ``None`` if it cannot reach that."""

    @property
    def example(self) -> str:
        """A command that asks the operator there."""
        return shlex.join(["addon-operator", "module", "list", *self.named])

    def operator(self, socket: pathlib.Path, environ: Mapping[str, str]) -> dev_operators.DevOperator:
        """Return the operator there as others find it, by its debug socket."""
        leading = {**environ, "KUBECONFIG": os.pathsep.join(map(str, self.kubeconfigs))}
        access = auth.load_access(None, self.context, None, leading)
        return dev_operators.DevOperator(socket, access.server, self.namespace)


@contextlib.contextmanager
def modules(directory: str) -> Iterator[Modules]:
    """Give the modules of a directory; of one module, that module alone, with the values that all share.

    Raises :class:`DevError` if there are none.
    """
    flags, only = values_files.flags_of(directory, None)
    place = pathlib.Path(str(flags["modules_dirs"])).absolute()
    if not place.is_dir():
        raise DevError(f"{place} does not exist; write a module with 'addon-operator new module NAME'")
    hooks = flags["global_hooks_dir"]
    if only is None:
        yield Modules(place, None if hooks is None else pathlib.Path(hooks).absolute(), place)
        return
    with tempfile.TemporaryDirectory(prefix="addon-operator-dev-") as links:
        for name in (only, module_files.VALUES_FILE):
            if (place / name).exists():
                (pathlib.Path(links) / name).symlink_to(place / name)
        yield Modules(pathlib.Path(links), None, place)


@contextlib.contextmanager
def local_cluster(
    environ: Mapping[str, str], reporter: reporters.Reporter, *, keep: bool
) -> Iterator[Target]:
    """Give a local cluster of our own; it is removed at the end, unless it is to be kept for the next time.

    Raises :class:`DevError` if another process has it.
    """
    where = locations.locate(environ)
    locations.create_private(where.state, locations.STATE_VARIABLE)
    with locks.alone(where.state / _LOCK) as is_ours:
        if not is_ours:
            raise DevError("'addon-operator dev' runs already; end that one first, with Ctrl-C")
        manager = cluster.ClusterManager(where.state, reporter)
        try:
            with binaries.workshop(where, environ, reporter) as store:
                started = manager.up(cluster.ClusterRequest(CLUSTER, None, nodes=True, export=None), store)
            _make_namespace(started)
            title = f"local cluster {CLUSTER}, Kubernetes {started.version}, KUBECONFIG={started.kubeconfig}"
            named = ("--kubeconfig", str(started.kubeconfig), "-n", NAMESPACE)
            (port,) = bootstrap.unused_ports(1)
            yield Target(title, [started.kubeconfig], None, NAMESPACE, named, started.helm, port)
        finally:
            if not keep:
                manager.down(CLUSTER)


def _make_namespace(started: handle.DevCluster) -> None:
    text = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"
    started.run_kubectl("apply", "--filename=-", stdin=text)


def operator_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without all that could lead to another cluster than the named one."""
    return {
        name: value
        for name, value in environ.items()
        if not name.removeprefix("ADDON_OPERATOR_").startswith(("KUBE", "HELM_KUBE"))
    }


def operator_options(
    target: Target, of: Modules, work: pathlib.Path, environ: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the settings with which the operator is started, by the names of their variables."""
    options = {
        "KUBECONFIG": os.pathsep.join(map(str, target.kubeconfigs)),
        "NAMESPACE": target.namespace,
        "MODULES_DIR": str(of.modules_dir),
        "GLOBAL_HOOKS_DIR": str(of.global_hooks_dir or work / NO_GLOBAL_HOOKS),
        "WATCH_MODULES": "true",
        "WATCH_MODULES_INTERVAL": "200ms",
        "TMP_DIR": str(work / "tmp"),
        "LISTEN_ADDRESS": "127.0.0.1",
        "LISTEN_PORT": "0",
        "LOG_TYPE": "json",
        "LOG_LEVEL": "info",
        "LOG_PROXY_HOOK_JSON": "false",
        "DEBUG_UNIX_SOCKET": str(work / "debug.socket"),
        "SHUTDOWN_GRACE": "5s",
    }
    if target.webhook_port is not None:
        options |= {
            "ADMISSION_SERVER_LISTEN_ADDRESS": controlplane.LOOPBACK,
            "ADMISSION_SERVER_LISTEN_PORT": str(target.webhook_port),
            "WEBHOOK_URL": f"https://{controlplane.LOOPBACK}:{target.webhook_port}",
        }
    if target.context is not None:
        options["KUBE_CONTEXT"] = target.context
    if target.helm is not None and not environ.get("HELM_BIN_PATH"):
        options["HELM_BIN_PATH"] = os.fspath(target.helm)
    return options


def named_cluster(
    context: str, namespace: str, named: str | None, work: pathlib.Path, environ: Mapping[str, str]
) -> Target:
    """Return the cluster of a context, which is the current one for all programs that the operator starts.

    ``named`` is the kubeconfig that the user named; ``work`` is a directory for a file.
    Raises a :class:`.ConfigurationError` if there is no such context.
    """
    listed = named or environ.get("KUBECONFIG") or str(auth.expanded("~/.kube/config", environ))
    paths = [pathlib.Path(path).absolute() for path in listed.split(os.pathsep) if path]
    existing = [path for path in paths if path.is_file()]
    if not existing:
        raise DevError(f"there is no kubeconfig {listed}; name it with --kubeconfig")
    kubeconfig.choose(existing, context)
    first = work / "current-context.yaml"
    document = {"apiVersion": "v1", "kind": "Config", "current-context": context}
    first.write_text(json.dumps(document), "utf-8")
    asked = ("--context", context, "-n", namespace, *(() if named is None else ("--kubeconfig", named)))
    title = f"context {context}, namespace {namespace}"
    return Target(title, [first, *existing], context, namespace, asked)


def check_modules(of: Modules) -> None:
    """Refuse a directory without modules: nothing would ever happen.

    Raises :class:`DevError`, and a :class:`.ConfigurationError` for what is not a directory of modules.
    """
    if not module_directories.listed(of.modules_dir):
        raise DevError(f"{of.shown} has no modules; write one with 'addon-operator new module NAME'")

"""Where the demo takes place: a control plane of its own, a directory, kubectl, and operators."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import demo_operator
import demo_screen

from addon_operator.devcluster import cluster, handle, layout, locations, reporters
from addon_operator.devcluster.binaries import binaries
from addon_operator.process import daemons

NAMESPACE: Final = "addons"
CONFIG_MAP: Final = "addon-operator"

_NAME: Final = "demo"
MARK: Final = "ADDONS_DEMO_DIRECTORY"
"""In the environment of everything the demo starts, so that the next demo finds what a killed one left."""


class Ground:
    """The directory ``.demo`` of a checkout, and whatever a demo starts there."""

    def __init__(self, checkout: pathlib.Path, screen: demo_screen.Screen) -> None:
        self.checkout = checkout
        self.directory = checkout / ".demo"
        self._screen = screen
        self._processes = daemons.ProcessTable()
        self._clusters = cluster.ClusterManager(self.directory / "clusters", self._reporter())

    def build(self) -> "Stage":
        """Start the control plane with a simulated node, and write down how to use it from a shell."""
        kubeconfig = self.directory / "kubeconfig"
        request = cluster.ClusterRequest(layout.parse_name(_NAME), nodes=True, export=kubeconfig)
        where = locations.locate(os.environ)
        with binaries.workshop(where, os.environ, self._reporter()) as store:
            started = self._clusters.up(request, store)
        (self.directory / "env").write_text(
            f'export KUBECONFIG="{kubeconfig}"\nexport PATH="{started.bin}:$PATH"\n', encoding="utf-8"
        )
        return Stage(self, started, kubeconfig, self._screen)

    def clear(self) -> bool:
        """End and remove whatever is there; whether there was something."""
        left = self._processes.marked(MARK, str(self.directory))
        self._processes.kill(left)
        existed = self._clusters.down(layout.parse_name(_NAME))
        for entry in self.directory.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        return existed or bool(left)

    def _reporter(self) -> reporters.Reporter:
        if self._screen.is_interactive:
            return reporters.BarReporter(self._screen.console)
        return reporters.PlainReporter(self._screen.note)


class Stage:
    """A control plane that runs, and what is needed to look at it."""

    def __init__(
        self, ground: Ground, started: handle.DevCluster, kubeconfig: pathlib.Path, screen: demo_screen.Screen
    ) -> None:
        self.cluster = started
        self.helm = demo_operator.CountedHelm(ground.directory, started.helm)
        self._ground = ground
        self._kubeconfig = kubeconfig
        self._screen = screen
        self._operators: list[demo_operator.Operator] = []

    def start_operator(self) -> demo_operator.Operator:
        """Start an operator for the example modules; it listens on a free port."""
        directory = self._ground.directory
        port = demo_operator.free_port()
        flags = {
            "--namespace": NAMESPACE,
            "--kube-config": self._short(self._kubeconfig),
            "--helm-bin-path": self._short(self.helm.path),
            "--listen-port": str(port),
        }
        arguments = ["start", *(word for pair in flags.items() for word in pair)]
        self._screen.command(["addon-operator", *arguments])
        started = demo_operator.Operator(
            [sys.executable, "-m", "addon_operator", *arguments],
            env=self._environment(),
            port=port,
            log=directory / "operator.log",
            cwd=self._ground.checkout,
        )
        self._operators.append(started)
        return started

    def log_tail(self) -> list[str]:
        """Return the last lines of the last operator's log."""
        return self._operators[-1].log_tail() if self._operators else []

    def close(self) -> None:
        """End the operators that still run."""
        for operator in self._operators:
            operator.kill()

    def kubectl(self, *arguments: str, show: bool = False) -> str:
        """Run kubectl in the operator's namespace; with ``show`` a person sees the command and its output.

        Raises :class:`demo_operator.DemoError` when it fails.
        """
        if show:
            self._screen.command(["kubectl", "-n", NAMESPACE, *arguments])
        kubectl = [str(self.cluster.kubectl), f"--kubeconfig={self._kubeconfig}", "-n", NAMESPACE]
        done = subprocess.run([*kubectl, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise demo_operator.DemoError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        if show:
            self._screen.output(done.stdout)
        return done.stdout

    def edit(self, data: Mapping[str, str]) -> None:
        """Edit keys of the values ConfigMap, and show how."""
        patch = json.dumps({"data": data})
        self.kubectl("patch", "configmap", CONFIG_MAP, "--type=merge", "-p", patch, show=True)

    def revisions(self) -> dict[str, int]:
        """Return the last revision of each release."""
        found: dict[str, int] = {}
        for secret in self._items("secrets", "-l", "owner=helm"):
            labels = secret["metadata"]["labels"]
            found[labels["name"]] = max(found.get(labels["name"], 0), int(labels["version"]))
        return found

    def _items(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *arguments, "-o", "json"))["items"]
        return found

    def _environment(self) -> dict[str, str]:
        # Settings of the person's own operator would make another demo.
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.environ.get("HOME", str(self._ground.directory)),
            MARK: str(self._ground.directory),
            "LISTEN_ADDRESS": "127.0.0.1",
            "TMP_DIR": str(self._ground.directory / "tmp"),
            "DEBUG_UNIX_SOCKET": str(self._ground.directory / "debug.socket"),
        }

    def _short(self, path: pathlib.Path) -> str:
        return str(path.relative_to(self._ground.checkout))


@contextlib.contextmanager
def opened(checkout: pathlib.Path, screen: demo_screen.Screen) -> Iterator[Ground]:
    """Give the ground for this process alone, empty at first, and cleared at the end whatever happens.

    Raises :class:`demo_operator.DemoError` when another demo runs in this checkout.
    """
    directory = checkout / ".demo"
    directory.mkdir(mode=0o700, exist_ok=True)
    with _locked(directory):
        ground = Ground(checkout, screen)
        if ground.clear():
            screen.note("An earlier demo was killed; what it had left is removed.")
        try:
            yield ground
        finally:
            ground.clear()
            directory.rmdir()


@contextlib.contextmanager
def _locked(directory: pathlib.Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: pathlib.Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise demo_operator.DemoError(
            f"another demo runs in this checkout (it holds {directory}); end it with Ctrl-C first"
        ) from None

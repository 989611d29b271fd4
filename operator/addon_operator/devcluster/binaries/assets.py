"""Uses the binaries of an envtest directory (``KUBEBUILDER_ASSETS``) if they are of the wanted version."""

import functools
import json
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from addon_operator.devcluster import reporters
from addon_operator.devcluster.binaries import components
from addon_operator.process import commands

VARIABLE: Final = "KUBEBUILDER_ASSETS"
"""Environment variable of controller-runtime's envtest: a directory with kube-apiserver, etcd and kubectl."""

_PROVIDED: Final = frozenset({components.KUBE_APISERVER, components.ETCD, components.KUBECTL})
_VERSION: Final = re.compile(r"v(?P<minor>\d+\.\d+)\.")

Run = Callable[[Sequence[str]], str]
"""Runs a program and gives back its standard output."""


def _run(argv: Sequence[str]) -> str:
    return commands.run(argv, timeout=30).stdout


class EnvtestAssets:
    """The directory that ``KUBEBUILDER_ASSETS`` names, if it names one."""

    def __init__(self, environ: Mapping[str, str], reporter: reporters.Reporter, run: Run = _run) -> None:
        directory = environ.get(VARIABLE)
        self._directory = pathlib.Path(directory).absolute() if directory else None
        self._reporter = reporter
        self._run = run
        # What is wrong is said once, however often is asked.
        self._is_directory = functools.cache(self._look_for)
        self._is_usable = functools.cache(self._look_at)

    def find(self, names: Sequence[str], minor: str) -> dict[str, pathlib.Path]:
        """Say which of these binaries are there; those of Kubernetes only in the wanted minor version."""
        if self._directory is None or not self._is_directory(self._directory):
            return {}
        paths = [self._directory / name for name in names if name in _PROVIDED]
        return {path.name: path.resolve() for path in paths if self._is_usable(path, minor)}

    def _look_for(self, directory: pathlib.Path) -> bool:
        if not directory.is_dir():
            self._reporter.say(f"{VARIABLE} names {directory}, which is not a directory: searching further")
        return directory.is_dir()

    def _look_at(self, path: pathlib.Path, minor: str) -> bool:
        name = path.name
        if not os.access(path, os.X_OK):
            self._reporter.say(
                f"{VARIABLE} names {path.parent}, but there is no program {name}: searching further"
            )
            return False
        found = minor if name == components.ETCD else self._minor(name, path)
        if found != minor:
            self._reporter.say(f"{path} is version {found or 'unknown'}, not {minor}: searching further")
        return found == minor

    def _minor(self, name: str, path: pathlib.Path) -> str | None:
        try:
            if name == components.KUBECTL:
                client = json.loads(self._run([str(path), "version", "--client", "-o", "json"]))
                text = str(client["clientVersion"]["gitVersion"])
            else:
                text = self._run([str(path), "--version"])
        except (commands.CommandError, ValueError, KeyError, TypeError):
            return None
        match = _VERSION.search(text)
        return match["minor"] if match else None

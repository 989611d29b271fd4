"""The files of an operator under test: its modules, its settings, its log."""

import os
import pathlib
from collections.abc import Sequence
from typing import Final, Self

import msgspec

import addon_operator
from addon_operator.devcluster import handle
from addon_operator.documents import yaml_writing
from addon_operator.kernel import json_types, names
from addon_operator.loading import module_files
from addon_operator.testing.modules import module, places
from addon_operator.values import sources

_INHERITED: Final = ("PATH", "HOME", "LANG", "TZ", "PYTHONPATH")


class Stage(msgspec.Struct, frozen=True):
    """One directory with everything; modules are links to what is tested."""

    root: pathlib.Path
    modules: Sequence[module.Module]
    global_hooks: pathlib.Path

    @classmethod
    def of(cls, root: pathlib.Path, place: places.Place, modules: Sequence[module.Module]) -> Self:
        """Make it; ``place`` is where the modules are from."""
        directory = root / "modules"
        directory.mkdir(parents=True)
        for each in modules:
            (directory / each.path.name).symlink_to(each.path, target_is_directory=True)
        common = module_files.common_values(place.modules)
        (directory / module_files.VALUES_FILE).write_text(_of_these(common, modules), encoding="utf-8")
        return cls(root, modules, place.global_hooks)

    @property
    def log(self) -> pathlib.Path:
        """What the operator and its hooks print."""
        return self.root / "operator.log"

    @property
    def socket(self) -> pathlib.Path:
        """Where it is asked."""
        return self.root / "debug.socket"

    def environment(self, cluster: handle.DevCluster, namespace: str, port: int) -> dict[str, str]:
        """Return the whole environment of the operator."""
        kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        package = str(pathlib.Path(addon_operator.__file__).parents[1])
        hooks = {"GLOBAL_HOOKS_DIR": str(self.global_hooks)} if self.global_hooks.is_dir() else {}
        path = f"{cluster.bin}{os.pathsep}{kept.get('PATH', os.defpath)}"
        return {
            **kept,
            **hooks,
            "PATH": path,
            "PYTHONPATH": os.pathsep.join(filter(None, [package, kept.get("PYTHONPATH")])),
            "ADDON_OPERATOR_NAMESPACE": namespace,
            "KUBE_CONFIG": str(cluster.kubeconfig),
            "MODULES_DIR": str(self.root / "modules"),
            "ADDON_OPERATOR_TMP_DIR": str(self.root / "tmp"),
            "DEBUG_UNIX_SOCKET": str(self.socket),
            "ADDON_OPERATOR_LISTEN_ADDRESS": "127.0.0.1",
            "ADDON_OPERATOR_LISTEN_PORT": str(port),
            "HELM_BIN_PATH": str(cluster.helm),
            "LOG_TYPE": "json",
            "KUBE_CLIENT_QPS": "0",
        }


def _of_these(common: sources.ValuesFile, modules: Sequence[module.Module]) -> str:
    """Return the modules directory's own values, without those of modules that are not there."""
    chosen = [names.ModuleName(each.name) for each in modules]
    keys = {names.GLOBAL_KEY, *map(names.values_key, chosen), *map(names.enabled_key, chosen)}
    sections = {str(key): section for key, section in common.sections.items()}
    said: json_types.JsonObject = {**sections, **common.enabled}
    return yaml_writing.dump({key: value for key, value in said.items() if key in keys})

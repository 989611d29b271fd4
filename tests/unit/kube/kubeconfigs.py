"""Kubeconfig files for tests."""

import copy
import pathlib
from typing import Any

import yaml

SERVER = "https://10.0.0.1:6443"


def document(**user: object) -> dict[str, Any]:
    """A kubeconfig with one context ``one``."""
    return copy.deepcopy(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": SERVER}}],
            "users": [{"name": "u", "user": user}],
        }
    )


def write(path: pathlib.Path, config: object) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config if isinstance(config, str) else yaml.dump(config, Dumper=yaml.CSafeDumper))
    return path

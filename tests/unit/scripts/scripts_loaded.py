"""The scripts of the project as modules: they lie beside the package, not in it."""

import importlib.util
import pathlib
import types

ROOT = pathlib.Path(__file__).parents[3]


def load(name: str) -> types.ModuleType:
    """``scripts/<name>.py``."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

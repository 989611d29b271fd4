"""Read the manifests that come with the operator: the definitions of its own kinds."""

import pathlib
from typing import Any, Final

from addon_operator.documents import yaml_loader
from addon_operator.kernel import errors

PODPRESETS: Final = "podpresets.yaml"
MODULES: Final = "modules.yaml"
_PACKAGE: Final = pathlib.Path(__file__).resolve().parents[1]


def path_of(name: str, package: pathlib.Path = _PACKAGE) -> pathlib.Path:
    """Return where a manifest is: in an installed package or in a checkout.

    Raises :class:`ConfigurationError` when it is in neither.
    """
    candidates = (package / "crds" / name, package.parents[1] / "crds" / name)
    existing = next((path for path in candidates if path.is_file()), None)
    if existing is None:
        raise errors.ConfigurationError(
            f"the manifest {name} is missing ({candidates[0]}): install the package again"
        )
    return existing


def load(name: str) -> Any:  # noqa: ANN401 - as YAML is
    """Return what a manifest says.

    Raises :class:`ConfigurationError` when it is missing.
    """
    return yaml_loader.load(path_of(name).read_text(encoding="utf-8"))

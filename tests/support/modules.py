"""The one builder of modules: on disk (:class:`ModulesDir`), and as models (:func:`model_of`)."""

import pathlib
import shutil
import textwrap
from collections.abc import Mapping
from typing import Any, Final

from addon_operator.kernel import names
from addon_operator.loading import module_files
from addon_operator.modules import model, module_config

CHART: Final = "apiVersion: v2\nname: {name}\nversion: 1.0.0\n"
_EXECUTABLE: Final = ("hooks", "enabled")


def write(directory: pathlib.Path, files: Mapping[str, str]) -> None:
    """Write files by their paths below a directory; hooks and ``enabled`` are executable.

    Texts may be indented as a whole.
    """
    for place, text in files.items():
        path = directory / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        if any(part in _EXECUTABLE for part in path.relative_to(directory).parts) or place.endswith(".sh"):
            path.chmod(0o755)


class ModulesDir:
    """A directory of modules."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        name: str,
        files: Mapping[str, str] | None = None,
        *,
        order: int = 10,
        enabled: bool | None = True,
        chart: bool = True,
    ) -> pathlib.Path:
        """Write a module, or more files of one; return its directory.

        ``files`` go by their paths in it. By default it is enabled in its ``values.yaml`` (``None`` says
        nothing there) and has a chart without templates: the helm in memory renders what a test says.
        """
        directory = self.directory(name) or self.path / f"{order:03}-{name}"
        texts = dict(files or {})
        if not directory.exists():
            if enabled is not None and "values.yaml" not in texts:
                key = names.values_key(names.ModuleName(name))
                texts["values.yaml"] = f"{key}Enabled: {str(enabled).lower()}\n"
            if chart:
                texts.setdefault("Chart.yaml", CHART.format(name=name))
        directory.mkdir(exist_ok=True)
        write(directory, texts)
        return directory

    def write(self, files: Mapping[str, str]) -> None:
        """Write files that are of no single module, such as ``values.yaml``."""
        write(self.path, files)

    def directory(self, name: str) -> pathlib.Path | None:
        """Where a module is; ``None`` if there is none of that name."""
        return next((path for path in self.path.iterdir() if path.name.partition("-")[2] == name), None)

    def remove(self, name: str, *places: str) -> None:
        """Remove files of a module, or all of it."""
        directory = self.directory(name)
        assert directory is not None
        for path in [directory / place for place in places] or [directory]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def load(self, **options: Any) -> module_files.LoadedModules:  # noqa: ANN401 - as load takes them
        """Read all of it as the operator does."""
        return module_files.load([self.path], 1, **options)


def model_of(name: str, order: int = 1, config: str = "", **fields: Any) -> model.Module:  # noqa: ANN401
    """A module as a model, without files: ``config`` is the text of its ``module.yaml``.

    ``fields`` are other ones of :class:`.Module`, such as ``has_chart``.
    """
    own = names.ModuleName(name)
    read = module_config.parse(own, config, f"{name}/module.yaml") if config else module_config.NOTHING
    return model.Module(own, order, pathlib.Path(name), config=read, **fields)

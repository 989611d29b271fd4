"""Certificates and keys that a kubeconfig holds itself, as files: TLS libraries read nothing else."""

import hashlib
import os
import pathlib
import tempfile
import weakref
from typing import Final

from addon_operator.process import workspaces

_PREFIX: Final = "addon-operator-credentials-"
_PRIVATE: Final = 0o600


class CredentialFiles:
    """Private files that end with this object, at the latest with the process, or when another one begins."""

    def __init__(self) -> None:
        self._workspace: workspaces.Workspace | None = None

    def holding(self, content: bytes) -> pathlib.Path:
        """A file with that content; the same one for the same content."""
        if self._workspace is None:
            parent = pathlib.Path(tempfile.gettempdir())
            workspaces.remove_dead(parent, _PREFIX)
            self._workspace = workspaces.Workspace(parent, _PREFIX)
            weakref.finalize(self, self._workspace.close)
        path = self._workspace.path / hashlib.sha256(content).hexdigest()
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as file:
                file.write(content)
        return path

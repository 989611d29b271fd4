"""Certificates and keys that a kubeconfig holds itself, as files: TLS libraries read nothing else."""

import hashlib
import os
import pathlib
import shutil
import tempfile
import weakref
from typing import Final

_PRIVATE: Final = 0o600


class CredentialFiles:
    """Private files that end with this object, at the latest with the process."""

    def __init__(self) -> None:
        self._directory: pathlib.Path | None = None

    def holding(self, content: bytes) -> pathlib.Path:
        """A file with that content; the same one for the same content."""
        if self._directory is None:
            self._directory = pathlib.Path(tempfile.mkdtemp(prefix="addon-operator-credentials-"))
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        path = self._directory / hashlib.sha256(content).hexdigest()
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as file:
                file.write(content)
        return path

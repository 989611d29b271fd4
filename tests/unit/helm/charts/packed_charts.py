"""Archives of charts, right and wrong ones."""

import io
import pathlib
import tarfile


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def pack(path: pathlib.Path, *members: tuple[tarfile.TarInfo, bytes]) -> pathlib.Path:
    with tarfile.open(path, "w:gz") as packed:
        for info, content in members:
            packed.addfile(info, io.BytesIO(content))
    return path


CHART = member("web/Chart.yaml", b"name: web\n")

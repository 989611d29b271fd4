"""What the Dockerfile says, for those who build from it: arguments, downloads, base images."""

import base64
import hashlib
import pathlib
import re
import zipfile
from collections.abc import Mapping
from typing import Final

DOCKER: Final = pathlib.Path(__file__).resolve().parents[1] / "deploy" / "docker"
DOCKERFILE: Final = DOCKER / "Dockerfile"
_ARGUMENT: Final = re.compile(r"^ARG (?P<name>[A-Z_]+)=(?P<value>\S+)$", re.MULTILINE)
_URL: Final = re.compile(r'"(https://[^"]+)"')
_VARIABLE: Final = re.compile(r"\$\{([A-Z_]+)\}")
_PROGRAM: Final = re.compile(r"^[a-z]+")


def arguments() -> dict[str, str]:
    """Build arguments with their defaults."""
    return {found["name"]: found["value"] for found in _ARGUMENT.finditer(DOCKERFILE.read_text("utf-8"))}


def downloads(architecture: str) -> Mapping[str, tuple[str, str]]:
    """URL and SHA-256 of each program that is downloaded, by its name."""
    known = {**arguments(), "TARGETARCH": architecture}
    checksums: dict[str, str] = {}
    for line in (DOCKER / "checksums").read_text("utf-8").splitlines():
        checksum, file = line.split()
        checksums[file] = checksum
    found = {}
    for template in _URL.findall(DOCKERFILE.read_text("utf-8")):
        url = _VARIABLE.sub(lambda variable: known[variable[1]], template)
        file = url.rpartition("/")[2]
        program = _PROGRAM.match(file)
        assert program is not None, url  # noqa: S101 - the recipe is ours
        found[program[0]] = (url, checksums[file])
    return found


def write_wheel(directory: pathlib.Path, name: str = "a_package_for_hooks") -> pathlib.Path:
    """Write a package of one module, as any other from an index; needs neither an index nor a build."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "ANSWER = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items()
    )  # fmt: skip
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()

"""Writes the digests of the base images into the Dockerfile, as the registry has them now.

``--check`` writes nothing and asks nobody: it ends with code 1 when a base image has no digest. No release is
made then.
"""

import argparse
import json
import pathlib
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Final

_DOCKERFILE: Final = pathlib.Path(__file__).resolve().parents[1] / "deploy" / "docker" / "Dockerfile"
_BASE: Final = re.compile(
    r"^(?P<head>ARG [A-Z]+_IMAGE=)docker\.io/(?P<repository>[a-z0-9/._-]+):(?P<tag>[A-Za-z0-9._-]+)"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?$",
    re.MULTILINE,
)
_TOKENS: Final = "https://auth.docker.io/token?service=registry.docker.io&scope=repository:{}:pull"
_MANIFESTS: Final = "https://registry-1.docker.io/v2/{}/manifests/{}"
_INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SECONDS: Final = 30

DigestOf = Callable[[str, str], str]
"""Gives the digest of a repository's tag."""


def without_digest(dockerfile: str) -> list[str]:
    """Return base images that are named by their tag only."""
    return [
        f"{found['repository']}:{found['tag']}"
        for found in _BASE.finditer(dockerfile)
        if found["digest"] is None
    ]


def pinned(dockerfile: str, digest_of: DigestOf) -> str:
    """Return the same with the digest of each base image behind its tag."""

    def pin(found: re.Match[str]) -> str:
        repository, tag = found["repository"], found["tag"]
        return f"{found['head']}docker.io/{repository}:{tag}@{digest_of(repository, tag)}"

    return _BASE.sub(pin, dockerfile)


def asked_of_registry(repository: str, tag: str) -> str:
    """Return the digest of the index with all architectures."""
    with urllib.request.urlopen(_TOKENS.format(repository), timeout=_SECONDS) as answer:  # noqa: S310 - https
        token = json.load(answer)["token"]
    headers = {"Authorization": f"Bearer {token}", "Accept": _INDEXES}
    request = urllib.request.Request(_MANIFESTS.format(repository, tag), headers=headers, method="HEAD")  # noqa: S310 - https
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - https
        digest = str(answer.headers["Docker-Content-Digest"])
    if _DIGEST.fullmatch(digest) is None:
        raise SystemExit(f"the registry gives no digest of {repository}:{tag}, but {digest!r}")
    return digest


def main(arguments: Sequence[str] | None = None) -> int:
    """Pin, or check; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only see whether all have a digest")
    options = parser.parse_args(arguments)
    text = _DOCKERFILE.read_text("utf-8")
    if options.check:
        for image in without_digest(text):
            print(f"{image} has no digest in the Dockerfile: run 'make pin-images', and commit that")
        return 1 if without_digest(text) else 0
    try:
        _DOCKERFILE.write_text(pinned(text, asked_of_registry), "utf-8")
    except urllib.error.URLError as error:
        print(f"the registry was not reached, and nothing is written: {error.reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

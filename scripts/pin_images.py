"""Writes the digests of images of others, as their registries have them now, to where these are named.

Those are the base images in the Dockerfile, and git-sync in the values of the chart. ``--check`` writes
nothing and asks nobody: it ends with code 1 when one of them has no digest. No release is made then.
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

_DEPLOY: Final = pathlib.Path(__file__).resolve().parents[1] / "deploy"
_FILES: Final = (_DEPLOY / "docker" / "Dockerfile", _DEPLOY / "chart" / "addon-operator" / "values.yaml")
_IMAGE: Final = re.compile(
    r"^(?P<head>ARG [A-Z]+_IMAGE=| +image: )(?P<registry>[a-z0-9-]+(?:\.[a-z0-9-]+)+)/"
    r"(?P<repository>[a-z0-9/._-]+):(?P<tag>[A-Za-z0-9._-]+)(?:@(?P<digest>sha256:[0-9a-f]{64}))?$",
    re.MULTILINE,
)
_HUB: Final = "docker.io"
_HUB_REGISTRY: Final = "registry-1.docker.io"
_TOKENS: Final = "https://auth.docker.io/token?service=registry.docker.io&scope=repository:{}:pull"
_MANIFESTS: Final = "https://{}/v2/{}/manifests/{}"
_INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SECONDS: Final = 30

DigestOf = Callable[[str, str, str], str]
"""Gives the digest of a registry's repository's tag."""


def without_digest(text: str) -> list[str]:
    """Return images that are named by their tag only."""
    return [
        f"{found['registry']}/{found['repository']}:{found['tag']}"
        for found in _IMAGE.finditer(text)
        if found["digest"] is None
    ]


def pinned(text: str, digest_of: DigestOf) -> str:
    """Return the same with the digest of each image behind its tag."""

    def pin(found: re.Match[str]) -> str:
        image = found["registry"], found["repository"], found["tag"]
        return f"{found['head']}{image[0]}/{image[1]}:{image[2]}@{digest_of(*image)}"

    return _IMAGE.sub(pin, text)


def asked_of_registry(registry: str, repository: str, tag: str) -> str:
    """Return the digest of the index with all architectures."""
    headers = {"Accept": _INDEXES}
    if registry == _HUB:
        registry = _HUB_REGISTRY
        with urllib.request.urlopen(_TOKENS.format(repository), timeout=_SECONDS) as answer:  # noqa: S310 - https
            headers["Authorization"] = f"Bearer {json.load(answer)['token']}"
    url = _MANIFESTS.format(registry, repository, tag)
    request = urllib.request.Request(url, headers=headers, method="HEAD")  # noqa: S310 - https
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
    texts = {path: path.read_text("utf-8") for path in _FILES}
    if options.check:
        missing = [(path, image) for path, text in texts.items() for image in without_digest(text)]
        for path, image in missing:
            print(f"{image} has no digest in {path.name}: run 'make pin-images', and commit that")
        return 1 if missing else 0
    try:
        found = {path: pinned(text, asked_of_registry) for path, text in texts.items()}
    except urllib.error.URLError as error:
        print(f"a registry was not reached, and nothing is written: {error.reason}", file=sys.stderr)
        return 1
    for path, text in found.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

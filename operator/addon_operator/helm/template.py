"""``helm template``: what a chart renders to, without asking the cluster unless the chart does."""

import dataclasses
import pathlib
import re
from typing import Final

from addon_operator.helm import capabilities, chart_files, command, errors
from addon_operator.modules import release

_MANIFEST_BYTES: Final = 64 * 1024 * 1024
_KEPT_NEWLINES: Final = re.compile(rb"[|>][0-9]?\+")
"""Begins a YAML text whose blank lines at the end belong to it."""


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateRequest:
    """What is rendered."""

    chart: pathlib.Path
    values: pathlib.Path
    capabilities: capabilities.Capabilities
    with_api_versions: bool
    """Whether the chart asks for the API versions of the cluster; they make a long command line."""
    with_lookup: bool
    """Whether the chart looks objects up, so that it has to speak with the cluster."""
    timeout: float
    """Seconds."""


async def template(helm: command.Helm, call: command.Call, request: TemplateRequest) -> bytes:
    """Render the manifest, hooks included, as an upgrade would: the same before and after the first install.

    Raises :class:`errors.HelmError` when Helm fails or the manifest is beyond any size that could be stored.
    """
    result = await helm.run(call, _arguments(call, request), request.timeout, capture_stdout=_MANIFEST_BYTES)
    if result.stdout_is_cut or result.stdout is None:
        raise errors.HelmError(
            call.module,
            f"the rendered manifest is larger than {_MANIFEST_BYTES // 1024 // 1024} MiB; "
            "a release can hold about 1 MiB, so make the chart smaller",
        )
    return result.stdout


def checksum(manifest: bytes) -> release.Checksum:
    """The checksum of a manifest; blank lines at the end of its documents do not count.

    Helm 3 and 4 put another number of them there, and a change of Helm alone is no reason for a revision.
    """
    if _KEPT_NEWLINES.search(manifest):
        return chart_files.checksum(manifest)
    return chart_files.checksum(b"\n---".join(document.rstrip() for document in manifest.split(b"\n---")))


def _arguments(call: command.Call, request: TemplateRequest) -> list[str]:
    arguments = [
        "template",
        call.module,
        str(request.chart),
        "--values",
        str(request.values),
        "--is-upgrade",
        "--skip-crds",
        "--disable-openapi-validation",
        "--kube-version",
        request.capabilities.kube_version,
    ]
    if request.with_api_versions:
        for version in sorted(request.capabilities.api_versions):
            arguments += ["--api-versions", version]
    if request.with_lookup:
        arguments.append("--dry-run=server")
    return arguments

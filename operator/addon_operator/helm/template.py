"""``helm template``: what a chart renders to, without asking the cluster unless the chart does."""

import dataclasses
import pathlib
from typing import Final

from addon_operator.documents import manifest_diff
from addon_operator.helm import capabilities, command, helm_errors
from addon_operator.helm.charts import chart_files
from addon_operator.modules import release

_MANIFEST_BYTES: Final = 64 * 1024 * 1024


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
    is_upgrade: bool = True
    """Whether it is rendered as an upgrade would, or as the first install."""


async def template(helm: command.Helm, call: command.Call, request: TemplateRequest) -> bytes:
    """Render the manifest, hooks included.

    Raises :class:`helm_errors.HelmError` when Helm fails or the manifest is beyond any size that could be
    stored.
    """
    result = await helm.run(call, _arguments(call, request), request.timeout, capture_stdout=_MANIFEST_BYTES)
    if result.stdout_is_cut or result.stdout is None:
        raise helm_errors.HelmError(
            call.module,
            f"the rendered manifest is larger than {_MANIFEST_BYTES // 1024 // 1024} MiB; "
            "a release can hold about 1 MiB, so make the chart smaller",
        )
    return result.stdout


def checksum(manifest: str, again: str | None = None) -> release.Checksum:
    """The checksum of a manifest's documents; their order, layout and comments make no difference.

    Helm 3 and 4 do not write the same layout, and a change of Helm alone is no reason for a revision.
    ``again`` is another render of the same: a hook's name that is another one in each makes no difference.
    """
    documents = manifest_diff.parse(manifest)
    changing = manifest_diff.changing_names(documents, manifest_diff.parse(again)) if again else frozenset()
    return chart_files.checksum(manifest_diff.fingerprint(documents, changing))


def _arguments(call: command.Call, request: TemplateRequest) -> list[str]:
    arguments = [
        "template",
        call.module,
        str(request.chart),
        "--values",
        str(request.values),
        "--skip-crds",
        "--disable-openapi-validation",
        "--kube-version",
        request.capabilities.kube_version,
    ]
    if request.is_upgrade:
        arguments.append("--is-upgrade")
    if request.with_api_versions:
        for version in sorted(request.capabilities.api_versions):
            arguments += ["--api-versions", version]
    if request.with_lookup:
        arguments.append("--dry-run=server")
    return arguments

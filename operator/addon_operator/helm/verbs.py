"""The verbs of ``helm`` that the operator needs: ``template``, ``upgrade --install`` and ``uninstall``."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Final

from addon_operator.helm import command, helm_errors
from addon_operator.kernel import durations

_MANIFEST_BYTES: Final = 64 * 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateRequest:
    """What is rendered."""

    chart: pathlib.Path
    values: pathlib.Path
    kube_version: str
    """Such as ``v1.36.3``."""
    api_versions: frozenset[str]
    """Those of the cluster, if the chart asks for them; they make a long command line."""
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
    result = await helm.run(
        call, _template_arguments(call, request), request.timeout, capture_stdout=_MANIFEST_BYTES
    )
    if result.stdout_is_cut or result.stdout is None:
        raise helm_errors.HelmError(
            call.module,
            f"the rendered manifest is larger than {_MANIFEST_BYTES // 1024 // 1024} MiB; "
            "a release can hold about 1 MiB, so make the chart smaller",
        )
    return result.stdout


def _template_arguments(call: command.Call, request: TemplateRequest) -> list[str]:
    arguments = [
        "template",
        call.module,
        str(request.chart),
        "--values",
        str(request.values),
        "--skip-crds",
        "--disable-openapi-validation",
        "--kube-version",
        request.kube_version,
    ]
    if request.is_upgrade:
        arguments.append("--is-upgrade")
    for version in sorted(request.api_versions):
        arguments += ["--api-versions", version]
    if request.with_lookup:
        arguments.append("--dry-run=server")
    return arguments


@dataclasses.dataclass(frozen=True, slots=True)
class UpgradeRequest:
    """What is installed."""

    chart: pathlib.Path
    values: pathlib.Path
    labels: Mapping[str, str]
    """Labels that Helm saves with the revision."""
    validate: bool
    """Whether Helm checks the manifest against the OpenAPI schemas of the cluster first."""
    history_max: int
    """Revisions that are kept; 0 for all."""
    timeout: float
    """Seconds for each single step of Helm, such as one hook."""
    take_ownership: bool = False
    """Whether objects that exist already become the release's; else Helm refuses that."""


async def upgrade(helm: command.Helm, call: command.Call, request: UpgradeRequest) -> None:
    """Install the release or upgrade it.

    Fields that somebody else has set are overwritten, with Helm 3 and 4 alike: the chart says what they are.
    ``crds/`` of the chart is not Helm's business.
    Raises :class:`.HelmError` when Helm fails.
    """
    await helm.run(call, _upgrade_arguments(helm, call, request), command.time_limit(request.timeout))


def _upgrade_arguments(helm: command.Helm, call: command.Call, request: UpgradeRequest) -> list[str]:
    arguments = [
        "upgrade",
        call.module,
        str(request.chart),
        "--install",
        "--values",
        str(request.values),
        "--reset-values",
        "--skip-crds",
        "--history-max",
        str(request.history_max),
        "--timeout",
        durations.text_of(request.timeout),
        "--labels",
        ",".join(f"{key}={value}" for key, value in sorted(request.labels.items())),
    ]
    if request.take_ownership:
        arguments.append("--take-ownership")
    if not request.validate:
        arguments.append("--disable-openapi-validation")
    if helm.binary.major >= 4:
        # Helm 3 overwrites the chart's fields whoever set them; server-side apply does so only by force.
        arguments += ["--server-side=true", "--force-conflicts"]
    return arguments


async def uninstall(
    helm: command.Helm, call: command.Call, timeout: float, *, keep_history: bool = False
) -> None:
    """Uninstall the release with its history, if that is not to be kept; one that is not there is fine.

    ``timeout`` is in seconds, for each single step of Helm. Raises
    :class:`.HelmError` when Helm fails.
    """
    arguments = ["uninstall", call.module, "--ignore-not-found", "--timeout", durations.text_of(timeout)]
    if keep_history:
        arguments.append("--keep-history")
    await helm.run(call, arguments, command.time_limit(timeout))

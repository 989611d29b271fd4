"""``helm upgrade --install``: a new revision of a release."""

import dataclasses
import pathlib
from collections.abc import Mapping

from addon_operator.helm import command
from addon_operator.kernel import durations


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
    await helm.run(call, _arguments(helm, call, request), command.time_limit(request.timeout))


def _arguments(helm: command.Helm, call: command.Call, request: UpgradeRequest) -> list[str]:
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

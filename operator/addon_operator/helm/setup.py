"""A release manager from settings: the binary is found, a private workspace made and removed again."""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import AsyncIterator, Mapping

from addon_operator.helm import binary, capabilities, command
from addon_operator.helm.charts import chart_files, rendering
from addon_operator.helm.releases import (
    live_objects,
    observed_releases,
    release_records,
    release_types,
    releases,
)
from addon_operator.kernel import clock
from addon_operator.process.children import children


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What the release manager needs of the rest of the operator."""

    environ: Mapping[str, str]
    """The operator's environment; of Helm's own variables only ``HELM_DRIVER`` and its rate limits count."""
    tmp_dir: pathlib.Path
    run_child: children.RunChild
    records: release_records.RecordApi
    capabilities: capabilities.ReadCapabilities
    live: live_objects.LiveObjects
    clock: clock.Clock
    on_warning: command.WarningHandler


@contextlib.asynccontextmanager
async def release_manager(
    helm: binary.HelmBinary,
    target: command.Target,
    options: release_types.Options,
    around: Surroundings,
) -> AsyncIterator[releases.ReleaseManager]:
    """The releases of the target's namespace, for as long as the context lasts.

    Raises :class:`.ConfigurationError` for a ``HELM_DRIVER`` that is not served.
    """
    driver = around.environ.get("HELM_DRIVER", "")
    records = release_records.ReleaseRecords(around.records, target.namespace, driver)
    with tempfile.TemporaryDirectory(
        prefix="helm-", dir=around.tmp_dir, ignore_cleanup_errors=True
    ) as workspace:
        yield releases.ReleaseManager(
            rendering.Tools(
                helm=command.Helm(
                    helm, target, around.environ, pathlib.Path(workspace), around.run_child, around.on_warning
                ),
                observed=observed_releases.ObservedReleases(records),
                files=chart_files.ChartFilesReader(around.clock),
                capabilities=capabilities.CapabilityReader(around.capabilities, around.clock),
                options=options,
                live=around.live,
                clock=around.clock,
                on_warning=around.on_warning,
            )
        )

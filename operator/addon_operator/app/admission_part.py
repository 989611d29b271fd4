"""Whether admission is a part of the operator; if it is not, what it is made of is not imported."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

import structlog

from addon_operator.app import config_checks
from addon_operator.kernel import errors
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client
from addon_operator.settings import settings as settings_module
from addon_operator.telemetry import metrics

if TYPE_CHECKING:
    from addon_operator.app import admission


def is_enabled(settings: settings_module.Settings, access: auth.ClusterAccess) -> bool:
    """Say whether pods are admitted: if the API server can call this operator, unless the setting says.

    Raises :class:`.ConfigurationError` if they are not and nothing else runs.
    """
    enabled = settings.admission_server_enabled == "true"
    if settings.admission_server_enabled == "auto":
        in_cluster = isinstance(access.source, credentials.ServiceAccountSource)
        enabled = in_cluster or settings.webhook_url is not None
    if settings.admission_only and not enabled:
        raise errors.ConfigurationError(
            "ADMISSION_ONLY is set, and pods are not admitted here: set WEBHOOK_URL or "
            "ADMISSION_SERVER_ENABLED, or leave ADMISSION_ONLY out"
        )
    return enabled


@contextlib.asynccontextmanager
async def serving(
    settings: settings_module.Settings,
    access: auth.ClusterAccess,
    checker: config_checks.ConfigChecks,
    meters: metrics.Metrics,
    log: structlog.typing.FilteringBoundLogger,
    environ: Mapping[str, str],
) -> AsyncIterator["admission.Admission | None"]:
    """Serve admission until the context ends, if the settings want it.

    Raises what :meth:`.Admission.start` raises.
    """
    if not is_enabled(settings, access):
        log.info("pods are not admitted with PodPresets: see ADMISSION_SERVER_ENABLED and WEBHOOK_URL")
        yield None
        return
    from addon_operator.app import admission

    async with client.KubeClient(access, done=meters.request_done) as kube:
        part = admission.Admission(settings, kube, checker.findings, meters, log, environ.get("HOSTNAME", ""))
        await part.start()
        try:
            yield part
        finally:
            await part.stop()

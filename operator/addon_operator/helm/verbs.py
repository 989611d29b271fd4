"""The verbs of ``helm`` that the operator needs."""

import pathlib
from collections.abc import Mapping
from typing import Final

import msgspec

from addon_operator.helm import capabilities, command, helm_errors, release_types
from addon_operator.kernel import clock

_MANIFEST_BYTES: Final = 64 * 1024 * 1024


_CHECKS_OWNERS_SINCE: Final = 4
"""Major version of Helm from which on a render that looks at the cluster fails if objects are of others."""
_NO_SCHEMAS: Final = "--skip-schema-validation"


class Files(msgspec.Struct, frozen=True):
    """The chart and the values as Helm reads them."""

    chart: pathlib.Path
    values: pathlib.Path
    changes: pathlib.Path | None = None
    """What :mod:`.post_renderer_main` makes of the manifest, if that is to be changed."""


async def template(
    helm: command.Helm,
    call: command.Call,
    files: Files,
    cluster: capabilities.Capabilities,
    timeout: float,
    *,
    with_lookup: bool = False,
    is_upgrade: bool = True,
) -> bytes:
    """Render the manifest, hooks included, as an upgrade would or the first install.

    Versions of the API make a long command line: ``cluster`` has them only for a chart that asks for them.
    ``with_lookup`` lets the chart ask the cluster for objects. ``timeout`` is in seconds.
    Raises :class:`helm_errors.HelmError` when Helm fails or the manifest is beyond any size that could be
    stored.
    """
    arguments = [
        "template",
        helm.places.of(call.module).name,
        str(files.chart),
        "--values",
        str(files.values),
        "--skip-crds",
    ]
    arguments += ["--disable-openapi-validation", "--kube-version", cluster.kube_version]
    if is_upgrade:
        arguments.append("--is-upgrade")
    if call.skips_schemas:
        arguments.append(_NO_SCHEMAS)
    for version in sorted(cluster.api_versions):
        arguments += ["--api-versions", version]
    if with_lookup:
        arguments.append("--dry-run=server")
        if helm.binary.major >= _CHECKS_OWNERS_SINCE and not is_upgrade:
            arguments.append("--take-ownership")
    result = await helm.run_changing(call, arguments, timeout, files.changes, capture_stdout=_MANIFEST_BYTES)
    if result.stdout_is_cut or result.stdout is None:
        raise helm_errors.HelmError(
            call.module,
            f"the rendered manifest is larger than {_MANIFEST_BYTES // 1024 // 1024} MiB; "
            "a release can hold about 1 MiB, so make the chart smaller",
        )
    return result.stdout


async def upgrade(
    helm: command.Helm,
    call: command.Call,
    files: Files,
    options: release_types.Options,
    labels: Mapping[str, str | None],
    *,
    validate: bool,
    take_ownership: bool = False,
) -> bytes:
    """Install the release or upgrade it.

    Returns the revision that Helm made, as JSON; nothing if that is beyond any size that could be stored.
    Fields that somebody else has set are overwritten, with Helm 3 and 4 alike: the chart says what they are.
    ``crds/`` of the chart is not Helm's business. ``labels`` are saved with the revision, beside those of the
    one before; ``None`` removes one. With ``validate`` Helm checks the manifest against the cluster's OpenAPI
    schemas first. With ``take_ownership`` objects that exist already become the release's; else Helm
    refuses that.
    Raises :class:`.HelmError` when Helm fails.
    """
    arguments = ["upgrade", helm.places.of(call.module).name, str(files.chart), "--install"]
    arguments += ["--reset-values", "--history-max", str(options.history_max)]
    arguments += _of_revision(helm, call, files, options, labels, takes_ownership=take_ownership)
    if not validate:
        arguments.append("--disable-openapi-validation")
    return await _make(helm, call, arguments, options, files)


async def install_again(
    helm: command.Helm,
    call: command.Call,
    files: Files,
    options: release_types.Options,
    labels: Mapping[str, str | None],
    *,
    take_ownership: bool = False,
) -> bytes:
    """Install a release of which only failed or uninstalled revisions are kept; see :func:`upgrade`.

    Objects that it made before become part of it again. Nothing is deleted, no earlier revision either.
    Raises :class:`.HelmError` when Helm fails.
    """
    arguments = ["install", helm.places.of(call.module).name, str(files.chart), "--replace"]
    arguments += _of_revision(helm, call, files, options, labels, takes_ownership=take_ownership)
    return await _make(helm, call, arguments, options, files)


async def _make(
    helm: command.Helm,
    call: command.Call,
    arguments: list[str],
    options: release_types.Options,
    files: Files,
) -> bytes:
    """Make a revision, and return it as JSON; nothing if it is beyond any size that could be stored."""
    limit = command.time_limit(options.timeout)
    arguments += ["--output", "json"]
    result = await helm.run_changing(call, arguments, limit, files.changes, capture_stdout=_MANIFEST_BYTES)
    return b"" if result.stdout_is_cut else result.stdout or b""


def _of_revision(
    helm: command.Helm,
    call: command.Call,
    files: Files,
    options: release_types.Options,
    labels: Mapping[str, str | None],
    *,
    takes_ownership: bool,
) -> list[str]:
    """Return the flags that both verbs have that make a revision from a chart."""
    arguments = ["--values", str(files.values), "--skip-crds"]
    arguments += ["--timeout", clock.duration_text(options.timeout)]
    arguments += ["--labels", ",".join(f"{key}={value or 'null'}" for key, value in sorted(labels.items()))]
    if call.create_namespace:
        arguments.append("--create-namespace")
    if call.skips_schemas:
        arguments.append(_NO_SCHEMAS)
    if takes_ownership:
        arguments.append("--take-ownership")
    if helm.binary.major >= 4:
        # Helm 3 overwrites the chart's fields whoever set them; server-side apply does so only by force.
        arguments += ["--server-side=true", "--force-conflicts"]
    return arguments


async def rollback(
    helm: command.Helm,
    call: command.Call,
    options: release_types.Options,
    revision: int,
    *,
    is_server_side: bool,
) -> None:
    """Make a revision that is as that one was.

    Raises :class:`.HelmError` when Helm fails.
    """
    arguments = ["rollback", helm.places.of(call.module).name, str(revision)]
    arguments += ["--history-max", str(options.history_max)]
    arguments += ["--timeout", clock.duration_text(options.timeout)]
    if helm.binary.major >= 4 and is_server_side:
        arguments += ["--server-side=true", "--force-conflicts"]
    await helm.run(call, arguments, command.time_limit(options.timeout))


async def test(helm: command.Helm, call: command.Call, timeout: float) -> None:
    """Run the tests of the release's chart; ``timeout`` is in seconds, for each.

    Raises :class:`.HelmError` when one fails.
    """
    arguments = ["test", helm.places.of(call.module).name, "--timeout", clock.duration_text(timeout)]
    await helm.run(call, arguments, command.time_limit(timeout))


async def uninstall(
    helm: command.Helm, call: command.Call, timeout: float, *, keep_history: bool = False
) -> None:
    """Uninstall the release with its history, if that is not to be kept; one that is not there is fine.

    ``timeout`` is in seconds, for each single step of Helm. Raises
    :class:`.HelmError` when Helm fails.
    """
    arguments = ["uninstall", helm.places.of(call.module).name, "--ignore-not-found"]
    arguments += ["--timeout", clock.duration_text(timeout)]
    if keep_history:
        arguments.append("--keep-history")
    await helm.run(call, arguments, command.time_limit(timeout))

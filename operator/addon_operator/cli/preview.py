"""``addon-operator preview``: what would become of an object in the cluster."""

import asyncio
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from addon_operator.cli import completion, exit_codes, printing

if TYPE_CHECKING:
    # Imported when the command runs: the client of the cluster takes time to load.
    from addon_operator.commands.preview import preview as app_preview
    from addon_operator.commands.preview import preview_admission
    from addon_operator.kube.access import auth

_CLUSTER_SETTINGS: Final = ("kube_config", "kube_context", "kube_server")
_VOLUME_TYPES: Final = "podpreset_volume_types"

Document = dict[str, Any]


@click.group(cls=printing.Group)
def preview() -> None:
    """Show what the operator would make of an object, without changing anything."""


@preview.command()
@click.option("-f", "--filename", "files", multiple=True, required=True, metavar="FILE", type=click.Path(),
              help="Manifests of pods or workloads; - is standard input. May be repeated.")  # fmt: skip
@click.option("-n", "--namespace", metavar="NAME", shell_complete=completion.complete_namespace,
              help="Namespace of the pods, if their manifest names none.")  # fmt: skip
@click.option("--presets", multiple=True, metavar="FILE", type=click.Path(),
              help="Manifests of PodPresets, instead of those of the cluster. May be repeated.")  # fmt: skip
@click.option("--objects", multiple=True, metavar="FILE", type=click.Path(),
              help="Manifests of ConfigMaps, Secrets and Services. May be repeated.")  # fmt: skip
@printing.output_option("yaml", ("yaml", "json", "diff"))
@exit_codes.option("there are conflicts or unresolved references")
@click.option("--cluster/--no-cluster", "use_cluster", default=None,
              help="Ask the cluster for what the files lack, or never. "
                   "[default: unless both --presets and --objects are given]")  # fmt: skip
@click.option(
    "--kubeconfig",
    "--kube-config",
    "kube_config",
    metavar="PATH",
    type=click.Path(),
    help="Path of the kubeconfig. [KUBE_CONFIG]",
)
@click.option(
    "--context",
    "--kube-context",
    "kube_context",
    metavar="NAME",
    shell_complete=completion.complete_context,
    help="Context of the kubeconfig. [KUBE_CONTEXT]",
)
@click.option("--kube-server", metavar="URL", help="URL of the API server. [KUBE_SERVER]")
@click.option("--podpreset-volume-types", metavar="A,B",
              help="Types of volumes that PodPresets may have. [PODPRESET_VOLUME_TYPES]")  # fmt: skip
def pod(
    *,
    files: Sequence[str],
    presets: Sequence[str],
    objects: Sequence[str],
    namespace: str | None,
    use_cluster: bool | None,
    output: str,
    exit_code: bool,
    **flags: str | None,
) -> exit_codes.ExitCode:
    """Show pods as they would be admitted, and the environment of their containers.

    Of a workload, such as a Deployment or a CronJob, the pod template is shown. ConfigMaps, Secrets, Services
    and PodPresets that stand in the same files are taken into account.
    """
    from addon_operator.commands.preview import preview as app_preview

    volume_types = _volume_types(flags.pop(_VOLUME_TYPES))
    request = app_preview.PreviewRequest(
        files=files,
        presets=presets,
        objects=objects,
        namespace=namespace,
        use_cluster=use_cluster,
        volume_types=volume_types,
        must_reach=any(flags.values()),
    )
    report = asyncio.run(app_preview.preview(request, functools.partial(_load_access, flags), _stdin))
    _show(report, output)
    if report.problems:
        raise app_preview.together(report.problems)
    is_found = exit_code and not all(one.is_clean for one in report.previews)
    return exit_codes.of_check(is_found=is_found, exit_code=exit_code)


def _load_access(flags: Mapping[str, str | None]) -> "auth.ClusterAccess":
    from addon_operator.kube.access import auth
    from addon_operator.settings import settings_loading

    values = settings_loading.some(_CLUSTER_SETTINGS, flags, os.environ).values
    return auth.load_access(values["kube_config"], values["kube_context"], values["kube_server"], os.environ)


def _volume_types(flag: str | None) -> Sequence[str]:
    from addon_operator.settings import settings_loading

    resolution = settings_loading.some([_VOLUME_TYPES], {_VOLUME_TYPES: flag}, os.environ)
    names: Sequence[str] = resolution.values[_VOLUME_TYPES]
    return names


def _stdin() -> bytes:
    return sys.stdin.buffer.read()


def _show(report: "app_preview.PreviewReport", output: str) -> None:
    notes = list(report.notes)
    if output == "diff":
        # The difference itself does not show them.
        notes += [line for one in report.previews for line in _findings(one)]
    for note in notes:
        printing.note(note)
    printing.show_highlighted(_RENDERERS[output](report.previews), output)


def _document(one: "preview_admission.PodPreview") -> Document:
    return {
        "pod": one.admitted,
        "applied": [
            {"name": each.name, "resourceVersion": each.resource_version} for each in one.applied
        ],
        "conflicts": [{"preset": each.preset, "message": each.message} for each in one.conflicts],
        "containers": [_container(each) for each in one.containers],
    }  # fmt: skip


def _container(one: "preview_admission.ContainerPreview") -> Document:
    environment = one.environment
    return {
        "name": one.name,
        "env": environment.env,
        "command": environment.command,
        "args": environment.args,
        "subPathExpr": [
            {"mountPath": each.mount_path, "value": each.value} for each in environment.sub_paths
        ],
        "unresolved": [{"name": each.name, "where": each.where} for each in one.unresolved],
        "missing": [
            {"source": each.source, "key": each.key, "where": each.where} for each in environment.missing
        ],
    }


def _yaml(previews: Sequence["preview_admission.PodPreview"]) -> str:
    return "---\n".join(printing.document(_document(one), "yaml") for one in previews)


def _json(previews: Sequence["preview_admission.PodPreview"]) -> str:
    documents = [_document(one) for one in previews]
    return printing.document(documents[0] if len(documents) == 1 else documents, "json")


def _diff(previews: Sequence["preview_admission.PodPreview"]) -> str:
    return "".join(line for one in previews for line in _difference(one))


def _difference(one: "preview_admission.PodPreview") -> Iterator[str]:
    from addon_operator.documents import text_diff

    before, after = (
        printing.document(dict(pod), "yaml").splitlines() for pod in (one.submitted, one.admitted)
    )
    lines = text_diff.unified(before, after, f"{one.title} as submitted", f"{one.title} as admitted")
    yield from (f"{line}\n" for line in lines)


def _findings(one: "preview_admission.PodPreview") -> Iterator[str]:
    from addon_operator import expansion

    if one.submitted == one.admitted and not one.conflicts:
        yield f"{one.title}: no PodPreset adds anything"
    for conflict in one.conflicts:
        yield f"{one.title}: PodPreset {conflict.preset}: {conflict.message}"
    for container in one.containers:
        for missing in container.environment.missing:
            lacking = (
                f"{missing.source} has no key {missing.key}"
                if missing.key
                else f"{missing.source} does not exist"
            )
            yield f"{one.title}: container {container.name}: {missing.where}: {lacking}"
        if message := expansion.unresolved_message(container.name, container.unresolved):
            yield f"{one.title}: {message}"


_RENDERERS: Final[Mapping[str, Callable[[Sequence["preview_admission.PodPreview"]], str]]] = {
    "yaml": _yaml,
    "json": _json,
    "diff": _diff,
}

"""``addon-operator devcluster``: a real control plane on this machine, to try things out and for tests."""

import contextlib
import os
import pathlib
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

import click
import rich.console
from msgspec import structs

from addon_operator.cli import printing
from addon_operator.devcluster import (
    cluster,
    errors,
    handle,
    layout,
    locations,
    reporters,
)
from addon_operator.devcluster.binaries import assets, binaries, components
from addon_operator.process import commands

_PASS_ON: Final = {"ignore_unknown_options": True, "allow_interspersed_args": False}


class _Name(click.ParamType[layout.ClusterName]):
    name = "NAME"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> layout.ClusterName:
        try:
            return layout.parse_name(value)
        except errors.DevClusterError as error:
            self.fail(str(error), param, ctx)


_name = click.option(
    "--name", type=_Name(), default=layout.DEFAULT_NAME, show_default=True, help="Name of the cluster."
)


@click.group(cls=printing.Group)
def devcluster() -> None:
    """Manage a real control plane on this machine, without containers.

    The first use builds what is missing, which takes some minutes; after that, a start takes seconds.
    """


@devcluster.command()
@_name
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="Also write the kubeconfig to this file.",
)
@click.option(
    "--version",
    type=click.Choice(components.VERSIONS),
    help=f"Minor version of Kubernetes; {components.DEFAULT_VERSION} if nothing else runs already.",
)
@click.option("--nodes", is_flag=True, help="Add a scheduler and a simulated node: Deployments become ready.")
def up(
    name: layout.ClusterName, kubeconfig: pathlib.Path | None, version: str | None, *, nodes: bool
) -> None:
    """Start a cluster, or see to it that it runs."""
    request = cluster.ClusterRequest(name, version, nodes, kubeconfig)
    said_to = reporter()
    with cleaning_up(), binaries.workshop(_locate(), os.environ, said_to) as store:
        started = _manager(said_to).up(request, store)
    option = "" if name == layout.DEFAULT_NAME else f" --name {name}"
    click.echo(f"The cluster {name} runs Kubernetes {started.version} at {started.url}")
    click.echo(f"kubeconfig: {kubeconfig or started.kubeconfig}")
    click.echo("Next:")
    click.echo(f"  addon-operator devcluster kubectl{option} get namespaces")
    click.echo(f'  eval "$(addon-operator devcluster env{option})"')
    click.echo(f"  addon-operator devcluster down{option}")


@devcluster.command()
@_name
def down(name: layout.ClusterName) -> None:
    """End a cluster and remove all of it."""
    with cleaning_up():
        existed = _manager(reporter()).down(name)
    click.echo(f"The cluster {name} is removed" if existed else f"There is no cluster {name}")


@devcluster.command()
@printing.output_option("text", printing.LIST_FORMATS)
def status(output: str) -> None:
    """List the clusters of this machine."""
    clusters = _manager(reporter()).status()
    if output == printing.NAME:
        click.echo(printing.names("devcluster", [one.name for one in clusters]), nl=False)
    elif output in ("yaml", "json"):
        documents = [structs.asdict(one) for one in clusters]
        click.echo(printing.document(documents, output), nl=False)
    elif clusters:
        click.echo(_table(clusters, wide=output == printing.WIDE), nl=False)
    else:
        click.echo("There is no cluster; start one with 'addon-operator devcluster up'")


@devcluster.command()
@_name
def env(name: layout.ClusterName) -> None:
    """Print shell commands that make a cluster the current one."""
    cluster = _manager(reporter()).get(name)
    directory = shlex.quote(str(cluster.bin))
    click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
    click.echo(f"export {assets.VARIABLE}={directory}")
    click.echo(f'export PATH={directory}:"$PATH"')


@devcluster.command(context_settings=_PASS_ON, add_help_option=False)
@_name
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: layout.ClusterName, arguments: Sequence[str]) -> None:
    """Run kubectl against a cluster; --name comes before kubectl's own arguments."""
    cluster = _manager(reporter()).get(name)
    _become(cluster, cluster.kubectl, arguments)


@devcluster.command(context_settings=_PASS_ON, add_help_option=False)
@_name
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def helm(name: layout.ClusterName, arguments: Sequence[str]) -> None:
    """Run Helm 3 against a cluster; --name comes before Helm's own arguments."""
    cluster = _manager(reporter()).get(name)
    _become(cluster, cluster.helm, arguments)


@devcluster.command()
@click.argument("names", nargs=-1, metavar="[COMPONENT]...")
@click.option("--all", "everything", is_flag=True, help="Also get the older versions of Kubernetes.")
@click.option("--keep-go-caches", is_flag=True, help="Keep Go's caches (several GB) afterwards.")
def build(names: Sequence[str], *, everything: bool, keep_go_caches: bool) -> None:
    """Get the binaries that tests and the demo need, or those of components or single programs.

    Prints their paths.
    """
    default = components.ALL if everything else components.DEFAULT
    selected = [binaries.wanted(name) for name in names] or [binaries.Wanted(each) for each in default]
    workshop = binaries.workshop(_locate(), os.environ, reporter(), keep_go_caches=keep_go_caches)
    with cleaning_up(), workshop as store:
        store.ensure(selected)
        for wanted in selected:
            pin, found = store.pin(wanted.component), store.cached(wanted)
            for binary in wanted.binaries():
                click.echo(f"{binary.name} {pin.requirements[binary.module]} {found[binary.name]}")


def _locate() -> locations.Locations:
    return locations.locate(os.environ)


def _manager(said_to: reporters.Reporter) -> cluster.ClusterManager:
    return cluster.ClusterManager(_locate().state, said_to)


def reporter() -> reporters.Reporter:
    """Report progress on standard error: standard output may be read by another program."""
    console = rich.console.Console(stderr=True)
    if console.is_terminal:
        return reporters.BarReporter(console)
    return reporters.PlainReporter(lambda text: click.echo(text, err=True))


def _become(cluster: handle.DevCluster, program: pathlib.Path, arguments: Sequence[str]) -> NoReturn:
    # Helm's own variables for the API server would win over KUBECONFIG.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HELM_KUBE")}
    environ = {**inherited, "KUBECONFIG": str(cluster.kubeconfig)}
    commands.replace([str(program), *arguments], environ)


@contextlib.contextmanager
def cleaning_up() -> Iterator[None]:
    """Turn signals into an exit that clears up, and what the system refuses into one sentence."""
    before = {number: signal.signal(number, _exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise errors.DevClusterError(f"{place}{error.strerror or error}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _table(clusters: Sequence[cluster.Status], *, wide: bool) -> str:
    rows = []
    for one in clusters:
        parts = (f"{name} ({'ended' if pid is None else pid})" for name, pid in one.components.items())
        rows.append((one.name, one.version or "-", one.condition, one.url or "-", ", ".join(parts) or "-"))
    return printing.listing(("NAME", "VERSION", "STATE", "URL", "components"), rows, wide=wide)

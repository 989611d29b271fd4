"""The command lines of each verb."""

import pathlib
from collections.abc import Callable, Mapping, Sequence

import msgspec
import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.helm import binary, capabilities, command, helm_errors, release_types, verbs
from addon_operator.kernel import names
from addon_operator.process.children import children
from tests.support import programs

CALL = command.Call(names.ModuleName("web"))
FILES = verbs.Files(pathlib.Path("/chart"), pathlib.Path("/values.json"))
CLUSTER = capabilities.Capabilities("v1.36.3", frozenset())
OPTIONS = release_types.Options(history_max=10, timeout=1200)
LABELS = {"b": "2", "a": "1"}


class Recorder(children.Children):
    """Takes down what helm is called with; an answer that is too long can be ordered."""

    def __init__(self, *, is_cut: bool = False) -> None:
        self.argv: list[str] = []
        self._is_cut = is_cut

    @override
    async def run(
        self,
        argv: Sequence[str | pathlib.Path],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None = None,
        timeout: float | None = None,
        on_stdout_line: Callable[[str], None] | None = None,
        on_stderr_line: Callable[[str], None] | None = None,
        capture_stdout: int | None = None,
        capture_stderr: int = 0,
        kill_grace: float = children.KILL_GRACE,
        leaves_nothing: bool = False,
        bounds: children.ChildBounds | None = None,
    ) -> children.ChildResult:
        self.argv = [str(word) for word in argv[1:]]
        return msgspec.structs.replace(programs.result(stdout=b"kind: X\n"), stdout_is_cut=self._is_cut)


def helm(recorder: Recorder, tmp_path: pathlib.Path, major: int = 3) -> command.Helm:
    found = binary.HelmBinary(pathlib.Path("/helm"), f"v{major}.30.0", major, 30)
    return command.Helm(
        found,
        command.HelmTarget("addons"),
        {},
        tmp_path,
        recorder,
        lambda *_: None,
    )


async def test_template_renders_as_an_upgrade_would_without_asking_the_cluster(
    tmp_path: pathlib.Path,
) -> None:
    recorder = Recorder()
    assert await verbs.template(helm(recorder, tmp_path), CALL, FILES, CLUSTER, 60) == b"kind: X\n"
    line = " ".join(recorder.argv)
    assert line.startswith("template web /chart --values /values.json --skip-crds")
    assert "--is-upgrade" in line
    assert "--kube-version v1.36.3" in line
    assert "--dry-run" not in line
    assert "--api-versions" not in line


async def test_template_renders_as_a_first_install_would(tmp_path: pathlib.Path) -> None:
    recorder = Recorder()
    await verbs.template(helm(recorder, tmp_path), CALL, FILES, CLUSTER, 60, is_upgrade=False)
    assert "--is-upgrade" not in recorder.argv


async def test_template_passes_the_api_versions_on_when_the_chart_asks_for_them(
    tmp_path: pathlib.Path,
) -> None:
    recorder = Recorder()
    asking = structs.replace(CLUSTER, api_versions=frozenset({"v1", "apps/v1/Deployment"}))
    await verbs.template(helm(recorder, tmp_path), CALL, FILES, asking, 60)
    assert "--api-versions apps/v1/Deployment --api-versions v1" in " ".join(recorder.argv)


async def test_template_speaks_with_the_cluster_when_the_chart_looks_something_up(
    tmp_path: pathlib.Path,
) -> None:
    recorder = Recorder()
    await verbs.template(helm(recorder, tmp_path), CALL, FILES, CLUSTER, 60, with_lookup=True)
    assert "--dry-run=server" in recorder.argv


async def test_a_manifest_beyond_all_measure_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(helm_errors.HelmError, match="larger than 64 MiB"):
        await verbs.template(helm(Recorder(is_cut=True), tmp_path), CALL, FILES, CLUSTER, 60)


async def test_upgrade_takes_ownership_only_if_asked_to(tmp_path: pathlib.Path) -> None:
    recorder = Recorder()
    await verbs.upgrade(
        helm(recorder, tmp_path), CALL, FILES, OPTIONS, LABELS, validate=True, take_ownership=True
    )
    assert "--take-ownership" in recorder.argv


async def test_helm_leaves_schemas_that_lead_outside_to_the_operator(tmp_path: pathlib.Path) -> None:
    for skips in (False, True):
        recorder, call = Recorder(), structs.replace(CALL, skips_schemas=skips)
        await verbs.template(helm(recorder, tmp_path), call, FILES, CLUSTER, 60)
        assert ("--skip-schema-validation" in recorder.argv) is skips
        await verbs.upgrade(helm(recorder, tmp_path), call, FILES, OPTIONS, LABELS, validate=True)
        assert ("--skip-schema-validation" in recorder.argv) is skips


async def test_upgrade_saves_labels(tmp_path: pathlib.Path) -> None:
    recorder = Recorder()
    await verbs.upgrade(helm(recorder, tmp_path), CALL, FILES, OPTIONS, LABELS, validate=True)
    assert " ".join(recorder.argv) == (
        "upgrade web /chart --install --reset-values --history-max 10 --values /values.json --skip-crds "
        "--timeout 20m --labels a=1,b=2 --output json --namespace addons"
    )


async def test_an_installation_again_has_the_flags_of_an_upgrade_that_it_knows(
    tmp_path: pathlib.Path,
) -> None:
    recorder = Recorder()
    await verbs.install_again(helm(recorder, tmp_path, major=4), CALL, FILES, OPTIONS, LABELS)
    assert " ".join(recorder.argv) == (
        "install web /chart --replace --values /values.json --skip-crds --timeout 20m --labels a=1,b=2 "
        "--server-side=true --force-conflicts --output json --namespace addons"
    )


async def test_upgrade_may_leave_the_validation_out(tmp_path: pathlib.Path) -> None:
    recorder = Recorder()
    await verbs.upgrade(helm(recorder, tmp_path), CALL, FILES, OPTIONS, LABELS, validate=False)
    assert "--disable-openapi-validation" in recorder.argv


async def test_helm_4_applies_on_the_server_and_wins_conflicts(tmp_path: pathlib.Path) -> None:
    recorder = Recorder()
    await verbs.upgrade(helm(recorder, tmp_path, major=4), CALL, FILES, OPTIONS, LABELS, validate=True)
    assert {"--server-side=true", "--force-conflicts"} <= set(recorder.argv)


async def test_uninstall_does_not_mind_a_release_that_is_gone(tmp_path: pathlib.Path) -> None:
    recorder = Recorder()
    await verbs.uninstall(helm(recorder, tmp_path), CALL, 90)
    assert " ".join(recorder.argv) == "uninstall web --ignore-not-found --timeout 1m30s --namespace addons"


async def test_uninstall_keeps_the_history_if_that_is_wanted(tmp_path: pathlib.Path) -> None:
    recorder = Recorder()
    await verbs.uninstall(helm(recorder, tmp_path), CALL, 90, keep_history=True)
    assert "--keep-history" in recorder.argv

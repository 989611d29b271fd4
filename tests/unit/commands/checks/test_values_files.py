"""What a directory is that somebody names: commands tell a module from a repository by one principle."""

import json
import pathlib

import pytest
from click import testing

from addon_operator.cli import main
from addon_operator.commands.checks import hook_places
from addon_operator.commands.dev import dev_place
from addon_operator.testing import suites

TREES = {
    "modules/ beside crds/": "modules",
    "modules beside crds/": ".",
}


@pytest.fixture(params=TREES.values(), ids=list(TREES))
def repository(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    root = tmp_path / "repository"
    module = root / request.param / "010-web"
    (root / "crds").mkdir(parents=True)
    (module / "templates").mkdir(parents=True)
    (module / "values.yaml").write_text("web: {size: [}\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("HELM_BIN_PATH", str(tmp_path / "nowhere"))
    return root


def test_lint_looks_at_the_modules_of_a_repository(repository: pathlib.Path) -> None:
    for command in (["module", "lint", "."], ["values", "check", "."]):
        done = testing.CliRunner().invoke(main.cli, [*command, "-o", "json"])
        assert "010-web/values.yaml" in json.loads(done.stdout)[0]["problem"]


def test_the_tests_are_those_of_its_modules(repository: pathlib.Path) -> None:
    for directories in ([], ["."], [str(repository)]):
        assert "010-web" in [path.name for path in suites.chosen(directories, {})]


def test_dev_starts_the_operator_with_its_modules(repository: pathlib.Path) -> None:
    with dev_place.modules(".") as found:
        assert (found.modules_dir / "010-web").is_dir()
        assert not found.modules_dir.is_symlink()


def test_hooks_are_looked_for_in_its_modules(repository: pathlib.Path) -> None:
    owners = [place.owner for place in hook_places.configured({}, {}).below(pathlib.Path())]
    assert "web" in owners


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nmetadata: {name: x}\ndata: {web: '{size: 1}'}\n",
        "metadata: {name: x}\ndata: {web: '{size: 1}'}\n",
        "apiVersion: v1\nkind: Configmap\nmetadata: {name: x}\ndata: {web: '{size: 1}'}\n",
        "kind: Secret\nmetadata: {name: x}\ndata: {}\n",
    ],
)
def test_a_manifest_of_another_kind_or_of_none_is_not_taken_for_values(
    repository: pathlib.Path, text: str
) -> None:
    given = repository / "given.yaml"
    given.write_text(text)
    arguments = ["values", "check", ".", "--values", str(given), "-o", "json"]
    done = testing.CliRunner().invoke(main.cli, arguments, standalone_mode=False)
    (told,) = [row["problem"] for row in json.loads(done.stdout) if str(given) in row["problem"]]
    assert "write 'kind: ConfigMap'" in told
    assert done.return_value == 1

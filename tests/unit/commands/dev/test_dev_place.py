"""Where ``dev`` works: the modules that are named, and no cluster but the one that is."""

import os
import pathlib

import pytest
import yaml
from click import testing

from addon_operator.cli import main
from addon_operator.commands.dev import dev_place
from addon_operator.commands.outside import dev_operators
from addon_operator.kernel import errors
from tests.support import rows

HOME = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "production",
    "contexts": [
        {"name": name, "context": {"cluster": name, "user": "me"}} for name in ("production", "try")
    ],
    "clusters": [
        {"name": name, "cluster": {"server": f"https://{name}.example"}} for name in ("production", "try")
    ],
    "users": [{"name": "me", "user": {"token": "t"}}],
}


@pytest.fixture
def kubeconfig(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(HOME))
    return path


def module(root: pathlib.Path, name: str) -> pathlib.Path:
    path = root / name
    (path / "templates").mkdir(parents=True)
    return path


def options(target: dev_place.Target, root: pathlib.Path, environ: dict[str, str]) -> dict[str, str]:
    of = dev_place.Modules(root, None, root)
    own = dev_place.operator_options(target, of, root, environ)
    return {**dev_place.operator_environment(environ), **own}


def test_the_named_context_is_the_current_one_of_all_that_the_operator_starts(
    tmp_path: pathlib.Path, kubeconfig: pathlib.Path
) -> None:
    target = dev_place.named_cluster("try", "mine", str(kubeconfig), tmp_path, {})
    first, *others = options(target, tmp_path, {})["KUBECONFIG"].split(os.pathsep)
    assert yaml.safe_load(pathlib.Path(first).read_text())["current-context"] == "try"
    assert others == [str(kubeconfig)]
    assert options(target, tmp_path, {})["KUBE_CONTEXT"] == "try"
    asked = f"addon-operator module list --context try -n mine --kubeconfig {kubeconfig}"
    assert target.example == asked
    socket = tmp_path / "debug.socket"
    found = target.operator(socket, {"KUBECONFIG": "/elsewhere"})
    assert found == dev_operators.DevOperator(socket, "https://try.example", "mine")


def test_nothing_in_the_environment_leads_to_another_cluster(tmp_path: pathlib.Path) -> None:
    leading = {
        "KUBECONFIG": "/home/me/.kube/config",
        "KUBE_CONTEXT": "production",
        "ADDON_OPERATOR_KUBE_SERVER": "https://production.example",
        "ADDON_OPERATOR_KUBE_CONFIG": "/home/me/.kube/config",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "HELM_KUBEAPISERVER": "https://production.example",
        "HELM_KUBECONTEXT": "production",
    }
    target = dev_place.Target("local", [tmp_path / "own"], None, "dev", ())
    found = options(target, tmp_path, {**leading, "PATH": "/bin"})
    assert {name for name in found if name.removeprefix("ADDON_OPERATOR_") in leading or name in leading} == {
        "KUBECONFIG"
    }
    assert (found["KUBECONFIG"], found["PATH"]) == (str(tmp_path / "own"), "/bin")


def test_hooks_answer_a_local_api_server_on_loopback_and_another_one_as_the_environment_says(
    tmp_path: pathlib.Path,
) -> None:
    outer = {"WEBHOOK_URL": "https://10.0.0.1:9651"}
    local = options(dev_place.Target("local", [], None, "dev", (), None, 4321), tmp_path, outer)
    named = options(dev_place.Target("named", [], "try", "dev", ()), tmp_path, outer)

    assert {name: local[name] for name in local if name.startswith(("ADMISSION", "WEBHOOK"))} == {
        "ADMISSION_SERVER_LISTEN_ADDRESS": "127.0.0.1",
        "ADMISSION_SERVER_LISTEN_PORT": "4321",
        "WEBHOOK_URL": "https://127.0.0.1:4321",
    }
    assert named["WEBHOOK_URL"] == "https://10.0.0.1:9651"


def test_a_context_that_is_not_there_is_refused(tmp_path: pathlib.Path, kubeconfig: pathlib.Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="tri"):
        dev_place.named_cluster("tri", "mine", str(kubeconfig), tmp_path, {})
    with pytest.raises(dev_place.DevError, match="there is no kubeconfig"):
        dev_place.named_cluster("try", "mine", str(tmp_path / "none"), tmp_path, {})


@rows.each(
    ("arguments", "said"),
    [
        (["--context", "try"], "--context needs --namespace"),
        (["--context", "try", "-n", "mine", "--keep"], "--keep is about the local cluster"),
        (["-n", "mine"], "need --context"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], said: str) -> None:
    ran = testing.CliRunner().invoke(main.cli, ["dev", *arguments])
    assert (ran.exit_code, said in ran.output) == (2, True)


def test_one_module_is_alone_with_the_values_that_all_share(tmp_path: pathlib.Path) -> None:
    one, _ = module(tmp_path, "010-one"), module(tmp_path, "020-two")
    (tmp_path / "values.yaml").write_text("oneEnabled: true\n")
    with dev_place.modules(str(one)) as found:
        assert sorted(path.name for path in found.modules_dir.iterdir()) == ["010-one", "values.yaml"]
        assert (found.modules_dir / "010-one").resolve() == one.resolve()
        assert found.shown == tmp_path
    assert not found.modules_dir.exists()
    assert (one / "templates").is_dir()


def test_modules_and_global_hooks_are_found_below_a_directory(tmp_path: pathlib.Path) -> None:
    module(tmp_path / "modules", "010-one")
    (tmp_path / "global-hooks").mkdir()
    with dev_place.modules(str(tmp_path)) as found:
        assert (found.modules_dir, found.global_hooks_dir) == (
            tmp_path / "modules",
            tmp_path / "global-hooks",
        )


def test_a_directory_without_modules_is_refused_with_what_to_do(tmp_path: pathlib.Path) -> None:
    with (
        dev_place.modules(str(tmp_path)) as found,
        pytest.raises(dev_place.DevError, match="has no modules; write one with 'addon-operator new module"),
    ):
        dev_place.check_modules(found)

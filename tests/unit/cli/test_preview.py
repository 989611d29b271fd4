"""``addon-operator preview pod``."""

import json
import pathlib

import pytest
import yaml
from click import testing

from addon_operator.cli import main
from addon_operator.cli import preview as cli_preview
from tests.support import rows

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {role: frontend}}
spec:
  containers:
  - {name: app, image: i, args: ["$(DB_PORT)"]}
"""
PRESET = """
apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata: {name: db, resourceVersion: "7"}
spec:
  selector: {matchLabels: {role: frontend}}
  env: [{name: DB_PORT, value: 6379}]
"""
UNRESOLVED = POD.replace("$(DB_PORT)", "$(NOPE)")
CONFLICTING = POD.replace("image: i,", 'image: i, env: [{name: DB_PORT, value: "1"}],')


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBE_CONFIG", "KUBE_CONTEXT", "KUBE_SERVER"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"ADDON_OPERATOR_{name}", raising=False)
    (tmp_path / "presets.yaml").write_text(PRESET)
    (tmp_path / "objects.yaml").write_text("")


def test_types_of_volumes_are_those_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    volumes = (
        "volumes: [{name: v, nfs: {server: s, path: /}}]\n  volumeMounts: [{name: v, mountPath: /v}]\n  env:"
    )
    pathlib.Path("presets.yaml").write_text(PRESET.replace("env:", volumes))
    assert "spec.volumes[0].nfs: volumes of this type are not allowed" in run(POD).stderr
    assert run(POD, "--podpreset-volume-types", "nfs").stderr == ""
    monkeypatch.setenv("PODPRESET_VOLUME_TYPES", "nfs")
    assert run(POD).stderr == ""
    wrong = run(POD, "--podpreset-volume-types", "nfs4")
    assert "PODPRESET_VOLUME_TYPES: 'nfs4'" in str(wrong.exception)


def run(pod: str, *args: str, files: bool = True) -> testing.Result:
    pathlib.Path("pod.yaml").write_text(pod)
    given = ("--presets", "presets.yaml", "--objects", "objects.yaml") if files else ()
    return testing.CliRunner().invoke(cli_preview.preview, ["pod", "-f", "pod.yaml", *given, *args])


EXPECTED = {
    "pod": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "labels": {"role": "frontend"},
            "namespace": "shop",
            "annotations": {"podpreset.admission.kubernetes.io/podpreset-db": "7"},
        },
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "i",
                    "args": ["$(DB_PORT)"],
                    "env": [{"name": "DB_PORT", "value": "6379"}],
                }
            ]
        },
    },
    "applied": [{"name": "db", "resourceVersion": "7"}],
    "conflicts": [],
    "containers": [
        {
            "name": "app",
            "env": {"DB_PORT": "6379"},
            "command": [],
            "args": ["6379"],
            "subPathExpr": [],
            "unresolved": [],
            "missing": [],
        }
    ],
}


def test_json_has_the_pod_and_what_was_found() -> None:
    result = run(POD, "-n", "shop", "-o", "json")
    assert json.loads(result.stdout) == EXPECTED
    assert result.stderr == ""


@pytest.mark.parametrize("args", [(), ("-o", "yaml")], ids=["default", "yaml"])
def test_yaml_says_the_same(args: tuple[str, ...]) -> None:
    assert yaml.safe_load(run(POD, "-n", "shop", *args).stdout) == EXPECTED


def test_several_pods_are_a_list_in_json_and_documents_in_yaml() -> None:
    pods = f"{POD}---{POD.replace('web', 'api')}"
    names = [one["pod"]["metadata"]["name"] for one in json.loads(run(pods, "-o", "json").stdout)]
    assert names == ["web", "api"]
    documents = yaml.safe_load_all(run(pods).stdout)
    assert [one["pod"]["metadata"]["name"] for one in documents] == ["web", "api"]


def test_a_conflict_is_in_the_output() -> None:
    found = json.loads(run(CONFLICTING, "-o", "json").stdout)
    message = "Conflict on pod preset. Duplicate env DB_PORT."
    assert found["conflicts"] == [{"preset": "db", "message": message}]
    assert found["applied"] == []


def test_a_reference_without_a_value_and_a_missing_source_are_in_the_output() -> None:
    source = "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]"
    pod = UNRESOLVED.replace("image: i,", f"image: i, {source},")
    [container] = json.loads(run(pod, "-o", "json").stdout)["containers"]
    assert container["unresolved"] == [{"name": "NOPE", "where": "args[0]"}]
    assert container["missing"] == [{"source": "Secret s", "key": None, "where": "env A"}]


def test_a_diff_has_what_the_presets_add() -> None:
    lines = run(POD, "-o", "diff").stdout.splitlines()
    assert lines[:2] == ["--- Pod web as submitted", "+++ Pod web as admitted"]
    assert "+    - name: DB_PORT" in lines
    assert not [line for line in lines[2:] if line.startswith("-")]


@rows.each(
    ("pod", "note"),
    [
        (CONFLICTING, "Pod web: PodPreset db: Conflict on pod preset. Duplicate env DB_PORT."),
        (UNRESOLVED, "Pod web: Container app: cannot expand $(NOPE) in args[0]"),
        (POD.replace("frontend", "backend"), "Pod web: no PodPreset adds anything"),
        (
            POD.replace("image: i,", "image: i, envFrom: [{configMapRef: {name: c}}],"),
            "Pod web: container app: envFrom[0]: ConfigMap c does not exist",
        ),
    ],
    ids=["conflict", "unresolved", "nothing", "missing"],
)
def test_what_a_diff_does_not_show_is_on_standard_error(pod: str, note: str) -> None:
    assert f"Note: {note}" in run(pod, "-o", "diff").stderr.splitlines()


@rows.each(
    ("pod", "code"),
    [(POD, 0), (CONFLICTING, 3), (UNRESOLVED, 3), (POD.replace("$(DB_PORT)", "$(date +%s) $$(X)"), 0)],
    ids=["clean", "conflict", "unresolved", "no references"],
)
def test_the_exit_code_tells_findings_if_it_is_asked_for(pod: str, code: int) -> None:
    pathlib.Path("pod.yaml").write_text(pod)
    line = ["preview", "pod", "-f", "pod.yaml", "--presets", "presets.yaml", "--objects", "objects.yaml"]
    for more, expected in (["--exit-code"], code), ([], 0):
        with pytest.raises(SystemExit) as ended:
            main.main([*line, *more])
        assert ended.value.code == expected


def test_the_pod_comes_from_standard_input() -> None:
    args = ["pod", "-f", "-", "--presets", "presets.yaml", "-o", "json"]
    result = testing.CliRunner().invoke(cli_preview.preview, args, input=POD)
    assert json.loads(result.stdout)["applied"] == [{"name": "db", "resourceVersion": "7"}]


def test_a_wrong_file_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = POD.replace("$(DB_PORT)", "").replace('""', "1")
    pathlib.Path("pod.yaml").write_text(f"---{wrong}")
    with pytest.raises(SystemExit) as ended:
        main.main(["preview", "pod", "-f", "pod.yaml", "--presets", "presets.yaml"])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    where = "pod.yaml, document 1, line 7, column 34: spec.containers[0].args[0]"
    assert printed.err == f"Error: {where}: must be a text; put it in quotes\n"


def test_no_cluster_and_no_files_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    pathlib.Path("pod.yaml").write_text(POD)
    with pytest.raises(SystemExit) as ended:
        main.main(["preview", "pod", "-f", "pod.yaml"])
    assert ended.value.code == 1
    assert "give --presets and --objects, or --no-cluster" in capsys.readouterr().err


def test_a_kubeconfig_that_was_named_must_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    pathlib.Path("pod.yaml").write_text(POD)
    with pytest.raises(SystemExit) as ended:
        main.main(
            ["preview", "pod", "-f", "pod.yaml", "--presets", "presets.yaml", "--kube-config", "gone.yaml"]
        )
    assert ended.value.code == 1
    assert "gone.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), ({}, False)],
    ids=["a terminal", "a terminal without colours", "a pipe"],
)
def test_colours_are_for_terminals(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in run(POD, "-o", "diff").stdout) is coloured


def test_a_broken_pod_does_not_end_the_preview_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = POD.replace("$(DB_PORT)", "").replace('""', "1")
    pathlib.Path("pod.yaml").write_text(f"---{wrong}---{POD}---{UNRESOLVED}")
    with pytest.raises(SystemExit) as ended:
        main.main(["preview", "pod", "-f", "pod.yaml", "--presets", "presets.yaml", "--exit-code"])
    printed = capsys.readouterr()
    assert len(list(yaml.safe_load_all(printed.out))) == 2
    assert printed.err.count("Error:") == 1
    assert "pod.yaml, document 1, line" in printed.err
    assert ended.value.code == 1

"""Starting helm: flags, environment, errors and warnings, with scripts that stand in for it."""

import asyncio
import pathlib
import sys

import pytest

from addon_operator.engine.hooks import running_hooks
from addon_operator.helm import binary, command, helm_bounds, helm_errors
from addon_operator.kernel import names
from tests.support import programs, rows

WEB = names.ModuleName("web")


def helm(
    directory: pathlib.Path,
    body: str,
    target: command.HelmTarget | None = None,
    warnings: list[tuple[str, str]] | None = None,
) -> command.Helm:
    """A helm that is a shell script."""
    script = directory / "helm"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    told = warnings if warnings is not None else []
    return command.Helm(
        binary.HelmBinary(script, "v3.19.0", 3, 19),
        target or command.HelmTarget("addons"),
        {"PATH": "/usr/bin:/bin"},
        directory,
        programs.programs(),
        lambda module, text: told.append((module, text)),
    )


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        pytest.param(command.HelmTarget("addons"), "--namespace addons", id="service account"),
        pytest.param(
            command.HelmTarget("addons", (pathlib.Path("/k"),), "kind", "https://other"),
            "--namespace addons --kube-context kind --kube-apiserver https://other",
            id="context and server",
        ),
    ],
)
async def test_every_call_names_the_cluster_and_the_namespace(
    tmp_path: pathlib.Path, target: command.HelmTarget, flags: str
) -> None:
    made = helm(tmp_path, 'echo "$@"', target)
    result = await made.run(command.Call(WEB), ["list", "-a"], 10, capture_stdout=1000)
    assert result.stdout == f"list -a {flags}\n".encode()


@rows.each(
    "name", ["HELM_NAMESPACE", "HELM_KUBECONTEXT", "HELM_DEBUG", "HELM_PLUGINS", "HELM_REPOSITORY_CACHE"]
)
def test_helm_variables_of_the_operator_do_not_reach_helm(name: str, tmp_path: pathlib.Path) -> None:
    assert name not in command.child_environment({name: "leaks"}, command.HelmTarget("addons"), tmp_path)


def test_other_variables_and_helms_storage_driver_do_reach_helm(tmp_path: pathlib.Path) -> None:
    environ = {"HTTPS_PROXY": "http://proxy", "HELM_DRIVER": "configmap", "HOME": "/root"}
    made = command.child_environment(environ, command.HelmTarget("addons"), tmp_path)
    assert environ.items() <= made.items()


@rows.each("name", ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "KUBECACHEDIR"])
def test_what_helm_keeps_lies_in_the_private_workspace(name: str, tmp_path: pathlib.Path) -> None:
    made = command.child_environment({name: "/elsewhere"}, command.HelmTarget("addons"), tmp_path)
    assert pathlib.Path(made[name]).is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("files", "variable"),
    [((), "/dev/null"), ((pathlib.Path("/a"), pathlib.Path("/b")), "/a:/b")],
    ids=["service account", "two files"],
)
def test_helm_uses_the_kubeconfig_of_the_operator(
    files: tuple[pathlib.Path, ...], variable: str, tmp_path: pathlib.Path
) -> None:
    made = command.child_environment({"KUBECONFIG": "/wrong"}, command.HelmTarget("addons", files), tmp_path)
    assert made["KUBECONFIG"] == variable


async def test_a_failure_is_an_error_with_the_module_the_verb_and_helms_message(
    tmp_path: pathlib.Path,
) -> None:
    made = helm(tmp_path, "echo 'Error: repository chart.tgz not found' >&2; exit 1")
    with pytest.raises(helm_errors.HelmError) as raised:
        await made.run(command.Call(WEB), ["template", "web"], 10)
    assert str(raised.value) == "module web: helm template: repository chart.tgz not found"
    assert raised.value.module == "web"


async def test_the_first_upgrade_is_an_install_and_files_are_those_of_the_module(
    tmp_path: pathlib.Path,
) -> None:
    made = helm(tmp_path, "echo 'Error: YAML parse error on web/templates/a.yaml: x' >&2; exit 1")
    call = command.Call(WEB, chart=pathlib.Path("modules/010-web"), is_install=True)
    with pytest.raises(helm_errors.HelmError) as raised:
        await made.run(call, ["upgrade", "web"], 10)
    sentence = "module web: helm install: YAML parse error on modules/010-web/templates/a.yaml: x"
    assert (str(raised.value), raised.value.without_values) == (sentence, sentence)


async def test_a_helm_that_hangs_is_stopped(tmp_path: pathlib.Path) -> None:
    made = helm(tmp_path, "exec sleep 60")
    with pytest.raises(helm_errors.HelmTimeoutError, match="'helm upgrade' did not end within 0 s"):
        await made.run(command.Call(WEB), ["upgrade"], 0.05)


async def test_a_helm_that_somebody_ended_is_an_error_with_the_module_and_the_verb(
    tmp_path: pathlib.Path,
) -> None:
    made = helm(tmp_path, "exec sleep 60")
    running = running_hooks.RunningHooks(made._programs)
    made._programs = running
    hangs = asyncio.create_task(made.run(command.Call(WEB), ["upgrade", "web"], 50))
    await asyncio.sleep(0)
    assert running.end(running.rows[0]["id"])
    with pytest.raises(helm_errors.HelmError, match=r"web: 'helm upgrade' was ended by a person after \d+ s"):
        await hangs


async def test_a_warning_is_reported_once_for_each_call(tmp_path: pathlib.Path) -> None:
    warnings: list[tuple[str, str]] = []
    made = helm(tmp_path, "for i in 1 2; do echo 'WARNING: old' >&2; done", warnings=warnings)
    await made.run(command.Call(WEB), ["upgrade"], 10)
    await made.run(command.Call(names.ModuleName("dns")), ["upgrade"], 10)
    assert warnings == [("web", "old"), ("dns", "old")]


async def test_of_so_many_warnings_of_a_call_the_first_are_reported_and_how_many_are_not(
    tmp_path: pathlib.Path,
) -> None:
    warnings: list[tuple[str, str]] = []
    made = helm(tmp_path, 'for i in $(seq 1000); do echo "WARNING: no $i" >&2; done', warnings=warnings)
    for _ in range(2):
        await made.run(command.Call(WEB), ["upgrade"], 30)
        assert [text for _, text in warnings] == [
            *(f"no {number}" for number in range(1, command.MOST_WARNINGS + 1)),
            "helm upgrade: 950 more lines with warnings are left out; the first 50 are shown",
        ]
        warnings.clear()


async def test_warnings_of_a_call_together_are_no_longer_than_may_be_said_also_if_it_fails(
    tmp_path: pathlib.Path,
) -> None:
    warnings: list[tuple[str, str]] = []
    fields: list[str] = []
    script = (
        "long=$(head -c 9000 /dev/zero | tr '\\0' x); for i in $(seq 30); do\n"
        'echo "WARNING: $i $long" >&2; echo "WARNING: unknown field \\"spec.x$i\\"" >&2; done; exit 1'
    )
    made = helm(tmp_path, script, warnings=warnings)
    with pytest.raises(helm_errors.HelmError):
        await made.run(command.Call(WEB, on_unknown_field=fields.append), ["upgrade"], 30)
    texts = [text for _, text in warnings]
    assert all(len(text) <= 2001 for text in texts)
    assert sum(map(len, [*texts, *fields])) <= command.MOST_CHARS + 200
    (left_out,) = [text for text in texts if "left out" in text]
    shown = len(fields) + sum(text[0].isdigit() for text in texts)
    assert f"{60 - shown} more lines with warnings are left out; the first {shown} are shown" in left_out


async def test_a_warning_about_the_kubeconfig_is_reported_once(tmp_path: pathlib.Path) -> None:
    warnings: list[tuple[str, str]] = []
    text = "Kubernetes configuration file is group-readable. This is insecure. Location: /k"
    made = helm(tmp_path, f"echo 'WARNING: {text}' >&2", warnings=warnings)
    for module in ("web", "dns"):
        await made.run(command.Call(names.ModuleName(module)), ["upgrade"], 10)
    assert warnings == [("web", text)]


async def test_sensitive_values_are_hidden(tmp_path: pathlib.Path) -> None:
    warnings: list[tuple[str, str]] = []
    made = helm(
        tmp_path, "echo 'WARNING: s3cret' >&2; echo 'Error: s3cret not found' >&2; exit 1", warnings=warnings
    )
    call = command.Call(WEB, lambda text: text.replace("s3cret", "***"))
    with pytest.raises(helm_errors.HelmError) as raised:
        await made.run(call, ["upgrade"], 10)
    assert str(raised.value) == "module web: helm upgrade: *** not found"
    assert warnings == [("web", "***")]


async def test_a_failure_of_an_unknown_form_is_reported_in_the_log_only(tmp_path: pathlib.Path) -> None:
    warnings: list[tuple[str, str]] = []
    made = helm(tmp_path, "echo 'Error: value s3cret is odd' >&2; exit 1", warnings=warnings)
    with pytest.raises(helm_errors.HelmError) as raised:
        await made.run(command.Call(WEB), ["upgrade"], 10)
    assert str(raised.value) == raised.value.without_values
    assert str(raised.value) == (
        "module web: helm upgrade failed with a text that may hold values; the operator's log shows it"
    )
    assert warnings == [("web", "helm upgrade: value s3cret is odd")]


async def test_what_a_chart_says_of_its_values_is_reported_without_them(tmp_path: pathlib.Path) -> None:
    said = "Error: execution error at (web/x.yaml:1:3): the port of long-value is not a port"
    made = helm(tmp_path, f"echo '{said}' >&2; exit 1")
    call = command.Call(WEB, values={"web": {"name": "long-value", "kind": "port"}})
    with pytest.raises(helm_errors.HelmError) as raised:
        await made.run(call, ["template"], 10)
    told = "says the chart at web/x.yaml:1:3 (helm template)"
    assert raised.value.without_values == f"module web: the port of *** is not a port, {told}"
    assert str(raised.value) == f"module web: the port of long-value is not a port, {told}"


async def test_the_reason_behind_a_long_quotation_is_reported(tmp_path: pathlib.Path) -> None:
    quoted = '"{' + "x" * 200_000 + '}"'
    (tmp_path / "error").write_text(
        f"Error: cannot patch: Invalid value: {quoted}: json: cannot unmarshal bool\n"
    )
    made = helm(tmp_path, f"cat {tmp_path}/error >&2; exit 1")
    with pytest.raises(helm_errors.HelmError) as raised:
        await made.run(command.Call(WEB), ["upgrade"], 10)
    assert str(raised.value) == (
        "module web: helm upgrade: cannot patch: Invalid value: ***: json: cannot unmarshal bool"
    )


def test_a_relative_kubeconfig_is_made_absolute(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = command.HelmTarget("addons", (pathlib.Path("kubeconfig"),))
    assert command.child_environment({}, target, tmp_path)["KUBECONFIG"] == str(tmp_path / "kubeconfig")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param("echo 'fatal error: runtime: out of memory' >&2; exit 2", "128 MiB of memory", id="Go"),
        pytest.param("echo 'runtime: cannot allocate memory' >&2; exit 2", "HELM_MEMORY", id="a heap of Go"),
        pytest.param(
            f"exec {sys.executable} -Ic 'bytearray(256 << 20)'", "128 MiB of memory", id="what Helm starts"
        ),
        pytest.param(
            f"{sys.executable} -Ic 'print(len(bytearray(80 << 20)))'; echo SIGSEGV: violation >&2; exit 2",
            "HELM_MEMORY",
            id="a crash of Go",
        ),
        pytest.param("while :; do :; done", "1 s of processor time", id="a loop", marks=pytest.mark.slow),
    ],
)
async def test_a_chart_that_never_ends_takes_no_more_than_helm_may_have(
    body: str, said: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helm_bounds, "CPU_SECONDS", 1)
    made = helm(tmp_path, body, command.HelmTarget("addons", memory=128 << 20))
    with pytest.raises(helm_errors.HelmError, match=said) as raised:
        await made.run(command.Call(WEB, is_install=True), ["upgrade"], 60)
    assert "helm install" in str(raised.value)
    assert "template" in str(raised.value)


@rows.each(
    ("limit", "at_once", "memory"),
    [
        ("1073741824", 1, 768 << 20),
        ("1073741824", 4, 192 << 20),
        ("1073741824", 8, 128 << 20),
        ("max", 4, 2 << 30),
        ("9223372036854771712", 4, 2 << 30),
    ],
    ids=["alone", "side by side", "too many", "no limit", "no limit of version 1"],
)
def test_processes_of_helm_share_three_quarters_of_the_memory_of_their_container(
    tmp_path: pathlib.Path, limit: str, at_once: int, memory: int
) -> None:
    (tmp_path / "limit").write_text(f"{limit}\n")
    assert helm_bounds.default_memory(at_once, [tmp_path / "absent", tmp_path / "limit"]) == memory
    assert helm_bounds.default_memory(at_once, [tmp_path / "absent"]) == 2 << 30


async def test_a_helm_that_somebody_else_killed_has_met_no_bound(tmp_path: pathlib.Path) -> None:
    with pytest.raises(helm_errors.HelmError, match="killed by signal 9"):
        await helm(tmp_path, "kill -9 $$").run(command.Call(WEB), ["list"], 60)


@rows.each(
    ("wrong", "said"),
    [
        (" b: c", "; see a.yaml, line 5: the line is indented like none of the lines above it"),
        ("  b: c", ""),
    ],
)
async def test_the_line_that_is_no_yaml_is_told_as_it_lies_in_the_file(
    tmp_path: pathlib.Path, wrong: str, said: str
) -> None:
    chart = tmp_path / "web"
    (chart / "templates").mkdir(parents=True)
    (chart / "templates" / "a.yaml").write_text(f"kind: {{{{ .Values.a }}}}\n---\na:\n  a: b\n{wrong}\n")
    text = "YAML parse error on web/templates/a.yaml: error converting YAML to JSON: yaml: line 2: no key"
    made = helm(tmp_path, f"echo 'Error: {text}' >&2; exit 1")
    with pytest.raises(helm_errors.HelmError) as raised:
        await made.run(command.Call(WEB, chart=chart), ["template"], 10)
    shown, without_values = str(raised.value), str(raised.value.without_values)
    assert (said in shown, said in without_values) == (True, True), shown
    assert ("; see" in shown) == bool(said)

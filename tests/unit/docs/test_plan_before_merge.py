"""The workflow of "Show on a pull request what a merge would do" is one that GitHub and the command take."""

import os
import pathlib
import shlex
import subprocess

import click

from addon_operator.cli import exit_codes, main
from tests.unit.docs import pages


def test_the_workflow_is_yaml_with_what_github_wants() -> None:
    document = pages.plan_workflow()
    # YAML 1.1 reads the key "on" as true.
    assert document[True]["pull_request"]["paths"]
    for step in document["jobs"]["plan"]["steps"]:
        assert ("uses" in step) != ("run" in step)
    (checkout,) = [step for step in document["jobs"]["plan"]["steps"] if "checkout" in step.get("uses", "")]
    assert checkout["with"]["fetch-depth"] == 0, "--base needs the commit before"
    assert document["permissions"] == {"contents": "read", "pull-requests": "write"}


def test_its_commands_have_only_options_that_there_are() -> None:
    runs = "\n".join(step.get("run", "") for step in pages.plan_workflow()["jobs"]["plan"]["steps"])
    (line,) = [line for line in runs.splitlines() if line.startswith("addon-operator ")]
    words = shlex.split(line.partition(" >")[0])[2:]
    command = main.cli.get_command(click.Context(main.cli), "plan")
    assert command is not None
    context = command.make_context("plan", words, resilient_parsing=True)
    assert context.params["state"] == "plan/state.json"
    assert context.params["output"] == "markdown"
    assert context.params["base"] == "$BASE"


def test_the_job_passes_only_with_a_plan(tmp_path: pathlib.Path) -> None:
    (step,) = [each for each in pages.plan_workflow()["jobs"]["plan"]["steps"] if each.get("name") == "Plan"]
    program = tmp_path / "addon-operator"
    summary = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "BASE": "main"}
    passed = []
    for code in [*exit_codes.ExitCode, 126, 127, 137, 143]:
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
        ran = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=tmp_path,
            env=summary | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            check=False,
        )
        passed += [int(code)] if ran.returncode == 0 else []
    assert passed == [0, 3], "nothing would change, or something would"

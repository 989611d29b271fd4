"""``addon-operator settings``."""

import json

import click
import pytest
import yaml
from click import testing

from addon_operator.cli import main
from addon_operator.cli import settings as cli_settings
from addon_operator.settings import settings
from tests.support import rows


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in settings.TABLE.values():
        for variable in row.variables:
            monkeypatch.delenv(variable, raising=False)


def run(*args: str) -> testing.Result:
    return testing.CliRunner().invoke(cli_settings.settings, args)


@pytest.mark.parametrize(
    ("output", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"]
)
def test_all_settings_are_printed_with_value_and_origin(
    output: str, parse: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(parse)
    monkeypatch.setenv("HELM_TIMEOUT", "5m")
    rows = {row["name"]: row for row in parse(run("-o", output, "--namespace", "addons").stdout)}
    assert list(rows) == [row.documented for row in settings.TABLE.values()]
    assert rows["ADDON_OPERATOR_NAMESPACE"] == {
        "name": "ADDON_OPERATOR_NAMESPACE", "value": "addons", "origin": "flag --namespace",
    }  # fmt: skip
    assert rows["HELM_TIMEOUT"] == {"name": "HELM_TIMEOUT", "value": "5m", "origin": "variable HELM_TIMEOUT"}
    assert rows["ADDON_OPERATOR_LISTEN_PORT"]["value"] == 9650
    assert rows["ADDON_OPERATOR_CRD_EXTRA_LABELS"]["value"] == {"heritage": "addon-operator"}


def test_the_table_has_one_line_for_each_setting() -> None:
    lines = run().stdout.splitlines()
    assert len(lines) == len(settings.TABLE) + 1
    assert lines[0].split() == ["NAME", "VALUE", "ORIGIN"]
    assert ["ADDON_OPERATOR_LISTEN_PORT", "9650", "default"] in [line.split() for line in lines]


def test_a_namespace_that_is_not_set_is_not_an_obstacle() -> None:
    result = run()
    assert result.exit_code == 0
    assert "required, not set" in result.stdout


def test_a_value_that_looks_like_markup_is_printed_as_it_is() -> None:
    assert "[red]x" in run("--kube-context", "[red]x").stdout


def test_wrong_values_end_with_exit_code_1_and_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["settings", "--log-type", "xml"])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "LOG_TYPE" in printed.err


def test_warnings_go_to_the_error_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADDON_OPERATOR_LOG_LEVL", "debug")
    assert "ADDON_OPERATOR_LOG_LEVEL" in run("-o", "json").stderr


@rows.each(
    ("args", "value"),
    [
        ([], None),
        (["--log-no-time"], "true"),
        (["--log-no-time=false"], "false"),
        (["--log-no-time", "no"], "no"),
    ],
    ids=["absent", "bare", "with equals", "with a word"],
)
def test_a_switch_may_stand_alone_or_have_a_value(args: list[str], value: str | None) -> None:
    seen: dict[str, str | None] = {}

    @click.command(cls=cli_settings.SettingsCommand)
    @cli_settings.settings_options
    def command(flags: dict[str, str | None]) -> None:
        seen.update(flags)

    testing.CliRunner().invoke(command, args, catch_exceptions=False)
    assert set(seen) == set(settings.TABLE)
    assert seen["log_no_time"] == value


def test_arguments_of_a_go_operator_are_understood_and_reported() -> None:
    result = run("--shell-chroot-dir", "/chroot", "--debug-kubernetes-api", "--namespace", "addons")
    assert result.exit_code == 0
    assert "Warning: --shell-chroot-dir has no meaning here: " in result.stderr
    assert "Warning: --debug-kubernetes-api has no meaning here: " in result.stderr


def test_flags_without_meaning_stand_in_no_help() -> None:
    assert "shell-chroot-dir" not in run("--help").stdout


def test_what_is_in_force_is_shown_as_the_documentation_writes_it() -> None:
    ran = testing.CliRunner().invoke(
        main.cli, ["settings", "--namespace=a", "--config-map=shop", "-o", "json"]
    )
    found = {row["name"]: row["value"] for row in json.loads(ran.stdout)}
    assert (found["VALUES_SECRET"], found["NOTIFY_SECRET"]) == ("shop", "shop-notify")
    assert found["WEBHOOK_FAILURE_POLICY"] == "Ignore"
    named = settings.Settings(namespace="a", config_map="shop")
    assert (named.values_secret_name, named.notify_secret_name) == ("shop", "shop-notify")


def test_a_list_of_windows_is_shown_as_one_can_set_it() -> None:
    windows = '[{"schedule": "0 22 * * 1-5", "duration": "4h"}]'
    shown = testing.CliRunner().invoke(main.cli, ["settings", "--windows", windows]).stdout
    assert windows in shown

"""``module why`` and ``module values --origin`` of a running operator."""

import json
import pathlib
import time
from typing import Any

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration
ROOT = pathlib.Path(__file__).parents[2]

SCHEMA = """\
type: object
properties:
  level: {type: string, default: info}
  password: {type: string, x-sensitive: true}
  color: {type: string}
  size: {type: integer}
  token: {type: string}
"""
HOOK = """
printf '[{"op":"add","path":"/web/given","value":"by-a-hook"}]' > "$VALUES_JSON_PATCH_PATH"
"""


def test_values_and_fields_tell_where_they_come_from_without_secrets(site: operator_site.Site) -> None:
    write_modules(site)
    site.start().wait_ready()
    origins = told_values(site)
    told_fields(site, origins)
    wrong = site.command("module", "why", "web", "ConfigMap/wbe")
    assert wrong.returncode == 1
    assert "the chart renders no object ConfigMap/wbe" in wrong.stderr
    assert "ConfigMap/web" in wrong.stderr
    far = site.command("module", "why", "web", "ConfigMap/web", "data.colour").stderr
    assert "did you mean data.color?" in far
    offered = json.loads(site.command("raw", "/module/web/why.json?object=ConfigMap/web&paths=true").stdout)
    assert "/data/color" in offered["paths"]
    assert site.revisions() == {"web": 1}


@pytest.mark.slow
def test_files_and_a_recorded_state_explain_as_the_operator_does(site: operator_site.Site) -> None:
    write_modules(site)
    site.start().wait_ready()
    told_by_files(site)
    told_as_the_page_says(site)
    told_of_a_public_chart(site)


def told_as_the_page_says(site: operator_site.Site) -> None:
    """The example of the page, with this repository's own module."""
    page = (ROOT / "docs/how-to/debug.md").read_text()
    given, _, rest = page.partition("$ cat configmap.yaml\n")[2].partition("$ addon-operator ")
    command, _, shown = rest.partition("\n$ ")[0].partition("\n")
    (site.root / "configmap.yaml").write_text(given)
    words = command.replace("--modules-dir modules", f"--modules-dir {ROOT / 'modules'}").split()
    done = site.command(*words)
    assert done.stdout.replace(f"{ROOT}/", "").replace(f"{site.root}/", "") == f"{shown}\n", done.stderr


def write_modules(site: operator_site.Site) -> None:
    site.values("webEnabled: true\nglobal: {domain: example.com}")
    web = site.module("010-web", {
        "color": "{{ .Values.web.color }}", "url": "{{ .Values.global.domain }}/{{ .Values.web.token }}",
        "sum": "{{ .Values.web.password | sha256sum }}", "fixed": "always",
        "given": "{{ .Values.web.given }}", "level": "{{ .Values.web.level }}",
    }, values="""\
        web:
          # how many
          size: 3
        """)  # fmt: skip
    (web / "openapi").mkdir()
    (web / "openapi" / "config-values.yaml").write_text(SCHEMA)
    site.hook(web, "give.sh", {"beforeHelm": 1}, HOOK)
    site.config(web="color: blue\npassword: canary-password")
    site.secret(web="token: canary-token")


def told_values(site: operator_site.Site) -> dict[str, Any]:
    done = site.command("module", "values", "web", "--origin", "-o", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["path"]: row for row in json.loads(done.stdout)["values"]}
    assert rows["web.color"]["origin"] == f"ConfigMap {site.namespace}/addon-operator"
    assert rows["web.size"]["origin"].endswith("010-web/values.yaml, line 3, column 3")
    assert rows["web.token"] == {
        "path": "web.token", "value": "***", "origin": f"Secret {site.namespace}/addon-operator"
    }  # fmt: skip
    assert rows["web.password"]["value"] == "***"
    assert rows["web.given"]["origin"].startswith("hook give.sh")
    assert time.strftime("%Y-") in rows["web.given"]["origin"]
    assert rows["web.level"]["origin"].startswith("default in ")
    table = site.command("module", "values", "web", "--origin").stdout
    assert table.splitlines()[0].split() == ["PATH", "VALUE", "ORIGIN"]
    assert "canary" not in done.stdout + table
    return rows


def told_fields(site: operator_site.Site, rows: dict[str, Any]) -> None:
    began = time.monotonic()
    answer = site.command("module", "why", "web", "ConfigMap/web", "-o", "json")
    assert answer.returncode == 0, answer.stderr
    assert time.monotonic() - began < 20, "two seconds, and what starts a command on a busy machine"
    fields: dict[str, Any] = {field["path"]: field for field in json.loads(answer.stdout)["fields"]}
    color = fields["/data/color"]
    assert (color["cause"], color["line"]) == ("made of", 6)
    assert color["values"] == [{"key": "web.color", "origin": rows["web.color"]["origin"]}]
    assert [each["key"] for each in fields["/data/url"]["values"]] == ["global.domain", "web.token"]
    assert fields["/data/given"]["values"][0]["origin"].startswith("hook give.sh")
    text = site.command("module", "why", "web", "configmap/web", "data.sum").stdout
    assert "worked out from web.password" in text or "unknown" in text
    assert (
        "written in the chart" in site.command("module", "why", "web", "ConfigMap/web", "/data/fixed").stdout
    )
    assert "canary" not in answer.stdout + text
    listed = site.command("module", "why", "web").stdout
    assert "ConfigMap/web" in listed
    assert "templates/configmap.yaml" in listed


def in_time(*answers: dict[str, Any]) -> set[str]:
    """Paths that all of them explain: on a busy machine, two seconds are too short for some.

    What a hook gives is another matter from files.
    """
    assert len({frozenset(answer) for answer in answers}) == 1
    paths = {path for path in answers[0] if all(answer[path]["cause"] != "unknown" for answer in answers)}
    assert "/data/color" in paths
    return paths - {"/data/given"}


def told_by_files(site: operator_site.Site) -> None:
    """The words are those of the running operator."""
    online = causes(site)
    files = {"values": "color: blue, password: canary-password", "secret": "token: canary-token"}
    for name, section in files.items():
        (site.root / f"{name}.yaml").write_text(f"web: {{{section}}}\n")
    state = str(site.root / "state.json")
    assert site.command("plan", "--record", state).returncode == 0
    recorded = causes(site, "--state", state)
    assert {path: recorded[path] for path in in_time(recorded, online)} == {
        path: online[path] for path in in_time(recorded, online)
    }

    named = [f"--{name}={site.root / name}.yaml" for name in files]
    offline = causes(site, f"--modules-dir={site.modules}", *named)
    told = in_time(offline, online)
    assert {path: offline[path]["cause"] for path in told} == {path: online[path]["cause"] for path in told}
    for path in told & {"/data/color", "/data/sum", "/data/level"}:
        assert [each["key"] for each in offline[path]["values"]] == [
            each["key"] for each in online[path]["values"]
        ]
        assert offline[path]["line"] == online[path]["line"]
    (site.modules / "010-web" / "module.yaml").write_text("descriptio: x")
    broken = site.command("module", "why", "web", f"--modules-dir={site.modules}")
    (site.modules / "010-web" / "module.yaml").unlink()
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "module web cannot run: " in broken.stderr
    assert "did you mean 'description'" in broken.stderr
    assert offline["/data/color"]["values"][0]["origin"] == f"{site.root}/values.yaml, line 1, column 7"


def told_of_a_public_chart(site: operator_site.Site) -> None:
    """Its defaults are named as what to set in the module's section, also those of charts within it."""
    module = site.root / "public" / "010-shop"
    template = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata:\n  at: http://x:{{ .Values.port }}\n"
    )
    for directory, values in (("chart", "# where\nport: 8080\n"), ("chart/charts/till", "port: 9090\n")):
        (module / directory / "templates").mkdir(parents=True)
        name = pathlib.PurePath(directory).name
        (module / directory / "Chart.yaml").write_text(f"{{apiVersion: v2, name: {name}, version: 1.0.0}}")
        (module / directory / "values.yaml").write_text(values)
        (module / directory / "templates" / "map.yaml").write_text(template.replace("NAME", name))

    def told(name: str) -> list[dict[str, str]]:
        done = site.command(
            "module",
            "why",
            "shop",
            f"ConfigMap/{name}",
            "data.at",
            "-o",
            "json",
            "--modules-dir",
            str(module.parent),
        )
        assert done.returncode == 0, done.stderr
        (field,) = json.loads(done.stdout)["fields"]
        return list(field["values"])

    chart = module / "chart"
    default = f"default in {chart}/values.yaml, line 2, column 1"
    assert told("chart") == [{"key": "shop.port", "origin": default}]
    assert told("till") == [{"key": "shop.till.port", "origin": f"default in {chart}"}]
    (module / "values.yaml").write_text("shop: {till: {port: 7}}\n")
    assert told("till") == [{"key": "shop.till.port", "origin": f"{module}/values.yaml, line 1, column 15"}]


def causes(site: operator_site.Site, *options: str) -> dict[str, Any]:
    named = {"ADDON_OPERATOR_NAMESPACE": ""} if options else {}  # files need no name of a namespace
    done = site.command("module", "why", "web", "ConfigMap/web", "-o", "json", *options, **named)
    assert done.returncode == 0, done.stderr
    assert "canary" not in done.stdout + done.stderr
    assert not options or "hooks were not run: " in done.stderr
    fields = json.loads(done.stdout)["fields"]
    return {each["path"]: {key: each[key] for key in ("cause", "values", "line")} for each in fields}

"""Releases of stock charts: dependencies, takeovers, sizes, charts that vary, hooks, healing and removal."""

import os
import pathlib
import tarfile

import pytest

from addon_operator.devcluster import handle
from tests.integration import operator_process, operator_site
from tests.integration.stock import seen, write_chart

pytestmark = pytest.mark.integration

_RANDOM = """
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-random}
data: {password: {{ randAlphaNum 12 | b64enc }}}
"""
_KEPT = """
{{- $old := lookup "v1" "Secret" .Release.Namespace (printf "%s-kept" .Release.Name) }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-kept}
data:
  password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 12 | b64enc }}{{ end }}
  certificate: {{ (genCAWithKey "authority" 365 (genPrivateKey "ecdsa")).Cert | b64enc }}
"""
_TEST = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-test
  annotations: {"helm.sh/hook": test}
"""


@pytest.fixture
def module(site: operator_site.Site) -> pathlib.Path:
    path = site.module("010-web", values="webEnabled: true\nweb: {auth: {password: hunter2-secret}}\n")
    write_chart(path / "chart")
    return path


@pytest.mark.slow
def test_a_missing_dependency_fails_its_module_before_helm_is_started(
    site: operator_site.Site, module: pathlib.Path
) -> None:
    chart = module / "chart"
    with (chart / "Chart.yaml").open("a") as about:
        about.write("dependencies:\n- {name: db, version: 1.2.3, alias: store, condition: store.enabled}\n")
    site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    operator = site.start()
    try:
        operator.wait_logged(f"run 'helm dependency build {chart}'")
        operator_process.wait_until(lambda: site.deployed() == {"db": 1}, "the other module runs")
        assert str(chart) not in (site.root / "helm-calls").read_text()
        linted = site.command("module", "lint", str(module))
        assert linted.returncode == 1
        assert f"helm dependency build {chart}" in "".join(linted.stdout.split("\n")).replace("  ", " ")
    finally:
        operator.kill()


def test_a_release_that_nobody_of_ours_made_is_taken_over_with_a_revision(
    site: operator_site.Site, module: pathlib.Path
) -> None:
    (module / "module.yaml").write_text("releaseName: front")
    site.install("front", module / "chart")
    never = site.start(TAKE_OWNERSHIP="never")
    try:
        never.wait_logged("release front, revision 1, which no operator made", "TAKE_OWNERSHIP=never")
        assert site.revisions() == {"front": 1}
    finally:
        never.kill()
    ran = site.command("plan")
    planned = ran.stdout + ran.stderr
    assert "release front, revision 1, which no operator made" in " ".join(planned.split())
    operator = site.start(TAKE_OWNERSHIP="labelled").wait_ready().wait_idle()
    try:
        operator.wait_logged("took over", "release front, revision 1, which no operator made")
        assert site.revisions() == {"front": 2}
        noted = operator_process.wait_until(
            lambda: [
                event["message"] for event in site.objects("events") if "no operator made" in event["message"]
            ],
            "an Event says so",
        )
        assert "release front, revision 1" in noted[0]
    finally:
        operator.stop()
    calls = len(site.helm_calls())
    site.start().wait_ready().wait_idle().stop()
    assert (site.revisions(), len(site.helm_calls())) == ({"front": 2}, calls)


@pytest.mark.slow
def test_a_release_that_is_too_large_is_an_error_that_names_what_is_large(
    site: operator_site.Site, module: pathlib.Path
) -> None:
    (module / "chart" / "files").mkdir()
    (module / "chart" / "files" / "blob.txt").write_bytes(os.urandom(1_500_000).hex().encode())
    operator = site.start()
    try:
        line = operator.wait_logged("a release can hold about 1 MiB")
        assert "files/blob.txt (2.9 MiB)" in line
        assert "Traceback" not in operator.log
    finally:
        operator.kill()


@pytest.mark.slow
def test_a_stock_chart_that_varies_is_healed_restarted_and_removed_like_one_of_ours(
    site: operator_site.Site, devcluster: handle.DevCluster, module: pathlib.Path
) -> None:
    templates = module / "chart" / "templates"
    (templates / "random.yaml").write_text(_RANDOM)
    (templates / "test.yaml").write_text(_TEST)
    operator = site.start().wait_ready().wait_idle()
    try:
        assert seen(site)["auth"]["password"] == "hunter2-secret"
        assert site.data("web-test") is None, "tests are not run"
        site.delete("secret", "web-random")
        operator.wait_metric(1, "resources_healed_total", module="web")
        site.get("secret", "web-random")
        assert site.data("web-test") is None
        for shown in (
            site.command("module", "values", "web").stdout,
            site.command("module", "render", "web").stdout,
            site.command("plan").stdout,
            operator.log,
        ):
            assert "hunter2" not in shown
        site.config(web="replicas: 4")
        operator_process.wait_until(lambda: seen(site)["replicas"] == 4, "the edit is released")
        assert site.revisions() == {"web": 2}
    finally:
        operator.stop()
    calls = len(site.helm_calls())
    operator = site.start().wait_ready().wait_idle()
    assert (site.revisions(), len(site.helm_calls())) == ({"web": 2}, calls)
    operator.stop()
    module.rename(site.root / "gone")
    site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    operator = site.start(ALLOW_EMPTY_MODULES="true").wait_ready().wait_idle()
    try:
        operator_process.wait_until(lambda: site.deployed() == {"db": 1}, "the release is purged")
        assert site.data("web-seen") is None
    finally:
        operator.stop()


def subchart(root: pathlib.Path, name: str) -> pathlib.Path:
    """A chart that says which values it got, under its name."""
    path = write_chart(root / name, name)
    (path / "values.yaml").write_text("size: 1\n")
    template = path / "templates" / "seen.yaml"
    template.write_text(template.read_text().replace("-seen", "-{{ .Chart.Name }}-{{ .Values.size }}"))
    return path


def parts(site: operator_site.Site) -> list[str]:
    """The names of what the charts within the chart made."""
    names = [each["metadata"]["name"] for each in site.objects("configmaps")]
    return sorted(name for name in names if name.startswith("web-") and name != "web-seen")


@pytest.mark.slow
def test_charts_within_a_chart_that_varies_are_enabled_and_renamed_as_by_helm(
    site: operator_site.Site, helm: pathlib.Path, module: pathlib.Path
) -> None:
    site.use_helm(helm)
    chart = module / "chart"
    (chart / "templates" / "kept.yaml").write_text(_KEPT)
    with (chart / "Chart.yaml").open("a") as about:
        about.write(
            "dependencies:\n"
            "- {name: local, version: 1.2.3, repository: 'file://../local', condition: local.enabled}\n"
            "- {name: packed, version: 1.2.3, alias: store, tags: [stores]}\n"
            "- {name: packed, version: 1.2.3, alias: spare, tags: [stores], condition: spare.enabled}\n"
        )
    with (chart / "values.yaml").open("a") as values:
        values.write("tags: {stores: false}\nlocal: {enabled: false}\n")
    subchart(module, "local")
    subchart(chart / "charts", "local")
    with tarfile.open(chart / "charts" / "packed-1.2.3.tgz", "w:gz") as packed:
        packed.add(subchart(site.root, "packed"), "packed")
    operator = site.start().wait_ready().wait_idle()
    try:
        first = site.secret_data("web-kept")
        assert parts(site) == []
        site.config(
            web="tags: {stores: true}\nlocal: {enabled: true, size: 2}\nspare: {enabled: false, size: 3}"
        )
        operator_process.wait_until(
            lambda: parts(site) == ["web-local-2", "web-store-1"], "the edit enables charts"
        )
        operator.wait_idle()
        second = site.secret_data("web-kept")
        assert first["password"] == second["password"], "kept by lookup"
        assert first["certificate"] != second["certificate"], "made anew with each revision"
    finally:
        operator.stop()
    calls = len(site.helm_calls())
    operator = site.start().wait_ready().wait_idle()
    try:
        assert (site.revisions(), len(site.helm_calls())) == ({"web": 2}, calls)
        site.delete("secret", "web-kept")
        operator.wait_metric(1, "resources_healed_total", module="web")
        assert site.secret_data("web-kept") == second, "from the record of the release"
    finally:
        operator.stop()


@pytest.mark.slow
def test_a_release_of_another_name_in_another_namespace_is_taken_over(
    site: operator_site.Site, module: pathlib.Path
) -> None:
    edge = f"{site.namespace}-edge"
    (module / "module.yaml").write_text(f"releaseName: front\nnamespace: {edge}")
    site.create("namespace", edge)
    site.cluster.run_helm(f"--namespace={edge}", "install", "front", str(module / "chart"))
    never = site.start(TAKE_OWNERSHIP="never")
    try:
        never.wait_logged("revision 1, which no operator made", "TAKE_OWNERSHIP=never", edge)
    finally:
        never.kill()
    ran = site.command("plan")
    assert "revision 1, which no operator made" in " ".join((ran.stdout + ran.stderr).split())
    operator = site.start().wait_ready().wait_idle()
    try:
        assert edge in operator.wait_logged("took over", "front", "revision 1, which no operator made")
        secrets = site.listed("secret", edge, labelSelector="owner=helm")
        assert [each["metadata"]["labels"]["version"] for each in secrets] == ["1", "2"]
        assert site.revisions() == {}
    finally:
        operator.stop()

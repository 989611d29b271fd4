"""Objects that two modules have, and objects that move from one module to another."""

import json
import pathlib
import shutil
from typing import Final

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration


def add(module: pathlib.Path, name: str, **data: str) -> None:
    """Put a ConfigMap with this data into the module's chart."""
    lines = "".join(f"  {key}: {value}\n" for key, value in data.items())
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{lines}"
    (module / "templates" / f"{name}.yaml").write_text(text)


def uid(site: operator_site.Site, name: str, kind: str = "configmap") -> str:
    return str(site.get(kind, name)["metadata"]["uid"])


def owner(site: operator_site.Site, name: str) -> str:
    return str(site.get("configmap", name)["metadata"]["annotations"]["meta.helm.sh/release-name"])


@pytest.mark.slow
def test_an_object_of_two_modules_is_the_later_ones_and_then_again_the_others(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    late = site.module("005-late", {})
    (late / "templates" / "configmap.yaml").unlink()
    # Helm 4 looks at whose objects are there when a chart that it renders looks at the cluster.
    add(late, "left", of='{{ lookup "v1" "ConfigMap" .Release.Namespace "none" | default "late" }}')
    web = site.module("010-web", {"a": "'{{ .Values.web.a }}'"}, values="web: {a: b}\nwebEnabled: true")
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    for name in ("dropped", "left", "held"):
        add(web, name, of="web", both="web")
        add(db, name, of="db", both="db", only="db")
    of_web, of_db = {"of": "web", "both": "web"}, {"of": "db", "both": "db", "only": "db"}
    operator = site.start(DRIFT_MODE="ignore").wait_ready()
    assert (site.data("dropped"), site.data("left")) == (of_db, of_db)
    before = [uid(site, name) for name in ("dropped", "left")]
    # A revision of the other one leaves them out, and so does a first install of what has nothing else.
    site.config(web="{a: c}", lateEnabled="true")
    operator.wait_until(lambda: site.deployed() == {"web": 2, "db": 1, "late": 1}, "they have run")
    assert (site.data("dropped"), site.data("left")) == (of_db, of_db)
    assert (owner(site, "dropped"), owner(site, "left")) == ("db", "db")
    site.config(web="{a: d}", lateEnabled="false")
    operator.wait_until(lambda: site.deployed() == {"web": 3, "db": 1}, "they have run")
    assert [uid(site, name) for name in ("dropped", "left")] == before
    # The other one has it in maintenance, too.
    held = uid(site, "held")
    (web / "templates" / "held.yaml").unlink()
    site.config(web="{a: e}", dbMaintenance="NoResourceReconciliation")
    operator.wait_until(lambda: site.deployed() == {"web": 4, "db": 1}, "the chart has lost it")
    operator.wait_idle()
    assert (uid(site, "held"), site.data("left")) == (held, of_db)
    (db / "templates" / "dropped.yaml").unlink()
    site.config(db="{a: c}", dbMaintenance=None)
    operator.wait_until(lambda: site.deployed().get("db") == 2, "it has run")
    operator.wait_until(lambda: site.data("dropped") == of_web, "it is as the other chart has it")
    assert owner(site, "dropped") == "web"
    site.config(dbEnabled="false")
    operator.wait_until(lambda: site.data("left") == of_web, "it is as the other chart has it")
    operator.wait_until(lambda: site.revisions() == {"web": 4}, "the later one is gone")
    assert [uid(site, name) for name in ("dropped", "left")] == before
    operator.stop()


def test_what_a_module_in_maintenance_has_stays_its_own_also_over_a_restart(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    web = site.module("010-web", {"a": "'{{ .Values.web.a }}'"}, values="web: {a: b}\nwebEnabled: true")
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    for name in ("both", "dropped"):
        add(web, name, of="web", only="web")
        add(db, name, of="db")
    operator = site.start().wait_ready()
    before = [uid(site, name) for name in ("both", "dropped")]
    site.config(web="{a: c}", dbMaintenance="NoResourceReconciliation")
    operator.wait_until(lambda: site.deployed() == {"web": 2, "db": 1}, "it has run")
    assert (site.data("both"), owner(site, "both")) == ({"of": "db"}, "db")
    assert "belongs to db" in site.command("module", "describe", "web").stdout
    operator.stop()
    (web / "templates" / "dropped.yaml").unlink()
    operator = site.start(DRIFT_MODE="correct").wait_ready().wait_idle()
    assert site.deployed() == {"web": 3, "db": 1}
    assert (site.data("both"), owner(site, "both")) == ({"of": "db"}, "db")
    assert [uid(site, name) for name in ("both", "dropped")] == before
    # What another module does not have is nobody's to heal now.
    site.delete("configmap", "both", "web")
    operator.wait_until(lambda: site.data("web") is not None, "it is healed")
    operator.wait_idle()
    assert site.data("both") is None
    site.config(dbMaintenance=None)
    operator.wait_until(lambda: site.data("both") == {"of": "db"}, "it is healed")
    operator.wait_idle()
    assert (site.revisions(), uid(site, "dropped")) == ({"web": 3, "db": 1}, before[1])
    # The module whose it is puts it right, and the other one does not.
    for name in ("both", "web"):
        site.patch("configmap", name, {"data": {"of": "somebody", "a": "somebody"}})
    operator.wait_until(lambda: site.data("web") == {"a": "c", "of": "somebody"}, "the other one's own is")
    operator.wait_until(lambda: (site.data("both") or {})["of"] == "db", "it is as its module has it")
    operator.wait_idle()
    assert "only" not in (site.data("both") or {})
    assert owner(site, "both") == "db"
    operator.stop()


def test_what_moves_to_a_module_with_files_newer_than_its_last_run_keeps_its_uid(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    web = site.module("010-web", {"a": "'{{ .Values.web.a }}'"}, values="web: {a: b}\nwebEnabled: true")
    db = site.module("020-db", {"a": "'{{ .Values.db.a }}'"}, values="db: {a: b}\ndbEnabled: true")
    for name in ("moves", "goes"):
        add(web, name, of="web")
    operator = site.start().wait_ready()
    before = uid(site, "moves")
    for name in ("moves", "goes"):
        (web / "templates" / f"{name}.yaml").unlink()
    add(db, "moves", of="db")
    # The run of web reads its files anew; nobody has told the operator of those of db.
    site.config(web="{a: c}")
    operator.wait_until(lambda: site.deployed() == {"web": 2, "db": 1}, "web has run")
    operator.wait_idle()
    assert uid(site, "moves") == before
    site.config(db="{a: c}")
    operator.wait_until(lambda: site.deployed() == {"web": 2, "db": 2}, "db has run")
    operator.wait_until(lambda: site.data("goes") is None, "what nobody has goes")
    assert (uid(site, "moves"), site.data("moves"), owner(site, "moves")) == (before, {"of": "db"}, "db")
    operator.stop()


def test_what_moves_while_directories_are_written_keeps_its_uid(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    """A run reads what its module's directory has by then; other directories are written after it."""
    site.use_helm(helm)
    web = site.module("010-web", {"a": "'{{ .Values.web.a }}'"}, values="web: {a: b}\nwebEnabled: true")
    for name in ("moves", "goes"):
        add(web, name, of="web")
    operator = site.start(WATCH_MODULES="yes", WATCH_MODULES_INTERVAL="2s").wait_ready().wait_idle()
    before = uid(site, "moves")
    for name in ("moves", "goes"):
        (web / "templates" / f"{name}.yaml").unlink()
    site.config(web="{a: c}")
    operator.wait_until(lambda: site.deployed() == {"web": 2}, "web has run")
    add(site.module("020-new", {"a": "b"}, values="newEnabled: true"), "moves", of="new")
    operator.wait_until(lambda: site.deployed() == {"web": 2, "new": 1}, "the new module has run")
    operator.wait_until(lambda: site.data("goes") is None, "what nobody has goes")
    assert (uid(site, "moves"), owner(site, "moves")) == (before, "new")
    operator.stop()


_CLAIM: Final = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
_PASSWORD: Final = """\
apiVersion: v1
kind: Secret
metadata: {name: password}
data: {password: {{ randAlphaNum 16 | b64enc | quote }}}
"""
_FAILS: Final = """\
{{ if .Values.global.fails }}
apiVersion: v1
kind: Service
metadata: {name: wrong}
spec: {ports: [{port: 99999}]}
{{ end }}
"""
_BY_HOOK: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME, annotations: {helm.sh/hook: post-install}}
webhooks: []
"""
_MOVING: Final = (("configmap", "moved"), ("pvc", "data"), ("secret", "password"))


def write_moving(site: operator_site.Site) -> None:
    """Write two modules; the global value ``at`` says which of them has what moves."""
    site.values("global: {at: base, fails: ''}")
    base = site.module("010-base", {"a": "b"}, values="baseEnabled: true")
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    for module, name in ((base, "base"), (db, "db")):
        add(module, "moved", of=name, **{f"only-{name}": "x"})
        add(module, f"{name}-alone", a="b")
        (module / "templates" / "data.yaml").write_text(f"{_CLAIM}---\n{_PASSWORD}")
        for file in ("moved", "data", f"{name}-alone"):
            path = module / "templates" / f"{file}.yaml"
            path.write_text(f'{{{{ if eq .Values.global.at "{name}" }}}}\n{path.read_text()}{{{{ end }}}}\n')
    (db / "templates" / "fails.yaml").write_text(_FAILS)


def moving(site: operator_site.Site) -> list[str]:
    return [uid(site, name, kind) for kind, name in _MOVING]


def is_at(site: operator_site.Site, name: str, other: str) -> bool:
    """Whether the objects are that module's, and what nobody gained is gone."""
    data = site.data("moved")
    return data == {"of": name, f"only-{name}": "x"} and site.data(f"{other}-alone") is None


def start_moving(
    site: operator_site.Site, helm: pathlib.Path
) -> tuple[operator_process.OperatorProcess, list[str]]:
    """Start an operator whose modules have the objects that move; gives their uids, too."""
    site.use_helm(helm)
    write_moving(site)
    site.first_retry = operator_site.SOON
    operator = site.start(TAKE_OWNERSHIP="never").wait_ready().wait_idle()
    return operator, moving(site)


def test_objects_that_move_to_another_module_keep_their_uids_whichever_runs_first(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    operator, before = start_moving(site, helm)
    planned = site.command("plan", "--set", "global.at=db", TAKE_OWNERSHIP="never").stderr
    moves = "Secret password (with new random content), ConfigMap moved, PersistentVolumeClaim data: moves"
    assert f"{moves} from module base to module db and is not deleted" in planned
    # The one that loses them runs first.
    site.config(**{"global": "{at: db}"})
    operator.wait_until(lambda: is_at(site, "db", "base"), "they have moved")
    # The one that gains them runs first.
    site.config(**{"global": "{at: base}"})
    operator.wait_until(lambda: is_at(site, "base", "db"), "they are back")
    operator.wait_idle()
    assert moving(site) == before
    see_moved(site, "base")
    operator.stop()


def see_moved(site: operator_site.Site, name: str) -> None:
    """What has moved is marked as an object of that release, and as nothing that was kept."""
    for kind, moved in _MOVING:
        metadata = site.get(kind, moved)["metadata"]
        assert metadata["annotations"]["meta.helm.sh/release-name"] == name
        assert "helm.sh/resource-policy" not in metadata["annotations"]
        assert "addon-operator.io/kept-from" not in metadata["labels"]


@pytest.mark.slow
def test_objects_wait_for_a_module_that_fails_to_gain_them_also_over_a_crash(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    operator, before = start_moving(site, helm)
    site.config(**{"global": "{at: db, fails: x}"})
    operator.wait_logged("module db", "99999")
    operator.wait_logged(f"release {site.namespace}/base: ", "left it, and go when module db has run")
    assert moving(site) == before
    assert site.data("base-alone") is not None
    operator.kill()
    operator = site.start(TAKE_OWNERSHIP="never")
    operator.wait_logged("module db", "99999")
    assert moving(site) == before
    site.config(**{"global": "{at: db}"})
    operator.wait_until(lambda: is_at(site, "db", "base"), "they have moved")
    operator.wait_ready().wait_idle()
    assert moving(site) == before
    see_moved(site, "db")
    operator.stop()


@pytest.mark.slow
def test_a_module_that_fails_keeps_only_what_its_chart_has(site: operator_site.Site) -> None:
    site.values("global: {fails: x}")
    base = site.module("010-base", {"a": "b"}, values="baseEnabled: true\nbase: {has: x}")
    add(base, "alone", a="b")
    path = base / "templates" / "alone.yaml"
    path.write_text(f"{{{{ if .Values.base.has }}}}\n{path.read_text()}{{{{ end }}}}\n")
    bad = site.module("020-bad", {"a": "b"}, values="badEnabled: true")
    (bad / "templates" / "fails.yaml").write_text(_FAILS)
    site.first_retry = operator_site.SOON
    operator = site.start()
    operator.wait_logged("module bad", "99999")
    assert site.data("alone") is not None
    site.config(base="{has: ''}")
    operator.wait_until(lambda: site.data("alone") is None, "it goes")
    operator.stop()


def test_what_another_module_gains_outlives_the_removal_of_the_one_that_had_it(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    write_moving(site)
    operator = site.start(TAKE_OWNERSHIP="never").wait_ready().wait_idle()
    before = moving(site)
    site.config(baseEnabled="false", **{"global": "{at: db}"})
    operator.wait_until(lambda: is_at(site, "db", "base") and set(site.revisions()) == {"db"}, "they move")
    operator.wait_idle()
    assert moving(site) == before
    # What nobody gains goes with the module, but for its data.
    site.config(dbEnabled="false", **{"global": "{at: nobody}"})
    operator.wait_until(lambda: site.revisions() == {}, "it is removed")
    operator.wait_until(lambda: site.data("moved") is None, "they go")
    assert uid(site, "data", "pvc") == before[1]
    operator.stop()


def test_a_renamed_module_takes_its_objects_along_whatever_take_ownership_says(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    site.values("oldEnabled: true\nnewEnabled: true\notherEnabled: true\n")
    site.module("020-other", {"a": "b"})
    old = site.module("010-old", {"a": "b"})
    add(old, "same", a="b")
    (old / "templates" / "data.yaml").write_text(_CLAIM)
    (old / "templates" / "hook.yaml").write_text(_BY_HOOK.replace("NAME", site.namespace))
    operator = site.start(TAKE_OWNERSHIP="never", WATCH_MODULES="yes").wait_ready()
    before = uid(site, "same"), uid(site, "data", "pvc")
    by_hook = uid(site, site.namespace, "validatingwebhookconfiguration")
    renamed = site.root / "renamed"
    shutil.copytree(site.modules, renamed)
    (renamed / old.name).rename(renamed / "010-new")
    see_planned(site, renamed)
    old.rename(site.modules / "010-new")
    operator.wait_until(lambda: set(site.revisions()) == {"new", "other"}, "it is renamed")
    operator.wait_idle()
    assert (uid(site, "same"), uid(site, "data", "pvc")) == before
    assert (owner(site, "same"), site.data("old")) == ("new", None)
    assert "both have" not in operator.log
    # The hook of the new release has made it anew, and it does not go with the old one.
    assert uid(site, site.namespace, "validatingwebhookconfiguration") != by_hook
    site.config(newEnabled="false")
    operator.wait_until(lambda: set(site.revisions()) == {"other"}, "it is removed")
    operator.wait_idle()
    assert site.find("validatingwebhookconfiguration", site.namespace) is None
    operator.stop()


def see_planned(site: operator_site.Site, renamed: pathlib.Path) -> None:
    """What the new module has is neither deleted nor kept with the old one."""
    planned = site.command("plan", "-o", "json", MODULES_DIR=str(renamed), TAKE_OWNERSHIP="never")
    found = json.loads(planned.stdout)
    assert [each["action"] for each in found["modules"]] == ["install", "nothing"]
    assert found["losses"] == ["the removal of release old deletes 1 object (1 ConfigMap)"]
    taken = "module new takes over ConfigMap same, PersistentVolumeClaim data from release old: they stay"
    assert any(each.startswith(taken) for each in found["notes"])

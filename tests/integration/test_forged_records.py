"""Who may edit Secrets in the namespace of a release makes the operator refuse, and never makes it act."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import helm_records, module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

CASES: Final = (
    "upgraded",
    "disabled",
    "healed",
    "drifted",
    "backed",
    "stuck",
    "hidden",
    "split",
    "packed",
    "older",
    "recast",
)
UNUSED: Final = ("unused", "half")
BREAKS: Final = """\
{{ if .Values.NAME.fails }}
apiVersion: v1
kind: Service
metadata: {name: wrong}
spec: {ports: [{port: 99999}]}
{{ end }}
"""


class Attack:
    """Somebody who may edit what Helm stores in the namespace ``edge``, and nothing anywhere else."""

    def __init__(self, site: operator_site.Site, driver: str) -> None:
        self._site = site
        self._kind = driver
        self.edge = f"{site.namespace}-edge"
        self.strange = f"{site.namespace}-strange"

    def victim(self, name: str) -> str:
        """An object of somebody else's; its uid."""
        self._site.create("configmap", name, {"data": {"of": "somebody else"}})
        return self.uid(name)

    def uid(self, name: str, namespace: str = "") -> str:
        return str(self._site.get("configmap", name, namespace)["metadata"]["uid"])

    def module(self, directory: str, data: dict[str, str], **more: object) -> None:
        """A module whose release is in that namespace."""
        path = self._site.module(directory, data, values=f"{directory.partition('-')[2]}Enabled: true\n")
        config = {"namespace": self.edge, "createNamespace": True, **more}
        (path / "module.yaml").write_text(json.dumps(config))

    def leave_unused(self) -> None:
        """Modules that are disabled, and have hooks for their removal."""
        for case in UNUSED:
            self.module(f"020-{case}", {"a": "b"})
            directory = self._site.modules / f"020-{case}"
            (directory / "values.yaml").write_text(f"{case}Enabled: false\n")
            self._site.hook(directory, f"{case}.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})

    def check_nothing_came_of_it(self, victims: dict[str, str]) -> None:
        """``victims``: the uids of what was there, by the cases."""
        assert {each: self.uid(f"victim-{each}") for each in victims} == victims
        made = {each["metadata"]["name"] for each in self._site.listed("configmap", self.edge)}
        assert not [each for each in made if each.startswith(("planted", "evil"))]
        assert self._site.labels() == [], "no hook of a module that is not installed runs"

    def content(self, case: str) -> dict[str, Any]:
        """What a record would delete, bring back, put right, or run."""
        if case == "packed":
            # Some kilobytes that Python makes megabytes of; with more of them it would be gigabytes.
            return {"config": {"a": [[]] * 300_000}}
        if case == "recast":
            # What it was made from decides what of it may be deleted with the release.
            return {"config": {"a": "forged"}}
        place = self._site.namespace
        victim = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: victim-{case}, namespace: {place}}}}}"
        planted = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: planted-{case}}}}}"
        own = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {case}}}, data: {{a: forged}}}}"
        # For Helm an object with items is a list, whatever it calls itself.
        hidden = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {case}}}, items: [{victim}]}}"
        evil = (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: evil-" + case + ", annotations: "
            "{helm.sh/hook: 'pre-delete,pre-rollback,pre-upgrade'}}}"
        )
        events = ["pre-delete", "pre-rollback", "pre-upgrade"]
        hook = {"name": f"evil-{case}", "kind": "ConfigMap", "path": "a", "manifest": evil, "events": events}
        manifest = f"{victim}\n---\n{planted}\n---\n{own}\n---\n{hidden}"
        return {"manifest": manifest, "hooks": [hook]}

    def edit(self, case: str) -> None:
        """Have the record of a real release say that."""
        self._change(case, 1, lambda decoded: {**decoded, **self.content(case)})

    def restate(self, case: str, number: int, status: str) -> None:
        """Change the status of a revision where the operator and where Helm look for it."""
        self._change(case, number, lambda found: {**found, "info": {**found["info"], "status": status}})
        self._site.label(self._kind, f"sh.helm.release.v1.{case}.v{number}", {"status": status}, self.edge)

    def _change(self, case: str, number: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        helm_records.change(self._site, case, number, change, driver=self._kind, namespace=self.edge)

    def mark(self, case: str, status: str) -> None:
        """Change the label alone."""
        name = f"sh.helm.release.v1.{case}.v1"
        self._site.label(self._kind, name, {"status": status}, self.edge)

    def forge(
        self, case: str, namespace: str, label: str = "1", number: int = 1, *, is_removed: bool = False
    ) -> None:
        """Make a record of a release that there never was, with the labels of this operator.

        ``number`` is the revision that Helm, which looks inside, takes it for. ``is_removed``: it says that
        hooks of the module have yet to run after a removal.
        """
        status = "uninstalled" if is_removed else "deployed"
        release = {
            "name": case,
            "namespace": namespace,
            "version": number,
            "info": {"status": status, "first_deployed": "2024-01-01T00:00:00Z"},
            "chart": {"metadata": {"name": case, "version": "1", "apiVersion": "v2"}},
            **self.content(case),
        }
        labels = {"owner": "helm", "name": case, "version": label, "status": status}
        labels |= {"addon-operator.io/removal": "begun"} if is_removed else {}
        labels |= {"addon-operator.io/managed": "true", "addon-operator.io/revision": "1"}
        labels |= {"addon-operator.io/digest": "a" * 52, "addon-operator.io/operator": self._site.namespace}
        body = {"metadata": {"labels": labels}, "data": {"release": helm_records.packed(release, self._kind)}}
        if self._kind == "secret":
            body["type"] = "helm.sh/release.v1"
        self._site.create(self._kind, f"sh.helm.release.v1.{case}.v{label}", body, namespace)

    def lie(self) -> None:
        """Have Helm take records for the last revision, or for one that is deployed, by what is inside."""
        self.forge("hidden", self.edge, label="x", number=100)
        self.mark("split", "failed")

    def begin(self) -> None:
        """Do all of it."""
        for case in {*CASES} - {"stuck", "hidden", "older"}:
            self.edit(case)
        self.mark("stuck", "uninstalling")
        # What was deployed is not to be the revision that is gone back to.
        self.restate("older", 2, "failed")
        self.lie()
        self.forge("stranger", self.strange)
        self.forge_of_nobody()

    def forge_of_nobody(self) -> None:
        """Make records without a module, and of modules that are disabled and were never installed."""
        self.forge("guest", self.edge)
        self.forge("unused", self.edge)
        self.forge("half", self.edge, is_removed=True)

    def genuine(self, case: str, number: int) -> dict[str, Any]:
        """The record of a revision as it is."""
        return dict(self._site.get(self._kind, f"sh.helm.release.v1.{case}.v{number}", self.edge))

    def put_back(self, record: dict[str, Any], case: str, number: int) -> None:
        """Have a record be that of a deployed revision, with all that the operator wrote on it."""
        labels = {**record["metadata"]["labels"], "name": case, "version": str(number), "status": "deployed"}
        body = {**record, "metadata": {"labels": labels}}
        self._site.create(self._kind, f"sh.helm.release.v1.{case}.v{number}", body, self.edge)

    def delete(self, case: str, label: str) -> None:
        """Delete a record, as a person does whom the operator has told so."""
        self._site.delete(self._kind, f"sh.helm.release.v1.{case}.v{label}", namespace=self.edge)


def see_lies_refused(
    attack: Attack, operator: operator_process.OperatorProcess, told: Callable[[str], str]
) -> None:
    """No rollback by a record of others, and none beyond what was deployed. A record that says one thing
    outside and another inside; deleted then.
    """
    operator.wait_until(lambda: "there is no rollback" in told("backed"), "no rollback")
    operator.wait_until(lambda: "taken back to revision 2" in told("older"), "a rollback")
    lies = {"hidden": "x", "split": "1", "packed": "1"}
    operator.wait_until(lambda: all("is not what its name" in told(each) for each in lies), "all are refused")
    for case, label in lies.items():
        attack.delete(case, label)


@pytest.mark.parametrize("driver", ["secret", pytest.param("configmap", marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", ["helm4", pytest.param("helm", marks=pytest.mark.slow)])
def test_records_that_others_wrote_or_changed_are_input_of_nothing(
    site: operator_site.Site,
    devcluster: handle.DevCluster,
    request: pytest.FixtureRequest,
    version: str,
    driver: str,
) -> None:
    if version == "helm4":
        site.use_helm(request.getfixturevalue(version))
    site.first_retry = operator_site.SOON
    attack = Attack(site, driver)
    for case in CASES:
        data_of = {"a": f'{{{{ .Values.{case}.a | default "one" }}}}'}
        drift = {"mode": "correct" if case == "drifted" else "warn"}
        attack.module(f"010-{case}", data_of, remediation={"rollback": True}, drift=drift)
    for case in ("backed", "older"):
        more = site.modules / f"010-{case}" / "templates" / "more.yaml"
        more.write_text(BREAKS.replace("NAME", case))
    attack.leave_unused()
    site.kubectl("create", "namespace", attack.strange)
    seen = module_objects.Modules(site, devcluster)

    def data(case: str) -> str | None:
        found = site.find("configmap", case, attack.edge)
        return None if found is None else str(found["data"]["a"])

    operator = site.start(HELM_DRIVER=driver).wait_ready().wait_idle()
    site.config(older="a: two\n")
    operator.wait_until(lambda: data("older") == "two", "a second revision")
    operator.wait_idle()
    victims = {each: attack.victim(f"victim-{each}") for each in (*CASES, *UNUSED, "guest", "stranger")}
    own = {each: attack.uid(each, attack.edge) for each in CASES}
    attack.begin()

    operator.wait_until(
        lambda: all(
            seen.condition(each, "Ready")["reason"] == "ChangedByOthers" for each in ("upgraded", "recast")
        ),
        "the records are told",
    )
    site.patch("configmap", "drifted", {"data": {"a": "by hand"}}, namespace=attack.edge)
    operator.wait_until(lambda: data("drifted") == "one", "what is corrected comes from the chart")
    site.delete("configmap", "healed", namespace=attack.edge)
    operator.wait_until(lambda: data("healed") == "one", "what is absent comes from the chart")
    site.config(
        upgraded="a: two\n",
        backed="fails: true\n",
        older="{a: three, fails: true}\n",
        **dict.fromkeys(("stuck", "drifted", "hidden", "split", "packed"), "a: two\n"),
        disabledEnabled="false",
    )
    operator.wait_until(lambda: data("upgraded") == data("stuck") == "two", "both are upgraded")
    operator.wait_until(lambda: data("drifted") == "two", "the correction")
    operator.wait_until(lambda: data("disabled") is None, "the removal")
    see_lies_refused(attack, operator, lambda case: str(seen.condition(case, "Ready")["message"]))
    operator.wait_until(
        lambda: {data(each) for each in ("hidden", "split", "packed")} == {"two"}, "they go on without these"
    )
    site.config(backed="{}\n", older="a: two\n")
    operator.wait_idle().stop()
    site.start(HELM_DRIVER=driver).wait_ready().wait_idle().stop()
    attack.check_nothing_came_of_it(victims)
    stays = {each: uid for each, uid in own.items() if each not in ("disabled", "healed")}
    assert {each: attack.uid(each, attack.edge) for each in stays} == stays
    assert {data(each) for each in ("upgraded", "drifted", "stuck", "older")} == {"two"}
    assert {data(each) for each in ("healed", "backed")} == {"one"}


def see_older_memory(
    site: operator_site.Site, operator: operator_process.OperatorProcess, attack: Attack
) -> dict[str, int]:
    """Put back a memory from before the last revisions; what revisions there are then."""
    older = site.get("secret", "addon-operator-state")["data"]
    site.config(kept="a: two\n")
    operator.wait_until(lambda: site.deployed()["kept"] == 2, "the second revision")
    site.config(againEnabled="false")
    operator.wait_until(lambda: "again" not in site.revisions(), "it is removed")
    site.config(againEnabled=None)
    operator.wait_until(lambda: site.deployed().get("again") == 1, "it is installed again")
    operator.wait_idle().stop()
    before, again = site.revisions(), attack.uid("again")

    # A memory from before the last revisions, and from before one release was installed again.
    site.patch("secret", "addon-operator-state", {"data": older})
    operator = site.start().wait_ready().wait_idle()
    assert site.revisions() == {**before, "again": 2}, "a reinstallation costs one run"
    assert attack.uid("again") == again
    assert not [
        each for each in operator.log.splitlines() if "changed by others" in each and "again" not in each
    ]
    site.config(againEnabled="false")
    operator.wait_until(lambda: "again" not in site.revisions(), "it is removed")
    operator.stop()
    before.pop("again")
    return before


def test_a_memory_that_is_lost_or_put_back_costs_no_release(site: operator_site.Site) -> None:
    site.module("010-kept", {"a": '{{ .Values.kept.a | default "one" }}'}, values="keptEnabled: true")
    site.module("020-gone", {"a": "b"}, values="goneEnabled: true")
    left = site.module("030-left", {"a": "b"}, values="leftEnabled: true")
    site.module("040-theirs", {"a": "b"}, values="theirsEnabled: true")
    site.module("060-again", {"a": "b"}, values="againEnabled: true")
    # Records where others edit Secrets: of a module, of one that goes, and one that somebody forges.
    attack = Attack(site, "secret")
    for case in ("edge", "away"):
        attack.module(f"050-{case}", {"a": "b"})
    operator = site.start().wait_ready().wait_idle()
    victims = {each: attack.victim(f"victim-{each}") for each in ("edge", "away", "guest")}
    before = see_older_memory(site, operator, attack)

    claim = {"addon-operator.io/config-map": "another"}
    site.label("secret", "sh.helm.release.v1.theirs.v1", claim)
    theirs = site.get("secret", "sh.helm.release.v1.theirs.v1")["metadata"]["resourceVersion"]
    site.delete("secret", "addon-operator-state")
    for case in ("edge", "away"):
        attack.edit(case)
    attack.forge("guest", attack.edge)
    for name in ("030-left", "040-theirs", "050-away"):
        (site.modules / name).rename(site.root / name)
    site.config(goneEnabled="false")
    operator = site.start(TAKE_OWNERSHIP="never").wait_ready().wait_idle()
    assert site.revisions() == before
    line = operator.wait_logged("nothing was remembered of releases")
    assert all(each in line for each in ("kept", "left", "gone"))
    assert "theirs" not in line
    operator.stop()
    operator = site.start().wait_ready().wait_idle()
    operator.wait_until(lambda: site.revisions().keys() == {"kept", "theirs"}, "what has no module goes")
    operator.stop()
    assert site.get("secret", "sh.helm.release.v1.theirs.v1")["metadata"]["resourceVersion"] == theirs
    assert not left.exists()
    attack.check_nothing_came_of_it(victims)
    records = {each["metadata"]["name"].split(".", 4)[-1] for each in site.listed("secret", attack.edge)}
    assert records == {"away.v1", "guest.v1", "edge.v1", "edge.v2"}, "one revision for a lost memory"


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["secret", "configmap"])
def test_genuine_records_in_another_time_or_place_are_input_of_nothing(
    site: operator_site.Site, devcluster: handle.DevCluster, driver: str
) -> None:
    """A revision of before put back, one of another release, and one that is gone."""
    site.first_retry = operator_site.SOON
    attack = Attack(site, driver)
    cases = ("replayed", "newest", "copied", "source")
    for case in cases:
        attack.module(f"010-{case}", {"a": f'{{{{ .Values.{case}.a | default "one" }}}}'})
        more = f"{{{{ if not .Values.{case}.a }}}}\n" + json.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"left-{case}"}}
        )
        (site.modules / f"010-{case}" / "templates" / "more.yaml").write_text(f"{more}\n{{{{ end }}}}\n")
    seen = module_objects.Modules(site, devcluster)

    def data(case: str) -> str | None:
        found = site.find("configmap", case, attack.edge)
        return None if found is None else str(found["data"]["a"])

    operator = site.start(HELM_DRIVER=driver).wait_ready().wait_idle()
    before = {case: attack.genuine(case, 1) for case in cases}
    site.config(**dict.fromkeys(cases, "a: two\n"))
    operator.wait_until(lambda: {data(case) for case in cases} == {"two"}, "second revisions")
    operator.wait_idle()
    for case in cases:
        assert site.find("configmap", f"left-{case}", attack.edge) is None
        site.create("configmap", f"left-{case}", {"data": {"of": "somebody else"}}, attack.edge)
    victims = {case: attack.uid(f"left-{case}", attack.edge) for case in cases}
    own = {case: attack.uid(case, attack.edge) for case in cases}

    # While it is away, so that it puts nothing in order in between.
    operator.stop()
    attack.delete("replayed", "1")
    for case in ("replayed", "newest"):
        attack.delete(case, "2")
    attack.put_back(before["replayed"], "replayed", 1)
    attack.put_back(before["source"], "copied", 3)
    site.config(**dict.fromkeys(cases, "a: three\n"))
    operator = site.start(HELM_DRIVER=driver, CONVERGE_ON_FAILURE="continue")
    operator.wait_until(
        lambda: "is not what its name" in str(seen.condition("copied", "Ready")["message"]), "it is refused"
    )
    attack.delete("copied", "3")
    operator.wait_until(lambda: {data(case) for case in cases} == {"three"}, "all go on")
    operator.wait_idle()
    assert {case: attack.uid(case, attack.edge) for case in cases} == own
    site.config(copied="a: three\n", replayedEnabled="false", newestEnabled="false")
    operator.wait_until(lambda: data("replayed") is data("newest") is None, "both are removed")
    operator.wait_idle().stop()
    for case in ("replayed", "newest"):
        attack.put_back(before[case], case, 1)
    site.start(HELM_DRIVER=driver).wait_ready().wait_idle().stop()
    assert {case: attack.uid(f"left-{case}", attack.edge) for case in cases} == victims

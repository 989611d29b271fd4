"""Manifests without secrets can still be compared with what charts render to."""

import base64
import re

from addon_operator.commands.plan_state import hidden_values, recorded_manifests
from addon_operator.documents import manifest_diff
from addon_operator.helm.releases import rendering

HASHES = hidden_values.StandIns(b"in the file")
TEMPLATE = """\
---
# Source: web/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {{name: web}}
data: {{sum: "{sum}", url: "http://{password}@db", color: {color}}}
---
# Source: web/templates/b.yaml
apiVersion: v1
kind: Secret
metadata: {{name: keys}}
stringData: {{password: "{password}", fixed: written-here}}
data: {{random: "{random}"}}
"""


def manifest(password: str, color: str = "green", random: str = "cmFuZG9t") -> str:
    return TEMPLATE.format(sum=hash_of(password), password=password, color=color, random=random)


def hash_of(password: str) -> str:
    return base64.b16encode(password.encode()).decode()


def recorded(text: str) -> str:
    stand_in = str(HASHES.of("hunter2-hunter2", ()))
    rendered = (manifest("hunter2-hunter2", random="YW5vdGhlcg=="), manifest(stand_in, random="dGhpcmQ="))
    return recorded_manifests.Recorder(rendered, HASHES).rewritten(text)


def test_what_is_made_of_a_hidden_value_reads_as_with_its_stand_in() -> None:
    text = recorded(manifest("hunter2-hunter2"))
    assert "hunter2" not in text
    assert hash_of("hunter2-hunter2") not in text
    stand_in = str(HASHES.of("hunter2-hunter2", ()))
    assert f"http://{stand_in}@db" in text
    assert hash_of(stand_in) in text


def test_data_of_secrets_is_hashed_alike_on_both_sides_and_what_is_random_is_not_known() -> None:
    stand_in = str(HASHES.of("hunter2-hunter2", ()))
    text = recorded(manifest("hunter2-hunter2"))
    assert "written-here" not in text
    assert "cmFuZG9t" not in text
    (unknown,) = re.findall(r"random: '?(\w+)", text)
    assert unknown not in recorded(manifest("hunter2-hunter2")), "equal values cannot be known for that"
    later = recorded_manifests.with_hashes(manifest(stand_in), HASHES)
    assert HASHES.digest("written-here") in text
    assert HASHES.digest("written-here") in later
    ours = manifest_diff.parse(text.replace(unknown, HASHES.digest("cmFuZG9t")))
    assert manifest_diff.fingerprint(ours) == manifest_diff.fingerprint(manifest_diff.parse(later))


def test_what_the_chart_does_not_render_to_now_is_hidden_but_for_which_object_it_is() -> None:
    before = manifest("the-one-before", color="blue").replace("color:", "canary: 1, color:")
    before = before.replace("{name: web}", "{name: web, annotations: {helm.sh/resource-policy: keep}}")
    before = before.replace("stringData: {", "stringData: {canary: x, ")
    text = recorded(before + "---\nkind: Gone\napiVersion: v1\nmetadata: {name: gone}\nspec: {pin: 4711}\n")
    for canary in ("the-one-before", hash_of("the-one-before"), "blue", "canary", "4711"):
        assert canary not in text, canary
    keys = [str(each.key) for each in manifest_diff.parse(text)]
    assert keys == ["ConfigMap web", "Secret keys", "Gone gone"]
    assert "helm.sh/resource-policy: keep" in text
    assert "color: hidden-" in text, "it differs, and shows where"


def test_of_an_unknown_release_only_the_names_of_objects_stay() -> None:
    text = recorded_manifests.outline(manifest("hunter2-hunter2"))
    assert [str(each.key) for each in manifest_diff.parse(text)] == ["ConfigMap web", "Secret keys"]
    assert "hunter2" not in text
    assert "\ndata" not in text
    assert rendering.manifest_checksum(text) != rendering.manifest_checksum(manifest("x"))


def test_what_is_called_otherwise_with_stand_ins_is_known() -> None:
    text = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n---\napiVersion: v1\nkind: Pod\n"
    found = recorded_manifests.renamed(text % "named-4711", text % "named-stand-in")
    assert [(had.name, has.name) for had, has in found] == [("named-4711", "named-stand-in")]
    assert recorded_manifests.renamed(text % "a", "") == []

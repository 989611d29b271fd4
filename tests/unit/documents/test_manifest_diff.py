"""What tells two rendered manifests apart."""

import pytest

from addon_operator.documents import manifest_diff
from tests.support import rows

WEB = """\
# Source: web/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  size: "1"
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: keys}
data: {token: aHVudGVyMg==, user: YWRtaW4=}
stringData: {extra: plain}
"""
HERITAGE = {"heritage": "addon-operator"}


def keys(manifest: str) -> list[str]:
    return [str(document.key) for document in manifest_diff.parse(manifest)]


def same(applied: str, rendered: str) -> bool:
    before, after = (
        manifest_diff.unlabelled(manifest_diff.parse(each), HERITAGE, "addons")
        for each in (applied, rendered)
    )
    return manifest_diff.fingerprint(before) == manifest_diff.fingerprint(after)


def diff(before: str, after: str) -> tuple[manifest_diff.ManifestChange, ...]:
    return manifest_diff.diff(manifest_diff.parse(before), manifest_diff.parse(after))


def text(before: str, after: str) -> str:
    return "\n".join(line for change in diff(before, after) for line in change.diff)


def test_a_manifest_is_split_into_objects_that_a_person_recognises() -> None:
    manifest = f"---\n{WEB}---\n\n---\n# only a comment\n--- # a remark\n{SECRET}"
    assert keys(manifest) == ["ConfigMap web", "Secret keys"]
    assert keys("kind: Role\nmetadata: {name: a, namespace: other}") == ["Role other/a"]
    assert keys("kind: Job\nmetadata: {generateName: run-}") == ["Job run-"]


@rows.each(
    "broken",
    ["a: [", "- a\n- b", "just words", "? {a: b}\n: c\n", "\x00"],
    ids=["no yaml", "a list", "a text", "a key that is not text", "a control character"],
)
def test_a_document_that_is_not_an_object_is_kept_as_text(broken: str) -> None:
    (document,) = manifest_diff.parse(f"# Source: web/templates/odd.yaml\n{broken}")
    assert document.key.kind == "web/templates/odd.yaml"
    assert not manifest_diff.diff([document], [document])


def test_dates_stay_texts_and_words_are_booleans_as_helm_reads_them() -> None:
    (document,) = manifest_diff.parse("kind: X\nday: 2026-11-21\nright: yes\n")
    assert document.body == {"kind": "X", "day": "2026-11-21", "right": True}


@rows.each(
    ("applied", "rendered"),
    [
        pytest.param(WEB, "---\n" + WEB + "\n\n", id="layout"),
        pytest.param(WEB, WEB.replace("# Source", "# Made from"), id="comments"),
        pytest.param(f"{WEB}---\n{SECRET}", f"{SECRET}---\n{WEB}", id="order"),
        pytest.param(WEB, WEB.replace('"1"', "'1'"), id="quotes"),
        pytest.param(
            WEB.replace("name: web", "name: web\n  labels: {heritage: addon-operator}"),
            WEB,
            id="the label that the Go operator adds",
        ),
        pytest.param(
            WEB.replace("name: web", "name: web\n  labels: {heritage: addon-operator, a: b}"),
            WEB.replace("name: web", "name: web\n  labels: {a: b}"),
            id="that label beside another one",
        ),
        pytest.param(
            WEB.replace("name: web", "name: web\n  namespace: addons"), WEB, id="the release's own namespace"
        ),
        pytest.param(WEB.replace("name: web", "name: web\n  labels:"), WEB, id="empty labels"),
    ],
)
def test_what_makes_no_difference_to_the_cluster_makes_none_here(applied: str, rendered: str) -> None:
    assert same(applied, rendered)


@rows.each(
    "rendered",
    [
        pytest.param(WEB.replace('"1"', '"2"'), id="a value"),
        pytest.param(WEB.replace('"1"', "1"), id="a type"),
        pytest.param(WEB.replace('"1"', "yes"), id="a boolean for a text"),
        pytest.param(f"{WEB}---\n{SECRET}", id="another object"),
        pytest.param(f"{WEB}---\n{WEB}", id="the same object twice"),
        pytest.param("", id="nothing"),
        pytest.param(WEB.replace("name: web", "name: web\n  namespace: other"), id="namespace"),
        pytest.param(WEB.replace("name: web", "name: web\n  labels: {a: b}"), id="a label"),
        pytest.param(
            WEB.replace("name: web", "name: web\n  labels: {heritage: Helm}"), id="another heritage"
        ),
    ],
)
def test_what_makes_a_difference_to_the_cluster_is_seen(rendered: str) -> None:
    assert not same(WEB, rendered)


@rows.each(
    ("one", "other"),
    [("true", "1"), ("1:30", "90"), ("false", "0"), ("null", '""'), ("1_000", "'1_000'")],
)
def test_values_are_read_as_helm_reads_them_and_compared_with_their_types(one: str, other: str) -> None:
    manifest = "kind: X\nmetadata: {name: x}\nvalue: "
    assert not same(manifest + one, manifest + other)
    assert diff(manifest + one, manifest + other)


@rows.each(
    ("one", "other"),
    [("1.0", "1"), ("010", "8"), ("yes", "true"), ("{8080: a, true: b}", '{"8080": a, "true": b}')],
)
def test_what_is_the_same_to_helm_is_the_same_here(one: str, other: str) -> None:
    assert same(f"kind: X\nvalue: {one}", f"kind: X\nvalue: {other}")


def test_new_changed_and_removed_objects_are_distinguished() -> None:
    other = WEB.replace("name: web", "name: other")
    larger = WEB.replace('"1"', '"2"')
    found = diff(f"{WEB}---\n{other}", f"{larger}---\n{SECRET}")
    assert [(change.kind, str(change.key)) for change in found] == [
        ("changed", "ConfigMap web"),
        ("added", "Secret keys"),
        ("removed", "ConfigMap other"),
    ]


def test_a_diff_shows_lines_with_their_surroundings() -> None:
    (change,) = diff(WEB, WEB.replace('"1"', '"2"'))
    assert change.diff == (
        "--- applied ConfigMap web",
        "+++ rendered ConfigMap web",
        "@@ -3,4 +3,4 @@",
        " metadata:",
        "   name: web",
        " data:",
        "-  size: '1'",
        "+  size: '2'",
    )


def test_a_change_of_one_line_in_a_long_text_is_a_change_of_one_line() -> None:
    before = 'kind: ConfigMap\nmetadata: {name: a}\ndata: {conf: "one\\ntwo\\nthree\\n"}\n'
    changed = [line for line in text(before, before.replace("two", "2")).splitlines() if line[0] in "+-"]
    assert changed[2:] == ["-    two", "+    2"]


def test_data_of_a_secret_is_never_shown() -> None:
    after = SECRET.replace("aHVudGVyMg==", "aHVudGVyMw==").replace("plain", "fancy")
    shown = text(SECRET, after)
    assert "-  token: '*** (before)'" in shown
    assert "+  token: '*** (after)'" in shown
    assert "   user: '***'" in shown
    assert not any(secret in shown for secret in ("aHVud", "YWRt", "plain", "fancy"))


@rows.each("which", ["added", "removed"])
def test_data_of_a_secret_that_comes_or_goes_is_never_shown(which: str) -> None:
    (change,) = diff("", SECRET) if which == "added" else diff(SECRET, "")
    assert change.kind == which
    assert "token: '***'" in "\n".join(change.diff)
    assert "aHVud" not in "\n".join(change.diff)


def test_data_of_a_secret_that_is_not_a_mapping_is_never_shown() -> None:
    shown = text(SECRET, SECRET.replace("{extra: plain}", "hunter2"))
    assert "hunter2" not in shown


def test_lines_are_redacted() -> None:
    after = WEB.replace('"1"', '"hunter2"')
    found = manifest_diff.diff(
        manifest_diff.parse(WEB), manifest_diff.parse(after), lambda line: line.replace("hunter2", "***")
    )
    assert "+  size: ***" in found[0].diff


LISTS = {
    "List": "apiVersion: v1\nkind: List\nitems:\n- %s\n",
    "list in a list": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: [%s]}\n",
    "SecretList": "apiVersion: v1\nkind: SecretList\nitems:\n- %s\n",
    "of any name": "apiVersion: v1\nkind: Things\nitems:\n- %s\n",
}


@rows.each("shape", LISTS)
def test_data_of_secrets_in_a_list_is_never_shown(shape: str) -> None:
    kind = "" if shape == "SecretList" else "kind: Secret, "
    item = "{%smetadata: {name: a}, data: {key: %s}, stringData: {other: c2FtZQ==}}"
    before, after = (LISTS[shape] % (item % (kind, value)) for value in ("aHVudGVyMg==", "aHVudGVyMw=="))
    for pair in ((before, after), ("", after), (before, "")):
        [change] = diff(*pair)
        assert str(change.key) == "Secret a"
        shown = "\n".join(change.diff)
        assert "aHVudGVy" not in shown
        assert "c2FtZQ" not in shown
    assert "*** (after)" in text(before, after), "that it changes is seen"


def test_of_lists_each_object_is_compared() -> None:
    one = "kind: List\nitems: [{kind: ConfigMap, metadata: {name: %s}, data: {a: %s}}]"
    before = f"{one % ('a', 1)}\n---\n{one % ('b', 1)}"
    after = f"{one % ('a', 2)}\n---\n{one % ('c', 1)}"
    assert [(str(each.kind), str(each.key)) for each in diff(before, after)] == [
        ("changed", "ConfigMap a"),
        ("added", "ConfigMap c"),
        ("removed", "ConfigMap b"),
    ]


def test_a_copy_of_a_secret_in_its_annotations_is_never_shown() -> None:
    secret = 'kind: Secret\nmetadata: {name: a, annotations: {%s: \'{"data": "aHVudGVy"}\'}}\n'
    assert "aHVudGVy" not in text("", secret % manifest_diff.LAST_APPLIED)

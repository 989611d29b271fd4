"""What Secrets hold is shown to nobody who did not ask for it."""

from addon_operator.debug import debug_masking
from addon_operator.documents import yaml_reading
from tests.support import rows

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "web",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{hunter2}", "other": "shown"},
    },
    "data": {"key": "aHVudGVyMg=="},
    "stringData": {"key": "hunter2"},
    "type": "Opaque",
}


def test_keys_of_a_secret_are_shown_and_their_values_are_not() -> None:
    assert debug_masking.without_secret_data(SECRET) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "web",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "***",
                "other": "shown",
            },
        },
        "data": {"key": "***"},
        "stringData": {"key": "***"},
        "type": "Opaque",
    }


def test_secrets_in_lists_are_hidden_too() -> None:
    listed = {"kind": "List", "items": [SECRET, {"kind": "Pod"}, "broken"]}
    shown = debug_masking.without_secret_data(listed)
    assert "hunter2" not in str(shown)
    assert shown["items"][1:] == [{"kind": "Pod"}, "broken"]  # type: ignore[index] # a list, as given


def test_other_objects_stay_as_they_are() -> None:
    config = {"kind": "ConfigMap", "data": {"key": "value"}}
    assert debug_masking.without_secret_data(config) == config


@rows.each(
    ("before", "after", "shown"),
    [
        ("one", "two", ("*** (before)", "*** (after)")),
        ("one", "one", ("***", "***")),
    ],
    ids=["changed", "unchanged"],
)
def test_a_diff_shows_that_a_secret_changed_and_not_how(
    before: str, after: str, shown: tuple[str, str]
) -> None:
    left = {"kind": "Secret", "data": {"key": before, "old": "x"}}
    right = {"kind": "Secret", "data": {"key": after, "new": "y"}}
    masked = debug_masking.masked_pair(left, right)
    assert masked[0]["data"] == {"key": shown[0], "old": "***"}
    assert masked[1]["data"] == {"key": shown[1], "new": "***"}


def test_a_new_secret_is_hidden_in_a_diff() -> None:
    assert debug_masking.masked_pair({}, SECRET)[1]["stringData"] == {"key": "***"}


MANIFEST = """\
---
# Source: web/templates/a.yaml
kind: ConfigMap
data: {about: "No Secret  in here"}   # as it is
---
# Source: web/templates/b.yaml
kind: Secret
stringData:
  key: hunter2
---
kind: List
items:
- {kind: Secret, data: {key: hunter2}}
"""


def test_only_secrets_of_a_manifest_are_written_anew() -> None:
    shown = debug_masking.masked_manifest(MANIFEST)
    assert "hunter2" not in shown
    assert shown.startswith(MANIFEST[: MANIFEST.index("# Source: web/templates/b")])
    assert "# Source: web/templates/b.yaml\nkind: Secret\n" in shown
    documents = [document.value for document in yaml_reading.load_documents(shown, "manifest")]
    assert [document["kind"] for document in documents if isinstance(document, dict)] == [
        "ConfigMap",
        "Secret",
        "List",
    ]


@rows.each("text", ["", "kind: ConfigMap\n", "---\n---\n", "text: a Secret, only mentioned\n"])
def test_a_manifest_without_secrets_stays_as_it_is(text: str) -> None:
    assert debug_masking.masked_manifest(text) == text


def test_a_document_that_may_be_a_secret_and_cannot_be_read_is_not_shown() -> None:
    shown = debug_masking.masked_manifest("kind: Secret\nstringData: {a: hunter2\n---\nkind: Pod\n")
    assert "hunter2" not in shown
    assert "is not shown" in shown
    assert "kind: Pod" in shown


@rows.each("kind", ["Secret", "secrets", "SECRET"])
def test_snapshots_of_secrets_are_hidden_with_what_filters_made_of_them(kind: str) -> None:
    # Objects of a list have no kind of their own.
    entry = {"object": {"data": {"key": "hunter2"}}, "filterResult": {"key": "hunter2"}}
    shown = debug_masking.masked_snapshot(kind, entry)
    assert shown["filterResult"] == "***"
    assert "hunter2" not in str(shown)


def test_snapshots_of_other_kinds_stay_as_they_are() -> None:
    entry = {"object": {"kind": "Pod", "data": 1}, "filterResult": ["x"]}
    assert debug_masking.masked_snapshot("Pod", entry) == entry


@rows.each(
    "secret",
    [
        "kind: List\nitems: [{kind: Secret, data: {a: aHVudGVy}}]",
        "kind: SecretList\nitems: [{metadata: {name: a}, stringData: {a: aHVudGVy}}]",
        'kind: "\\x53ecret"\ndata: {a: aHVudGVy}',
        "kind: Secret\nmetadata: 5\ndata: aHVudGVy",
        "kind: Secret\nmetadata: {annotations: [a]}\ndata: [aHVudGVy]",
    ],
)
def test_a_secret_is_hidden_however_it_is_written(secret: str) -> None:
    assert "aHVudGVy" not in debug_masking.masked_manifest(secret)

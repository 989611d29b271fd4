"""The manifests that a preview is given."""

import pathlib
from collections.abc import Callable

import pytest

from addon_operator.commands.preview import preview_files, preview_objects, preview_pods
from addon_operator.kernel import errors
from addon_operator.podpreset import volume_types
from tests.support import rows

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Write:
    def file(text: str) -> str:
        path = tmp_path / "f.yaml"
        path.write_text(text)
        return str(path)

    return file


def no_stdin() -> bytes:
    raise AssertionError("standard input was read")


def read(*names: str, stdin: Callable[[], bytes] = no_stdin) -> list[preview_files.Manifest]:
    return preview_files.read(names, stdin)


def titles(text: str) -> list[str]:
    return [one.title for one in read("-", stdin=text.encode)]


def test_a_list_stands_for_its_items() -> None:
    text = "kind: List\nitems:\n- {kind: Pod, metadata: {name: a}}\n- {kind: Secret}\n"
    assert titles(text) == ["Pod a", "Secret"]


def test_items_of_a_typed_list_have_the_lists_kind() -> None:
    assert titles("kind: PodList\nitems:\n- {metadata: {name: a}}\n") == ["Pod a"]


def test_a_byte_order_mark_and_empty_documents_do_not_matter() -> None:
    assert titles("\ufeff---\n---\nkind: Pod\n---\n") == ["Pod"]


@rows.each(
    ("text", "message"),
    [
        ("a: 1", "document 1: kind: is required"),
        ("kind: Pod\n---\n- 1\n", "document 2: a manifest must be a mapping with apiVersion and kind"),
        ("kind: List\nitems: [7]\n", "document 1, line 2, column 9: a manifest must be a mapping"),
    ],
    ids=["no kind", "no mapping", "an item that is not a mapping"],
)
def test_what_is_not_a_manifest_is_reported_with_its_document(text: str, message: str) -> None:
    with pytest.raises(preview_files.ManifestError) as raised:
        titles(text)
    assert message in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(preview_files.ManifestError, match=r"no\.yaml cannot be read: No such file"):
        read(str(tmp_path / "no.yaml"))


def test_a_file_in_another_encoding_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(preview_files.ManifestError, match=r"latin\.yaml is not UTF-8 text: byte 4"):
        read(str(tmp_path / "latin.yaml"))


def pods(text: str) -> list[preview_pods.PodSource]:
    found = preview_pods.find(read("-", stdin=text.encode))
    for problem in found.problems:
        raise problem
    return found.pods


TEMPLATE = "{metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}"


@rows.each(
    ("kind", "spec"),
    [
        *(
            (kind, f"spec: {{template: {TEMPLATE}}}")
            for kind in ("Deployment", "Job", "DaemonSet", "StatefulSet", "ReplicaSet", "Rollout")
        ),
        ("CronJob", f"spec: {{jobTemplate: {{spec: {{template: {TEMPLATE}}}}}}}"),
        ("PodTemplate", f"template: {TEMPLATE}"),
    ],
)
def test_the_pod_of_a_workload_is_its_template(kind: str, spec: str) -> None:
    [source] = pods(f"kind: {kind}\nmetadata: {{name: web, namespace: shop}}\n{spec}\n")
    assert source.title == f"{kind} web"
    assert source.in_namespace("shop") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "web-", "labels": {"a": "b"}, "namespace": "shop"},
        "spec": {"containers": [{"name": "c"}]},
    }


def test_a_pod_is_taken_as_it_is() -> None:
    [source] = pods("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}")
    assert source.in_namespace("n")["metadata"] == {"name": "a", "namespace": "n"}


@rows.each("template", ["{}", "{spec: {image: x}}", "[]"])
def test_what_other_projects_call_a_template_is_not_a_pod(template: str) -> None:
    assert pods(f"kind: Other\nspec: {{template: {template}}}\n") == []


NUMBER = """
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: a
        env:
        - name: A
          value: 5
"""
NUMBER_MESSAGE = (
    "standard input, document 1, line 10, column 11: "
    "spec.template.spec.containers[0].env[0].value: must be a text; put it in quotes"
)


@rows.each(
    ("text", "message"),
    [
        (NUMBER, NUMBER_MESSAGE),
        ("kind: Job\nspec: {}\n", "standard input, document 1, line 2, column 1: spec.template: is required"),
        ("kind: Job\nspec: 5\n", "standard input, document 1, line 2, column 1: spec: must be a mapping"),
        (
            "kind: Deployment\nspec: {template: {metadata: x, spec: {containers: [{name: c}]}}}\n",
            "standard input, document 1, line 2, column 19: spec.template.metadata: must be a mapping",
        ),
        (
            "kind: List\nitems:\n- kind: Pod\n",
            "standard input, document 1, line 3, column 3: items[0].spec: is required",
        ),
    ],
    ids=["a number as value", "no template", "no mapping", "metadata", "in a list"],
)
def test_a_wrong_field_is_reported_with_file_document_and_path(text: str, message: str) -> None:
    with pytest.raises(preview_files.ManifestError) as raised:
        pods(text)
    assert str(raised.value) == message


def objects(text: str, namespace: str = "n") -> preview_objects.Objects:
    return preview_objects.read(read("-", stdin=text.encode), namespace)


def test_a_secret_is_decoded_and_its_plain_texts_win() -> None:
    found = objects("{kind: Secret, metadata: {name: s}, data: {a: YQ==, b: YQ==}, stringData: {b: c}}")
    assert found.contents_of("Secret") == {"s": {"a": "a", "b": "c"}}
    assert found.contents_of("ConfigMap") == {}


def test_objects_without_a_namespace_are_where_the_pod_is() -> None:
    text = """
        {kind: ConfigMap, metadata: {name: mine}, data: {a: b}}
        ---
        {kind: ConfigMap, metadata: {name: mine, namespace: other}, data: {a: x}}
        ---
        {kind: Service, metadata: {name: here, namespace: n}}
        ---
        {kind: Service, metadata: {name: kubernetes, namespace: default}}
    """
    found = objects(text.replace("\n        ", "\n"))
    assert found.contents_of("ConfigMap") == {"mine": {"a": "b"}}
    assert list(found.services) == ["here"]
    assert list(found.master_services) == ["kubernetes"]


@rows.each(
    ("text", "message"),
    [
        ("{kind: Secret, metadata: {name: s}, data: {a: '!'}}", "data.a: is not base64"),
        ("{kind: ConfigMap, metadata: {name: c}, data: {a: 1}}", "data.a: must be a text"),
        ("{kind: ConfigMap, metadata: {name: c}, data: []}", "data: must be a mapping"),
        ("{kind: ConfigMap, data: {}}", "metadata.name: is required"),
        (
            "{kind: Service, metadata: {name: s}, spec: {ports: [{port: http}]}}",
            "Service s: spec.ports[0].port must be a whole number",
        ),
    ],
    ids=["base64", "number", "list", "name", "port"],
)
def test_a_wrong_object_is_reported_with_its_field(text: str, message: str) -> None:
    with pytest.raises(errors.ConfigurationError) as raised:
        objects(text)
    assert str(raised.value).startswith("standard input, document 1")
    assert message in str(raised.value)


def test_the_text_of_a_secret_is_not_in_its_error() -> None:
    with pytest.raises(errors.ConfigurationError) as raised:
        objects("{kind: Secret, metadata: {name: s}, data: {a: hunter2!}}")
    assert "hunter2" not in str(raised.value)


def preset(spec: str, head: str = "apiVersion: settings.k8s.io/v1alpha1", name: str = "name: p") -> str:
    return f"{head}\nkind: PodPreset\nmetadata: {{{name}}}\nspec: {spec}\n"


GOOD = "{selector: {matchLabels: {a: b}}, env: [{name: A, value: 1}]}"


@rows.each(
    ("text", "note"),
    [
        (preset("{selector: {}}"), "PodPreset p is invalid and ignored: spec.selector: must not be empty"),
        (
            preset(GOOD, "apiVersion: settings/v1alpha1"),
            'apiVersion: "settings/v1alpha1" is not supported; use "settings.k8s.io/v1alpha1"',
        ),
        (preset(GOOD, name=""), "metadata.name: is required"),
    ],
    ids=["invalid", "API group", "no name"],
)
def test_a_preset_that_is_not_used_is_named(text: str, note: str) -> None:
    presets, notes = preview_objects.presets(read("-", stdin=text.encode), "n", volume_types.USUAL)
    assert presets == ()
    assert len(notes) == 1
    assert notes[0].startswith("standard input, document 1")
    assert note in notes[0]


def test_a_preset_of_a_namespace_without_pods_is_named() -> None:
    manifests = read("-", stdin=preset(GOOD, name="name: p, namespace: other").encode)
    assert preview_objects.presets(manifests, "n", volume_types.USUAL) == ((), ())
    (note,) = preview_objects.elsewhere(manifests, {"n", "m"})
    assert "PodPreset p is in namespace other and does not apply to any of the pods" in note
    assert list(preview_objects.elsewhere(manifests, {"n", "other"})) == []


STATEFUL = """
kind: StatefulSet
metadata: {name: web}
spec:
  ordinals: {start: 3}
  volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log}}]
  template: {spec: {containers: [{name: c}], volumes: [{name: log, emptyDir: {}}, {name: tmp}]}}
"""


def test_the_pod_of_a_stateful_set_has_the_volumes_of_its_claim_templates() -> None:
    [source] = pods(STATEFUL)
    assert source.pod["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}},
        {"name": "log", "persistentVolumeClaim": {"claimName": "log-web-3"}},
        {"name": "tmp"},
    ]


@rows.each(
    ("wrong", "message"),
    [
        ("{}", "spec.volumeClaimTemplates: must be a list"),
        ("[{metadata: {}}]", "spec.volumeClaimTemplates[0].metadata.name: is required"),
        ("[5]", "spec.volumeClaimTemplates[0].metadata.name: is required"),
    ],
)
def test_a_claim_template_that_is_none_is_named(wrong: str, message: str) -> None:
    text = STATEFUL.replace("[{metadata: {name: data}}, {metadata: {name: log}}]", wrong)
    if wrong == "{}":
        text = text.replace("{}\n", "{a: b}\n")
    with pytest.raises(preview_files.ManifestError) as raised:
        pods(text)
    assert message in str(raised.value)


def test_a_valid_preset_is_found() -> None:
    presets, notes = preview_objects.presets(read("-", stdin=preset(GOOD).encode), "n", volume_types.USUAL)
    assert [one.name for one in presets] == ["p"]
    assert notes == ()

"""Which objects a release's manifest names."""

from addon_operator.modules import manifests
from tests.support import rows

DEPLOYMENT = """\
# Source: web/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {a: b}
spec:
  template:
    metadata:
      name: inner
"""


def names(manifest: str) -> list[str]:
    return [str(resource) for resource in manifests.resources(manifest)]


def test_every_document_names_an_object_once() -> None:
    manifest = (
        f"---\n{DEPLOYMENT}--- # again\n{DEPLOYMENT}---\nkind: A\napiVersion: v1\nmetadata: {{name: b}}"
    )
    assert names(manifest) == ["Deployment web", "A b"]
    assert manifests.resources(manifest)[0] == manifests.ManifestResource(
        "apps/v1", "Deployment", None, "web"
    )


def test_a_written_namespace_is_kept() -> None:
    manifest = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: other\n"
    assert names(manifest) == ["Secret other/a"]


@rows.each("namespace", ["", " null", ' ""', " ~"])
def test_an_empty_namespace_is_none(namespace: str) -> None:
    manifest = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace:{namespace}\n"
    assert names(manifest) == ["Secret a"]


def test_helm_hooks_are_left_out_and_kept_resources_are_not() -> None:
    annotated = "apiVersion: v1\nkind: %s\nmetadata:\n  name: a\n  annotations:\n    helm.sh/%s\n"
    manifest = annotated % ("Job", "hook: pre-install") + "---\n" + annotated % ("B", "resource-policy: keep")
    assert names(manifest) == ["B a"]


def test_items_of_lists_count_one_by_one() -> None:
    manifest = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
- {apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}
- apiVersion: batch/v1
  kind: Job
  metadata: {name: c, annotations: {helm.sh/hook: test}}
"""
    assert names(manifest) == ["ConfigMap a", "ConfigMap b"]


@rows.each(
    "manifest",
    [
        "",
        "# nothing\n",
        "- a\n- b\n",
        "just a text",
        "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n",
        "apiVersion: v1\nkind: Pod\nmetadata:\n",
        "kind: Pod\nmetadata: {name: a}\n",
        "apiVersion: v1\nmetadata: {name: a}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: [\n",
    ],
    ids=[
        "empty", "comment", "list", "text", "generated name", "no metadata", "no version", "no kind", "broken"
    ],
)  # fmt: skip
def test_what_names_no_object_is_left_out(manifest: str) -> None:
    assert names(f"{manifest}\n---\n{DEPLOYMENT}") == ["Deployment web"]


@rows.each(
    "manifest",
    [
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}',
        '"apiVersion": v1\n"kind": ConfigMap\n"metadata": {"name": "a"}\n',
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n- x\nkinds: 1\n",
        "data: &d {name: a}\napiVersion: v1\nkind: ConfigMap\nmetadata: *d\n",
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: "x\nkind: y"\n',
        "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a\r\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: |\n    ---\n    kind: Pod\n",
        "metadata:\n  name: a\nkind: ConfigMap\napiVersion: v1",
    ],
    ids=["json", "quoted keys", "list at the margin", "alias", "text over lines", "crlf", "block", "order"],
)
def test_documents_may_be_laid_out_in_any_way(manifest: str) -> None:
    assert names(manifest) == ["ConfigMap a"]


@rows.each("name", ["0123", "1e3", "true", "2024-01-01", "1_000"])
def test_names_that_look_like_something_else_stay_names(name: str) -> None:
    assert names(f"apiVersion: v1\nkind: A\nmetadata:\n  name: {name}\n") == [f"A {name}"]


def test_what_a_chart_drops_is_known_whatever_the_version_and_where_the_namespace_is_written() -> None:
    def role(name: str, version: str, more: str = "") -> str:
        return f"apiVersion: rbac/{version}\nkind: Role\nmetadata: {{name: {name}{more}}}\n---\n"

    before = role("a", "v1beta1") + role("b", "v1") + role("c", "v1")
    after = role("a", "v1") + role("b", "v1", ", namespace: addons") + role("c", "v1", ", namespace: far")
    assert [each.name for each in manifests.dropped(before, after, "addons")] == ["c"]


def test_what_becomes_a_hook_of_helm_is_not_lost() -> None:
    def config(name: str, more: str = "") -> str:
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{more}}}\n---\n"

    hook = ", annotations: {helm.sh/hook: pre-upgrade}"
    after = config("a", f", namespace: addons{hook}") + config("c", hook) + config("d") + config("d", hook)
    found = manifests.exchanged(config("a") + config("b") + config("d"), after, [config("c")], "addons")
    assert [each.name for each in found.hooked] == ["a"]
    assert [each.name for each in found.lost] == ["b"]
    assert (found.gained, found.of_tries) == ((), ())

"""Which files of ``crds/`` count, and what is told of documents that define no kind."""

import pytest

from addon_operator.documents import yaml_reading
from addon_operator.modules import crd_files
from tests.support import rows

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.example.com
  labels: {team: web}
  creationTimestamp: null
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
status: {storedVersions: []}
"""


@rows.each(
    ("name", "selected"),
    [
        ("projects.yaml", True),
        ("doc-ru-projects.yaml", False),
        ("_draft.yaml", False),
        (".hidden.yaml", False),
        ("projects.yml", False),
        ("README.md", False),
        ("my-doc-projects.yaml", True),
    ],
)
def test_files_count_by_their_name(name: str, selected: bool) -> None:
    assert crd_files.is_selected(name, ("doc-", "_")) is selected


def test_without_prefixes_every_yaml_file_counts() -> None:
    assert crd_files.is_selected("doc-x.yaml", ("",))


def test_a_definition_is_read_without_what_only_the_server_writes() -> None:
    [crd] = crd_files.parse(f"---\n{CRD}---\n# nothing\n", "crds/x.yaml")
    assert (crd.name, crd.versions) == ("crontabs.example.com", ("v1",))
    assert crd.labels == {"team": "web"}
    assert crd.annotations == {}
    assert crd.source == "crds/x.yaml, document 1"


@rows.each(
    ("document", "told"),
    [
        ("- a\n", "not a CustomResourceDefinition but a list"),
        ("7\n", "not a CustomResourceDefinition but the value 7"),
        ("a: 1\n", "not a CustomResourceDefinition but a document without kind"),
        ("apiVersion: v1\nkind: Service\n", "not a CustomResourceDefinition but Service of v1"),
        ("kind: CustomResourceDefinition\napiVersion: v1\n", "but CustomResourceDefinition of v1"),
        (CRD.replace("k8s.io/v1", "k8s.io/v1beta1"), "v1beta1 is no longer served"),
        (CRD.replace("  name: crontabs.example.com\n", ""), "metadata.name is missing"),
        (CRD.replace("crontabs.example.com", "a/b"), "metadata.name is missing"),
        (CRD.replace("spec:", "specs:"), "has no mapping 'spec'; add it"),
        (CRD.replace("versions:", "version:"), "crontabs.example.com has no spec.versions"),
        (CRD.replace("  - name: v1\n", "  - name: v0\n" * 50 + "  - name: v1\n"), "has 51 versions"),
    ],
    ids=[
        "list", "scalar", "no kind", "service", "foreign group", "old version", "nameless", "bad name",
        "no spec", "no versions", "many versions",
    ],
)  # fmt: skip
def test_a_document_that_defines_nothing_is_reported_with_file_and_index(document: str, told: str) -> None:
    with pytest.raises(crd_files.CrdFileError) as caught:
        crd_files.parse(f"{CRD}---\n{document}", "crds/x.yaml")
    assert str(caught.value).startswith("crds/x.yaml, document 2: ")
    assert told in str(caught.value)


def test_broken_yaml_is_reported_with_its_position() -> None:
    with pytest.raises(yaml_reading.YamlError, match=r"crds/x\.yaml, line 2, column 3: "):
        crd_files.parse("a: [\n  }\n", "crds/x.yaml")


def test_of_a_key_that_stands_twice_the_last_counts_and_that_is_said() -> None:
    (found,) = crd_files.parse(CRD.replace("spec:\n", "spec:\n  scope: Cluster\n", 1), "a.yaml")
    assert found.spec["scope"] == "Namespaced"
    (doubt,) = found.doubts
    assert doubt.startswith("a.yaml, document 1, line ")
    assert ", spec.scope: the key is already set on line 8 to something else; the last one counts" in doubt


def test_a_field_that_the_api_does_not_know_is_left_out_and_named_with_its_place() -> None:
    text = CRD.replace("spec:\n", "spec:\n  subscription: 1\n", 1)
    (found,) = crd_files.parse(text, "a.yaml")
    assert "subscription" not in found.spec
    (doubt,) = found.doubts
    assert doubt == (
        "a.yaml, document 1, line 8, column 3, spec.subscription: "
        "apiextensions.k8s.io/v1 has no such field, and it is left out; remove it"
    )


@rows.each("end", ["\n", "\r\n"])
def test_schemas_can_be_left_out_without_a_change_of_the_rest(end: str) -> None:
    text = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a.b}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          schema:
            type: object
            description: |
              first

               second
  # a comment
        type: object
    served: true
    additionalPrinterColumns: []
  - name: v2
    schema: {openAPIV3Schema: {type: object}}
    served: false
"""
    brief = crd_files.without_schemas(text.replace("\n", end))
    assert "second" not in brief
    assert "description" not in brief
    (crd,) = crd_files.parse(brief, "a.yaml")
    (whole,) = crd_files.parse(text, "a.yaml")
    assert [{**each, "schema": None} for each in crd_files.versions_of(crd.spec)] == [
        {**each, "schema": None} for each in crd_files.versions_of(whole.spec)
    ]

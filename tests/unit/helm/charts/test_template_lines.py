"""A field of a rendered object is found in the text of its template, or nothing is said of it."""

import pathlib

from addon_operator.helm.charts import template_lines
from tests.support import rows

TEMPLATE = """\
{{- /* kind: Deployment
metadata: {} */ -}}
# kind: Deployment
apiVersion: v1
kind: Service
metadata:
  name: {{ include "web.name" . }}
spec:
  ports:
  - port: 80
    name: http
  - port: 443
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "web.name" . }}-metrics
spec:
  ports:
    {{- range .Values.ports }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
---
{{- if .Values.stateful }}
kind: StatefulSet
{{- else }}
kind: Deployment
{{- end }}
metadata:
  name: "web"
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  {{- with .Values.replicas }}
  replicas: {{ . }}
  {{- end }}
  selector: {matchLabels: {app: web}}
  template:
    spec:
      replicas: nowhere
      containers:
      - name: one
        env:
        - name: A
          value: a
      - name: two
        image: {{ .Values.image }}
        "resources":
          limits:
            cpu: 1
      volumes: {{ toYaml .Values.volumes | nindent 8 }}
"""
POD = ("spec", "template", "spec")


def line(kind: str, name: str, *path: str | int, template: str = TEMPLATE) -> str:
    number = template_lines.find(template, template_lines.Field(kind, name, path))
    return template.splitlines()[number - 1].strip() if number else ""


@rows.each(
    ("field", "text"),
    [
        (("Service", "web"), "kind: Service"),
        (("Service", "web", "spec", "ports", 1, "port"), "- port: 443"),
        (("Service", "web", "spec", "ports", 0, "name"), "name: http"),
        (("Service", "web-metrics", "spec", "ports", 3, "protocol"), "protocol: TCP"),
        (("StatefulSet", "web"), "kind: StatefulSet"),
        (("Deployment", "web"), "kind: Deployment"),
        (("Deployment", "web", "metadata", "labels", "app"), "labels:"),
        (("Deployment", "web", "spec", "replicas"), "replicas: {{ . }}"),
        (("Deployment", "web", "spec", "paused"), "spec:"),
        (("Deployment", "web", "spec", "selector", "matchLabels"), "selector: {matchLabels: {app: web}}"),
        (("Deployment", "web", *POD, "containers", 0, "env", 0, "value"), "value: a"),
        (("Deployment", "web", *POD, "containers", 1, "image"), "image: {{ .Values.image }}"),
        (("Deployment", "web", *POD, "containers", 1, "resources", "limits", "cpu"), "cpu: 1"),
        (
            ("Deployment", "web", *POD, "volumes", 0, "name"),
            "volumes: {{ toYaml .Values.volumes | nindent 8 }}",
        ),
    ],
    ids=str,
)
def test_a_field_has_the_line_that_makes_it_or_the_nearest_around_it(
    field: tuple[str, str], text: str
) -> None:
    assert line(*field) == text


@rows.each(
    ("kind", "name", "template"),
    [
        ("ConfigMap", "web", TEMPLATE),
        ("Deployment", "other", TEMPLATE),
        ("Pod", "a", '{{ include "common.pod" . }}'),
        ("Pod", "a", "kind: Pod\n---\nkind: Pod\n"),
        ("Pod", "a", ""),
    ],
)
def test_what_is_not_there_or_may_be_several_has_no_line(kind: str, name: str, template: str) -> None:
    assert line(kind, name, template=template) == ""


def test_a_kind_that_is_worked_out_is_found(tmp_path: pathlib.Path) -> None:
    template = "kind: {{ .Values.kind }}\nmetadata:\n  name: a\nspec:\n  a: 1\n"
    assert line("Job", "a", "spec", "a", template=template) == "a: 1"


def test_a_place_is_the_file_with_the_line_if_it_is_known(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("# x\nkind: Pod\n")
    large = tmp_path / "large.yaml"
    large.write_text("kind: Pod\n" + "# more\n" * 100_000)
    places, pod = template_lines.Places(), template_lines.Field("Pod", "a")

    assert places.of(str(path), pod) == f"{path}:2"
    assert places.of(str(path), None) == str(path)
    assert places.of(str(large), pod) == str(large)
    assert places.of(str(tmp_path / "none.yaml"), pod) == str(tmp_path / "none.yaml")


def test_lines_of_so_many_fields_are_looked_for_and_no_more(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("kind: Pod\n")
    places = template_lines.Places()

    found = [places.of(str(path), template_lines.Field("Pod", "a")) for _ in range(300)]

    assert (found.count(f"{path}:1"), found.count(str(path))) == (200, 100)

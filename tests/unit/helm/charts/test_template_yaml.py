"""Where a template is no YAML."""

from addon_operator.helm.charts import template_yaml
from tests.support import rows
from tests.unit import costs

SERVICE = """\
{{- /* a comment: of { two
lines */}}
{{- if .Values.on }}
kind: Service
metadata:
  name: {{ .Values.name }}-{{ .Release.Name }}
  labels: {{- include "labels" . | nindent 4 }}
    {{ .Values.key }}: {{ .Values.value | quote }}
spec:
  type: {{ if .Values.lb }}LoadBalancer{{ else }}ClusterIP{{ end }}
{{- end }}
---
kind: Service
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""


@rows.each(
    ("right", "wrong", "said"),
    [
        (
            "  selector: {app",
            " selector: {app",
            "line 16: the line is indented like none of the lines above it",
        ),
        ("  ports: [{port: 80}]", "  ports: [{port: 80]", "line 16: "),
        ("  name: ", "\tname: ", "line 6: a tab stands where the line begins"),
        ("kind: Service\nspec", "kind Service\nspec", "line 14: "),
    ],
)
def test_the_line_of_the_file_is_told(right: str, wrong: str, said: str) -> None:
    assert template_yaml.wrong_line(SERVICE) == ""
    told = template_yaml.wrong_line(SERVICE.replace(right, wrong))
    assert told.startswith(said), told


@rows.each(
    "template",
    [
        "a: b\n  {{ if .x }} c: d {{ end }}\n",
        "{{ unfinished",
        "a: {{ .Values.a }}\nb: {{ .Values.b }}{{ .Values.c }}\n",
        f"{template_yaml.LONGEST * 'a'}: [",
        "",
    ],
)
def test_what_is_not_seen_is_not_guessed(template: str) -> None:
    assert template_yaml.wrong_line(template) == ""


def test_what_has_no_end_is_read_once() -> None:
    assert costs.is_linear(lambda size: "{{ a }} b: }}\n" * size, template_yaml.wrong_line, 1_000)
    assert costs.is_linear(lambda size: "{{ " * size, template_yaml.wrong_line, 10_000)

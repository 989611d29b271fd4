"""Which values templates read."""

from addon_operator.helm.charts import template_paths
from tests.support import rows


@rows.each(
    ("text", "found"),
    [
        ("a: {{ .Values.web.a }}", [".Values.web.a"]),
        ("{{- if and .Values.web.a (not $.Values.web.b) -}}", [".Values.web.a", ".Values.web.b"]),
        ("{{ with .Values.web.a }}{{ .Values.b }}{{ $.Values.c }}{{ end }}{{ .Values.d }}",
         [".Values.web.a", ".Values.c", ".Values.d"]),
        ("{{ range .Values.a }}{{ .Values.b }}{{ else }}{{ .Values.c }}{{ end }}",
         [".Values.a", ".Values.c"]),
        ("{{ with .Values.a }}{{ else with .Values.b }}{{ .Values.c }}{{ end }}",
         [".Values.a", ".Values.b"]),
        ("{{ if .Values.a }}{{ .Values.b }}{{ else if .Values.c }}{{ .Values.d }}{{ end }}",
         [".Values.a", ".Values.b", ".Values.c", ".Values.d"]),
        ('{{ define "x" }}{{ $.Values.a }}{{ .Values.b }}{{ end }}{{ .Values.c }}', [".Values.c"]),
        ('{{ block "x" . }}{{ $.Values.a }}{{ end }}', []),
        ("{{ $root.Values.a }}{{ (.x).Values.b }}{{ .x.Values.c }}", []),
        ('{{ ".Values.a" }}{{ `.Values.b` }}{{ "\\".Values.c" }}', []),
        ("{{/* .Values.d */}}{{- /* }} .Values.e */ -}}", []),
        ("{{/* }} */}}{{ .Values.a }}", [".Values.a"]),
        ('{{ index .Values.a "b" }}{{ (.Values.c).d }}', [".Values.a", ".Values.c"]),
        ("{{ .Values.AsMap }}{{ .Values }}{{ toYaml .Values }}", []),
        ("{{ .Values.a", []),
        ("{{ end }}{{ .Values.a }}", [".Values.a"]),
        ("{{ $x := .Values.a.b }}{{ $x.c }}", [".Values.a.b"]),
        ("{{ withThis .Values.a }}{{ .Values.b }}", [".Values.a", ".Values.b"]),
    ],
)  # fmt: skip
def test_chains_of_fields_are_found_where_dot_is_what_the_chart_gets(text: str, found: list[str]) -> None:
    assert list(map(str, template_paths.find(text))) == found


def test_each_path_has_its_line() -> None:
    text = "a\n{{ .Values.a }}\n{{\n  .Values.b |\n  default .Values.c }}\n{{ .Values.d }}"
    assert [each.line for each in template_paths.find(text)] == [2, 4, 5, 6]


@rows.each(
    "part", ["{{", "{{ '", '{{ "\\', "{{/*", "{{ .Values", "{{ if }}", "{{ .Values.a }}", "$.", "{{ end }}"]
)
def test_a_template_of_any_text_takes_one_pass(part: str) -> None:
    list(template_paths.find(part * (30_000 // len(part))))

"""Taking out what errors quote: forms that no Helm of today writes, and what is hard to read."""

import pytest

from addon_operator.documents import quotations
from tests.support import rows

_NOT_SERVED = (
    'unable to build kubernetes objects from release manifest: [resource mapping not found for name: "a" '
    'namespace: "n" from "": no matches for kind "Thing" in version "example.com/v1"\nensure CRDs are '
    'installed first, resource mapping not found for name: "b" namespace: "n" from "": no matches for kind '
    '"Thing" in version "example.com/v1"\nensure CRDs are installed first]'
)
_TWICE = (
    "failed to create typed patch object (a/web; apps/v1, Kind=Deployment): "
    '.spec.template.spec.containers[name="app"].env: duplicate entries for key [name="A"]'
)
WITHOUT_VALUES = [
    pytest.param(
        'Job.batch "j" is invalid: spec.template: Invalid value: core.PodTemplateSpec{Env:[]core.EnvVar{'
        'core.EnvVar{Name:"P", Value:"a: s3cret"}}}: field is immutable',
        'Job.batch "j" is invalid: spec.template: Invalid value: core.PodTemplateSpec***: field is immutable',
        id="value as Go source",
    ),
    pytest.param(
        'Deployment.apps "d" is invalid: [spec.a: Required value, spec.b: Invalid value: "s3cret": is odd]',
        'Deployment.apps "d" is invalid: [spec.a: Required value, spec.b: Invalid value: ***: is odd]',
        id="list of errors",
    ),
    pytest.param(_TWICE, _TWICE, id="the variable that stands twice"),
    pytest.param(
        'ports: duplicate entries for key [port=80,protocol="TCP"]; a: duplicate entries for key [x="1"]',
        'ports: duplicate entries for key [port=80,protocol="TCP"]; a: duplicate entries for key [x=***]',
        id="other keys of lists",
    ),
    pytest.param(_NOT_SERVED, _NOT_SERVED, id="kinds that are not served"),
    pytest.param(
        "failed to create patch: The order in patch list:\n[map[name:A value:s3]cret] map[name:B value:x]]\n "
        "doesn't match $setElementOrder list:\n[map[name:B] map[name:A]]\n",
        "failed to create patch: The order in patch list:\n***\n",
        id="maps as Go prints them, with a bracket in a value",
    ),
    pytest.param(
        'v1.Secret.Data: decode base64: illegal base64, error found in #10 byte of ...|{"a":"s3cret"|...',
        "v1.Secret.Data: decode base64: illegal base64, ***",
        id="bytes around the error",
    ),
    pytest.param(
        'invalid character \'"\' after object key:value pair, in "s3cret"',
        "invalid character '\"' after object key:value pair, in ***",
        id="a quote that is no beginning",
    ),
    pytest.param(
        "spec.port: Invalid value: 70000: must be between 1 and 65535, inclusive",
        "spec.port: Invalid value: ***: must be between 1 and 65535, inclusive",
        id="number",
    ),
    pytest.param(
        "json: cannot unmarshal number 5433.5 into Go struct field X.port of type int32",
        "json: cannot unmarshal number *** into Go struct field X.port of type int32",
        id="literal",
    ),
    pytest.param(
        'Get "https://[::1]:6443/api": dial tcp [::1]:6443: connect: connection refused',
        "Get *** dial tcp [::1]:6443: connect: connection refused".replace("*** ", "***: "),
        id="address",
    ),
    pytest.param(
        'secrets "web" is forbidden: User "system:serviceaccount:a:b" cannot get resource "secrets" in API '
        'group "" in the namespace "a"',
        'secrets "web" is forbidden: User "system:serviceaccount:a:b" cannot get resource "secrets" in API '
        'group "" in the namespace "a"',
        id="names are told",
    ),
    pytest.param(
        'admission webhook "a.example.com" denied the request: password "s3cret" is weak',
        'admission webhook "a.example.com" denied the request: password *** is weak',
        id="webhook",
    ),
    pytest.param(
        "yaml: line 2: cannot unmarshal !!str `s3cr` et` into map[string]string",
        "yaml: line 2: cannot unmarshal !!str *** into map[string]string",
        id="backticks",
    ),
    pytest.param(
        '"" is invalid: patch: Invalid value: "{\\"a\\":\\"s3cret',
        '"" is invalid: patch: Invalid value: ***',
        id="not closed",
    ),
    pytest.param(
        'executing "a.yaml" at <include "lib.a" .>: error calling include: template: no template "lib.a" '
        'associated with template "gotpl"',
        'executing "a.yaml" at <include "lib.a" .>: error calling include: template: no template "lib.a" '
        'associated with template "gotpl"',
        id="a template that the source names",
    ),
    pytest.param(
        'executing "a.yaml" at <include .Values.x .>: error calling include: template: no template "s3cret" '
        'associated with template "gotpl"',
        'executing "a.yaml" at <include .Values.x .>: error calling include: template: no template *** '
        'associated with template "gotpl"',
        id="a template that a value names",
    ),
    pytest.param("odd: czNjcmV0czNjcmV0czNjcmV0czNjcmV0czNjcmV0czNjcmV0czNjcmV0", "odd: ***", id="base64"),
    pytest.param(f"sha256:{'0f' * 32} not found", f"sha256:{'0f' * 32} not found", id="digest"),
]


@rows.each(("text", "shown"), WITHOUT_VALUES)
def test_values_are_taken_out_and_reasons_stay(text: str, shown: str) -> None:
    assert quotations.without_values(text) == shown


def test_the_log_shows_short_values_but_those_of_secrets_and_no_objects() -> None:
    refused = 'spec.size: Invalid value: "many": no number, spec: Invalid value: {"a":"b"}: odd'
    assert quotations.without_contents(refused) == (
        'spec.size: Invalid value: "many": no number, spec: Invalid value: ***: odd'
    )
    assert quotations.without_contents(f"Secret: {refused}").count("***") == 2


@rows.each("piece", ['"', "[", "{", " at <", "Invalid value: ", "- at 'a': '", "`", "a.", "map[a:"])
def test_long_texts_of_any_kind_are_read_in_a_moment(piece: str) -> None:
    # Each beginning that is tried from every place anew would take minutes.
    for text in (piece * 2_000, f"[{piece * 2_000}", f'"{piece * 2_000}', f"{piece} " * 2_000):
        assert quotations.without_values(text) is not None

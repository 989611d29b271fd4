"""Rules of schemas in CEL: the language, what Kubernetes adds to it, and what is refused."""

import pytest

from addon_operator.kernel import json_types
from addon_operator.values.schema import cel_rules, schema_loading, schema_rules, schemas
from tests.support import rows

EVALUATOR = cel_rules.CelEvaluator()
"""Shared by the tests: it keeps nothing but compiled rules."""


def holds(rule: str, value: json_types.JsonValue, **more: json_types.JsonValue) -> bool:
    EVALUATOR.check(rule)
    return EVALUATOR.evaluate(rule, {"self": value, **more})


def broken(schema: str, value: json_types.JsonObject, old: json_types.JsonObject | None = None) -> list[str]:
    found = schemas.load_schema(schema, "f", evaluator=EVALUATOR).violations("m", value, old)
    return [f"{violation.path}: {violation.rule}" for violation in found]


@rows.each(
    ("rule", "value", "opposite"),
    [
        ("self.min <= self.max", {"min": 1, "max": 2}, {"min": 3, "max": 2}),
        ("self.ratio > 1", {"ratio": 1.5}, {"ratio": 0.5}),
        ("has(self.a) ? self.a.size() > 0 : true", {"a": "x"}, {"a": ""}),
        ("self.?a.b.orValue('none') == 'none'", {"a": {}}, {"a": {"b": "x"}}),
        ("self.all(x, x.name.matches('^[a-z]+$'))", [{"name": "ab"}], [{"name": "AB"}]),
        ("self.exists_one(x, x == 2)", [1, 2], [2, 2]),
        ("self.filter(x, x > 1).map(x, x * 2) == [4]", [1, 2], [2, 3]),
        ("self.all(key, self[key] > 0)", {"a": 1}, {"a": 0}),
        ("!('x' in self) || self['my-key'] == 1", {"x": 1, "my-key": 1}, {"x": 1, "my-key": 2}),
        ("self in ['a', 'b']", "a", "c"),
        ("size(self) == 2", "äö", "äöü"),
        ("duration(self) >= duration('1m')", "90s", "59s"),
        ("timestamp(self).getFullYear() < 2030", "2024-02-29T00:00:00Z", "2031-01-01T00:00:00Z"),
        ("type(self.a) == int ? self.a > 0 : self.a.endsWith('%')", {"a": "10%"}, {"a": 0}),
        ("self.a == null || self.a > 1", {"a": None}, {"a": 1}),
        ("self.split(',').size() == 2 && self.substring(0, 1) == 'a'", "a,b", "a"),
        ("self.lowerAscii() == self.trim()", "ab", "Ab"),
        ("'%s-%d'.format([self, 1]) == 'a-1'", "a", "b"),
        ("base64.encode(bytes(self)) == 'YQ=='", "a", "b"),
        ("math.greatest(self) == 2", [1, 2], [3]),
        ("cel.bind(first, self.a, first == 1 && first != 2)", {"a": 1}, {"a": 2}),
        ("self.find('[0-9]+') == '12'", "ab12", "ab"),
        ("self.findAll('[0-9]') == ['1', '2'] && self.findAll('[0-9]', 1) == ['1']", "a1b2", "a1"),
        ("self.isSorted()", [1, 2, 2], [2, 1]),
        ("self.sum() == 3 && self.min() == 1 && self.max() == 2", [1, 2], [1, 3]),
        ("sets.contains(self, [1])", [2, 1], [True]),
        ("sets.equivalent(self, [1, 2])", [2, 1, 1], [1]),
        ("sets.intersects(self, ['a'])", ["a", "b"], ["b"]),
        ("isURL(self) && url(self).getScheme() == 'https'", "https://a.example/b", "a.example"),
        ("url(self).getHost() == 'a.example:8443'", "https://u@a.example:8443/b", "https://a.example/b"),
        ("url(self).getHostname() == 'a.example'", "https://a.example:8443", "https://b.example"),
        ("url(self).getPort() == '8443'", "https://a.example:8443", "https://a.example"),
        ("url(self).getEscapedPath() == '/b%20c'", "https://a.example/b%20c", "/b"),
        ("url(self).getQuery()['k'] == ['1', '2']", "/?k=1&k=2", "/?k=1"),
        ("isQuantity(self)", "1.5Gi", "1.5 Gi"),
        ("quantity(self).isLessThan(quantity('2Gi'))", "1025Mi", "3e9"),
        ("quantity(self).isGreaterThan(quantity('100m'))", "0.2", "1m"),
        ("quantity(self).compareTo(quantity('1k')) == 0", "1000", "1024"),
        ("quantity(self) == quantity('1')", "1000m", "1001m"),
        ("quantity(self).add(quantity('1Ki')).sub(24).asInteger() == 2000", "1k", "1001"),
        ("quantity(self).sign() == -1", "-1m", "0"),
        ("quantity(self).isInteger()", "2k", "2m"),
        ("quantity(self).asApproximateFloat() == 0.5", "500m", "1"),
        ("isIP(self) && ip(self).family() == 6", "::1", "127.0.0.1"),
        ("ip.isCanonical(self)", "2001:db8::1", "2001:DB8::1"),
        ("ip(self).isLoopback()", "127.0.0.1", "10.0.0.1"),
        ("ip(self).isUnspecified()", "0.0.0.0", "10.0.0.1"),
        ("ip(self).isLinkLocalUnicast()", "169.254.1.1", "10.0.0.1"),
        ("ip(self).isLinkLocalMulticast()", "ff02::1", "ff05::1"),
        ("ip(self).isGlobalUnicast()", "10.0.0.1", "255.255.255.255"),
        ("isCIDR(self)", "10.0.0.0/8", "10.0.0.0"),
        ("cidr(self).containsIP('10.1.2.3')", "10.0.0.0/8", "11.0.0.0/8"),
        ("cidr(self).containsIP(ip('::1'))", "::/0", "0.0.0.0/0"),
        ("cidr(self).containsCIDR('10.1.0.0/16')", "10.0.0.0/8", "10.1.0.0/24"),
        ("cidr(self).containsCIDR(cidr('10.1.0.0/16'))", "10.0.0.0/8", "10.1.0.0/24"),
        ("cidr(self).prefixLength() == 8", "10.0.0.0/8", "10.0.0.0/9"),
        ("cidr(self).ip().family() == 6", "fd00::1/64", "10.0.0.0/8"),
        ("cidr(self).masked() == cidr('10.0.0.0/8')", "10.1.0.0/8", "10.0.0.0/9"),
    ],
)  # fmt: skip
def test_a_rule_holds_for_one_value_and_not_for_the_other(
    rule: str, value: json_types.JsonValue, opposite: json_types.JsonValue
) -> None:
    assert holds(rule, value)
    assert not holds(rule, opposite)


@rows.each(
    ("rule", "value"),
    [
        ("self.missing == 1", {"a": 1}),
        ("self.a > 1", {"a": "x"}),
        ("self.a", {"a": 1}),
        ("self.matches('[')", "x"),
        ("self.max() == 1", []),
        ("self.sum() == 1", [True]),
        ("quantity(self).asInteger() == 1", "1m"),
        ("url(self).getHost() == ''", "a b"),
        ("ip(self).family() == 4", "10.0.0.256"),
        ("self.all(x, self.all(y, self.all(z, x == y || y != z || true)))", list(range(200))),
    ],
)
def test_a_rule_that_gives_no_verdict_is_an_error_of_the_rule(rule: str, value: json_types.JsonValue) -> None:
    EVALUATOR.check(rule)
    with pytest.raises(schema_rules.RuleError):
        EVALUATOR.evaluate(rule, {"self": value})


def test_one_side_of_an_or_may_have_no_verdict() -> None:
    assert holds("self.missing == 1 || self.a == 1", {"a": 1})


def test_a_transition_sees_the_value_before() -> None:
    assert holds("self.a == oldSelf.a", {"a": 1}, oldSelf={"a": 1, "b": 2})
    assert not holds("self.a == oldSelf.a", {"a": 1}, oldSelf={"a": 2})


@rows.each(
    ("rule", "keys"),
    [
        ("self.a == 1 && oldSelf.b == 2", {"a", "b"}),
        ("has(self . a) && 'self' != \"oldSelf\"", {"a"}),
        ("self.a == 1 // self", {"a"}),
        ("self.size() > 0", None),
        ("self == oldSelf", None),
        ("self.?a.hasValue()", None),
        ("self['a'] == 1", None),
        ("item.self.x == 1 || self.b", {"b"}),
    ],
)
def test_the_runtime_gets_only_the_keys_that_a_rule_can_look_at(rule: str, keys: set[str] | None) -> None:
    assert cel_rules.used_keys(rule) == keys


@rows.each(
    ("rule", "told"),
    [
        ("self.a ==", "character"),
        ("slef.a == 1", "undeclared reference to 'slef.a'"),
        ("self.nosuch(1)", "undeclared reference to 'nosuch'"),
        ("size(self, 2, 3) > 0", "undeclared reference to 'size'"),
        ("'text'", "must be true or false"),
        ("self.a + 1 > 'x'.size() ? 1 : 2", "must be true or false"),
        ("1 == 'x'", "no matching overload"),
        ("", "it is empty"),
        ("// nothing", "it is empty"),
    ],
)
def test_what_is_not_a_rule_is_refused_when_it_is_read(rule: str, told: str) -> None:
    with pytest.raises(schema_rules.RuleError, match=told):
        EVALUATOR.check(rule)


def test_a_wrong_rule_is_an_error_of_the_schema_with_its_position() -> None:
    text = "properties:\n  a:\n    x-kubernetes-validations:\n    - rule: slef > 1\n"
    with pytest.raises(
        schema_loading.SchemaError, match=r"f, line 4, column 7.*undeclared reference to 'slef'"
    ):
        schemas.load_schema(text, "f")


def test_a_number_of_the_schema_is_floating_point_however_it_was_written() -> None:
    schema = """
        x-kubernetes-validations: [{rule: self.ratio * 2.0 == 2.0, message: ratio}]
        properties: {ratio: {type: number, x-kubernetes-validations: [{rule: self / 2.0 == 0.5}]}}
    """
    assert broken(schema, {"ratio": 1}) == []
    assert broken(schema, {"ratio": 2})[0] == "m: ratio"


def test_properties_whose_names_are_no_identifiers_have_escaped_names() -> None:
    schema = """
        x-kubernetes-validations: [{rule: self.my__dash__key == self.__namespace__, message: differ}]
        properties: {my-key: {type: integer}, namespace: {type: integer}}
    """
    assert broken(schema, {"my-key": 1, "namespace": 1}) == []
    assert broken(schema, {"my-key": 1, "namespace": 2}) == ["m: differ"]


@rows.each(
    ("name", "escaped"),
    [("a.b/c-d__e", "a__dot__b__slash__c__dash__d__underscores__e"), ("in", "__in__"), ("plain", "plain")],
)
def test_names_are_escaped_as_kubernetes_does(name: str, escaped: str) -> None:
    assert schema_rules.escape(name) == escaped


def test_a_transition_rule_is_skipped_where_there_was_nothing_before() -> None:
    schema = "properties: {a: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}"
    assert broken(schema, {"a": 1}) == []
    assert broken(schema, {"a": 1}, {}) == []
    assert len(broken(schema, {"a": 1}, {"a": 2})) == 1

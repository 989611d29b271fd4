"""Of definitions that several modules bring, the one with the newest and most versions counts."""

import itertools
from typing import Any

from addon_operator.kernel.names import ModuleName
from addon_operator.modules import crd_claims, crd_files
from tests.support import rows

NAME = "things.example.com"


def crd(
    *served: str, unserved: tuple[str, ...] = (), size: str = "", about: dict[str, Any] | None = None
) -> crd_files.Crd:
    versions: list[Any] = [
        {"name": name, "served": name in served, "storage": name == served[0], "schema": size}
        for name in (*served, *unserved)
    ]
    spec: Any = {"group": "example.com", "versions": versions}
    return crd_files.Crd(NAME, "a.yaml", {}, about or {}, spec)


def claim(
    module: str, *served: str, order: int = 10, about: dict[str, Any] | None = None
) -> crd_claims.Claim:
    return crd_claims.claim(ModuleName(module), order, f"of {module}", crd(*served, about=about))


def release(version: str, key: str = "operator.example.com/version") -> dict[str, Any]:
    return {key: version}


def winner(*claims: crd_claims.Claim) -> str:
    """The same, in whatever order the modules start."""
    [found] = {crd_claims.decide(each) for each in itertools.permutations(claims)}
    return found.winner.module


def test_versions_have_the_priority_that_kubernetes_gives_them() -> None:
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2"]
    ordered += ["foo1", "foo10", "v01", "w"]
    keys = [crd_claims.priority(version) for version in ordered]
    assert keys == sorted(keys, reverse=True)
    assert len(set(keys)) == len(keys)
    assert crd_claims.priority("v" + "9" * 5000) < crd_claims.priority("v1alpha1")


@rows.each(
    ("older", "newer"),
    [
        (["v1"], ["v2"]),
        (["v1beta1", "v1alpha1"], ["v1"]),
        (["v1"], ["v1", "v1beta1"]),
        (["v2", "v1beta1"], ["v2", "v1"]),
        ([], ["v1alpha1"]),
    ],
)
def test_the_newest_version_counts_and_then_those_below_it(older: list[str], newer: list[str]) -> None:
    assert winner(claim("a", *(older or ["v0"])), claim("b", *newer, order=20)) == "b"
    assert winner(claim("b", *newer), claim("a", *(older or ["v0"]), order=20)) == "b"


@rows.each(
    ("older", "newer"),
    [
        (release("0.79.0"), release("0.80.0")),
        (release("v1.9.0"), release("v1.10.0")),
        (release("1.2.0-rc.2"), release("1.2.0-rc.10")),
        (release("1.2.0-rc.10"), release("1.2")),
        (release("not a version"), release("0.1")),
        ({}, release("v1.0.0", "gateway.networking.k8s.io/bundle-version")),
        (
            release("v0.14.0", "controller-gen.kubebuilder.io/version"),
            release("v0.17.2", "controller-gen.kubebuilder.io/version"),
        ),
        (
            release("0.79.0") | release("v0.17.2", "controller-gen.kubebuilder.io/version"),
            release("0.80.0") | release("v0.14.0", "controller-gen.kubebuilder.io/version"),
        ),
    ],
)
def test_with_the_same_versions_the_newer_release_counts(
    older: dict[str, Any], newer: dict[str, Any]
) -> None:
    assert winner(claim("a", "v1", about=older), claim("b", "v1", order=20, about=newer)) == "b"


def test_of_equals_that_of_the_first_module_counts() -> None:
    assert winner(claim("a", "v1", order=20), claim("b", "v1", order=10)) == "b"
    assert winner(claim("a", "v1"), claim("b", "v1"), claim("c", "v1")) == "a"
    assert (
        winner(claim("a", "v1", about=release("1.0")), claim("b", "v1", order=1, about=release("1.0.0")))
        == "b"
    )


def test_versions_that_only_others_serve_are_added() -> None:
    claims = [claim("a", "v1beta1", "v1alpha1"), claim("b", "v2"), claim("c", "v1beta1", order=20)]
    decision = crd_claims.decide(claims)
    assert decision.winner.module == "b"
    assert [(version, each.module) for version, each in decision.added] == [
        ("v1beta1", "a"),
        ("v1alpha1", "a"),
    ]
    made = crd_claims.joined(crd("v2"), [("v1beta1", crd("v1beta1", size="9"))])
    assert made.spec["versions"] == [
        {"name": "v2", "served": True, "storage": True, "schema": ""},
        {"name": "v1beta1", "served": True, "storage": False, "schema": "9"},
    ]


def test_a_version_that_the_winner_has_but_no_longer_serves_stays_served_as_it_has_it() -> None:
    made = crd_claims.joined(crd("v2", unserved=("v1",)), [("v1", crd("v1", size="9"))])
    assert made.apis == ("example.com/v2", "example.com/v1")
    assert [each["schema"] for each in crd_files.versions_of(made.spec)] == ["", ""]


def test_what_the_api_server_refuses_gives_way_and_adds_nothing() -> None:
    claims = [claim("a", "v1"), claim("b", "v3", "v2"), claim("c", "v1alpha1")]
    decision = crd_claims.decide(claims, frozenset({"of b"}))
    assert decision.winner.module == "a"
    assert [version for version, _ in decision.added] == ["v1alpha1"]
    assert "the API server refuses this one" in crd_claims.said(NAME, decision, ModuleName("b"))
    decision = crd_claims.decide(claims, not_added=frozenset({"of a"}))
    assert (decision.winner.module, [version for version, _ in decision.added]) == ("b", ["v1alpha1"])
    every = frozenset(each.digest for each in claims)
    assert crd_claims.decide(claims, every).winner.module == "b"


def test_only_those_that_do_not_count_are_told_why() -> None:
    decision = crd_claims.decide([claim("a", "v1", "v1alpha1"), claim("b", "v2", "v1")])
    assert crd_claims.said(NAME, decision, ModuleName("b")) == ""
    assert crd_claims.said(NAME, decision, ModuleName("a")) == (
        "CustomResourceDefinition things.example.com is that of module b, not this module's: it serves newer "
        "or more versions (v2, v1 against v1, v1alpha1); v1alpha1 of this module is served, too"
    )
    by_release = crd_claims.decide([claim("a", "v1"), claim("b", "v1", about=release("1.0"))])
    assert "it is of a newer release" in crd_claims.said(NAME, by_release, ModuleName("a"))
    equal = crd_claims.decide([claim("a", "v1"), claim("b", "v1")])
    assert "the module that runs first counts" in crd_claims.said(NAME, equal, ModuleName("b"))


def test_equal_definitions_are_one() -> None:
    one = crd_claims.Claim(ModuleName("a"), 1, "same", ("v1",))
    other = crd_claims.Claim(ModuleName("b"), 2, "same", ("v1",))
    assert crd_claims.decide([other, one]) == crd_claims.Decision(one)

"""Paths of the API and what they point at."""

import pytest

from addon_operator.kube import paths
from tests.support import rows


@rows.each(
    ("args", "path"),
    [
        ({"api_version": "v1", "plural": "nodes"}, "/api/v1/nodes"),
        ({"api_version": "v1", "plural": "nodes", "name": "a"}, "/api/v1/nodes/a"),
        ({"api_version": "v1", "plural": "pods", "namespace": "x"}, "/api/v1/namespaces/x/pods"),
        (
            {"api_version": "apps/v1", "plural": "a", "namespace": "x", "name": "y", "subresource": "scale"},
            "/apis/apps/v1/namespaces/x/a/y/scale",
        ),
        ({"api_version": "v1", "plural": "roles", "name": "system:a/b"}, "/api/v1/roles/system:a%2Fb"),
    ],
)  # fmt: skip
def test_a_path_is_made_from_its_parts(args: dict[str, str], path: str) -> None:
    assert paths.of(**args) == path


@rows.each("name", ["", ".", ".."])
def test_a_name_that_would_leave_the_collection_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        paths.of("v1", "pods", namespace="x", name=name)


@rows.each(
    ("method", "path", "verb", "text", "template"),
    [
        ("GET", "/version", "get", "/version", "/version"),
        ("GET", "/apis/apps/v1", "get", "/apis/apps/v1", "/apis/apps/v1"),
        ("GET", "/api/v1/pods", "list", "pods", "/api/v1/pods"),
        (
            "GET", "/api/v1/namespaces/x/pods/y", "get", 'pods "y" in namespace "x"',
            "/api/v1/namespaces/{namespace}/pods/{name}",
        ),
        (
            "POST", "/apis/apps/v1/namespaces/x/deployments", "create", 'deployments.apps in namespace "x"',
            "/apis/apps/v1/namespaces/{namespace}/deployments",
        ),
        (
            "PATCH", "/apis/apps/v1/namespaces/x/deployments/y/scale", "patch",
            'deployments/scale.apps "y" in namespace "x"',
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
        ),
        ("GET", "/api/v1/namespaces", "list", "namespaces", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/namespaces/x", "delete", 'namespaces "x"', "/api/v1/namespaces/{name}"),
        (
            "PUT", "/api/v1/namespaces/x/finalize", "update", 'namespaces/finalize "x"',
            "/api/v1/namespaces/{name}/finalize",
        ),
        (
            "DELETE", "/api/v1/namespaces/x/pods", "deletecollection", 'pods in namespace "x"',
            "/api/v1/namespaces/{namespace}/pods",
        ),
        ("GET", "/api/v1/nodes/a%2Fb", "get", 'nodes "a/b"', "/api/v1/nodes/{name}"),
    ],
)  # fmt: skip
def test_a_request_is_described_in_the_words_of_rbac(
    method: str, path: str, verb: str, text: str, template: str
) -> None:
    found = paths.target(method, path)
    assert (found.verb, str(found), found.template) == (verb, text, template)


def test_a_watch_is_a_verb_of_its_own() -> None:
    assert paths.target("GET", "/api/v1/pods", watch=True).verb == "watch"

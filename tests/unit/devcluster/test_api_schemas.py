"""Schemas of Kubernetes' kinds, kept in the cache of the local control plane."""

import json
import pathlib

from typing_extensions import override

from addon_operator.devcluster import api, api_schemas
from tests.support import rows

KIND = [{"group": "apps", "version": "v1", "kind": "Deployment"}]
DEPLOYMENT = {"properties": {"metadata": {}}, "x-kubernetes-group-version-kind": KIND}
OPTIONS = {"properties": {"dryRun": {}}, "x-kubernetes-group-version-kind": KIND}


class Client(api.ApiClient):
    """Answers from memory."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked: list[str] = []

    @override
    def request(self, method: str, path: str, body: object = None, content_type: str = "") -> api.ApiAnswer:
        self.asked.append(path)
        own, foreign = "/openapi/v3/apis/apps/v1?hash=A", "/openapi/v3/apis/example.com/v1?hash=B"
        index = {"paths": {path: {"serverRelativeURL": path} for path in (own, foreign)}}
        schemas = {"components": {"schemas": {"Deployment": DEPLOYMENT, "Options": OPTIONS}}}
        is_index = path == "/openapi/v3"
        return api.ApiAnswer(200 if is_index else self.status, json.dumps(index if is_index else schemas))


def test_schemas_are_kept_once_for_each_version_and_the_newest_are_read(tmp_path: pathlib.Path) -> None:
    assert api_schemas.load(tmp_path) is None
    for version in ("v1.9.0", "v1.36.3"):
        api_schemas.save(tmp_path, version, Client())
    again = Client()
    api_schemas.save(tmp_path, "v1.36.3", again)
    assert again.asked == []
    found = api_schemas.load(tmp_path)
    assert found is not None
    assert (found.version, found.kinds) == ("v1.36.3", {"apps/v1/Deployment": "Deployment"})
    assert found.definitions["Deployment"] == DEPLOYMENT


def test_kinds_that_are_not_of_kubernetes_itself_are_left_out(tmp_path: pathlib.Path) -> None:
    client = Client()
    api_schemas.save(tmp_path, "v1.36.3", client)
    assert not any("example.com" in path for path in client.asked)


@rows.each(("version", "status"), [("v1.36.3", 503), ("unknown", 200)])
def test_what_cannot_be_had_is_left_for_the_next_start(
    tmp_path: pathlib.Path, version: str, status: int
) -> None:
    api_schemas.save(tmp_path, version, Client(status))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_broken_counts_as_none(tmp_path: pathlib.Path) -> None:
    (tmp_path / "api-schemas-v1.36.3.json").write_text("{")
    assert api_schemas.load(tmp_path) is None

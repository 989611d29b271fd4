"""Whether the kinds of what a plan adds are served."""

import pathlib

import pytest

from addon_operator.commands.plan import plan_kinds
from addon_operator.documents import manifest_diff
from addon_operator.kube.discovery import api_resources, discovery

ADDED = manifest_diff.ChangeKind.ADDED


class Catalog:
    async def find(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        if kind != "DaemonSet" or api_version != "apps/v1":
            raise discovery.NoSuchKind(kind, api_version, ("apps/v1",) if kind == "DaemonSet" else ())
        return api_resources.Resource("apps/v1", "daemonsets", kind, namespaced=True)


def added(api_version: str, kind: str) -> manifest_diff.Change:
    return manifest_diff.Change(ADDED, manifest_diff.ObjectKey(kind, "x", "", api_version), ())


@pytest.mark.parametrize(
    ("changes", "reason", "notes"),
    [
        pytest.param([added("apps/v1", "DaemonSet")], None, 0, id="served"),
        pytest.param(
            [added("extensions/v1beta1", "DaemonSet")],
            "the API server has no kind 'DaemonSet' in extensions/v1beta1: it serves it in apps/v1",
            0,
            id="served in another version",
        ),
        pytest.param([added("a.io/v1", "Foo")], None, 1, id="not served"),
        pytest.param([added("a.io/v1", "Bar")], None, 0, id="defined by a module"),
        pytest.param([added("a.io/v1", "Foo"), added("x/v1", "CustomResourceDefinition")], None, 0,
                     id="perhaps defined by the manifest"),
        pytest.param([added("", "templates/notes.yaml")], None, 0, id="not an object"),
    ],
)  # fmt: skip
async def test_a_kind_that_is_not_served_is_told(
    changes: list[manifest_diff.Change], reason: str | None, notes: int, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "bar.yaml").write_text("spec:\n  names:\n    kind: Bar\n")
    noted: list[str] = []
    found = await plan_kinds.Kinds(Catalog(), noted.append).refused(changes, [tmp_path])
    assert (found, len(noted)) == (reason, notes)

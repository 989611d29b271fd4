"""What the upgrade guide tells to do keeps the objects of a renamed module."""

import pathlib

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration

_TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: data\n"
GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "upgrade.md"


def uid(site: operator_site.Site) -> str:
    return site.kubectl("get", "configmap", "data", "-o", "jsonpath={.metadata.uid}")


@pytest.mark.slow
def test_a_renamed_module_keeps_its_objects(site: operator_site.Site) -> None:
    module = site.module("010-old-name", values="oldNameEnabled: true\n")
    (module / "templates").mkdir()
    (module / "templates" / "data.yaml").write_text(_TEMPLATE)
    site.start().wait_ready().stop()
    before = uid(site)

    module.rename(site.modules / "010-new-name")
    (site.modules / "010-new-name" / "values.yaml").write_text("newNameEnabled: true\n")
    site.start(HELM_IGNORE_RELEASE="old-name").wait_ready().stop()
    assert site.revisions() == {"old-name": 1, "new-name": 1}

    command = "delete secret -l owner=helm,name=old-name"
    assert command in GUIDE.read_text("utf-8")
    site.kubectl(*command.split())
    site.start().wait_ready().stop()
    assert site.revisions() == {"new-name": 1}
    assert uid(site) == before

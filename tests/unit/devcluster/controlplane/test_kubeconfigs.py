"""Kubeconfigs, and the files that they may replace."""

import base64
import datetime as dt
import pathlib

import pytest
import yaml

from addon_operator.devcluster import errors, layout
from addon_operator.devcluster.controlplane import certificates, kubeconfigs
from tests.support import rows

URL = "https://127.0.0.1:6443"
ONE = layout.ClusterName("one")


@pytest.fixture
def where(tmp_path: pathlib.Path) -> layout.Layout:
    found = layout.Layout(tmp_path / ONE)
    found.root.mkdir()
    found.make()
    now = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    certificates.write_all(found.pki, [certificates.ADMIN_USER], now)
    return found


@pytest.fixture
def written(where: layout.Layout) -> pathlib.Path:
    path = where.root.parent / "exported"
    kubeconfigs.write(path, kubeconfigs.document(where, URL, certificates.ADMIN_USER))
    return path


def test_a_kubeconfig_holds_all_that_a_client_needs(where: layout.Layout, written: pathlib.Path) -> None:
    found = yaml.safe_load(written.read_text())
    assert found["current-context"] == "devcluster-one"
    assert found["contexts"] == [
        {"name": "devcluster-one", "context": {"cluster": "devcluster-one", "user": "devcluster-one"}}
    ]
    cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    assert cluster["server"] == URL
    assert base64.b64decode(cluster["certificate-authority-data"]) == where.certificate("ca").read_bytes()
    assert user == {"token": certificates.token_of(where.pki)}


def test_a_kubeconfig_is_for_its_owner_only(written: pathlib.Path) -> None:
    assert written.stat().st_mode & 0o777 == 0o600


@rows.each("content", [None, "", "\n"], ids=["missing", "empty", "blank"])
def test_a_kubeconfig_may_be_written_where_nothing_is(tmp_path: pathlib.Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    kubeconfigs.check_export(path, ONE)


def test_an_earlier_kubeconfig_of_the_same_cluster_may_be_replaced(written: pathlib.Path) -> None:
    kubeconfigs.check_export(written, ONE)


@rows.each(
    "content",
    [
        pytest.param("contexts: [{name: production}]\n", id="another cluster"),
        pytest.param("contexts: [{name: devcluster-one}, {name: production}]\n", id="ours and another"),
        pytest.param("just text", id="text"),
        pytest.param("a: [", id="no YAML"),
        pytest.param("contexts: 3", id="odd"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_a_file_of_the_user_is_never_replaced_or_removed(
    tmp_path: pathlib.Path, content: str | bytes
) -> None:
    path = tmp_path / "kubeconfig"
    raw = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(raw)
    with pytest.raises(errors.DevClusterError, match="is not a kubeconfig of the cluster one"):
        kubeconfigs.check_export(path, ONE)
    kubeconfigs.remove_export(path, ONE)
    assert path.read_bytes() == raw


def test_a_directory_that_is_not_there_is_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.DevClusterError, match=r"there is no directory .*/none; make it first"):
        kubeconfigs.check_export(tmp_path / "none/kubeconfig", ONE)


def test_our_own_kubeconfig_is_removed(written: pathlib.Path) -> None:
    kubeconfigs.remove_export(written, ONE)
    assert not written.exists()
    kubeconfigs.remove_export(written, ONE)

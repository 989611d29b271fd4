"""Released binaries, from a server on loopback."""

import dataclasses
import functools
import hashlib
import http.server
import io
import os
import pathlib
import socket
import tarfile
import threading
from collections.abc import Iterator

import pytest
from typing_extensions import override

from addon_operator.devcluster import errors
from addon_operator.devcluster.binaries import archives, components
from tests.support import rows
from tests.unit.devcluster import fakes

PROGRAM = b"#!/bin/sh\necho tool\n"


class Handler(http.server.SimpleHTTPRequestHandler):
    @override
    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """A release page and the directory that it shows."""

    url: str
    directory: pathlib.Path

    def publish(self, name: str, content: bytes, checksum: str | None = None) -> None:
        (self.directory / name).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        (self.directory / f"{name}.sha256").write_text(checksum or f"{sha256}  {name}\n")

    def component(self, name: str = "tool-{version}", member: str | None = None) -> components.Component:
        def release(version: str, arch: str, binary: str) -> components.Release:
            del arch, binary
            url = f"{self.url}/{name.format(version=version)}"
            return components.Release(url, f"{url}.sha256", member)

        return fakes.component(releases=release)


@pytest.fixture
def site(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    directory = tmp_path / "site"
    directory.mkdir()
    handler = functools.partial(Handler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Site(f"http://127.0.0.1:{server.server_port}", directory)
        server.shutdown()
        thread.join()


@pytest.fixture
def pin(tmp_path: pathlib.Path) -> components.Pin:
    return components.read_pins(fakes.write_pins(tmp_path / "pins"), fakes.MODULE)


@pytest.fixture
def target(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "tool"


def fetch(
    component: components.Component,
    pin: components.Pin,
    target: pathlib.Path,
    reporter: fakes.Recorder | None = None,
) -> bool:
    source = archives.ReleaseArchives(reporter or fakes.Recorder())
    return source.fetch(component, pin, component.binaries[0], target)


def tarball(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"linux-amd64/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_a_released_binary_is_fetched_and_can_be_run(
    site: Site, pin: components.Pin, target: pathlib.Path
) -> None:
    site.publish("tool-v1.2.3", PROGRAM)
    assert fetch(site.component(), pin, target)
    assert target.read_bytes() == PROGRAM
    assert os.access(target, os.X_OK)


def test_a_binary_is_taken_out_of_its_archive(site: Site, pin: components.Pin, target: pathlib.Path) -> None:
    site.publish("tool.tar.gz", tarball(tool=PROGRAM, license=b"free"))
    assert fetch(site.component("tool.tar.gz", "linux-amd64/tool"), pin, target)
    assert target.read_bytes() == PROGRAM
    assert [path.name for path in target.parent.glob("*.download")] == []


def test_the_download_is_counted(site: Site, pin: components.Pin, target: pathlib.Path) -> None:
    reporter = fakes.Recorder()
    site.publish("tool-v1.2.3", PROGRAM)
    fetch(site.component(), pin, target, reporter)
    assert reporter.phases == [("tool: tool", "downloading", len(PROGRAM))]
    assert reporter.counted == [len(PROGRAM)]


def test_a_file_with_another_checksum_is_refused(
    site: Site, pin: components.Pin, target: pathlib.Path
) -> None:
    site.publish("tool-v1.2.3", PROGRAM, checksum="0" * 64)
    with pytest.raises(errors.ChecksumError, match=r"tool-v1\.2\.3 has the SHA-256 .* says 0{64}"):
        fetch(site.component(), pin, target)
    assert not target.exists()


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        pytest.param(b"no archive", "is not a readable archive", id="no archive"),
        pytest.param(tarball(other=PROGRAM), "holds no file linux-amd64/tool", id="without the binary"),
    ],
)
def test_an_archive_that_cannot_be_used_is_reported(
    site: Site, pin: components.Pin, target: pathlib.Path, archive: bytes, message: str
) -> None:
    site.publish("tool.tar.gz", archive)
    with pytest.raises(errors.BuildError, match=message):
        fetch(site.component("tool.tar.gz", "linux-amd64/tool"), pin, target)


def test_a_version_that_was_not_released_is_built_instead(
    site: Site, pin: components.Pin, target: pathlib.Path
) -> None:
    reporter = fakes.Recorder()
    assert not fetch(site.component(), pin, target, reporter)
    assert reporter.said == []


def test_a_release_without_a_usable_checksum_is_not_used(
    site: Site, pin: components.Pin, target: pathlib.Path
) -> None:
    site.publish("tool-v1.2.3", PROGRAM, checksum=f"{'a' * 64}  another-file\n")
    assert not fetch(site.component(), pin, target)


def test_a_checksum_without_its_file_is_reported(
    site: Site, pin: components.Pin, target: pathlib.Path
) -> None:
    reporter = fakes.Recorder()
    site.publish("tool-v1.2.3", PROGRAM)
    (site.directory / "tool-v1.2.3").unlink()
    assert not fetch(site.component(), pin, target, reporter)
    assert "cannot be fetched" in reporter.said[0]


def test_a_component_that_nobody_releases_is_not_asked_for(pin: components.Pin, target: pathlib.Path) -> None:
    assert not fetch(fakes.component(), pin, target)


def test_a_host_that_refuses_is_asked_once(pin: components.Pin, target: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    reporter = fakes.Recorder()
    source = archives.ReleaseArchives(reporter)
    component = Site(f"http://127.0.0.1:{port}", target.parent).component()
    for _ in range(3):
        assert not source.fetch(component, pin, component.binaries[0], target)
    assert reporter.said == [f"127.0.0.1:{port} cannot be reached: not using its released binaries"]


def test_a_host_that_is_silent_is_given_up(pin: components.Pin, target: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reporter = fakes.Recorder()
        source = archives.ReleaseArchives(reporter, connect_timeout=0.05)
        component = Site(f"http://127.0.0.1:{server.getsockname()[1]}", target.parent).component()
        assert not source.fetch(component, pin, component.binaries[0], target)
    assert "cannot be reached" in reporter.said[0]


@rows.each(
    ("text", "found"),
    [
        pytest.param("AB" * 32, "ab" * 32, id="alone"),
        pytest.param(f"{'cd' * 32}  tool\n", "cd" * 32, id="with a name"),
        pytest.param(f"{'cd' * 32} *tool\n", "cd" * 32, id="binary mode"),
        pytest.param(f"{'ef' * 32}  other\n{'cd' * 32}  tool\n", "cd" * 32, id="among others"),
        pytest.param(f"{'cd' * 32}  tool.tar.gz\n", None, id="longer name"),
        pytest.param("<html>not found</html>", None, id="a page"),
        pytest.param("ab" * 20, None, id="another hash"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_checksums_are_found_in_the_forms_that_projects_publish(text: str, found: str | None) -> None:
    assert archives.published_checksum(text, "tool") == found

"""The container of the chart's Deployment, as a kubelet and a container runtime would start it."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

ACCOUNT: Final = "run/secrets/kubernetes.io/serviceaccount"
_ENDED_SECONDS: Final = 40.0


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """What was built."""

    root: pathlib.Path
    """Its root file system, which may be written to."""
    base: pathlib.Path
    """That of the base image."""
    config: Mapping[str, Any]
    """Environment, user, command: the image's configuration."""
    format: str


def built() -> Image | None:
    """The image of ``make image-test``, which says where it is."""
    path = os.environ.get("IMAGE_TEST")
    if path is None:
        return None
    facts = json.loads(pathlib.Path(path).read_text("utf-8"))
    return Image(pathlib.Path(facts["root"]), pathlib.Path(facts["base"]), facts["config"], facts["format"])


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """What of a Deployment matters here."""

    pod: Mapping[str, Any]
    """Its ``spec.template.spec``."""
    namespace: str
    name: str = "addon-operator-0"

    @property
    def container(self) -> Mapping[str, Any]:
        """The only container."""
        (found,) = self.pod["containers"]
        assert isinstance(found, dict)
        return found

    @property
    def user(self) -> tuple[int, int]:
        """The uid and gid that the chart sets."""
        context = self.pod["securityContext"]
        return context["runAsUser"], context["runAsGroup"]

    def environment(self, image: Image) -> dict[str, str]:
        """The image's variables and then the container's."""
        fields = {"metadata.namespace": self.namespace, "metadata.name": self.name}
        found = dict(text.split("=", 1) for text in image.config["Env"])
        for entry in self.container["env"]:
            name = entry["name"]
            found[name] = entry.get("value") or fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        return found | {"HOSTNAME": self.name}


@contextlib.contextmanager
def prepared(image: Image, spec: Spec, account: Mapping[str, str]) -> Iterator[pathlib.Path]:
    """The container's file system: the image's read-only, the volumes, the service account's files."""
    assert spec.container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts: list[pathlib.Path] = []

    def mount(*arguments: str, at: pathlib.Path) -> None:
        subprocess.run(["mount", *arguments, str(at)], check=True)
        mounts.append(at)

    with tempfile.TemporaryDirectory(prefix="pod-") as directory:
        root = pathlib.Path(directory, "root")
        root.mkdir()
        token = image.root / ACCOUNT
        token.mkdir(parents=True, exist_ok=True)
        for name, text in account.items():
            (token / name).write_text(text, "utf-8")
        for path, _ in _volumes(spec):
            # As the runtime makes what volumes are mounted at.
            (image.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        try:
            mount("--bind", str(image.root), at=root)
            subprocess.run(["mount", "-o", "remount,bind,ro", str(root)], check=True)
            mount("--rbind", "/dev", at=root / "dev")
            for path, group in _volumes(spec):
                # As the kubelet makes an emptyDir.
                mount("-t", "tmpfs", "-o", f"mode=2777,gid={group}", "tmpfs", at=root / path.lstrip("/"))
            yield root
        finally:
            for at in reversed(mounts):
                subprocess.run(["umount", "--recursive", "--lazy", str(at)], check=True)
            shutil.rmtree(token, ignore_errors=True)


def _volumes(spec: Spec) -> Iterator[tuple[str, int]]:
    volumes = {volume["name"]: volume for volume in spec.pod["volumes"]}
    for mount in spec.container["volumeMounts"]:
        assert "emptyDir" in volumes[mount["name"]], "no other kind of volume is made here"
        yield mount["mountPath"].replace("/var/run/", "/run/"), spec.pod["securityContext"]["fsGroup"]


@dataclasses.dataclass(frozen=True, slots=True)
class Pod:
    """The container while it runs."""

    process: "subprocess.Popen[bytes]"
    pid: int
    """Of its first process, seen from outside."""
    user: tuple[int, int]
    environment: Mapping[str, str]
    log: pathlib.Path

    def exec(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        """What ``kubectl exec`` does."""
        uid, gid = self.user
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--root", "--wd"]
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return subprocess.run(
            [*enter, f"--setuid={uid}", f"--setgid={gid}", "/usr/bin/env", "-i", *variables, *argv],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )

    def terminate(self) -> tuple[int, float]:
        """What the kubelet does at the end; the exit code, and how many seconds it took."""
        began = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        code = self.process.wait(_ENDED_SECONDS)
        return code, time.monotonic() - began

    def records(self) -> list[dict[str, Any]]:
        """The log, which has nothing but JSON in it."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]


@contextlib.contextmanager
def running(
    image: Image,
    root: pathlib.Path,
    environment: Mapping[str, str],
    user: tuple[int, int],
    log: pathlib.Path,
) -> Iterator[Pod]:
    """The image's own command, as that user; killed at the end, if it has not ended."""
    uid, gid = user
    assert image.config["WorkingDir"] == "/"
    variables = [f"{name}={value}" for name, value in environment.items()]
    command = [*image.config["Entrypoint"], *image.config["Cmd"]]
    with log.open("wb") as output:
        process = _isolated(
            root,
            ["chroot", f"--userspec={uid}:{gid}", f"--groups={gid}", str(root)],
            ["/usr/bin/env", "-i", *variables, *command],
            output,
        )
    try:
        yield Pod(process, _first(process.pid), user, environment, log)
    finally:
        process.kill()
        process.wait()


def _isolated(
    root: pathlib.Path, change: Sequence[str], command: Sequence[str], output: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """A process that is the first of its own process namespace, and dies with its parent."""
    namespaces = ["unshare", "--pid", "--fork", "--kill-child", f"--mount-proc={root / 'proc'}"]
    return subprocess.Popen(
        [*namespaces, *change, *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
    )


def _first(parent: int) -> int:
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children")
    give_up = time.monotonic() + 10
    while not (found := children.read_text().split()):
        assert time.monotonic() < give_up, "the container did not start"
        time.sleep(0.02)
    return int(found[0])

"""Build the image, and run it as its pod runs, on a control plane and a network of its own.

Needs Linux, root, buildah and, where the registry of the base image does not answer, debootstrap. Where
something is missing it says so; with ``--if-possible`` that is no failure.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Final

import image_recipe

from addon_operator.devcluster import locations, locks, reporters
from addon_operator.devcluster.binaries import binaries, components

_CHECKOUT: Final = pathlib.Path(__file__).resolve().parents[1]
_TESTS: Final = _CHECKOUT / "tests" / "image"
_IMAGE: Final = "localhost/addon-operator:image-test"
_DERIVED: Final = "localhost/my-addons:image-test"
_BASE: Final = "localhost/stand-in:image-test"
_PROGRAMS: Final = {"buildah": "buildah", "unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2"}
"""Programs and the packages that have them."""
_STAND_IN: Final = {"debootstrap": "debootstrap"}
"""Those for a base image without a registry."""
_PULL_SECONDS: Final = 180
_ROOMS: Final = ("process", "inspection", "documents", "hook", "shell", "values")
"""Of the unit tests: children and limits, the values worker, parsers, the libraries for hooks, schemas."""
_NETWORK: Final = 'ip link set lo up && ip addr add 10.99.0.1/32 dev lo && exec "$@"'


class CannotTestError(Exception):
    """Something is missing; the text is one sentence."""


@dataclasses.dataclass(frozen=True, slots=True)
class Builder:
    """buildah with storage of its own, and the directories beside it."""

    storage: pathlib.Path
    cache: pathlib.Path
    """Outlives the run: base image, virtual environment, pip's cache."""

    def run(self, *arguments: str | pathlib.Path, quiet: bool = True) -> str:
        """One command of buildah's, and its output."""
        done = subprocess.run(
            self.argv(*arguments),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if quiet else None,
            text=True,
        )
        if done.returncode != 0:
            raise SystemExit(f"buildah {arguments[0]} failed:\n{done.stdout}")
        return done.stdout.strip()

    def argv(self, *arguments: str | pathlib.Path) -> list[str]:
        """Return the whole command line."""
        return [
            "buildah",
            f"--root={self.storage / 'root'}",
            f"--runroot={self.storage / 'run'}",
            *map(str, arguments),
        ]


def missing(programs: dict[str, str]) -> list[str]:
    """Return the packages that have to be installed."""
    return sorted({package for program, package in programs.items() if shutil.which(program) is None})


def check_machine() -> None:
    """Raise :class:`CannotTestError` when nothing can be built or run here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise CannotTestError("that takes root on Linux")
    if packages := missing(_PROGRAMS):
        raise CannotTestError(
            f"{' and '.join(packages)} must be installed: apt-get install {' '.join(packages)}"
        )


@contextlib.contextmanager
def building(cache: pathlib.Path) -> Iterator[Builder]:
    """Give a builder whose storage goes at the end."""
    os.environ["BUILDAH_ISOLATION"] = "chroot"
    with tempfile.TemporaryDirectory(dir=cache, prefix="storage-") as storage:
        builder = Builder(pathlib.Path(storage), cache)
        try:
            yield builder
        finally:
            subprocess.run(builder.argv("umount", "--all"), check=False, capture_output=True)
            subprocess.run(builder.argv("rm", "--all"), check=False, capture_output=True)
            for mount in ("overlay", "root/overlay"):
                subprocess.run(["umount", str(builder.storage / mount)], check=False, capture_output=True)


def base_image(builder: Builder) -> str:
    """Return the base image of the recipe, or, where its registry does not answer, a stand-in."""
    wanted = image_recipe.arguments()["PYTHON_IMAGE"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        argv = builder.argv("pull", "--quiet", wanted)
        if subprocess.run(argv, check=False, capture_output=True, timeout=_PULL_SECONDS).returncode == 0:
            return wanted
    archive = stand_in(builder.cache)
    print(f"==> no registry gives {wanted}: Debian's own Python instead", flush=True)
    container = builder.run("from", "scratch")
    builder.run("add", "--quiet", container, archive, "/")
    (builder.storage / "pip.conf").write_text(pip_configuration(), "utf-8")
    builder.run("copy", "--quiet", container, builder.storage / "pip.conf", "/etc/pip.conf")
    builder.run("commit", "--quiet", "--rm", container, _BASE)
    return _BASE


def stand_in(cache: pathlib.Path) -> pathlib.Path:
    """Return the archive that ``image_base`` makes, by its content."""
    script = _CHECKOUT / "scripts" / "image_base"
    archive = cache / f"base-{_digest(script)}.tar"
    if not archive.exists():
        if packages := missing(_STAND_IN):
            raise CannotTestError(
                f"no registry answers, and for a base image without one {packages[0]} must be installed: "
                f"apt-get install {packages[0]}"
            )
        print("==> base image without a registry (once)", flush=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="base-") as made:
            argv = [str(script), str(pathlib.Path(made, "root")), str(archive)]
            done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{script.name} failed:\n{done.stderr[-4000:]}")
    return archive


def pip_configuration() -> str:
    """Where this machine's pip finds packages, as a file."""
    argv = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    wanted = ("index-url", "extra-index-url", "trusted-host", "cert", "default-timeout")
    lines = ["[global]"]
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in wanted and (name != "cert" or value.strip("'").startswith("/etc/ssl/certs/")):
            lines.append(f"{name} = {value.strip(chr(39))}")
    return "\n".join(dict.fromkeys(lines)) + "\n"


def tools(builder: Builder, base: str) -> pathlib.Path:
    """Return a context with the programs of the stage ``tools``; Helm and kubectl as in the control plane."""
    context = builder.storage / "tools"
    out = context / "out"
    out.mkdir(parents=True)
    wanted = [
        binaries.Wanted(components.HELM4),
        binaries.Wanted(components.kubernetes(), (components.KUBECTL,)),
    ]
    where = locations.locate(os.environ)
    with binaries.workshop(where, os.environ, reporters.PlainReporter(print)) as store:
        for name, path in store.ensure(wanted).items():
            shutil.copy(path, out / name)
    if base == _BASE:
        with tarfile.open(stand_in(builder.cache)) as archive:
            for name in ("jq", "tini"):
                member = archive.getmember(f"./usr/bin/{name}")
                member.name = name
                archive.extract(member, out, filter="data")
    else:
        for name, (url, checksum) in image_recipe.downloads(components.architecture()).items():
            with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - https, as the recipe says
                content: bytes = answer.read()
            if hashlib.sha256(content).hexdigest() != checksum:
                raise SystemExit(f"{url} has not the checksum of deploy/docker/checksums")
            (out / name).write_bytes(content)
            (out / name).chmod(0o755)
    return context


def build(builder: Builder, base: str) -> None:
    """Build the operator's image, and one that is derived from it as users do."""
    pip = builder.cache / "pip"
    pip.mkdir(exist_ok=True)
    builder.run(
        "build",
        "--format=oci",
        f"--volume={pip}:/root/.cache/pip",
        f"--build-context=tools={tools(builder, base)}",
        f"--build-arg=PYTHON_IMAGE={base}",
        "--file=deploy/docker/Dockerfile",
        f"--tag={_IMAGE}",
        _CHECKOUT,
    )
    context = builder.storage / "derived"
    shutil.copytree(_CHECKOUT / "modules", context / "modules")
    shutil.copytree(_CHECKOUT / "global-hooks", context / "global-hooks")
    shutil.copytree(_TESTS / "module", context / "modules", dirs_exist_ok=True)
    image_recipe.write_wheel(context / "dist")
    builder.run("build", "--format=oci", f"--file={_TESTS / 'Dockerfile'}", f"--tag={_DERIVED}", context)


def environment(builder: Builder, container: str, base: str) -> pathlib.Path:
    """Make a virtual environment outside of the image with its interpreter and what unit tests need."""
    key = _digest(
        _CHECKOUT / "requirements-dev.lock", text=base + _digest(_CHECKOUT / "scripts" / "image_base")
    )
    venv = builder.cache / f"venv-{key}"
    pip = "/venv/bin/pip --quiet --disable-pip-version-check"
    script = f"{pip} install --no-deps --no-build-isolation --editable ."
    if not (venv / ".installed").exists():
        shutil.rmtree(venv, ignore_errors=True)
        venv.mkdir()
        script = (
            "python3 -m venv --clear /venv"
            f" && {pip} install --require-hashes --requirement requirements-dev.lock && {script}"
        )
    subprocess.run(
        [*in_image(builder, container, venv), "sh", "-ec", script],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    (venv / ".installed").touch()
    return venv


def in_image(builder: Builder, container: str, venv: pathlib.Path) -> list[str]:
    """Return the start of a command line that runs something in the image's root, beside the checkout."""
    options = [
        f"--volume={venv}:/venv",
        f"--volume={builder.cache / 'pip'}:/root/.cache/pip",
        f"--volume={_CHECKOUT}:/src:ro",
        "--workingdir=/src",
        "--user=0:0",
        "--env=HOME=/root",
        # Bytecode of the checkout is written beside the environment, once for all processes of the tests.
        "--env=PYTHONDONTWRITEBYTECODE=",
        "--env=PYTHONPYCACHEPREFIX=/venv/bytecode",
    ]
    return builder.argv("run", *options, container, "--")


def test_pod(builder: Builder, container: str, base: str) -> int:
    """Run ``tests/image`` in a network of its own; pytest's exit code."""
    described = json.loads(builder.run("inspect", "--type=image", _DERIVED))
    plain = builder.run("mount", builder.run("from", base))
    facts = {
        "root": builder.run("mount", container),
        "base": plain,
        "config": described["OCIv1"]["config"],
        "format": described["Manifest"],
    }
    path = builder.storage / "image.json"
    path.write_text(json.dumps(facts), "utf-8")
    namespaces = ["unshare", "--net", "--mount", "--propagation=private", "sh", "-ec", _NETWORK, "sh"]
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/image"]
    done = subprocess.run(
        [*namespaces, *pytest],
        check=False,
        cwd=_CHECKOUT,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "IMAGE_TEST": str(path)},
    )
    return done.returncode


def test_units(builder: Builder, container: str, base: str) -> int:
    """Run the unit tests of some rooms with the image's interpreter and libraries; their exit code.

    What the others say does not depend on these.
    """
    venv = environment(builder, container, base)
    rooms = [f"tests/unit/{room}" for room in _ROOMS]
    argv = [*in_image(builder, container, venv), "/venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider"]
    argv += ["--quiet", "--numprocesses", "auto", "--dist", "worksteal", *rooms]
    return subprocess.run(argv, check=False, stdin=subprocess.DEVNULL).returncode


def test() -> int:
    """Everything; the exit code."""
    check_machine()
    cache = locations.locate(os.environ).cache / "image"
    cache.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"==> {what} ({time.monotonic() - began:.0f} s)", flush=True)

    with (
        locks.exclusive(cache / "lock", lambda _: say("another run is building")),
        building(cache) as builder,
    ):
        base = base_image(builder)
        say("build the image, and one of a user's")
        build(builder, base)
        container = builder.run("from", _DERIVED)
        say("the image as its pod")
        failed = test_pod(builder, container, base)
        say("unit tests of some rooms with the image's interpreter")
        failed = test_units(builder, builder.run("from", _DERIVED), base) or failed
        say("done")
    return failed


def _digest(path: pathlib.Path, text: str = "") -> str:
    return hashlib.sha256(path.read_bytes() + text.encode()).hexdigest()[:12]


def main(arguments: Sequence[str] | None = None) -> int:
    """Test, or say why not; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--if-possible", action="store_true", help="succeed where something is missing")
    options = parser.parse_args(arguments)
    try:
        return test()
    except CannotTestError as error:
        print(f"The image was not built and not run: {error}.", flush=True)
        return 0 if options.if_possible else 1


if __name__ == "__main__":
    sys.exit(main())

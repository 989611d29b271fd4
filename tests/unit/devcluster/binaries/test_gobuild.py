"""Building with Go; a small script plays Go."""

import contextlib
import pathlib

import pytest

from addon_operator.devcluster import errors, locks, reporters
from addon_operator.devcluster.binaries import components, gobuild
from tests.support import rows
from tests.unit.devcluster import fakes

GO = """\
if [ "$1" = version ]; then echo go version go1.26.8 linux/amd64; exit 0; fi
echo "$@" >> "$RECORD"
env | grep -E '^(GO|CGO)' | sort > "$RECORD.env"
pwd > "$RECORD.cwd"
if [ "$1" = list ]; then
    echo go: downloading example.com/helper v0.4.1
    echo; echo example.com/helper; echo; echo example.com/tool/cmd/tool
    exit 0
fi
mkdir -p "$GOCACHE" "$GOMODCACHE"
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
"""
SUCCEEDS = GO + (
    "echo example.com/helper; echo example.com/tool/cmd/tool; "
    'for package; do echo "program ${package##*/}" > "$out${package##*/}"; done'
)
FAILS = (
    GO + "echo example.com/helper; echo '# example.com/tool/cmd/tool'; echo main.go:3: no such thing; exit 1"
)
FULL = GO + "echo 'write /tmp/x: no space left on device'; exit 1"


class Workbench:
    """A cache directory and a Go that does what its script says."""

    def __init__(self, root: pathlib.Path) -> None:
        self.cache = root / "cache"
        self.cache.mkdir()
        self.bin = root / "bin"
        self.record = root / "record"
        self.target = root / "made"
        self.target.mkdir()
        self.reporter = fakes.Recorder()
        self.component = fakes.component("tool", "helper")
        self.pin = components.read_pins(fakes.write_pins(root / "pins"), fakes.MODULE)

    def builder(
        self, script: str, *, keep_caches: bool = False
    ) -> contextlib.AbstractContextManager[gobuild.GoBuilder]:
        fakes.write_program(self.bin / "go", script)
        environ = {"PATH": f"{self.bin}:/usr/bin:/bin", "RECORD": str(self.record), "GOFLAGS": "-p=1"}
        return gobuild.building(self.cache, environ, self.reporter, keep_caches=keep_caches)

    def build(self, script: str, *, keep_caches: bool = False) -> None:
        with self.builder(script, keep_caches=keep_caches) as builder:
            builder.build(self.component, self.pin, self.component.binaries, self.target)


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Workbench:
    return Workbench(tmp_path)


def test_all_binaries_are_built_from_their_pins_in_one_call(bench: Workbench) -> None:
    bench.build(SUCCEEDS)
    made = {path.name: path.read_text() for path in bench.target.iterdir()}
    assert made == {"tool": "program tool\n", "helper": "program helper\n"}
    assert bench.record.with_suffix(".cwd").read_text().strip() == str(bench.pin.folder)
    _, build = bench.record.read_text().splitlines()
    assert build == (
        "build -v -trimpath -buildvcs=false -gcflags=all=-dwarf=false "
        "-ldflags -s -w -X example.com/tool.version=v1.2.3 "
        f"-o {bench.target}/ example.com/tool/cmd/tool example.com/tool/cmd/helper"
    )


def test_packages_are_counted_against_those_that_are_to_be_compiled(bench: Workbench) -> None:
    bench.build(SUCCEEDS)
    assert bench.reporter.phases == [
        ("tool v1.2.3", "downloading sources", None),
        ("packages", "compiling", 2),
    ]
    assert bench.reporter.counted == [1, 2]
    assert bench.reporter.described == ["linking"]


def test_go_keeps_to_its_own_caches_and_the_settings_of_the_user(bench: Workbench) -> None:
    bench.build(SUCCEEDS)
    env = dict(line.split("=", 1) for line in bench.record.with_suffix(".env").read_text().splitlines())
    assert env["GOFLAGS"] == "-p=1 -modcacherw"
    assert env["CGO_ENABLED"] == "0"
    assert env["GOCACHE"] == str(bench.cache / "go/build")
    assert env["GOMODCACHE"] == str(bench.cache / "go/mod")
    assert env["GOTOOLCHAIN"] == "local"


def test_compilers_collect_garbage_as_the_user_says_or_only_when_they_are_large(
    tmp_path: pathlib.Path,
) -> None:
    assert gobuild.go_environment({}, tmp_path)["GOGC"] == "off"
    assert gobuild.go_environment({}, tmp_path)["GOMEMLIMIT"] == "1536MiB"
    assert gobuild.go_environment({"GOGC": "50"}, tmp_path)["GOGC"] == "50"


def test_the_target_is_always_this_machine(tmp_path: pathlib.Path) -> None:
    env = gobuild.go_environment(
        {"GOOS": "plan9", "GOARCH": "mips", "GOPROXY": "https://a.example"}, tmp_path
    )
    assert env.keys().isdisjoint({"GOOS", "GOARCH"})
    assert env["GOPROXY"] == "https://a.example"


def test_the_caches_of_go_are_removed_after_a_build(bench: Workbench) -> None:
    bench.build(SUCCEEDS)
    assert sorted(path.name for path in bench.cache.iterdir()) == ["go.lock", "logs"]


def test_the_caches_of_go_stay_after_a_failure(bench: Workbench) -> None:
    with pytest.raises(errors.BuildError):
        bench.build(FAILS)
    assert (bench.cache / "go/build").is_dir()


def test_the_caches_of_go_stay_when_asked_to(bench: Workbench) -> None:
    bench.build(SUCCEEDS, keep_caches=True)
    bench.build(SUCCEEDS)
    assert (bench.cache / "go/build").is_dir()


def test_what_an_interrupted_build_left_is_removed_when_nothing_is_to_be_built(bench: Workbench) -> None:
    (bench.cache / "go/build").mkdir(parents=True)
    with bench.builder(SUCCEEDS):
        pass
    assert not (bench.cache / "go").exists()


def test_the_caches_of_go_stay_while_another_process_builds(bench: Workbench) -> None:
    with locks.shared(bench.cache / "go.lock"):
        bench.build(SUCCEEDS)
        assert (bench.cache / "go/build").is_dir()


def test_a_failure_says_what_go_said_and_where_the_rest_is(bench: Workbench) -> None:
    with pytest.raises(errors.BuildError) as caught:
        bench.build(FAILS)
    log = bench.cache / "logs/tool.log"
    assert str(caught.value) == (
        f"tool v1.2.3 cannot be built: main.go:3: no such thing; the whole output is in {log}"
    )
    assert "# example.com/tool/cmd/tool" in log.read_text()


def test_a_full_disk_is_reported_with_the_space_that_is_needed(bench: Workbench) -> None:
    with pytest.raises(errors.BuildError, match="the disk is full; free about 8 GB"):
        bench.build(FULL)


@rows.each(
    ("line", "expected"),
    [
        ("k8s.io/api/core/v1", True),
        ("internal/goarch", True),
        ("fmt", True),
        ("# k8s.io/api/core/v1", False),
        ("go: downloading k8s.io/api v0.36.3", False),
        ("main.go:3:1: undefined: x", False),
        ("no space left on device", False),
        ("", False),
    ],
)
def test_names_of_packages_are_distinguished_from_messages(line: str, expected: bool) -> None:
    assert gobuild.is_package(line) is expected


def test_the_linker_stamps_the_version_of_kubernetes(tmp_path: pathlib.Path) -> None:
    go_mod = "module m\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n"
    component = components.kubernetes("1.36")
    flags = gobuild.linker_flags(
        component, components.read_pins(fakes.write_pins(tmp_path, go_mod), component.module)
    )
    assert flags.startswith("-s -w -X k8s.io/component-base/version.gitMajor=1 ")
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in flags


def test_the_reporter_of_tests_is_a_reporter() -> None:
    reporter: reporters.Reporter = fakes.Recorder()
    with reporter.phase("a", "b", "c") as phase:
        phase.advance(3)

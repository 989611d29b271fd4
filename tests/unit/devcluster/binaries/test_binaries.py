"""Where binaries come from, and in which order."""

import os
import pathlib
import threading
from collections.abc import Sequence

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.devcluster import errors, locations, locks
from addon_operator.devcluster.binaries import archives, assets, binaries, components, gobuild
from tests.support import rows
from tests.unit.devcluster import fakes


class Builder(gobuild.GoBuilder):
    """Writes a file instead of building one."""

    def __init__(self) -> None:
        self.built: list[str] = []
        self.before: threading.Event | None = None
        self.fails_at: str | None = None

    @override
    def build(
        self,
        component: components.Component,
        pin: components.Pin,
        wanted: Sequence[components.Binary],
        directory: pathlib.Path,
    ) -> None:
        for binary in wanted:
            (directory / binary.name).write_text("half")
            if self.before is not None:
                assert self.before.wait(60)
            if binary.name == self.fails_at:
                raise errors.BuildError("no")
            (directory / binary.name).write_text(f"built {binary.name} {pin.version}")
        self.built += [binary.name for binary in wanted]


class Fetcher(archives.ReleaseArchives):
    """Has the releases that it is told to have."""

    def __init__(self, *names: str, is_damaged: bool = False) -> None:
        self._names = names
        self._is_damaged = is_damaged

    @override
    def fetch(
        self,
        component: components.Component,
        pin: components.Pin,
        binary: components.Binary,
        target: pathlib.Path,
    ) -> bool:
        if self._is_damaged:
            raise errors.ChecksumError("the file is damaged")
        if binary.name in self._names:
            target.write_text(f"released {binary.name}")
        return binary.name in self._names


class Place:
    """A machine with pins and an empty cache."""

    def __init__(self, root: pathlib.Path, component: components.Component) -> None:
        self.where = locations.Locations(root / "pins", root / "cache", root / "state")
        self.component = component
        self.builder = Builder()
        self.reporter = fakes.Recorder()
        fakes.write_pins(root / "pins" / component.name)

    def store(
        self, fetcher: Fetcher | None = None, environ: dict[str, str] | None = None
    ) -> binaries.BinaryStore:
        envtest = assets.EnvtestAssets(environ or {}, self.reporter)
        return binaries.BinaryStore(self.where, self.reporter, envtest, fetcher or Fetcher(), self.builder)


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path, fakes.component("tool", "helper"))


def everything(place: Place) -> list[binaries.Wanted]:
    return [binaries.Wanted(place.component)]


def test_what_is_missing_is_built_into_the_cache(place: Place) -> None:
    store = place.store()
    found = store.ensure(everything(place))
    assert found["tool"] == store.directory(place.component) / "tool"
    assert found["helper"].read_text() == "built helper v1.2.3"
    assert place.reporter.said == ["tool v1.2.3 is missing"]


def test_what_is_in_the_cache_is_not_built_again(place: Place) -> None:
    first = place.store().ensure(everything(place))
    assert place.store().ensure(everything(place)) == first
    assert place.builder.built == ["tool", "helper"]


def test_only_the_wanted_binaries_are_built(place: Place) -> None:
    wanted = binaries.Wanted(place.component, ("helper",))
    assert set(place.store().ensure([wanted])) == {"helper"}
    assert place.builder.built == ["helper"]


def test_a_release_comes_before_a_build(place: Place) -> None:
    found = place.store(Fetcher("tool")).ensure(everything(place))
    assert found["tool"].read_text() == "released tool"
    assert place.builder.built == ["helper"]


def test_a_damaged_release_is_reported_and_built_instead(place: Place) -> None:
    place.store(Fetcher(is_damaged=True)).ensure([binaries.Wanted(place.component, ("tool",))])
    assert place.builder.built == ["tool"]
    assert place.reporter.said[-1] == "the file is damaged: building tool instead"


def test_envtest_comes_before_the_cache(tmp_path: pathlib.Path) -> None:
    place = Place(tmp_path, fakes.component("etcd"))
    own = fakes.write_program(tmp_path / "assets/etcd", "exit 0")
    place.store().ensure(everything(place))
    found = place.store(environ={assets.VARIABLE: str(tmp_path / "assets")}).ensure(everything(place))
    assert found == {"etcd": own}


def test_an_interrupted_build_leaves_nothing_half_made(place: Place) -> None:
    place.builder.fails_at = "helper"
    with pytest.raises(errors.BuildError):
        place.store().ensure(everything(place))
    directory = place.store().directory(place.component)
    assert [path.name for path in place.where.cache.iterdir()] == [f"{directory.name}.lock"]


def test_what_failed_to_build_is_built_by_the_next_call(place: Place) -> None:
    place.builder.fails_at = "helper"
    with pytest.raises(errors.BuildError):
        place.store().ensure(everything(place))
    place.builder.fails_at = None
    place.store().ensure(everything(place))
    assert place.builder.built == ["tool", "helper"]


def test_what_a_killed_build_left_is_removed(place: Place) -> None:
    directory = place.store().directory(place.component)
    left = directory.with_name(f".{directory.name}.killed")
    left.mkdir(parents=True)
    (left / "tool").write_text("half")
    place.store().ensure(everything(place))
    assert not left.exists()


def test_a_second_process_waits_and_uses_what_the_first_has_built(place: Place) -> None:
    place.builder.before = threading.Event()
    threads = [threading.Thread(target=place.store().ensure, args=[everything(place)]) for _ in range(2)]
    directory = place.store().directory(place.component)
    lock = directory.with_name(f"{directory.name}.lock")
    threads[0].start()
    while not lock.exists() or not lock.read_text():
        assert threads[0].is_alive()
    threads[1].start()
    while not any(text.startswith("Waiting") for text in place.reporter.said):
        assert any(thread.is_alive() for thread in threads)
    place.builder.before.set()
    for thread in threads:
        thread.join(60)
    assert place.builder.built == ["tool", "helper"]
    waiting = f"Waiting for process {os.getpid()}, which is getting tool already"
    assert waiting in place.reporter.said


def test_a_holder_that_cannot_be_named_is_another_process(place: Place) -> None:
    store = place.store()
    directory = store.directory(place.component)
    place.where.cache.mkdir()
    lock = directory.with_name(f"{directory.name}.lock")
    with locks.exclusive(lock, lambda _: None):
        lock.write_text("")
        thread = threading.Thread(target=store.ensure, args=[everything(place)])
        thread.start()
        while not place.reporter.said:
            assert thread.is_alive()
    thread.join(60)
    assert place.reporter.said[0] == "Waiting for another process, which is getting tool already"


def test_what_is_left_to_get_is_reported(place: Place) -> None:
    others = [fakes.component("a", name="first"), fakes.component("b", name="second")]
    for component in others:
        fakes.write_pins(place.where.pins / component.name)
    place.store().ensure([binaries.Wanted(component) for component in (*others, place.component)])
    assert place.reporter.said == [
        "first v1.2.3 is missing (1 of 3; then second, tool)",
        "second v1.2.3 is missing (2 of 3; then tool)",
        "tool v1.2.3 is missing (3 of 3)",
    ]


def test_the_cache_is_shared_by_checkouts_with_the_same_pins(place: Place, tmp_path: pathlib.Path) -> None:
    before = place.store().directory(place.component)
    other = fakes.write_pins(tmp_path / "other" / place.component.name)
    same = components.read_pins(other, fakes.MODULE)
    assert before.name == f"tool-{binaries.cache_key(place.component, same)}"


@pytest.mark.parametrize("change", ["pins", "processor", "recipe"])
def test_the_cache_key_changes_with_whatever_changes_the_binaries(
    place: Place, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = place.store().pin(place.component)
    before = binaries.cache_key(place.component, pin)
    component = place.component
    if change == "pins":
        pin = components.read_pins(fakes.write_pins(pin.folder, go_sum="other\n"), fakes.MODULE)
    elif change == "processor":
        monkeypatch.setattr(components, "architecture", lambda: "riscv64")
    else:
        component = structs.replace(component, stamps=lambda _: {})
    assert binaries.cache_key(component, pin) != before


def test_a_cache_that_cannot_be_made_is_reported_with_its_variable(place: Place) -> None:
    place.where.cache.write_text("a file")
    with pytest.raises(errors.DevClusterError, match=f"set {locations.CACHE_VARIABLE} to one that can"):
        place.store().ensure(everything(place))


def test_what_is_neither_a_component_nor_a_program_is_reported_with_those_there_are() -> None:
    with pytest.raises(
        errors.DevClusterError,
        match=r"no component 'docker'; there are control-plane, helm4, .*programs kube-apiserver, .*helm",
    ):
        binaries.wanted("docker")


def test_every_component_is_found_by_its_name() -> None:
    found = [binaries.wanted(component.name) for component in components.ALL]
    assert found == [binaries.Wanted(component) for component in components.ALL]


@rows.each("name", ["helm", "kubectl"])
def test_one_program_of_a_component_is_found_by_its_name(name: str) -> None:
    assert binaries.wanted(name) == binaries.Wanted(components.CONTROL_PLANE, (name,))

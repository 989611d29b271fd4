"""What is little is exchanged in memory, at once; all else in threads, as a disk may take long."""

import asyncio
import dataclasses
import json
import pathlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping

import pytest

from addon_operator.engine.hooks import hook_directory, hook_exchange, questions
from addon_operator.hook_contract import binding_contexts
from addon_operator.kernel import names
from addon_operator.values import store
from addon_operator.values.patches import patches

ANSWER = "VALIDATING_RESPONSE_PATH"
REVIEW = binding_contexts.review("guard.example", "Validating", b'{"request":{}}', {})
Files = hook_directory.HookDirectory


@dataclasses.dataclass(slots=True)
class Run:
    """Runs of a hook that is asked something, and which threads made its values and read its answer."""

    exchange: hook_exchange.Exchange
    threads: list[threading.Thread] = dataclasses.field(default_factory=list)
    path: pathlib.Path = pathlib.Path()

    def question(self, *, is_plain: bool = True) -> questions.Question[str]:
        return questions.Question((ANSWER, "ADMISSION_RESPONSE_PATH"), self._read, is_plain=is_plain)

    def given(self, *, is_plain: bool = True, is_short: bool = True) -> hook_exchange.Given:
        question = self.question(is_plain=is_plain)
        return hook_exchange.Given([REVIEW], self._values, question, is_short)

    async def ask(
        self,
        given: hook_exchange.Given,
        hook: Callable[[Mapping[str, pathlib.Path]], object] = lambda files: files[ANSWER].write_text("yes"),
    ) -> hook_exchange.Taken:
        async with self.exchange.directory("guard.sh", is_short=given.is_short) as files:
            await self.exchange.give(files, given)
            paths = {name: pathlib.Path(path) for name, path in files.environment().items()}
            self.path = paths[ANSWER].parent
            check_written(paths)
            hook(paths)
            return await self.exchange.take(files, given, "guard.sh")

    @property
    def in_loop(self) -> list[bool]:
        """Of the values and of the answer, whether they were handled where the loop runs."""
        return [thread is threading.main_thread() for thread in self.threads]

    def _values(self) -> dict[str, bytes]:
        self.threads.append(threading.current_thread())
        return {hook_exchange.CONFIG_VALUES: b"{}", hook_exchange.VALUES: b"{}"}

    def _read(self, text: str) -> str:
        self.threads.append(threading.current_thread())
        return text


def left_in(path: pathlib.Path) -> list[pathlib.Path]:
    return list(path.iterdir())


def check_written(paths: Mapping[str, pathlib.Path]) -> None:
    document = b"".join(binding_contexts.document([REVIEW]))
    assert paths[hook_exchange.BINDING_CONTEXT].read_bytes() == document
    assert paths[hook_exchange.VALUES].read_bytes() == b"{}"
    assert all(paths[name].read_text() == "" for name in (ANSWER, hook_exchange.METRICS))


@pytest.fixture
def memory() -> Iterator[pathlib.Path]:
    # Whatever file system it is: what is asked for is where who runs.
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)


@pytest.fixture
def run(tmp_path: pathlib.Path, memory: pathlib.Path) -> Run:
    return Run(hook_exchange.Exchange(tmp_path, memory))


async def test_a_short_question_and_its_answer_wait_for_no_thread(run: Run, memory: pathlib.Path) -> None:
    taken = await run.ask(run.given())
    assert (taken.answer, run.in_loop) == ("yes", [True, True])
    assert run.path.parent == memory
    assert left_in(memory) == []


def test_values_are_at_hand_once_they_were_made_until_they_change() -> None:
    web, other = names.ModuleName("web"), names.ModuleName("other")
    values = store.ValuesStore([store.ModuleValues(web), store.ModuleValues(other)])

    def make(text: str) -> None:
        patch = patches.parse_patch(json.dumps([{"op": "add", "path": "/web/a", "value": text}]), "patch")
        values.apply_values_patch(web, patch)
        assert not hook_exchange.are_at_hand(values, web)
        hook_exchange.values_now(values, web, None)()

    make("x" * 1000)
    assert hook_exchange.are_at_hand(values, web)
    assert hook_exchange.are_at_hand(values, None)
    assert not hook_exchange.are_at_hand(values, other), "nobody asked for them"
    make("x" * hook_exchange.SHORT_INPUT)
    assert not hook_exchange.are_at_hand(values, web), "they are large"


async def test_what_may_be_long_is_written_in_a_thread_to_the_other_place(
    run: Run, tmp_path: pathlib.Path
) -> None:
    taken = await run.ask(run.given(is_short=False))
    assert (taken.answer, run.in_loop) == ("yes", [False, False])
    assert run.path.parent == tmp_path
    assert left_in(tmp_path) == []


async def test_without_a_place_in_memory_threads_write_and_read(tmp_path: pathlib.Path) -> None:
    run = Run(hook_exchange.Exchange(tmp_path))
    taken = await run.ask(run.given())
    assert (taken.answer, run.in_loop) == ("yes", [False, False])


OVER = hook_exchange.SHORT_OUTPUT + 1
LARGE = hook_exchange.SHORT_OUTPUT + 3 * hook_exchange.SHORT_INPUT


@pytest.mark.parametrize(
    "hook",
    {
        "a long answer": lambda files: files[ANSWER].write_text("x" * OVER),
        "another long output": lambda files: files[hook_exchange.METRICS].write_text("\n" * OVER),
        "an input that it made large": lambda files: files[hook_exchange.VALUES].write_text("x" * LARGE),
        "a link to what may be large": lambda files: (
            files[ANSWER].unlink(),
            files[ANSWER].symlink_to(files[hook_exchange.VALUES]),
        ),
    }.items(),
    ids=lambda case: case[0],
)
async def test_what_a_hook_made_long_is_read_and_removed_in_a_thread(
    run: Run, memory: pathlib.Path, hook: tuple[str, Callable[[Mapping[str, pathlib.Path]], object]]
) -> None:
    await run.ask(run.given(), hook[1])
    assert run.in_loop == [True, False]
    assert left_in(memory) == []


async def test_an_answer_that_may_take_long_to_check_is_read_in_a_thread(run: Run) -> None:
    await run.ask(run.given(is_plain=False))
    assert run.in_loop == [True, False]


async def test_what_a_hook_left_beside_its_files_goes_with_them(run: Run, memory: pathlib.Path) -> None:
    def leave(files: Mapping[str, pathlib.Path]) -> None:
        files[ANSWER].write_text("yes")
        (files[ANSWER].parent / "more" / "and more").mkdir(parents=True)

    assert (await run.ask(run.given(), leave)).answer == "yes"
    assert left_in(memory) == []


async def test_where_memory_has_no_room_the_other_place_is_taken(tmp_path: pathlib.Path) -> None:
    run = Run(hook_exchange.Exchange(tmp_path, pathlib.Path("/dev/null")))
    taken = await run.ask(run.given())
    assert (taken.answer, run.path.parent) == ("yes", tmp_path)
    assert left_in(tmp_path) == []


async def test_a_wrong_answer_and_a_cancelled_run_leave_nothing(run: Run, memory: pathlib.Path) -> None:
    with pytest.raises(hook_directory.HookFileError, match="UTF-8"):
        await run.ask(run.given(), lambda files: files[ANSWER].write_bytes(b"\xff"))
    assert left_in(memory) == []

    async def hang() -> None:
        async with run.exchange.directory("guard.sh", is_short=True) as files:
            await run.exchange.give(files, run.given())
            await asyncio.Event().wait()

    hangs = asyncio.create_task(hang())
    await asyncio.sleep(0)
    assert len(left_in(memory)) == 1
    hangs.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hangs
    assert left_in(memory) == []

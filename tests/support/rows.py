"""Tables of cases in one test.

Where a case takes a microsecond, a test for each costs a hundred times as much in being collected, set up and
reported. A table that stands in one test is read whole: all rows that fail are shown, each with its traceback
and its name.
"""

import functools
import inspect
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import pytest

_PARAM: Final = type(pytest.param())
Test = Callable[..., Any]
Ids = Iterable[Any] | Callable[[Any], object] | None


def each(names: str | Sequence[str], table: Iterable[Any], ids: Ids = None) -> Callable[[Test], Test]:
    """Call a test with each row; what is given is that of ``pytest.mark.parametrize``.

    All rows have the same fixtures: a row leaves nothing behind that is in the way of the next. Only of
    ``tmp_path`` each row has one of its own.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    rows = list(_rows(wanted, table, ids))

    def decorate(test: Test) -> Test:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def run_async(**fixtures: object) -> None:
                failed = []
                for number, (name, row) in enumerate(rows):
                    try:
                        await test(**_for_row(number, fixtures), **row)
                    except Exception as error:  # noqa: BLE001 - all rows are tried
                        failed.append(_named(error, name, row))
                _tell(failed, rows)

            return _without(wanted, test, run_async)

        @functools.wraps(test)
        def run(**fixtures: object) -> None:
            failed = []
            for number, (name, row) in enumerate(rows):
                try:
                    test(**_for_row(number, fixtures), **row)
                except Exception as error:  # noqa: BLE001 - all rows are tried
                    failed.append(_named(error, name, row))
            _tell(failed, rows)

        return _without(wanted, test, run)

    return decorate


def _rows(names: Sequence[str], table: Iterable[Any], ids: Ids) -> Iterator[tuple[str, dict[str, Any]]]:
    given_ids = None if ids is None or callable(ids) else list(ids)
    for number, row in enumerate(table):
        given: Sequence[Any] = [row] if len(names) == 1 else row
        name: Any = None
        if isinstance(row, _PARAM):
            if row.marks:
                raise TypeError(f"row {number} has marks, which only a test of its own can have")
            given, name = row.values, row.id
        if name is None:
            name = ids(row) if callable(ids) else given_ids[number] if given_ids else number
        yield str(name), dict(zip(names, given, strict=True))


def _for_row(number: int, fixtures: dict[str, object]) -> dict[str, object]:
    directory = fixtures.get("tmp_path")
    if not isinstance(directory, pathlib.Path):
        return fixtures
    own = directory / str(number)
    own.mkdir()
    return {**fixtures, "tmp_path": own}


def _without(names: Collection[str], test: Test, run: Test) -> Test:
    """Let pytest see the fixtures of a test, and nothing of its rows."""
    signature = inspect.signature(test)
    kept = [each for each in signature.parameters.values() if each.name not in names]
    run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return run


def _named(error: Exception, name: str, row: dict[str, Any]) -> Exception:
    error.add_note(f"row {name}: {repr(row)[:300]}")
    return error


def _tell(failed: Sequence[Exception], rows: Sequence[object]) -> None:
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(rows)} rows", failed)

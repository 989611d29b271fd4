"""Work on the loop leaves turns for others."""

import asyncio

import pytest

from addon_operator.aio import turns


async def test_others_have_their_turn_while_items_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PIECE_SECONDS", 0.0)
    had = 0

    async def other() -> None:
        nonlocal had
        while True:
            had += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    assert await turns.mapped(str, range(100)) == list(map(str, range(100)))
    task.cancel()
    assert had >= 99

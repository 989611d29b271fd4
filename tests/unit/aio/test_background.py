"""Work in the background begins again after a defect, which is told."""

from addon_operator.aio import background


async def test_work_that_fails_is_told_and_begins_again_after_a_while() -> None:
    begun: list[int] = []
    told: list[tuple[str, float]] = []
    slept: list[float] = []

    async def work() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            raise TypeError(f"defect {len(begun)}")

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await background.kept(work, lambda error, delay: told.append((str(error), delay)), sleep)
    assert told == [("defect 1", 10.0), ("defect 2", 10.0)]
    assert slept == [10.0, 10.0]
    assert len(begun) == 3

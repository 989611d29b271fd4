"""Applies jqFilters: those that only pick fields here, all others in worker processes."""

from collections.abc import Sequence
from typing import Final

from addon_operator.hook_contract import jq_programs, plain_filters
from addon_operator.process.jq import jq_workers

_KEPT_PROGRAMS: Final = 1024
_PLAIN_CHARS: Final = 2000
"""A longer program is left to the workers: to read it takes long."""


class JqFilters:
    """Answers as the workers do, and asks them only when fields cannot just be picked."""

    def __init__(self, workers: jq_workers.JqWorkers) -> None:
        self._workers = workers
        self._plain: dict[str, plain_filters.PlainFilter | None] = {}

    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        """Return the program's results on each document, in order: a JSON array, or why there are none.

        ``documents`` are JSON. ``timeout`` is in seconds and for one document.
        """
        plain = self._plain_filter(program)
        if plain is None:
            return await self._workers.run(program, documents, timeout)
        # In the event loop: seven microseconds for a pod, and a list is read in batches of a hundred.
        picked = [plain.result(document) for document in documents]
        left = [document for document, result in zip(documents, picked, strict=True) if result is None]
        answers = iter(await self._workers.run(program, left, timeout) if left else ())
        return [next(answers) if result is None else b"[%b]" % result for result in picked]

    def _plain_filter(self, program: str) -> plain_filters.PlainFilter | None:
        if program not in self._plain:
            if len(self._plain) >= _KEPT_PROGRAMS:
                del self._plain[next(iter(self._plain))]
            is_short = len(program) <= _PLAIN_CHARS
            self._plain[program] = plain_filters.PlainFilter.read(program) if is_short else None
        return self._plain[program]

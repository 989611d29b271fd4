"""A load generator in a process of its own: many connections that each send one review after another.

It speaks just enough HTTP/1.1 to take less time than what it measures. It reads a :class:`Plan` as JSON from
standard input and writes an :class:`Outcome` as JSON to standard output.
"""

import asyncio
import dataclasses
import json
import re
import ssl
import sys
import time
from collections.abc import Iterator
from typing import Final

_STATUS: Final = re.compile(rb"HTTP/1\.1 ([0-9]{3})")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What to send."""

    port: int
    authority: str
    """PEM of the server's certificate authority."""
    paths: list[str]
    """Asked in turns, a round each."""
    body: str
    concurrency: int
    requests: int
    """Of each path in each round."""
    rounds: int


@dataclasses.dataclass(slots=True)
class Outcome:
    """What came back."""

    seconds: dict[str, list[float]]
    """Time of each round trip, by path."""
    failures: int = 0
    """Answers that were not 200 with ``"allowed":true``, and connections that broke."""


async def run(plan: Plan) -> Outcome:
    """Open all connections, then send the rounds."""
    context = ssl.create_default_context(cadata=plan.authority)
    connections = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", plan.port, ssl=context) for _ in range(plan.concurrency))
    )
    outcome = Outcome({path: [] for path in plan.paths})
    for _ in range(plan.rounds):
        for path in plan.paths:
            remaining = iter(range(plan.requests))
            request = _request(path, plan.body.encode())
            await asyncio.gather(
                *(_send(reader, writer, request, remaining, outcome.seconds[path], outcome)
                  for reader, writer in connections)
            )  # fmt: skip
    for _, writer in connections:
        writer.close()
    return outcome


def _request(path: str, body: bytes) -> bytes:
    head = (
        f"POST {path}?timeout=5s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _send(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: bytes,
    remaining: Iterator[int],
    seconds: list[float],
    outcome: Outcome,
) -> None:
    for _ in remaining:
        began = time.perf_counter()
        try:
            writer.write(request)
            good = await _answer(reader)
        except (OSError, asyncio.IncompleteReadError):
            outcome.failures += 1
            return
        seconds.append(time.perf_counter() - began)
        outcome.failures += not good


async def _answer(reader: asyncio.StreamReader) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    status, length = _STATUS.match(head), _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return status is not None and status[1] == b"200" and b'"allowed":true' in body


if __name__ == "__main__":
    plan = Plan(**json.load(sys.stdin))
    json.dump(dataclasses.asdict(asyncio.run(run(plan))), sys.stdout)

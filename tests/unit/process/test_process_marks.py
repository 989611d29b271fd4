"""Marks by which a process finds out that another one has ended."""

import subprocess
import sys

from addon_operator.process import process_marks

PRINTS = "from addon_operator.process import process_marks; print(process_marks.own(), flush=True)"


def test_a_process_has_ended_when_it_is_gone_or_waits_to_be_reaped() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{PRINTS}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        mark = other.stdout.readline().strip()
        assert process_marks.has_ended(mark) is False
        other.communicate("\n")
    assert process_marks.has_ended(mark)
    assert process_marks.own() != mark


def test_nothing_is_said_of_processes_that_this_one_would_not_see() -> None:
    own = process_marks.own()
    place, pid, start = own.split("-")
    assert process_marks.has_ended(own) is False
    assert process_marks.has_ended(f"{place}-{pid}-{start}1"), "another one had its number before"
    assert process_marks.is_seen(own)
    for other in (f"{place}0-{pid}-{start}1", f"{place}-x-1", place, ""):
        assert (process_marks.is_seen(other), process_marks.has_ended(other)) == (False, False)

"""The files through which one run of a hook exchanges what it is told and what it gives back."""

import pathlib

import pytest

from addon_operator.engine.hooks import hook_directory

VARIABLE = "BINDING_CONTEXT_PATH"
_MIB = 1 << 20


def test_contexts_for_an_answer_have_a_bound_that_says_what_to_do(tmp_path: pathlib.Path) -> None:
    with hook_directory.HookDirectory.below(tmp_path, "guard.sh", keep=False) as files:
        with pytest.raises(hook_directory.HookFileError) as raised:
            files.write_bounded(VARIABLE, (b" " * _MIB for _ in range(1 << 20)))
        (written,) = files.path.iterdir()
        assert written.stat().st_size <= hook_directory.MAX_CONTEXT_BYTES
    assert str(raised.value) == (
        "its binding context has more than 64 MiB, and the API server waits for it; let snapshots select "
        "fewer objects, or keep less of each: a jqFilter, and keepFullObjectsInMemory: false"
    )


def test_contexts_up_to_the_bound_are_written(tmp_path: pathlib.Path) -> None:
    with hook_directory.HookDirectory.below(tmp_path, "guard.sh", keep=False) as files:
        files.write_bounded(VARIABLE, (b" " * _MIB for _ in range(64)))
        path = pathlib.Path(files.environment()[VARIABLE])
        assert path.stat().st_size == hook_directory.MAX_CONTEXT_BYTES

"""Settings of the unit tests."""

import gc
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Final

import pytest

from addon_operator.devcluster import locations
from addon_operator.documents import json_schemas
from addon_operator.kernel import optional_imports

# A third of a second for each process, as for the operator itself.
with optional_imports.quick_imports():
    pass


_MEMORY: Final = pathlib.Path("/dev/shm")  # pytest makes a directory of its own in it
_ROOM: Final = 1 << 28
"""Bytes; the tests write some megabytes."""

# Files in memory take a third of the kernel's time, where programs can be run from there.
if (
    os.access(_MEMORY, os.W_OK)
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(_MEMORY).free > _ROOM
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


@pytest.fixture(autouse=True, scope="session")
def _both_validators_agree() -> Iterator[None]:
    """Hold jsonschema-rs to jsonschema in each case of each test: what one allows the other allows, too."""
    surely_allows = json_schemas.Validator.surely_allows
    agreed: set[tuple[json_schemas.Validator, str]] = set()

    def checked(self: json_schemas.Validator, document: object) -> bool:
        allowed = surely_allows(self, document)
        # Half of what tests check was checked before.
        if allowed and (case := (self, repr(document))) not in agreed:
            assert [error.message for error in self.reasons(document)] == []
            agreed.add(case)
        return allowed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_schemas.Validator, "surely_allows", checked)
        yield


@pytest.fixture(autouse=True, scope="session")
def _nothing_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no test find the kinds of Kubernetes, programs or clusters that somebody keeps on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in (locations.CACHE_VARIABLE, locations.STATE_VARIABLE):
            patch.setenv(variable, str(tmp_path_factory.mktemp("locations")))
        yield


@pytest.fixture(scope="module")
def nothing_to_collect() -> None:
    """For tests that run pytest: each run looks for garbage, and would look at what all tests before left."""
    gc.collect()
    gc.freeze()

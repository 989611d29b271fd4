"""Files of cases as pytest collects them."""

from collections.abc import Iterator
from typing import Any

import pytest

from addon_operator.kernel import errors
from addon_operator.testing import session
from addon_operator.testing.cases import case_file, case_run
from addon_operator.testing.modules import places


class CaseFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterator["CaseItem"]:
        """Return its cases."""
        try:
            cases = case_file.read(self.path, of_module=places.module_around(self.path) is not None)
        except errors.ConfigurationError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            yield CaseItem.from_parent(self, name=case.name, case=case)


class CaseItem(pytest.Item):
    """A case."""

    def __init__(self, *, case: case_file.Case, **more: Any) -> None:  # noqa: ANN401 - pytest's
        super().__init__(**more)
        self._case = case

    def runtest(self) -> None:
        """Run it."""
        modules = session.modules_around(self.config, self.path)
        tested = session.tested(self.path, modules)
        case_run.run(self._case, modules, tested, session.snapshot_of(self.config, self.path, self.name))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ANN401 - pytest's
        """Return what a person reads of a failure: where the case stands, and a sentence."""
        if isinstance(excinfo.value, errors.AddonOperatorError):
            return f"{self._case.place}: {self.name}\n{excinfo.value}"
        excinfo.traceback = excinfo.traceback.cut(path=case_run.__file__)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return where it stands."""
        return self.path, None, self.name

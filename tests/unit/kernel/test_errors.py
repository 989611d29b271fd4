"""What of an error is told where no values may be shown."""

import os

from typing_extensions import override

from addon_operator.kernel import errors
from tests.support import rows


class _Quoting(errors.AddonOperatorError):
    @property
    @override
    def without_values(self) -> str:
        return "the value is odd"


_NO_TEXT = os.fsdecode(b"caf\xe9")


@rows.each(
    "error",
    [
        errors.AddonOperatorError(_NO_TEXT),
        errors.ConfigurationError(_NO_TEXT),
        errors.MistakesError(_NO_TEXT, _NO_TEXT),
        errors.ModuleError("web", _NO_TEXT),
        errors.told(OSError(5, "gone", _NO_TEXT), "reading"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_error_with_a_name_that_is_no_text_can_be_written_anywhere(
    error: errors.AddonOperatorError,
) -> None:
    mistakes = error.mistakes if isinstance(error, errors.ConfigurationError) else ()
    message = error.message if isinstance(error, errors.ModuleError) else ""
    for text in (str(error), error.without_values, error.line, message, *mistakes):
        assert text.encode().decode() == text
    assert "caf\\udce9" in str(error)


def test_an_error_around_another_tells_it_without_values_too() -> None:
    around = errors.ModuleError("web", "x.yaml: the value s3cret is odd")
    around.__cause__ = _Quoting("the value s3cret is odd")
    assert str(around) == "module web: x.yaml: the value s3cret is odd"
    assert around.without_values == "module web: x.yaml: the value is odd"

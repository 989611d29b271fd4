"""What of an error is told where no values may be shown."""

from typing_extensions import override

from addon_operator.kernel import errors


class _Quoting(errors.AddonOperatorError):
    @property
    @override
    def without_values(self) -> str:
        return "the value is odd"


def test_an_error_around_another_tells_it_without_values_too() -> None:
    around = errors.ModuleError("web", "x.yaml: the value s3cret is odd")
    around.__cause__ = _Quoting("the value s3cret is odd")
    assert str(around) == "module web: x.yaml: the value s3cret is odd"
    assert around.without_values == "module web: x.yaml: the value is odd"

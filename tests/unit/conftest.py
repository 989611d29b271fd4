"""Settings of the unit tests."""

from collections.abc import Iterator

import pytest

from addon_operator.documents import json_schemas
from addon_operator.kernel import optional_imports

# A third of a second for each process, as for the operator itself.
with optional_imports.quick_imports():
    pass


@pytest.fixture(autouse=True, scope="session")
def _both_validators_agree() -> Iterator[None]:
    """Hold jsonschema-rs to jsonschema in each case of each test: what one allows the other allows, too."""
    surely_allows = json_schemas.Validator.surely_allows

    def checked(self: json_schemas.Validator, document: object) -> bool:
        allowed = surely_allows(self, document)
        assert not allowed or [error.message for error in self.reasons(document)] == []
        return allowed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_schemas.Validator, "surely_allows", checked)
        yield

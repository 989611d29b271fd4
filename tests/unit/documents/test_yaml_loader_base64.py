"""Values of Secrets as people and the API write them."""

import pytest

from addon_operator.documents import yaml_loader
from tests.support import rows


@rows.each("text", ["aHVudGVyMg==", "aHVu\ndGVy\nMg==\n"], ids=["in one line", "in lines"])
def test_a_value_is_decoded_however_it_is_broken_into_lines(text: str) -> None:
    assert yaml_loader.base64_bytes(text) == b"hunter2"


@rows.each("text", ["hunter2!", "abc"], ids=["other letters", "cut"])
def test_what_is_not_base64_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        yaml_loader.base64_bytes(text)

"""A key that stands twice in what a hook writes is never taken for one of its two values in silence."""

import base64
import functools
from collections.abc import Callable

import pytest

from addon_operator.documents import json_documents
from addon_operator.hook_contract import conversions
from addon_operator.hook_contract.configuration import batch_config, hook_config, webhook_bindings
from addon_operator.hook_contract.outputs import (
    metric_operations,
    object_operations,
    review_answers,
)
from addon_operator.kernel import errors
from addon_operator.values.patches import patches
from tests.support import rows

MUTATING = webhook_bindings.ReviewType.MUTATING
MODULE = hook_config.HookKind.MODULE
TWICE = '"a\\u0007": {"b": 1}, "a\\u0007": {"b": 1, "c": "1"}'
OPERATION = f'[{{"op": "add", "path": "/x", "value": {{{TWICE}}}}}]'
OBJECT = f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "x"}}, {TWICE}}}'
READERS: dict[str, tuple[Callable[[str], object], str]] = {
    "an answer": (
        functools.partial(review_answers.parse, asked=MUTATING),
        f'{{"allowed": true, {TWICE}}}',
    ),
    "answers in lines": (
        functools.partial(review_answers.parse, asked=MUTATING),
        f'{{"allowed": true}}\n{{"allowed": true, {TWICE}}}',
    ),
    "a patch in an answer": (
        functools.partial(review_answers.parse, asked=MUTATING),
        f'{{"allowed": true, "patch": {OPERATION}}}',
    ),
    "a patch in base64": (
        functools.partial(review_answers.parse, asked=MUTATING),
        f'{{"allowed": true, "patch": "{base64.b64encode(OPERATION.encode()).decode()}"}}',
    ),
    "converted objects": (conversions.parse_answer, f'{{"convertedObjects": [{{{TWICE}}}]}}'),
    "operations on objects": (
        functools.partial(object_operations.parse, source="s"),
        f'{{"operation": "Create", "object": {OBJECT}}}',
    ),
    "metrics": (functools.partial(metric_operations.parse, source="s"), f'{{"name": "x", {TWICE}}}'),
    "a configuration": (
        functools.partial(hook_config.parse, kind=MODULE, source="s"),
        f'{{"configVersion": "v1", {TWICE}}}',
    ),
    "a program's configuration": (
        functools.partial(batch_config.parse, kind=MODULE, source="s"),
        f'{{"version": "v1", "hooks": [], {TWICE}}}',
    ),
}


@rows.each(("read", "text"), READERS.values(), ids=READERS)
def test_it_is_an_error_that_names_the_key(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(errors.AddonOperatorError, match=r"'a\\x07' occurs twice"):
        read(text)


def test_in_a_patch_of_values_the_last_counts_as_in_the_go_operator_and_that_is_pointed_out() -> None:
    patch = patches.parse_patch(f"{OPERATION}\n{OPERATION}", "s")
    assert patch.operations[0]["value"] == {"a\u0007": {"b": 1, "c": "1"}}
    assert "the key 'a\\x07' occurs twice in one mapping" in patch.ambiguity
    assert not patches.parse_patch('{"op": "remove", "path": "/x"}', "s").ambiguity


@rows.each(
    "text",
    ['{"a": 1, "a": 1}', '{"a": "x", "a": "x", "b": null, "b": null}', '[{"a": 1}, {"a": 2}]', "1.5"],
)
def test_a_key_with_one_value_twice_is_no_question(text: str) -> None:
    json_documents.check_keys(text)


@rows.each("text", ['{"a": 1, "a": "1"}', '{"a": true, "a": 1}', '{"a": 1, "a": 2, "a": 1}'])
def test_values_of_two_types_are_two_values(text: str) -> None:
    with pytest.raises(json_documents.AmbiguousError, match="'a' occurs twice"):
        json_documents.check_keys(text)


@rows.each("levels", [250, 300, 900])
@rows.each(
    ("read", "around"),
    [
        (functools.partial(review_answers.parse, asked=MUTATING), '{"allowed": true, "patch": [%s]}'),
        (conversions.parse_answer, '{"convertedObjects": [%s]}'),
    ],
    ids=["answer", "conversion"],
)
def test_what_could_not_be_written_for_the_api_server_is_an_error_of_the_hook(
    read: Callable[[str], object], around: str, levels: int
) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    operation = f'{{"op": "add", "path": "/x", "value": {deep}}}'
    with pytest.raises(errors.AddonOperatorError, match="nests too deep"):
        read(around % operation)


def test_what_nests_deeper_than_the_check_can_follow_is_not_taken_as_checked() -> None:
    deep = '{"a":' * 1000 + '{"b": 1, "b": 2}' + "}" * 1000
    json_documents.decode(deep)
    # How deep it can follow is the interpreter's.
    with pytest.raises(json_documents.AmbiguousError):
        json_documents.check_keys(deep)

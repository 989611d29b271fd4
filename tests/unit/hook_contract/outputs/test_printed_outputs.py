"""What hooks print that belongs into their files."""

import json

from addon_operator.hook_contract.outputs import printed_outputs
from tests.support import rows
from tests.unit import costs

PATCH = '[{"op": "add", "path": "/web/replicas", "value": 3}]'
OBJECT = '{"operation": "Create", "object": {}}'
METRIC = '{"name": "a_total", "add": 1, "labels": {}}'


@rows.each(
    ("printed", "variable"),
    [
        (PATCH, "VALUES_JSON_PATCH_PATH"),
        (PATCH[1:-1], "VALUES_JSON_PATCH_PATH"),
        (f"Looking around\n  {PATCH}\ndone\n", "VALUES_JSON_PATCH_PATH"),
        (f"{{oops\n[oops\n{json.dumps(json.loads(PATCH), indent=2)}", "VALUES_JSON_PATCH_PATH"),
        (f'{{"level": "info"}}\n{PATCH}', "VALUES_JSON_PATCH_PATH"),
        (OBJECT, "KUBERNETES_PATCH_PATH"),
        ("operation: Delete\nkind: Pod\nname: a\n", "KUBERNETES_PATCH_PATH"),
        (METRIC, "METRICS_PATH"),
    ],
    ids=["patch", "operation", "between lines", "over lines", "after a log line", "object", "YAML", "metric"],
)
def test_an_output_that_is_printed_is_recognised(printed: str, variable: str) -> None:
    found = printed_outputs.hint(printed, {})
    assert f"write it to the file ${variable}" in found
    assert printed_outputs.hint(printed, {variable: PATCH}) == ""


@rows.each(
    "printed",
    [
        "",
        "replicas: 3\n",
        '{"level": "info", "msg": "set", "op": "add"}',
        '{"name": "web", "action": "restart"}',
        '{"operation": "Login", "path": "/"}',
        "operation: backup\n",
        f"wrote {PATCH}",
        '[{"op": "sum", "path": "/"}, 5, null]',
    ],
)
def test_a_log_is_none(printed: str) -> None:
    assert printed_outputs.hint(printed, {}) == ""


@rows.each("unit", ["[", "{\n", "[\n[", '{"a":\n', "[1,\n", "9", "[9", "\n", "operation:\n", " "])
def test_what_is_printed_costs_no_more_than_its_size_allows(unit: str) -> None:
    def printed(size: int) -> str:
        return (unit * size)[:size]

    assert printed_outputs.hint(printed(1000), {}) == ""
    assert costs.is_linear(
        printed, lambda text: printed_outputs.hint(text, {}), printed_outputs.READ_BYTES // 4
    )


@rows.each(
    ("printed", "variable"),
    [
        ('{"allowed": false, "message": "no"}', "VALIDATING_RESPONSE_PATH"),
        ('[{"allowed": true}]', "VALIDATING_RESPONSE_PATH"),
        ('{"convertedObjects": []}', "CONVERSION_RESPONSE_PATH"),
        ('{"failedMessage": "no"}', "CONVERSION_RESPONSE_PATH"),
    ],
)
def test_an_answer_that_is_printed_is_recognised_if_the_hook_was_asked(printed: str, variable: str) -> None:
    assert printed_outputs.hint(printed, {variable: ""}) == (
        "printed an answer to its standard output, which only goes to the log, and wrote none: write it to "
        f'the file ${variable}, such as with > "${variable}"'
    )
    assert printed_outputs.hint(printed, {variable: printed}) == ""
    assert printed_outputs.hint(printed, {}) == "", "it was not asked"

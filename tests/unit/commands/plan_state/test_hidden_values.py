"""What is wrong with stand-ins for hidden values, and with what holds them."""

from addon_operator.commands.plan_state import hidden_values
from addon_operator.documents import json_pointers
from addon_operator.values.schema import schema_messages, schema_violations
from tests.support import rows

PLACES = hidden_values.HiddenPlaces(["/web/db/password"])
MISSING = f"{schema_messages.MISSING_KEY}'a'"


@rows.each(
    ("keys", "rule", "is_left"),
    [
        (("web", "db", "password"), "must match", False),
        (("web", "db", "password", 0, "name"), "must match", False),
        (("web", "db"), "must have at most 2 keys", False),
        (("web", "db"), MISSING, True),
        (("web", "db", "host"), "must match", True),
        (("web", "replicas"), "must be a number", True),
        (("db", "password"), "must match", False),
        (("db",), "must have at most 2 keys", False),
        (("other", "db", "password"), "must match", True),
    ],
    ids=["itself", "below it", "what holds it", "a key missing there", "beside it", "elsewhere",
         "of a chart without a section", "what holds it there", "another module"],
)  # fmt: skip
def test_what_is_wrong_is_left_unless_it_is_about_a_hidden_value(
    keys: json_pointers.Path, rule: str, is_left: bool
) -> None:
    violation = schema_violations.Violation("path", rule, None, "values.yaml", keys)
    assert PLACES.leave(violation) is is_left

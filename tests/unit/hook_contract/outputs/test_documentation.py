"""The reference of hooks says what the code does."""

import json
import pathlib
import re

from addon_operator.engine.hooks import hook_exchange, hook_processes
from addon_operator.hook_contract import binding_contexts, crontab
from addon_operator.hook_contract.configuration import binding_types, bindings, config_schemas, hook_config
from addon_operator.hook_contract.outputs import metric_operations, object_operations, object_schemas
from tests.support import rows

PAGE = (pathlib.Path(__file__).parents[4] / "docs" / "reference" / "hooks.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@rows.each("example", EXAMPLES, ids=lambda text: text.splitlines()[1])
def test_every_example_of_a_configuration_is_valid(example: str) -> None:
    assert hook_config.parse(example, hook_config.HookKind.MODULE, "the example").warnings == ()


@rows.each("kind", list(hook_config.HookKind), ids=lambda kind: kind.value)
def test_every_key_of_a_configuration_is_described(kind: hook_config.HookKind) -> None:
    properties = binding_types.CURRENT[kind]["properties"]
    keys = {
        *properties,
        *properties["settings"]["properties"],
        *properties["schedule"]["items"]["properties"],
        *properties["kubernetes"]["items"]["properties"],
    }
    assert {key for key in keys if key not in PAGE} == set()


def test_the_configuration_that_the_example_hook_prints_is_valid() -> None:
    match = re.search(r"echo '(\{\"configVersion.*?\})'", PAGE)
    assert match is not None
    assert (
        hook_config.parse(match[1], hook_config.HookKind.MODULE, "the example").order(
            hook_config.LifecycleBinding.BEFORE_HELM
        )
        == 10
    )
    assert json.loads(match[1])["configVersion"] == "v1"


JSON_EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_of_changes_of_objects_are_valid() -> None:
    assert len(object_operations.parse(JSON_EXAMPLES[0], "the example")) == 5


def test_the_examples_of_metrics_are_valid() -> None:
    assert len(metric_operations.parse(JSON_EXAMPLES[1], "the example")) == 5


def test_every_operation_and_its_fields_are_described() -> None:
    fields = {key for schema in object_schemas.BY_OPERATION.values() for key in schema["properties"]}
    assert {name for name in {*object_schemas.BY_OPERATION, *fields} if f"`{name}`" not in PAGE} == {
        "operation"
    }


def test_every_action_on_metrics_is_described() -> None:
    assert {action for action in metric_operations.MetricAction if f"`{action}`" not in PAGE} == set()


def first_column(heading: str) -> list[list[str]]:
    """The names in the first cell of each row of the table below a heading."""
    section = PAGE.split(f"\n### {heading}\n")[1].split("\n### ")[0].split("\n## ")[0]
    table = re.search(r"^\|.*\n\|-.*\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert table is not None
    return [re.findall(r"`([\w.]+)`", row.split("|")[1]) for row in table[1].splitlines()]


def named(heading: str) -> set[str]:
    return {name.split(".")[0] for names in first_column(heading) for name in names}


@rows.each("key", ["schedule", "kubernetes"])
def test_the_table_of_a_binding_has_its_fields_and_no_other(key: str) -> None:
    properties = binding_types.CURRENT[hook_config.HookKind.MODULE]["properties"][key]["items"]["properties"]
    # The old name of executeHookOnEvent stands beside it.
    assert named(f"`{key}`") == set(properties) - {"watchEvent"}


def test_the_table_of_settings_has_its_fields_and_no_other() -> None:
    properties = binding_types.CURRENT[hook_config.HookKind.MODULE]["properties"]["settings"]["properties"]
    assert named("`settings`") == set(properties) - {"executionMinPeriod"}


def test_the_table_of_steps_has_those_of_global_hooks_and_of_modules() -> None:
    section = PAGE.split("### Lifecycle bindings")[1].split("\n### ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE)
    assert {(step, kind.value) for kind, steps in config_schemas.LIFECYCLE.items() for step in steps} == set(
        rows
    )


@rows.each(
    ("key", "field", "text"),
    [
        ("schedule", "timezone", crontab.DEFAULT_TIMEZONE),
        ("schedule", "name", bindings.SCHEDULE_NAME),
        ("schedule", "queue", bindings.MAIN_QUEUE),
        ("schedule", "allowFailure", "false"),
        ("kubernetes", "name", bindings.KUBERNETES_NAME),
        ("kubernetes", "executeHookOnSynchronization", "true"),
        ("kubernetes", "waitForSynchronization", "true"),
        ("kubernetes", "keepFullObjectsInMemory", "true"),
        ("kubernetes", "keepOldObject", "false"),
    ],
)
def test_a_default_is_that_of_the_code(key: str, field: str, text: str) -> None:
    section = PAGE.split(f"\n### `{key}`\n")[1].split("\n### ")[0]
    assert re.search(rf"^\| `{field}` \|.*\| `{text}` \|$", section, re.MULTILINE)
    shortest = {"schedule": '{"crontab": "@daily"}', "kubernetes": '{"kind": "Pod"}'}[key]
    read = hook_config.parse(
        f'{{"configVersion": "v1", "{key}": [{shortest}]}}', hook_config.HookKind.MODULE, "x"
    )
    found = (read.schedules or read.kubernetes)[0]
    code = {
        "timezone": lambda: read.schedules[0].crontab.timezone,
        "name": lambda: found.name,
        "queue": lambda: found.queue,
        "allowFailure": lambda: json.dumps(found.allow_failure),
        "executeHookOnSynchronization": lambda: json.dumps(read.kubernetes[0].execute_on_synchronization),
        "waitForSynchronization": lambda: json.dumps(read.kubernetes[0].wait_for_synchronization),
        "keepFullObjectsInMemory": lambda: json.dumps(read.kubernetes[0].keep_full_objects),
        "keepOldObject": lambda: json.dumps(read.kubernetes[0].keep_old_object),
    }
    assert code[field]() == text


CONTEXTS = {
    "start": binding_contexts.lifecycle(bindings.LifecycleBinding.ON_STARTUP),
    "step": binding_contexts.lifecycle(bindings.LifecycleBinding.BEFORE_HELM),
    "tick": binding_contexts.schedule("NAME"),
    "all objects": binding_contexts.synchronization("NAME", [binding_contexts.entry(b"{}", b"1")]),
    "change": binding_contexts.event(
        "NAME", bindings.WatchEvent.ADDED, binding_contexts.PackedEntry(binding_contexts.entry(b"{}", b"1"))
    ),
    "group": binding_contexts.group("NAME", "GROUP"),
}


@rows.each("context", CONTEXTS.values(), ids=CONTEXTS)
def test_a_context_is_described_as_it_is_written(context: binding_contexts.Context) -> None:
    shown = re.findall(r"\| `(\{\"binding\".*?\})`(?: with| \|)", PAGE)
    filled = [re.sub(r"\bNAME\b|\bGROUP\b", r'"\g<0>"', text) for text in shown]
    readable = [re.sub(r"\{…\}", "{}", text).replace(", …", "").replace("…", "1") for text in filled]
    assert json.loads(b"".join(context.pieces())) in [json.loads(text) for text in readable]


def test_the_tables_of_variables_have_those_of_a_run_and_of_an_enabled_script() -> None:
    told = vars(hook_processes) | vars(hook_exchange)
    texts = [value for value in told.values() if isinstance(value, str)]
    names = {text for text in texts if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", text)}
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)) == names

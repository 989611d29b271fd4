"""The library for hooks in bash, run by bash; what hooks write with it is read as the operator reads it."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

import jsonpatch
import pytest

from addon_operator.app import hook_environment
from addon_operator.hook_contract.outputs import metric_operations, object_operations
from addon_operator.kernel.json_types import JsonObject
from addon_operator.values.patches import patches
from tests.support import rows

LIBRARY = hook_environment.SHELL_LIBRARY
BASH = shutil.which("bash") or "bash"
BEFORE_HELM = {"binding": "beforeHelm", "snapshots": {}}
VALUES: dict[str, Any] = {
    "global": {"on": True},
    "web": {
        "size": 2, "off": False, "none": None, "names": ["a", "b"], "dotted.key": 1, "my-key": {"x": "y"},
        "rows": [{"name": "a", "v": 1}, {"name": "b", "v": 1}],
    },
}  # fmt: skip
INPUTS = ("BINDING_CONTEXT_PATH", "VALUES_PATH", "CONFIG_VALUES_PATH")
FILES = ("VALUES_JSON_PATCH_PATH", "CONFIG_VALUES_JSON_PATCH_PATH", "METRICS_PATH", "KUBERNETES_PATCH_PATH")


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a hook ended, and what it wrote."""

    exit_code: int
    lines: list[str]
    reported: str
    files: dict[str, str]

    def values(self, before: JsonObject = VALUES, file: str = "VALUES_JSON_PATCH_PATH") -> dict[str, Any]:
        """The values as the operator makes them of those before and the patch."""
        operations = patches.parse_patch(self.files[file], file).operations
        after: dict[str, Any] = jsonpatch.apply_patch(before, [dict(operation) for operation in operations])
        return after

    def documents(self, file: str) -> list[Any]:
        return [json.loads(line) for line in self.files[file].splitlines()]


class Hook:
    """A hook that sources the library, and the files of its runs."""

    def __init__(self, directory: pathlib.Path, library: pathlib.Path = LIBRARY) -> None:
        self.path = directory / "hook.sh"
        self.directory = directory
        self.library = library
        self.environ = {"PATH": os.environ["PATH"], "ADDON_OPERATOR_SHELL_LIBRARY": str(library)}

    def run(self, body: str, *contexts: dict[str, Any], arguments: tuple[str, ...] = ()) -> Ended:
        self.write(body)
        inputs = {
            "BINDING_CONTEXT_PATH": list(contexts or (BEFORE_HELM,)),
            "VALUES_PATH": VALUES,
            "CONFIG_VALUES_PATH": {"web": {"size": 1}},
        }
        paths = {name: self.directory / name for name in (*inputs, *FILES)}
        for name, path in paths.items():
            path.write_text(json.dumps(inputs[name]) if name in inputs else "")
        done = subprocess.run(
            [BASH, self.path, *arguments],
            env=self.environ | {name: str(path) for name, path in paths.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        files = {name: paths[name].read_text() for name in FILES}
        return Ended(done.returncode, done.stdout.splitlines(), done.stderr, files)

    def write(self, body: str) -> None:
        self.path.write_text(f'source "$ADDON_OPERATOR_SHELL_LIBRARY"\n{body}\nhook::run "$@"\n')

    def main(self, body: str) -> Ended:
        """Run ``body`` for one context."""
        return self.run(f"__main__() {{\n{body}\n}}")


@pytest.fixture
def hook(tmp_path: pathlib.Path) -> Hook:
    return Hook(tmp_path)


# From the start of the process to a function


def test_a_hook_prints_its_configuration_and_does_nothing_else(hook: Hook) -> None:
    body = "__config__() { echo 'configVersion: v1'; echo 'beforeHelm: 10'; }\n__main__() { echo no; }"
    ended = hook.run(body, arguments=("--config",))
    assert (ended.exit_code, ended.lines) == (0, ["configVersion: v1", "beforeHelm: 10"])


EVENT = {"binding": "pods", "type": "Event", "object": {}}
CALLS: list[tuple[dict[str, Any], list[str]]] = [
    ({"binding": "onStartup"}, ["__on_startup"]),
    ({"binding": "beforeAll", "snapshots": {}}, ["__on_before_all", "__on_schedule::beforeAll"]),
    ({"binding": "afterAll", "snapshots": {}}, ["__on_after_all", "__on_schedule::afterAll"]),
    (BEFORE_HELM, ["__on_before_helm", "__on_schedule::beforeHelm"]),
    ({"binding": "afterHelm"}, ["__on_after_helm", "__on_schedule::afterHelm"]),
    ({"binding": "beforeDeleteHelm"}, ["__on_before_delete_helm", "__on_schedule::beforeDeleteHelm"]),
    ({"binding": "afterDeleteHelm"}, ["__on_after_delete_helm", "__on_schedule::afterDeleteHelm"]),
    ({"binding": "nightly", "type": "Schedule"}, ["__on_schedule::nightly", "__on_kubernetes::nightly"]),
    ({"binding": "pods", "type": "Synchronization", "objects": []},
     ["__on_kubernetes::pods::synchronization", "__on_kubernetes::pods"]),
    ({**EVENT, "watchEvent": "Added"},
     ["__on_kubernetes::pods::added", "__on_kubernetes::pods::added_or_modified", "__on_kubernetes::pods"]),
    ({**EVENT, "watchEvent": "Modified"},
     ["__on_kubernetes::pods::modified", "__on_kubernetes::pods::added_or_modified",
      "__on_kubernetes::pods"]),
    ({**EVENT, "watchEvent": "Deleted"}, ["__on_kubernetes::pods::deleted", "__on_kubernetes::pods"]),
    ({"binding": "pods", "type": "Group", "groupName": "all", "snapshots": {}},
     ["__on_group::all", "__on_group::pods", "__on_kubernetes::pods"]),
    ({"binding": "old", "resourceEvent": "add"},
     ["__on_kubernetes::old::added", "__on_kubernetes::old::added_or_modified", "__on_kubernetes::old"]),
    ({"binding": "hourly"}, ["__on_schedule::hourly"]),
]  # fmt: skip


@pytest.mark.slow
def test_a_library_with_a_way_of_its_own_to_the_functions_is_told_their_names(hook: Hook) -> None:
    """Deckhouse's library calls these functions of shell-operator's."""
    body = """
hook::run() {
  for BINDING_CONTEXT_CURRENT_INDEX in $(seq 0 $(($(context::global::jq length) - 1))); do
    export BINDING_CONTEXT_CURRENT_INDEX
    BINDING_CONTEXT_CURRENT_BINDING="$(context::jq -r .binding)"
    hook::_determine_kubernetes_and_scheduler_handlers
    hook::_run_first_available_handler "$(hook::_determine_kubernetes_and_scheduler_handlers)"
  done
}
__main__() { echo "ran for ${BINDING_CONTEXT_CURRENT_BINDING}"; }
"""
    calls = CALLS[::4]
    ended = hook.run(body, *(context for context, _ in calls))
    assert ended.lines[1::2] == [f"ran for {context['binding']}" for context, _ in calls]
    for line, (_, names) in zip(ended.lines[::2], calls, strict=True):
        told = line.split()
        assert told[: len(names)] == names
        assert told[-1] == "__main__"


def test_a_failure_is_told_when_another_library_sources_the_files(hook: Hook) -> None:
    other = hook.directory / "other_lib.sh"
    frameworks = LIBRARY.parent / "frameworks" / "shell"
    other.write_text(f"set -Eeuo pipefail\nfor file in {frameworks}/*.sh; do source $file; done\n")
    hook.library = other
    hook.environ["ADDON_OPERATOR_SHELL_LIBRARY"] = str(other)
    ended = hook.main("false")
    assert ended.exit_code == 1
    assert ended.reported.startswith("Error: exit code 1 of 'false' in hook.sh, line 3")
    assert "unbound" not in ended.reported


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("web.size", "web|size"),
        ("size", "|size"),
        ("", "|"),
        ("web.names.0", "web.names|0"),
        ('web."dotted.key".x', 'web."dotted.key"|x'),
        ('web."dotted.key"', "web|dotted.key"),
    ],
)
def test_a_library_can_take_the_last_key_off_a_path(hook: Hook, path: str, parts: str) -> None:
    ended = hook.main(f'path=\'{path}\'; echo "$(context::_dirname "$path")|$(context::_basename "$path")"')
    assert (ended.lines, ended.reported) == ([parts], "")


def defined(names: set[str]) -> str:
    return "\n".join(f'{name}() {{ echo "$FUNCNAME $BINDING_CONTEXT_CURRENT_BINDING"; }}' for name in names)


@pytest.mark.parametrize("left_out", [0, 1, 2], ids=["the closest", "the next", "the one after"])
def test_the_closest_function_that_there_is_gets_each_context(hook: Hook, left_out: int) -> None:
    wanted = [(context, [*names, "__main__"][left_out:]) for context, names in CALLS]
    wanted = [(context, names) for context, names in wanted if names]
    not_defined = {name for _, names in CALLS for name in names[:left_out]}
    wanted = [(context, [name for name in names if name not in not_defined]) for context, names in wanted]
    functions = defined({name for _, names in wanted for name in names})
    ended = hook.run(functions, *(context for context, _ in wanted))
    assert ended.exit_code == 0, ended.reported
    assert ended.lines == [f"{names[0]} {context['binding']}" for context, names in wanted]


def test_a_context_without_a_function_fails_the_hook_and_names_those_that_it_may_have(hook: Hook) -> None:
    ended = hook.run("", {"binding": "nightly", "type": "Schedule"})
    assert ended.exit_code == 1
    assert ended.reported == (
        "Error: the hook has no function for the binding 'nightly'; "
        "define one of __on_schedule::nightly, __on_kubernetes::nightly, __main__\n"
    )


def test_a_failing_command_ends_the_hook_with_one_line_that_says_where(hook: Hook) -> None:
    ended = hook.run(
        "helper() {\n  ls   /nowhere 2>&-\n}\n__main__() {\n  echo once; helper; echo not reached\n}",
        BEFORE_HELM,
        {"binding": "afterHelm"},
    )
    assert (ended.exit_code, ended.lines) == (2, ["once"])
    assert ended.reported == (
        "Error: exit code 2 of 'ls /nowhere 2>&-' in hook.sh, line 3, "
        "called from hook.sh, line 6, called from hook.sh, line 8\n"
    )


WRONG_CALLS = {
    "values::set web.size": "values::set takes a path and a value, and got 1 arguments: web.size",
    "values::set --yaml web.size 1": "values::set does not know the option --yaml",
    "values::get --fallback 1 web.size": "values::get does not know the option --fallback",
    "kubernetes::delete shop web": "for Delete takes a namespace, KIND/NAME: shop web",
    "kubernetes::merge_patch shop Pod/web": "for MergePatch takes a namespace, KIND/NAME and a patch",
    "kubernetes::apply --forced x": "functions for objects do not know the option --forced",
    "kubernetes::delete --force a b/c": "kubernetes:: functions for patches do not know the option",
    "metrics::set orders": "metrics::set takes a name and a value, and got 1 arguments: orders",
    "metrics::set orders many": "metrics::set orders: 'many' is not a number",
    "metrics::add orders 1 north": "metrics::add orders: 'north' is not a label; write NAME=TEXT",
    "metrics::observe --bucket 1 orders 1": "metrics::observe does not know the option --bucket",
    "hook::fail 'no such shop'": "no such shop",
}  # fmt: skip


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each wrong call said, and its exit code; made in one run."""
    directory = tmp_path_factory.mktemp("wrong")
    lines = [
        f"({call}; echo reached) > {directory}/{number} 2>&1 || echo $? >> {directory}/{number}"
        for number, call in enumerate(WRONG_CALLS)
    ]
    assert Hook(directory).main("\n".join(lines)).exit_code == 0
    return {call: (directory / str(number)).read_text() for number, call in enumerate(WRONG_CALLS)}


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_a_wrong_call_ends_the_hook_with_one_sentence(reported: dict[str, str], call: str) -> None:
    sentence, exit_code = reported[call].splitlines()
    assert sentence.startswith("Error: ")
    assert WRONG_CALLS[call] in sentence
    assert exit_code == "1"


def test_a_hook_without_a_configuration_says_which_function_to_define(hook: Hook) -> None:
    ended = hook.run("", arguments=("--config",))
    assert (ended.exit_code, ended.lines) == (1, [])
    assert "define it, and let it print the configuration" in ended.reported


# What the library needs


def test_without_jq_the_hook_says_what_is_missing(hook: Hook) -> None:
    hook.environ["PATH"] = str(hook.directory)
    ended = hook.main("echo no")
    assert (ended.exit_code, ended.lines) == (1, [])
    assert ended.reported == "Error: the library for hooks needs jq, which is not in PATH; install it\n"


def test_a_shell_that_is_not_bash_is_reported(hook: Hook) -> None:
    sh = pathlib.Path("/bin/dash")
    if not sh.exists():
        pytest.skip("there is no other shell")
    done = subprocess.run([sh, "-c", f". {LIBRARY}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "begin it with '#!/usr/bin/env bash'" in done.stderr


UNSET = {
    "VALUES_PATH": "values::get web.size",
    "CONFIG_VALUES_PATH": "values::get --config web.size",
    "VALUES_JSON_PATCH_PATH": "values::set web.size 1",
    "KUBERNETES_PATCH_PATH": "kubernetes::delete shop Pod/x",
    "METRICS_PATH": "metrics::add orders 1",
    "BINDING_CONTEXT_PATH": "hook::run",
}


def test_a_hook_that_is_run_by_hand_says_which_variable_is_missing(hook: Hook) -> None:
    ended = hook.main("\n".join(f"! (unset {name}; {call})" for name, call in UNSET.items()))
    reported = [line.partition("line ")[2].partition(": ")[2] for line in ended.reported.splitlines()]
    reason = "it is not set; the operator sets it, and so must you to try the hook"
    assert reported == [f"{name}: {reason}" for name in UNSET]


def test_a_hook_that_is_tried_by_hand_can_write_to_its_standard_output(hook: Hook) -> None:
    ended = hook.main("""
        export VALUES_JSON_PATCH_PATH=/dev/stdout
        values::set web.size 3
        values::set web.title x
    """)
    assert [json.loads(line)["path"] for line in ended.lines] == ["/web/size", "/web/title"]


def test_the_library_works_from_the_root_of_an_image_together_with_files_that_join_it(
    tmp_path: pathlib.Path,
) -> None:
    root = tmp_path / "image"
    shutil.copytree(LIBRARY.parent, root)
    own = root / "frameworks" / "shell" / "ours" / "module.sh"
    own.parent.mkdir()
    own.write_text('module::name() { echo "web of $(values::get web.size)"; }\n')
    link = tmp_path / "linked.sh"
    link.symlink_to(root / "shell_lib.sh")
    assert Hook(tmp_path, link).main("module::name").lines == ["web of 2"]


@rows.each("file", sorted(LIBRARY.parent.rglob("*.sh")), ids=lambda path: path.name)
def test_a_file_of_the_library_is_sound(file: pathlib.Path) -> None:
    assert subprocess.run([BASH, "-n", file], capture_output=True, check=True).stderr == b""
    assert max(map(len, file.read_text().splitlines())) <= 120


# Contexts

PATHS = {
    "object.metadata.name": (".object.metadata.name", "/object/metadata/name"),
    'labels."app.kubernetes.io/name"': (
        '.labels["app.kubernetes.io/name"]', "/labels/app.kubernetes.io~1name"
    ),
    "labels.my-label": ('.labels["my-label"]', "/labels/my-label"),
    "containers[1].name": (".containers[1].name", "/containers/1/name"),
    "containers.0.name": (".containers[0].name", "/containers/0/name"),
    "/web/d~1e/x~0y": ('.["web"]["d/e"]["x~y"]', "/web/d~1e/x~0y"),
    ".web": (".web", "/web"),
    ".": (".", ""),
}  # fmt: skip


def test_a_path_is_written_as_jq_and_as_json_pointer(hook: Hook) -> None:
    calls = "context::_convert_user_path_to_jq_path", "context::_pointer"
    lines = hook.main("\n".join(f"{call} '{path}'" for path in PATHS for call in calls)).lines
    assert dict(zip(PATHS, zip(lines[::2], lines[1::2], strict=True), strict=True)) == PATHS


@pytest.mark.slow  # jq is started for each line
def test_the_current_context_is_read_by_paths_and_by_jq(hook: Hook) -> None:
    body = """
    __on_kubernetes::pods::added() {
      context::get object.metadata.name
      context::get 'object.metadata.labels."app.kubernetes.io/name"'
      context::get object.metadata.labels.my-label
      context::get 'object.spec.containers[1].name'
      context::get object.spec.containers.0.name
      context::get 'snapshots.nodes | length'
      context::get object.nothing
      context::jq -c '.filterResult'
      context::global::jq length
      ! context::get --required object.nothing
      context::has object.metadata.name && ! context::has object.nothing && ! context::has a.b.c && echo has
      context::is_true filterResult.on && context::is_false filterResult.off && echo truth
      context::is_null filterResult.none && context::is_null filterResult.missing && echo null
    }
    __main__() { :; }
    """
    labels = {"app.kubernetes.io/name": "web", "my-label": "x"}
    spec = {"containers": [{"name": "one"}, {"name": "two"}]}
    event = {
        **EVENT,
        "watchEvent": "Added",
        "object": {"metadata": {"name": "web-1", "labels": labels}, "spec": spec},
        "filterResult": {"on": True, "off": False, "none": None},
        "snapshots": {"nodes": [{}, {}, {}]},
    }
    ended = hook.run(body, BEFORE_HELM, event)
    assert ended.lines == [
        "web-1", "web", "x", "two", "one", "3", "null", '{"on":true,"off":false,"none":null}', "2",
        "has", "truth", "null",
    ]  # fmt: skip
    assert ended.reported == "Error: the context of the binding 'pods' has no object.nothing\n"


# Values


def test_contexts_and_values_are_read_and_values_changed(hook: Hook) -> None:
    ended = hook.main("""
        context::jq -r .binding
        context::has snapshots && context::get snapshots.nothing
        values::get web.my-key.x
        values::get --config --default 7 web.nothing
        values::is_true global.on && ! values::array_has web.names c && values::has . && echo truth
        values::set 'web."a/b~c"' 3
        values::set web.made.on.the-way '{"a": [1, null]}'
        values::unset web.names.0
    """)
    assert ended.lines == ["beforeHelm", "null", "y", "7", "truth"]
    web = ended.values()["web"]
    assert (web["a/b~c"], web["made"], web["names"]) == (3, {"on": {"the-way": {"a": [1, None]}}}, ["b"])


@pytest.mark.slow  # jq is started for each line
def test_values_are_read_by_paths(hook: Hook) -> None:
    ended = hook.main(
        """
        values::get web.size
        values::get --config web.size
        values::get 'web."dotted.key"'
        values::get /web/my-key/x
        values::get web.names.1
        values::get web.nothing
        values::get --default 7 web.nothing
        values::get --default 7 web.off
        values::get --config --default 7 web.nothing
        values::get_first_defined web.nothing web.none
        values::jq -c .web.names
        values::is_true global.on && values::is_false web.off && ! values::is_true web.nothing && echo truth
        values::has web.none && ! values::has web.nothing && ! values::has --config web.names && echo has
        values::array_has web.names b && ! values::array_has web.names c && echo list
        values::require_in_config web.size
        ! values::require_in_config web.names
        """
    )
    assert ended.lines == [
        "2", "1", "1", "y", "b", "null", "7", "false", "7", "null", '["a","b"]',
        "truth", "has", "list",
    ]  # fmt: skip
    assert ended.reported == "Error: web.names is not set; set it in the operator's ConfigMap\n"


def test_a_required_value_that_is_not_there_ends_the_hook(hook: Hook) -> None:
    ended = hook.main("values::get --required web.nothing")
    assert ended.exit_code == 1
    assert ended.reported.startswith("Error: there is no value web.nothing; set it\n")


@pytest.mark.slow  # jq is started for each line
def test_values_are_changed_by_paths(hook: Hook) -> None:
    ended = hook.main(
        """
        values::set web.size 3
        values::set web.title 'two  words'
        values::set web.empty ''
        values::set web.version 1.10
        values::set --string web.text 1.10
        values::set web.made.on.the-way '{"a": [1, null]}'
        values::set web.made.on.again true
        values::set 'web."dotted.key"' null
        values::set 'web.labels."app.kubernetes.io/name"' web
        values::set /web/d~1e/x~0y 1
        values::set web.names.- c
        values::set web.list.- 1
        values::set web.list.- 2
        values::unset web.off
        values::unset web.nothing.at.all
        values::unset web.names.0
        values::set other.key nan
        values::set --config web.size 9
        """
    )
    assert ended.exit_code == 0, ended.reported
    base = {key: value for key, value in VALUES["web"].items() if key != "off"}
    assert ended.values({**VALUES, "other": {}}) == {
        "global": {"on": True},
        "other": {"key": "nan"},
        "web": {
            **base, "size": 3, "title": "two  words", "empty": "", "version": 1.1, "text": "1.10",
            "made": {"on": {"the-way": {"a": [1, None]}, "again": True}}, "dotted.key": None,
            "labels": {"app.kubernetes.io/name": "web"}, "d/e": {"x~y": 1},
            "names": ["b", "c"], "list": [1, 2],
        },
    }  # fmt: skip
    assert ended.values({"web": {}}, "CONFIG_VALUES_JSON_PATCH_PATH") == {"web": {"size": 9}}


@pytest.mark.slow
def test_values_and_objects_may_be_larger_than_arguments_of_a_program(hook: Hook) -> None:
    ended = hook.main(
        """
        printf -v large '%200000s' x
        values::set web.large "$large"
        kubernetes::create "{\\"data\\": \\"$large\\"}"
        """
    )
    assert ended.exit_code == 0, ended.reported
    assert len(ended.values()["web"]["large"]) == 200_000
    assert len(ended.documents("KUBERNETES_PATCH_PATH")[0]["object"]["data"]) == 200_000


@pytest.mark.slow
def test_rows_of_lists_are_replaced_added_and_removed_by_a_key(hook: Hook) -> None:
    ended = hook.main(
        """
        values::store::replace_row_by_key web.rows name '{"name": "b", "v": 2}'
        values::store::replace_row_by_key web.rows name '{"name": "c", "v": 3}'
        values::store::unset_row_by_key web.rows name '{"name": "a"}'
        values::store::unset_row_by_key web.rows name '{"name": "nobody"}'
        values::store::replace_row_by_key web.others name '{"name": "d"}'
        """
    )
    web = ended.values()["web"]
    assert web["rows"] == [{"name": "b", "v": 2}, {"name": "c", "v": 3}]
    assert web["others"] == [{"name": "d"}]


def test_changes_for_several_contexts_add_up_in_files_in_memory_too(tmp_path: pathlib.Path) -> None:
    memory = "/dev/shm"
    body = '__main__() { values::set "web.seen.${BINDING_CONTEXT_CURRENT_BINDING}" true; }'
    place = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=place) as directory:
        hook = Hook(pathlib.Path(directory))
        ended = hook.run(body, BEFORE_HELM, {"binding": "nightly", "type": "Schedule"})
    assert ended.values()["web"]["seen"] == {"beforeHelm": True, "nightly": True}


# Objects and metrics

OBJECT_FUNCTIONS = {
    "create": "Create",
    "create_or_update": "CreateOrUpdate",
    "create_if_not_exists": "CreateIfNotExists",
    "create_json": "CreateIfNotExists",
    "create_yaml": "CreateIfNotExists",
    "replace_json": "CreateOrUpdate",
    "replace_yaml": "CreateOrUpdate",
    "apply": "Apply",
}
TARGET_FUNCTIONS = {
    "merge_patch": "MergePatch",
    "json_patch": "JSONPatch",
    "jq_patch": "JQPatch",
    "patch_jq": "JQPatch",
    "delete": "Delete",
    "delete_in_background": "DeleteInBackground",
    "delete_non_cascading": "DeleteNonCascading",
}


def test_each_function_for_objects_stands_for_an_operation(hook: Hook) -> None:
    called = [f"kubernetes::{name} <<< '{{}}'" for name in OBJECT_FUNCTIONS]
    for name in TARGET_FUNCTIONS:
        patch = "'{}'" if "patch" in name else ""
        called.append(f"kubernetes::{name} shop Pod/x {patch}")
    noted = 'kubernetes::_note() { [[ "$*" =~ "operation "([A-Za-z]+) ]] && echo "${BASH_REMATCH[1]}"; }'
    operations = hook.main("\n".join([noted, *called])).lines
    expected = OBJECT_FUNCTIONS | TARGET_FUNCTIONS
    assert dict(zip(expected, operations, strict=True)) == expected


def test_changes_of_objects_are_those_that_the_operator_reads(hook: Hook) -> None:
    ended = hook.main(
        """
        object='{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}}'
        kubernetes::create_or_update --subresource status <<< "$object"
        kubernetes::apply --force --field-manager me "$object"
        kubernetes::merge_patch --subresource status --ignore-hook-error --ignore-missing \\
          shop Pod/x '{"a": null}'
        kubernetes::jq_patch --api-version v1 '' Node/x '.a = "1"'
        kubernetes::delete shop pod/x
        printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: y}\\n' | kubernetes::replace_yaml
        """
    )
    assert ended.exit_code == 0, ended.reported
    text = ended.files["KUBERNETES_PATCH_PATH"]
    assert len(object_operations.parse(text, "the hook")) == 6
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}}
    pod = {"kind": "Pod", "name": "x", "namespace": "shop"}
    assert ended.documents("KUBERNETES_PATCH_PATH") == [
        {"operation": "CreateOrUpdate", "object": config_map, "subresource": "status"},
        {"operation": "Apply", "object": config_map, "force": True, "fieldManager": "me"},
        {"operation": "MergePatch", **pod, "mergePatch": {"a": None}, "subresource": "status",
         "ignoreHookError": True, "ignoreMissingObject": True},
        {"operation": "JQPatch", "kind": "Node", "name": "x", "jqFilter": '.a = "1"', "apiVersion": "v1"},
        {"operation": "Delete", **pod, "kind": "pod"},
        {"operation": "CreateOrUpdate", "object": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}"},
    ]  # fmt: skip


def test_metrics_are_those_that_the_operator_reads(hook: Hook) -> None:
    ended = hook.main(
        """
        metrics::add orders_total 1 shop=north 'who=a = b'
        metrics::set --group open orders_open -1.5
        metrics::observe --buckets 1,2.5,10 order_seconds 4.2
        metrics::expire old
        """
    )
    assert len(metric_operations.parse(ended.files["METRICS_PATH"], "the hook")) == 4
    assert ended.documents("METRICS_PATH") == [
        {"name": "orders_total", "action": "add", "value": 1, "labels": {"shop": "north", "who": "a = b"}},
        {"name": "orders_open", "action": "set", "value": -1.5, "group": "open"},
        {"name": "order_seconds", "action": "observe", "value": 4.2, "buckets": [1, 2.5, 10]},
        {"action": "expire", "group": "old"},
    ]


# Hooks as they are written for shell-operator

LEGACY = r"""
function __config__() {
  cat <<EOF
    configVersion: v1
    onStartup: 1
    kubernetes:
    - name: namespaces
      kind: Namespace
      jqFilter: .metadata.labels
EOF
}

function __on_startup() {
  echo "started"
}

function __on_kubernetes::namespaces::synchronization() {
  for i in $(context::jq -r '.objects | keys[]'); do
    echo "synced $(context::jq -r '.objects['"${i}"'].object.metadata.name')"
  done
}

function __on_kubernetes::namespaces::added_or_modified() {
  if context::has filterResult.team; then
    values::set web.teams."$(context::get object.metadata.name)" "$(context::get filterResult.team)"
  fi
}

function __main__() {
  echo "main ${BINDING_CONTEXT_CURRENT_BINDING}"
  values::unset web.size
}
"""


@pytest.mark.slow  # jq is started a dozen times
def test_a_hook_written_for_shell_operator_runs_as_it_is(hook: Hook) -> None:
    entries = [{"object": {"metadata": {"name": name}}} for name in ("a", "b")]
    event = {
        "binding": "namespaces", "type": "Event", "watchEvent": "Modified",
        "object": {"metadata": {"name": "shop"}}, "filterResult": {"team": "north"},
    }  # fmt: skip
    ended = hook.run(
        LEGACY,
        {"binding": "onStartup"},
        {"binding": "namespaces", "type": "Synchronization", "objects": entries},
        event,
        {**event, "watchEvent": "Deleted"},
    )
    assert ended.exit_code == 0, ended.reported
    assert ended.lines == ["started", "synced a", "synced b", "main namespaces"]
    assert ended.values()["web"]["teams"] == {"shop": "north"}
    assert "size" not in ended.values()["web"]

"""Where the script of a shell stands in command and args."""

from addon_operator import expansion
from addon_operator.expansion import shells
from tests.support import rows

SCRIPTS = [
    (["sh", "-c", "S"], [], "command[2]"),
    (["/bin/sh", "-c"], ["S"], "args[0]"),
    (["bash"], ["-c", "S"], "args[1]"),
    ([], ["/usr/bin/bash", "-c", "S", "name", "arg"], "args[2]"),
    (["ash", "-c", "S"], [], "command[2]"),
    (["dash", "-c", "S"], [], "command[2]"),
    (["ksh", "-c", "S"], [], "command[2]"),
    (["/usr/local/bin/zsh", "-c", "S"], [], "command[2]"),
    (["busybox", "sh", "-c"], ["S"], "args[0]"),
    (["/usr/bin/env", "bash", "-c", "S"], [], "command[3]"),
    (["env", "-i", "-u", "HOME", "A=b c", "/bin/busybox", "ash", "-c", "S"], [], "command[8]"),
    (["bash", "-ec", "S"], [], "command[2]"),
    (["bash", "-euo", "pipefail", "-c", "S"], [], "command[4]"),
    (["bash", "-exuo", "pipefail", "-O", "extglob", "-c", "S"], [], "command[6]"),
    (["bash", "-ceuo", "pipefail", "S"], [], "command[3]"),
    (["bash", "--login", "--rcfile", "f", "+x", "-c", "S"], [], "command[6]"),
    (["sh", "-c", "-e", "S"], [], "command[3]"),
    (["sh", "-c", "--", "-S"], [], "command[3]"),
]


@rows.each(("command", "args", "place"), SCRIPTS, ids=[" ".join(c + a) for c, a, _ in SCRIPTS])
def test_the_script_of_a_shell_is_found(command: list[str], args: list[str], place: str) -> None:
    assert shells.script_place(command, args) == place


NONE = [
    ([], []),
    (["server", "-c", "S"], []),
    (["server"], ["sh", "-c", "S"]),
    (["sh", "script.sh", "-c", "S"], []),
    (["sh", "-e", "S"], []),
    (["sh", "+c", "S"], []),
    (["sh", "-c"], []),
    (["sh"], []),
    (["env", "A=b"], []),
    (["busybox", "nc", "-c", "S"], []),
    (["fish", "-c", "S"], []),
    (["bash", "-o", "-c", "S"], []),
]


@rows.each(("command", "args"), NONE, ids=[" ".join(c + a) for c, a in NONE])
def test_without_a_shell_that_gets_a_script_there_is_none(command: list[str], args: list[str]) -> None:
    assert shells.script_place(command, args) is None


def test_only_the_script_is_the_shells() -> None:
    container = {
        "name": "web",
        "env": [{"name": "E", "value": "$(A)"}],
        "command": ["sh", "-c", "f=$(mktemp); echo $(whoami) $(B)", "name", "$(C)"],
    }
    built = expansion.container_environment(
        {}, container, services=(), config_maps={}, secrets={}, master_services=()
    ).unresolved
    found = expansion.unresolved_references({}, container, config_maps={}, secrets={}, service_variables=())
    for references in (built, found):
        assert [one.name for one in references if one.in_script] == ["mktemp", "whoami", "B"]
        assert expansion.unresolved_message("web", references) == (
            "Container web: cannot expand $(A) in env E, $(C) in command[4]"
        )

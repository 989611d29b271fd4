"""Hooks with bad manners: what they write, how they end, what they leave behind."""

import contextlib
import json
import os
import pathlib
import signal
from collections.abc import Mapping
from typing import Final

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration

LINES: Final = 5000
SHOWN: Final = 500
"""Of those: the first as they come, and the last."""
BAD: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "no-json": ("echo nonsense > $VALUES_JSON_PATCH_PATH", ("VALUES_JSON_PATCH_PATH", "invalid JSON")),
    "foreign-root": (
        """echo '{"op": "add", "path": "/web/x", "value": 1}' > $VALUES_JSON_PATCH_PATH""",
        ("path '/web/x' is not permitted",),
    ),
    "no-parent": (
        """echo '{"op": "add", "path": "/global/a/b", "value": 1}' > $VALUES_JSON_PATCH_PATH""",
        ("operation [0] (add /global/a/b)", "there is nothing at '/global/a'"),
    ),
    "config-switch": (
        """echo '{"op": "add", "path": "/webEnabled", "value": true}' > $CONFIG_VALUES_JSON_PATCH_PATH""",
        ("path '/webEnabled' is not permitted",),
    ),
    "half-metric": (
        """echo '{"name": "whole", "set": 1}{"name": "half"' > $METRICS_PATH""",
        ("METRICS_PATH, document [1]", "invalid JSON"),
    ),
    "binary": ("head -c 64 /dev/urandom > $METRICS_PATH; printf '\\xff' >> $METRICS_PATH", ("not UTF-8",)),
    "pipe": ("rm $METRICS_PATH; mkfifo $METRICS_PATH", ("not a regular file any more",)),
    "no-operation": ("echo hello > $KUBERNETES_PATCH_PATH", ("document [0]: it is not a mapping",)),
    "misspelt": ("echo 'operation: Crate' > $KUBERNETES_PATCH_PATH", ("did you mean 'Create'?",)),
    "exits": ("echo one >&2; echo two >&2; exit 17", ("failed with exit code 17: one | two",)),
    "kills-itself": ("kill -9 $$", ("was killed by SIGKILL",)),
}
"""Body of a hook, and words of the line that tells of its failure."""


def queue_of(name: str, **settings: str) -> dict[str, object]:
    """A binding that ticks every second in a queue of its own, where a failure holds up nobody."""
    schedule = {"crontab": "@every 1s", "queue": name, "allowFailure": True}
    return {"schedule": [schedule], "settings": settings} if settings else {"schedule": [schedule]}


def test_what_hooks_do_wrong_is_reported_in_one_sentence_each_and_harms_nobody_else(
    site: operator_site.Site,
) -> None:
    for name, (body, _) in BAD.items():
        site.hook(site.global_hooks, f"{name}.sh", queue_of(name), body)
    count = """echo '{"name": "g", "add": 1}' > $METRICS_PATH"""
    site.hook(site.global_hooks, "good.sh", queue_of("good"), count)
    operator = site.start().wait_ready()
    for name, (_, words) in BAD.items():
        operator.wait_logged("failed: hook", f"{name}.sh", *words, "failure is allowed")
    operator.wait_until(lambda: "g{" in operator.get("/metrics").text, "the good hook counts")
    assert not {"whole", "half"} & {name for name, _ in operator.metrics().series}
    assert operator.metrics().total("global_hook_run_allowed_errors_total", hook="exits.sh") >= 1
    assert operator.metrics().total("global_hook_run_errors_total") == 0
    operator.stop()


@pytest.mark.slow
def test_a_hook_that_ignores_its_end_leaves_processes_behind_or_floods_its_output_stops_nothing(
    site: operator_site.Site,
) -> None:
    flooded = site.root / "flooded"
    stubborn = "trap '' TERM; (trap '' TERM; sleep 300) & while :; do sleep 0.1; done"
    site.hook(site.global_hooks, "stubborn.sh", queue_of("stubborn", executionTimeout="1s"), stubborn)
    left = site.root / "left"
    site.hook(site.global_hooks, "leaves.sh", queue_of("leaves"), f"sleep 300 & echo $! >> {left}")
    flood = f"test -e {flooded} || (yes || true) | head -n {LINES}; touch {flooded}"
    site.hook(site.global_hooks, "flood.sh", queue_of("flood"), flood)
    operator = site.start("--log-type=json", DEBUG_KEEP_TMP_FILES="yes").wait_ready()
    try:
        operator.wait_until(flooded.exists, "everything is written")
        operator.wait_logged("stubborn.sh was stopped because it ran longer than its timeout of 1s")
        operator.wait_logged("flood.sh", f"and {LINES - SHOWN} more lines")
        assert operator.log.count('"msg":"y"') == SHOWN
        operator.wait_until(lambda: len(pids(left)) >= 2, "a hook that leaves a process behind runs again")
    finally:
        operator.stop()
        for pid in pids(left):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    kept = [path.name for path in (site.root / "tmp").rglob("binding_context.json")]
    assert len(kept) >= 4, "files are kept for debugging"


def pids(file: pathlib.Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


LOOK: Final = """\
import json, os, pathlib, socket, sys
with socket.socket(socket.AF_UNIX) as opened:
    opened.connect("{root}/debug.socket")
    opened.sendall(b"GET /global/values.json?showSensitive=true HTTP/1.0\\r\\n\\r\\n")
    answer = opened.recv(100).decode().split()[1]
seen = pathlib.Path("{root}") / ("seen-" + sys.argv[1])
seen.with_suffix(f".{{os.getpid()}}").write_text(json.dumps([sorted(os.environ), answer]))
seen.with_suffix(f".{{os.getpid()}}").rename(seen)
"""
"""Writes down the environment, and how the debug socket answers."""
CURIOUS: Final = """\
[[ "${{1:-}}" == --config ]] && echo '{{"configVersion": "v1", "beforeHelm": 1}}'
[[ -v MODULE_ENABLED_RESULT ]] && echo true > $MODULE_ENABLED_RESULT
run=$(basename $0)${{1:-}}
python3 {root}/look.py $run
setsid bash -c "touch {root}/began-$run; sleep 0.2; python3 {root}/look.py $run-orphan" > {root}/log 2>&1 &
until [[ -e {root}/began-$run ]]; do sleep 0.01; done
exit 0
"""


@pytest.mark.parametrize(
    ("settings", "inherited", "answer"),
    [
        pytest.param({}, {"TRACE", "SHARED"}, "403", id="by default"),
        pytest.param(
            {"HOOK_ENV": "TR*,HOME", "HOOK_DEBUG_SOCKET": "true"},
            {"TRACE"},
            "200",
            id="asked for",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_hooks_get_no_credentials_and_no_answers_of_the_debug_socket(
    site: operator_site.Site, settings: dict[str, str], inherited: set[str], answer: str
) -> None:
    (site.root / "look.py").write_text(LOOK.format(root=site.root))
    module = site.module("010-web", values="webEnabled: true\n")
    (module / "hooks").mkdir()
    for path in (module / "hooks" / "curious.sh", module / "enabled"):
        site.script(path, CURIOUS.format(root=site.root))
    operator = site.start(SHARED="x", HELM_KUBETOKEN="t", **settings).wait_ready()
    runs = ("curious.sh--config", "curious.sh", "enabled")
    for what in (*runs, *(f"{run}-orphan" for run in runs)):
        seen = site.root / f"seen-{what}"
        operator.wait_until(seen.exists, f"what {what} sees")
        names, answered = json.loads(seen.read_text())
        assert {*names} & {"TRACE", "SHARED", "HELM_KUBETOKEN", "DEBUG_UNIX_SOCKET"} == inherited, what
        assert answered == answer or (what == "curious.sh--config" and answered == "503"), what
    assert site.command("global", "values").returncode == 0
    operator.stop()

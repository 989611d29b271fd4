"""Logs in every form, from every kind of logger."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterator

import kopf
import pytest
import structlog

from addon_operator.telemetry import logs

Configure = Callable[..., io.StringIO]


@pytest.fixture
def configure() -> Iterator[Configure]:
    """Configures the logs of the process into a buffer, and puts everything back."""
    root, asyncio_logger = logging.getLogger(), logging.getLogger("asyncio")
    before = (root.handlers, root.level, asyncio_logger.level)

    def into_buffer(type_: str = "text", level: str = "info", *, no_time: bool = True) -> io.StringIO:
        stream = io.StringIO()
        logs.configure(level, type_, no_time=no_time, stream=stream)
        return stream

    yield into_buffer
    root.handlers, root.level, asyncio_logger.level = before
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def log() -> structlog.typing.FilteringBoundLogger:
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger("addon-operator")
    return logger


def test_text_is_one_line_of_keys_and_values(configure: Configure) -> None:
    stream = configure()
    log().info("Module is ready", module="web", seconds=1.5, first=True, error=None)
    assert (
        stream.getvalue() == 'level=info msg="Module is ready" module=web seconds=1.5 first=true error=null\n'
    )


def test_json_is_one_object_a_line(configure: Configure) -> None:
    stream = configure("json")
    log().warning("a\nb", module="web", tries=[1, 2])
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue()) == {"level": "warn", "msg": "a\nb", "module": "web", "tries": [1, 2]}


def test_color_has_colors_message_and_fields(configure: Configure) -> None:
    stream = configure("color")
    log().error("Module failed", module="web")
    line = stream.getvalue()
    assert "\x1b[" in line
    assert re.sub(r"\x1b\[[0-9;]*m", "", line).split() == ["[error", "]", "Module", "failed", "module=web"]


@pytest.mark.parametrize("type_", ["text", "json", "color"])
def test_the_time_is_in_utc_unless_it_is_switched_off(configure: Configure, type_: str) -> None:
    stream = configure(type_, no_time=False)
    log().info("x")
    assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", stream.getvalue())
    stream = configure(type_)
    log().info("x")
    assert not re.search(r"\d{4}-\d\d-\d\dT", stream.getvalue())


def test_own_fields_stand_first_and_in_order(configure: Configure) -> None:
    stream = configure("json", no_time=False)
    log().bind(module="web").info("x", a=1)
    assert list(json.loads(stream.getvalue())) == ["time", "level", "msg", "module", "a"]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", ["debug", "info", "warn", "error", "fatal"]),
        ("info", ["info", "warn", "error", "fatal"]),
        ("warn", ["warn", "error", "fatal"]),
        ("error", ["error", "fatal"]),
    ],
)
def test_only_the_level_and_above_is_shown(configure: Configure, level: str, shown: list[str]) -> None:
    stream = configure("json", level)
    for method in ("debug", "info", "warning", "error", "critical"):
        getattr(log(), method)("x")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == shown


def test_the_level_can_be_changed_while_the_program_runs(configure: Configure) -> None:
    stream = configure("json", "info")
    logger = log().bind(a=1)
    logger.debug("hidden")
    logs.set_level("debug")
    logger.debug("shown")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["shown"]


@pytest.mark.parametrize("type_", ["text", "json", "color"])
def test_a_field_may_be_called_like_anything(configure: Configure, type_: str) -> None:
    stream = configure(type_)
    names = ["module", "name", "args", "msg", "level", "time", "exc_text", "lineno", "message"]
    for name in names:
        log().info("x", **{name: f"value-of-{name}."})
    lines = stream.getvalue().splitlines()
    assert [name for name, line in zip(names, lines, strict=True) if f"value-of-{name}." not in line] == []


def test_a_field_called_like_an_own_field_gets_an_underscore(configure: Configure) -> None:
    stream = configure("json", no_time=False)
    log().info("x", msg="m", level="l", time="t")
    line = json.loads(stream.getvalue())
    assert (line["msg"], line["level"]) == ("x", "info")
    assert (line["msg_"], line["level_"], line["time_"]) == ("m", "l", "t")


WORDS: list[tuple[object, str]] = [
    ("plain", "plain"),
    ("", '""'),
    ("two words", '"two words"'),
    ('say "x"', r'"say \"x\""'),
    ("a=b", '"a=b"'),
    ("line\nbreak\r", r'"line\nbreak\r"'),
    ("back\\slash", r'"back\\slash"'),
    ("\x1b[31m", r'"\u001b[31m"'),
    ("grün", "grün"),
    ("große Welt", '"große Welt"'),
    ({"a": [1]}, r'"{\"a\":[1]}"'),
    (2**70, str(2**70)),
    ({1, 2}, '"{1, 2}"'),
]


def test_a_value_is_one_word_of_the_line(configure: Configure) -> None:
    stream = configure()
    for value, _ in WORDS:
        log().info("x", field=value)
    assert stream.getvalue().split("\n") == [*(f"level=info msg=x field={word}" for _, word in WORDS), ""]


def test_a_key_cannot_break_the_line(configure: Configure) -> None:
    stream = configure()
    log().info("x", **{"a b\n=c": 1})
    assert stream.getvalue() == "level=info msg=x a_b__c=1\n"


@pytest.mark.parametrize("type_", ["text", "json", "color"])
def test_no_value_can_stop_a_log_line(configure: Configure, type_: str) -> None:
    stream = configure(type_)
    values = ["\udcff", {"a": "\udcff"}, 2**80, {1: 2}, object]
    for number, value in enumerate(values):
        log().info(f"survived-{number}", field=value)
    lines = stream.getvalue().encode().decode().splitlines()
    assert [f"survived-{number}" in line for number, line in enumerate(lines)] == [True] * len(values)


def test_a_value_that_contains_itself_does_not_stop_a_log_line(configure: Configure) -> None:
    stream = configure("json")
    loop: list[object] = []
    loop.append(loop)
    log().info("survived", field=loop)
    assert "survived" in stream.getvalue()


def test_output_cannot_steer_the_terminal(configure: Configure) -> None:
    stream = configure("color")
    log().info("a\x1b[2Jb", field="\x1b[2J")
    assert "\x1b[2J" not in stream.getvalue()
    assert "a\\x1b[2Jb" in stream.getvalue()


@pytest.mark.parametrize("type_", ["text", "json", "color"])
def test_an_exception_is_in_the_record(configure: Configure, type_: str) -> None:
    stream = configure(type_)
    try:
        raise ValueError("the cause")
    except ValueError:
        log().exception("It failed")
    assert "It failed" in stream.getvalue()
    assert "ValueError: the cause" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1 or type_ == "color"


def test_records_of_the_standard_library_take_the_same_path(configure: Configure) -> None:
    stream = configure("json")
    logging.getLogger("aiohttp.server").warning("got %s", "it", extra={"peer": "1.2.3.4"})
    assert json.loads(stream.getvalue()) == {
        "level": "warn", "msg": "got it", "logger": "aiohttp.server", "peer": "1.2.3.4",
    }  # fmt: skip


def test_records_of_kopf_name_their_object(configure: Configure) -> None:
    stream = configure("json")
    reference = {"kind": "ConfigMap", "namespace": "addons", "name": "values", "uid": "u"}
    logging.getLogger("kopf.objects").warning(
        "Seen", extra={"k8s_ref": reference, "k8s_skip": True, "settings": kopf.OperatorSettings()}
    )
    assert json.loads(stream.getvalue()) == {
        "level": "warn",
        "msg": "Seen",
        "logger": "kopf.objects",
        "kind": "ConfigMap",
        "object": "addons/values",
    }


@pytest.mark.parametrize(("level", "told"), [("info", False), ("debug", True)])
def test_the_progress_of_kopf_and_its_tries_are_reported_at_level_debug_only(
    configure: Configure, level: str, told: bool
) -> None:
    stream = configure("json", level=level)
    logging.getLogger("kopf._core.engines.activities").info("Initial authentication has finished.")
    logging.getLogger("kopf._cogs.clients.api").error("Request attempt #1/9 failed; will retry: GET /api")
    assert stream.getvalue().count("\n") == (2 if told else 0)


@pytest.mark.parametrize("level", ["warn", "info", "debug"])
def test_kopf_does_not_warn_of_signals_that_it_is_not_meant_to_handle(
    configure: Configure, level: str
) -> None:
    stream = configure("json", level=level)
    logger = logging.getLogger("kopf._core.reactor.running")
    logger.warning("OS signals are ignored: running not in the main thread.")
    assert stream.getvalue() == ""


def test_an_attribute_called_like_an_own_field_is_kept_aside(configure: Configure) -> None:
    stream = configure("json")
    logging.getLogger("x").info("text", extra={"level": "mine"})
    line = json.loads(stream.getvalue())
    assert (line["level"], line["level_"]) == ("info", "mine")


def test_an_exception_of_the_standard_library_is_in_the_record(configure: Configure) -> None:
    stream = configure("json")
    try:
        raise OSError("gone")
    except OSError:
        logging.getLogger("x").exception("failed")
    assert "OSError: gone" in json.loads(stream.getvalue())["exception"]


def test_the_event_loop_is_silent_at_level_debug(configure: Configure) -> None:
    stream = configure("json", "debug")
    logging.getLogger("asyncio").debug("Using selector")
    logging.getLogger("kopf").debug("shown")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["shown"]


def test_a_percent_sign_in_a_message_means_nothing(configure: Configure) -> None:
    stream = configure("json")
    log().info("100% of %s")
    assert json.loads(stream.getvalue())["msg"] == "100% of %s"


def test_a_second_configuration_replaces_the_first(configure: Configure) -> None:
    first = configure("json")
    logger = log()
    second = configure("text")
    logger.info("x")
    assert first.getvalue() == ""
    assert second.getvalue() == "level=info msg=x\n"

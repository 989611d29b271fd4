"""When a schedule binding ticks.

The grammar is that of the Go operator: 5 fields, or 6 with the seconds first, descriptors such as
``@hourly``, and ``@every DURATION``; a leading ``TZ=…`` or ``CRON_TZ=…`` names the time zone, and ``?`` means
``*``. croniter knows more (a year, ``L``, ``#``, hashed fields), which is refused so that a hook means the
same here and there.

A time of day that comes twice when the clocks go back ticks once; one that they skip ticks after the gap.
A crontab for each hour of the day is about no time of day: it ticks through both.
"""

import datetime as dt
import re
import zoneinfo
from collections.abc import Iterator
from typing import Final

import croniter
import msgspec

from addon_operator.kernel import clock, errors

DEFAULT_TIMEZONE: Final = "UTC"
MAX_CHARS: Final = 1000
"""How long a crontab may be: it is read for each tick."""
_FIELDS: Final = frozenset({5, 6})
_DESCRIPTORS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY: Final = "@every"
_VALUE: Final = r"(?:[0-9]{1,2}|[A-Za-z]{3})"
_ITEM: Final = rf"(?:[*?]|{_VALUE}(?:-{_VALUE})?)(?:/[0-9]{{1,2}})?"
_FIELD: Final = re.compile(rf"{_ITEM}(?:,{_ITEM})*")
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(?P<zone>\S*)\s+(?P<rest>.*)", re.DOTALL)
# Any date will do: what never comes within decades of one date never comes.
_PROBE: Final = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_NAMES: Final = (
    ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
    ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)
_HOURS: Final = 24
_SHORTEST: Final = 1.0
_LONGEST_ZONE: Final = 100
"""Characters; the library recurses over the parts of a name."""


class CrontabError(errors.ConfigurationError):
    """A text is not a crontab, or one that never ticks."""


class Crontab(msgspec.Struct, frozen=True):
    """A parsed crontab; made by :func:`parse`."""

    text: str
    """As the hook wrote it."""
    timezone: str
    """IANA name of the zone whose clock the fields are read on."""
    every: float | None
    """Seconds between ticks of an ``@every`` crontab."""
    fields: str
    """What croniter reads; empty for ``@every``."""

    def next_after(self, moment: dt.datetime) -> dt.datetime:
        """Return the first tick after ``moment`` (which knows its zone), in UTC.

        For ``@every`` that is one period later: the caller gives the tick before, or the time of its start.
        """
        if self.every is not None:
            return moment.astimezone(dt.UTC) + dt.timedelta(seconds=self.every)
        zone = zoneinfo.ZoneInfo(self.timezone)
        ticks = _iterator(self.fields, moment.astimezone(zone))
        while True:
            tick: dt.datetime = ticks.get_next(dt.datetime).astimezone(dt.UTC)
            # The second of two times that the clock shows alike is a fold.
            if not tick.astimezone(zone).fold or _is_hourly(ticks):
                return tick


def parse(text: str, timezone: str | None = None) -> Crontab:
    """Read a crontab; ``timezone`` is an IANA name, UTC if there is none.

    Raises :class:`CrontabError` when the text is not a crontab, names a time that never comes (the 31st of
    February), or names a time zone that does not exist or another one than ``timezone``.
    """
    if len(text) > MAX_CHARS:
        raise CrontabError(f"it has {len(text)} characters, and may have {MAX_CHARS}; use several crontabs")
    zone, rest = _split_zone(text)
    if zone and timezone and zone != timezone:
        raise CrontabError(
            f"{text!r} names another time zone than timezone, {timezone!r}; remove one of them"
        )
    chosen = check_timezone(zone or timezone or DEFAULT_TIMEZONE)
    every = _every(rest)
    fields = "" if every is not None else _checked_fields(rest)
    return Crontab(text, chosen, every, fields)


def every(seconds: float) -> Crontab:
    """Return a rhythm of equal steps."""
    return Crontab("", DEFAULT_TIMEZONE, seconds, "")


def check_timezone(name: str) -> str:
    """Return the name itself; raise if no time zone has it.

    Raises :class:`CrontabError` otherwise.
    """
    try:
        zoneinfo.ZoneInfo(name[:_LONGEST_ZONE])
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise CrontabError(
            f"{name[:_LONGEST_ZONE]!r} is not a time zone; write an IANA name such as Europe/Berlin"
        ) from None
    return name


def zone_in(text: str) -> str:
    """Return the time zone that a crontab itself names, empty if it names none."""
    return _split_zone(text)[0]


def not_portable(text: str) -> Iterator[str]:
    """Yield what the Go operator refuses in a crontab that is right here."""
    fields = _split_zone(text)[1].split()
    for place, field in enumerate(fields if len(fields) in _FIELDS else ()):
        for item in field.split(","):
            first, _, last = item.partition("/")[0].partition("-")
            if last and _number(first) > _number(last):
                yield f"the Go operator refuses {item!r}, which wraps; write two ranges"
            elif place == len(fields) - 1 and "7" in (first, last):
                yield f"the Go operator refuses {item!r}, where 7 is Sunday; write 0"


def _number(value: str) -> int:
    lower = value.lower()
    return int(value) if value.isdecimal() else next(names.index(lower) for names in _NAMES if lower in names)


def _split_zone(text: str) -> tuple[str, str]:
    match = _ZONE.fullmatch(text.strip())
    return (match["zone"], match["rest"].strip()) if match else ("", text.strip())


def _every(text: str) -> float | None:
    word, _, period = text.partition(" ")
    if word != _EVERY:
        return None
    try:
        seconds = clock.parse_duration(period.strip())
    except clock.DurationError as error:
        raise CrontabError(f"{text!r} needs a period such as '@every 30s': {error}") from error
    if seconds <= 0:
        raise CrontabError(f"{text!r} needs a period longer than 0")
    return max(seconds, _SHORTEST)


def _checked_fields(text: str) -> str:
    if text.startswith("@"):
        return _descriptor(text)
    fields = text.split()
    if len(fields) not in _FIELDS:
        raise CrontabError(
            f"{text!r} has {len(fields)} field{'' if len(fields) == 1 else 's'}; write 5 (minute hour "
            "day-of-month month day-of-week) or 6 with the seconds first, a descriptor such as @hourly, "
            "or '@every 30s'"
        )
    for field in fields:
        if not _FIELD.fullmatch(field):
            raise CrontabError(
                f"{text!r}: the field {field!r} is not a list of numbers, names, ranges or steps"
            )
    return _probed(text, " ".join(fields).replace("?", "*"))


def _descriptor(text: str) -> str:
    if text not in _DESCRIPTORS:
        raise CrontabError(
            f"{text!r} is not a descriptor; known are {', '.join(_DESCRIPTORS)} and '@every 30s'"
        )
    return text


_RANGES: Final = (
    "minute 0-59, hour 0-23, day of month 1-31, month 1-12 or jan-dec, day of week 0-7 or sun-sat, and steps "
    "from 1, such as */5"
)


def _probed(text: str, fields: str) -> str:
    try:
        _iterator(fields, _PROBE).get_next(dt.datetime)
    except croniter.CroniterBadDateError:
        raise CrontabError(f"{text!r} names a time that never comes") from None
    except (croniter.CroniterError, ValueError, KeyError) as error:
        raise CrontabError(f"{text!r} is not a crontab: a field is out of range; write {_RANGES}") from error
    return fields


def _is_hourly(ticks: croniter.croniter) -> bool:
    """Say whether no hour of the day is left out."""
    hours = ticks.expanded[1]
    return hours == ["*"] or len(hours) == _HOURS


def _iterator(fields: str, start: dt.datetime) -> croniter.croniter:
    return croniter.croniter(fields, start, second_at_beginning=len(fields.split()) == max(_FIELDS))

"""What is wrong with the values ConfigMap and the values Secret as they are now, for all who show it."""

import msgspec

from addon_operator.engine import config_events, events, module_states
from addon_operator.kernel import clock


class _Refusal(msgspec.Struct, frozen=True):
    """One of the objects that is not in force as it is now."""

    source: str
    since: float
    follows: str
    wrong: tuple[config_events.WrongKey, ...]

    @property
    def sentence(self) -> str:
        """What is wrong since when, and what follows, without values."""
        return f"{self.head}: {config_events.listed_wrong(self.wrong)}; {self.follows}"

    @property
    def head(self) -> str:
        """What is wrong since when."""
        return f"{self.source} is invalid since {clock.rfc3339(self.since)}"


class RefusedConfig:
    """Remembers which of them are wrong and since when; a :data:`.events.Listener`."""

    def __init__(self, states: module_states.ModuleStates, time: clock.Clock) -> None:
        self._states = states
        self._clock = time
        self._refused: dict[str, _Refusal] = {}
        self._not_read: dict[str, str] = {}
        self._missing: dict[str, str] = {}

    def __call__(self, event: events.Event) -> None:
        """Take in what became of an edit."""
        match event:
            case config_events.ConfigRefused(kind=kind):
                before = self._refused.get(kind)
                since = before.since if before is not None else self._clock.time()
                self._refused[kind] = _Refusal(event.source, since, event.follows, event.wrong)
                self._not_read.pop(kind, None)
            case config_events.ConfigNotRead(kind=kind):
                self._not_read.setdefault(kind, self._not_read_text(event))
            case config_events.ConfigMissing(kind=kind):
                moment = clock.rfc3339(self._clock.time())
                self._missing[kind] = f"{event.source} is missing since {moment}: {event.follows}"
            case config_events.ConfigFound(kind=kind):
                self._missing.pop(kind, None)
            case config_events.ConfigRight(kind=kind):
                self._refused.pop(kind, None)
                self._not_read.pop(kind, None)
                self._missing.pop(kind, None)
            case _:
                return
        self._states.blame(self._by_key())

    def _not_read_text(self, event: config_events.ConfigNotRead) -> str:
        return (
            f"an edit of {event.source} is not in force since {clock.rfc3339(self._clock.time())} because of "
            f"a bug in the operator ({type(event.error).__name__}); it is tried again, and the log says more"
        )

    @property
    def sentences(self) -> list[str]:
        """What is wrong since when, one sentence for each object, without values."""
        wrong = (each.sentence for each in self._refused.values())
        return [*self._missing.values(), *wrong, *self._not_read.values()]

    def _by_key(self) -> dict[str, str]:
        """Return what to say of modules, by the key that is wrong."""
        found: dict[str, list[str]] = {}
        for refusal in self._refused.values():
            by_key: dict[str, list[config_events.WrongKey]] = {}
            for wrong in refusal.wrong:
                by_key.setdefault(wrong.key, []).append(wrong)
            for key, wrongs in by_key.items():
                text = f"{refusal.head}: {config_events.listed_wrong(wrongs)}; {refusal.follows}"
                found.setdefault(key, []).append(text)
        return {key: "; ".join(texts) for key, texts in found.items()}

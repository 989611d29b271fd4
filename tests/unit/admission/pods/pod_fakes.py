"""Where pods get presets and variables from, and somebody who is told what becomes of them."""

from collections.abc import Iterable, Mapping

from typing_extensions import override

from addon_operator.admission import events
from addon_operator.admission.pods import env_sources_reader, pod_handler
from addon_operator.admission.presets import preset_cache, preset_notices
from addon_operator.podpreset import model
from tests.unit.admission.objects import Object, Seen


class Presets(preset_notices.PresetNotices):
    """A cache in the place of what waits for notices."""

    def __init__(self, *stored: Object) -> None:
        self.cache = preset_cache.PresetCache(Seen())
        for each in stored:
            self.cache.put(each)
        self.error: Exception | None = None

    @override
    async def match(self, namespace: str, labels: Mapping[str, str]) -> tuple[model.Preset, ...]:
        if self.error is not None:
            raise self.error
        return self.cache.match(namespace, labels)


class Sources(env_sources_reader.EnvSources):
    """ConfigMaps and Secrets that are there at once."""

    def __init__(self, **data: env_sources_reader.EnvSource) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self._data = data

    @override
    async def read(
        self, namespace: str, wanted: Iterable[model.SourceRef], budget: float
    ) -> dict[model.SourceRef, env_sources_reader.EnvSource]:
        wanted = list(wanted)
        self.asked.append((namespace, sorted(map(str, wanted))))
        return {each: self._data[each.name] for each in wanted if each.name in self._data}


class Observer:
    """Remembers what happens to pods."""

    def __init__(self) -> None:
        self.results: list[tuple[str, str]] = []
        self.injected: list[str] = []

        self.conflicted: list[str] = []
        self.unresolved = 0
        self.dropped = 0

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.PodAdmitted():
                self.results.append((event.namespace, event.result))
            case events.PresetsAnswered(outcome="injected"):
                self.injected += [f"{event.namespace}/{name}" for name in event.presets]
            case events.PresetsAnswered(outcome="conflicts"):
                self.conflicted += [f"{event.namespace}/{name}" for name in event.presets]
            case events.ReferencesUnresolved():
                self.unresolved += event.count
            case events.Dropped("check"):
                self.dropped += 1


def merger(presets: Presets, sources: Sources | None = None) -> pod_handler.Merger:
    return pod_handler.Merger(presets, sources or Sources())

"""What the webhook for pods stands on, in memory."""

from collections.abc import Collection, Mapping, Sequence

from addon_operator.admission.pods import env_sources_reader, pod_handler
from addon_operator.admission.presets import preset_cache
from addon_operator.podpreset import defaults, model
from tests.unit.admission.objects import Object, Seen


class Presets:
    """A cache in the place of what waits for notices."""

    def __init__(self, *stored: Object) -> None:
        self.cache = preset_cache.PresetCache(Seen())
        self.cache.listed(None, stored, "100")
        self.error: Exception | None = None

    async def match(self, namespace: str, labels: Mapping[str, str]) -> tuple[model.Preset, ...]:
        if self.error is not None:
            raise self.error
        return self.cache.match(namespace, labels)


class Sources:
    def __init__(self, **data: env_sources_reader.Source) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self._data = data

    async def read(
        self, namespace: str, wanted: Collection[defaults.SourceRef], budget: float
    ) -> Mapping[defaults.SourceRef, env_sources_reader.Source]:
        self.asked.append((namespace, sorted(map(str, wanted))))
        return {each: self._data[each.name] for each in wanted if each.name in self._data}


class Observer:
    def __init__(self) -> None:
        self.results: list[tuple[str, str]] = []
        self.injected: list[str] = []

    def pod_admitted(self, namespace: str, result: pod_handler.Result, seconds: float) -> None:
        self.results.append((namespace, result))

    def presets_injected(self, namespace: str, presets: Sequence[model.PresetName]) -> None:
        self.injected += [f"{namespace}/{name}" for name in presets]

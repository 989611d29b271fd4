"""Values of many modules: merging, checking, one edit, one large patch."""

import asyncio
import copy
import functools
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from addon_operator.documents import json_documents, json_schemas, yaml_writing
from addon_operator.engine import intents
from addon_operator.engine.sources import config_sync
from addon_operator.inspection import values_worker
from addon_operator.kernel import names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.kube.objects import config_maps
from addon_operator.values import checks, config_map_reader, inspectors, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_keywords, schemas
from tests.benchmarks import measures

_MODULES: Final = 100
_GROUPS: Final = 20
_KEYS: Final = 10
"""Keys in each group: 200 per module."""
_ROUNDS: Final = 9
_VERDICT_AIM: Final = 0.1
_EDIT_AIM: Final = 20.0
_LOOP_AIM: Final = 20.0
_LARGE: Final = 8_000
"""Keys of about 120 bytes: 1 MiB, the most that a ConfigMap holds."""

_NAMES: Final = tuple(names.ModuleName(f"module-{number}") for number in range(_MODULES))
_TYPES: Final = ("{type: string, maxLength: 99}", "{type: integer, minimum: 0}")
_GROUP: Final = "".join(f"        key{key}: {_TYPES[key % 2]}\n" for key in range(_KEYS))
_SCHEMA: Final = "properties:\n" + "".join(
    f"  group{group}:\n    type: object\n    properties:\n{_GROUP}" for group in range(_GROUPS)
)


def run() -> list[measures.Row]:
    """All measurements; takes about ten seconds."""
    return [_merging(), _verdict(), asyncio.run(_edit()), _memory(), asyncio.run(_large_patch())]


def _section(salt: int = 0) -> JsonObject:
    keys: JsonObject = {f"key{key}": key + salt if key % 2 else f"value {key + salt}" for key in range(_KEYS)}
    return {f"group{group}": dict(keys) for group in range(_GROUPS)}


def _store(inspector: inspectors.Inspector = inspectors.HERE) -> store.ValuesStore:
    common = sources.ValuesFile(
        "modules/values.yaml",
        {names.values_key(name): _section() for name in _NAMES},
        {names.enabled_key(name): True for name in _NAMES},
    )
    checked = schemas.load_schemas((_SCHEMA, "config-values.yaml"))
    modules = [store.ModuleValues(name, common, schemas=checked) for name in _NAMES]
    return store.ValuesStore(modules, [common], inspector=inspector)


def _data() -> dict[str, str]:
    return {names.values_key(name): yaml_writing.dump(_section(number)) for number, name in enumerate(_NAMES)}


def _median_ms(call: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """CPU time, so that what else the machine does counts little."""
    found = []
    for _ in range(rounds):
        began = time.thread_time()
        call()
        found.append(time.thread_time() - began)
    return statistics.median(found) * 1000


def _merging() -> measures.Row:
    made, config = _store(), config_map_reader.ConfigMapReader(_NAMES).read(_data()).usable()
    if checks.Checks(made).config_violations(config):
        raise RuntimeError("the values must be valid")
    plain = [_section() for _ in _NAMES]
    return measures.Row(
        "values",
        f"merge and check {_MODULES} modules of {_GROUPS * _KEYS} keys",
        "ms of CPU",
        _median_ms(lambda: checks.Checks(made).config_violations(config), 3),
        "copy.deepcopy of one source",
        _median_ms(lambda: copy.deepcopy(plain), 3),
    )


def _verdict() -> measures.Row:
    definition = schemas.load_schema(_SCHEMA, "config-values.yaml").definition
    validator = json_schemas.Validator(schema_keywords.prepare(definition), schema_keywords.FORMATS)
    section = _section()
    quick = _median_ms(lambda: list(validator.errors(section))) * 1000
    thorough = _median_ms(lambda: list(validator.reasons(section))) * 1000
    case = f"check a section of {_GROUPS * _KEYS} keys that is right"
    aim = f"<= {_VERDICT_AIM:g} of jsonschema"
    is_met = quick <= _VERDICT_AIM * thorough
    return measures.Row("values", case, "µs of CPU", quick, "jsonschema", thorough, aim, is_met)


class _Kept(config_maps.ConfigMap):
    """A ConfigMap that nobody writes."""

    def __init__(self, data: dict[str, str]) -> None:
        self._data = data

    @override
    async def read(self) -> config_maps.Snapshot:
        return config_maps.Snapshot(self._data, "1")

    @override
    async def update(self, change: config_maps.Change, *, may_create: bool = True) -> config_maps.Snapshot:
        raise NotImplementedError(change)


async def _edit() -> measures.Row:
    data = _data()
    with values_worker.ValuesWorker() as worker:
        taken = await _edited(data, worker)
    here = await _edited(data, inspectors.HERE)
    case = f"one key of {_MODULES} modules edited: until the changed modules are known"
    aim = f"<= {_EDIT_AIM:g} ms"
    return measures.Row("values", case, "ms", taken, "without a worker", here, aim, taken <= _EDIT_AIM)


async def _edited(data: dict[str, str], inspector: inspectors.Inspector) -> float:
    """The median of edits in ms; they wait for another process, so CPU time says little."""
    inbox = intents.Inbox()
    state = config_sync.ConfigSync(_store(inspector), _Kept(data), inbox, _ignore, source="ConfigMap")
    await state.load()
    edits = []
    for number in range(_ROUNDS):
        key = names.values_key(_NAMES[number])
        data = {**data, key: data[key].replace("value", "changed", 1)}
        edits.append(config_maps.Snapshot(data, str(number + 2)))
    found = []
    for edit in edits:
        began = time.perf_counter()
        state.received(edit)
        await state.settled()
        found.append(time.perf_counter() - began)
    if inbox.qsize() != _ROUNDS:
        raise RuntimeError("the edits must change modules")
    return statistics.median(found) * 1000


def _ignore(_event: object) -> None:
    """Nobody listens."""


def _memory() -> measures.Row:
    texts = [json_documents.encode(_section(number)) for number in range(_MODULES)]
    baseline = _mebibytes(lambda: [json_documents.decode(text) for text in texts])
    config = config_map_reader.ConfigMapReader(_NAMES).read(_data()).usable()
    return measures.Row(
        "values",
        f"store of {_MODULES} modules, all values merged",
        "MiB",
        _mebibytes(lambda: _filled(config)),
        "the merged values alone",
        baseline,
    )


def _filled(config: sources.ConfigValues) -> store.ValuesStore:
    made = _store()
    made.set_config(config)
    for name in _NAMES:
        made.values_json(name)
    return made


def _mebibytes(make: Callable[[], object]) -> float:
    gc.collect()
    tracemalloc.start()
    kept = make()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size / 2**20


async def _large_patch() -> measures.Row:
    name = _NAMES[0]
    checked = schemas.load_schemas(None, ("additionalProperties: {}\nproperties: {big: {}}", "values.yaml"))
    made = store.ValuesStore([store.ModuleValues(name, schemas=checked)])
    held = min([await _longest_hold(made, name, number) for number in range(_ROUNDS)]) * 1000
    inline = _median_ms(functools.partial(made.frozen(name).patched, _large(name, 0)), 3)
    case = "a patch of 1 MiB worked out and taken: longest time that the loop is held, best of 9"
    aim = f"<= {_LOOP_AIM:g} ms"
    return measures.Row("values", case, "ms", held, "planned in the loop", inline, aim, held <= _LOOP_AIM)


def _large(name: names.ModuleName, salt: int) -> patches.ValuesPatch:
    value = {f"key{number}": f"{salt}{'x' * 110}" for number in range(_LARGE)}
    operation = {"op": "add", "path": f"/{names.values_key(name)}/big", "value": value}
    return patches.parse_patch(json_documents.encode(operation).decode(), "patch")


async def _longest_hold(made: store.ValuesStore, name: names.ModuleName, salt: int) -> float:
    patch, gaps = _large(name, salt), [0.0]
    watch = asyncio.create_task(_watch(gaps))
    await asyncio.sleep(0)
    ready = await asyncio.to_thread(made.frozen(name).patched, patch)
    began = time.perf_counter()
    made.apply_values_patch(name, patch, ready)
    gaps.append(time.perf_counter() - began)
    watch.cancel()
    return max(gaps)


async def _watch(gaps: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        gaps.append(time.perf_counter() - began)

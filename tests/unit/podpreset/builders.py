"""Short ways to write presets and pods."""

import copy
from collections.abc import Mapping
from typing import Any

import jsonpatch

from addon_operator.podpreset import merge, model

Pod = dict[str, Any]
SELECTOR = {"matchLabels": {"role": "frontend"}}
Keys = Mapping[tuple[str, str], list[str]]
NO_SOURCES: Keys = {}


def preset(
    name: str = "p",
    *,
    namespace: str = "n",
    version: str = "1",
    created: str | None = "2024-01-01T00:00:00Z",
    deleted: str | None = None,
    selector: object = SELECTOR,
    **lists: object,
) -> model.Preset:
    metadata = {
        "name": name,
        "namespace": namespace,
        "resourceVersion": version,
        "creationTimestamp": created,
        "deletionTimestamp": deleted,
    }
    parsed = model.parse({"metadata": metadata, "spec": {"selector": selector, **lists}})
    assert isinstance(parsed, model.Preset), parsed
    return parsed


def env(name: str, value: object = "x", **fields: object) -> dict[str, Any]:
    return {"name": name, "value": value, **fields}


def config_map(name: str, **fields: object) -> dict[str, Any]:
    return {"configMapRef": {"name": name}, **fields}


def secret(name: str, **fields: object) -> dict[str, Any]:
    return {"secretRef": {"name": name}, **fields}


def mounting(volume: dict[str, Any], path: str = "/cache", **fields: object) -> dict[str, Any]:
    """The lists of a preset, or of a pod, that mounts one volume."""
    return {"volumes": [volume], "volumeMounts": [{"name": volume["name"], "mountPath": path, **fields}]}


def container(name: str = "app", /, **fields: object) -> dict[str, Any]:
    return {"name": name, "image": "i", **fields}


def pod(*containers: dict[str, Any], annotations: object = None, **spec: object) -> Pod:
    metadata: dict[str, Any] = {"labels": {"role": "frontend"}}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": list(containers) or [container()], **spec}}


def inject(given: Pod, *presets: model.Preset, keys: Keys = NO_SOURCES) -> merge.Injection | merge.Conflicted:
    def env_from_keys(source: model.SourceRef) -> list[str] | None:
        return keys.get((source.kind, source.name))

    return merge.inject(given, presets, env_from_keys)


def injected(given: Pod, *presets: model.Preset, keys: Keys = NO_SOURCES) -> Pod:
    """The pod after the presets."""
    before = copy.deepcopy(given)
    result = inject(given, *presets, keys=keys)
    assert isinstance(result, merge.Injection), result
    assert given == before, "the pod that was given is never changed"
    changed: Pod = jsonpatch.apply_patch(given, list(result.patch))
    return changed


def messages(given: Pod, *presets: model.Preset, keys: Keys = NO_SOURCES) -> dict[str, str]:
    """The Events' texts, by preset."""
    result = inject(given, *presets, keys=keys)
    assert isinstance(result, merge.Conflicted), result
    return {str(conflict.preset): conflict.message for conflict in result.conflicts}


def only(message: str) -> dict[str, str]:
    """The texts when one preset called ``p`` has one conflict."""
    return {"p": f"Conflict on pod preset. {message}"}

"""Entries of ``module.yaml`` that name resources which the chart does not render: most often a slip."""

from collections.abc import Iterator, Sequence
from typing import Final

from addon_operator.documents import json_pointers
from addon_operator.kernel import names
from addon_operator.modules import manifests, module_config
from addon_operator.modules.health import health_config

Resources = Sequence[tuple[manifests.ManifestResource, manifests.Object]]

_MOST: Final = 5
"""Resources that are named of those there are."""
_READINESS: Final = "Readiness"
"""Stands for what a program with hooks says of its module; no chart renders it."""
_ABSENT: Final = object()


def find(config: module_config.ModuleConfig, manifest: str) -> Iterator[str]:
    """Yield a sentence for each entry that means no resource of the manifest, or no field of those."""
    found = list(manifests.find_objects(manifest, lambda _: True))
    rendered = names.listed([str(resource) for resource, _ in found], _MOST) or "nothing"
    for place in _unmatched(config, found):
        yield f"module.yaml: {place}; the chart renders {rendered}"
    yield from _fields(config, found)


def _unmatched(config: module_config.ModuleConfig, found: Resources) -> Iterator[str]:
    for index, rule in enumerate(config.health.rules):
        if not any((rule.api_version, rule.kind) == (each.api_version, each.kind) for each, _ in found):
            yield f"health.rules[{index}] matches nothing: there is no {rule.kind} of {rule.api_version}"
    patterns = {
        "health.ignore": config.health.ignore,
        "drift.ignore": [each.resources for each in config.drift.ignore],
    }
    for key, entries in patterns.items():
        for index, pattern in enumerate(entries):
            if pattern.kind != _READINESS and not _matching(pattern, found):
                yield f"{key}[{index}] matches nothing: there is no kind {pattern.kind}, name {pattern.name}"


def _fields(config: module_config.ModuleConfig, found: Resources) -> Iterator[str]:
    for index, ignored in enumerate(config.drift.ignore):
        matching = _matching(ignored.resources, found)
        for position, path in enumerate(ignored.paths):
            if matching and not any(_has(body, path) for _, body in matching):
                named = names.listed([str(resource) for resource, _ in matching], _MOST)
                yield (
                    f"module.yaml: drift.ignore[{index}].paths[{position}] matches nothing: "
                    f"{named} has no field {json_pointers.render(path)} in the manifest"
                )


def _matching(pattern: health_config.ResourcePattern, found: Resources) -> Resources:
    return [each for each in found if pattern.matches(each[0].kind, each[0].name)]


def _has(body: manifests.Object, path: json_pointers.Tokens) -> bool:
    return json_pointers.find(body, path, _ABSENT) is not _ABSENT

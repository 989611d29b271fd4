"""Entries of ``module.yaml`` that do not go with what the chart renders: most often a slip."""

from collections.abc import Iterator, Sequence
from typing import Final

from addon_operator.documents import json_pointers
from addon_operator.kernel import names
from addon_operator.modules import manifests, module_config
from addon_operator.modules.health import health_config, health_rules
from addon_operator.values.schema import cel_rules

Resources = Sequence[tuple[manifests.ManifestResource, manifests.Object]]

_MOST: Final = 5
"""Resources that are named of those there are."""
_READINESS: Final = "Readiness"
"""Stands for what a program with hooks says of its module; no chart renders it."""
_ABSENT: Final = object()


def find(config: module_config.ModuleConfig, manifest: str) -> Iterator[str]:
    """Yield a sentence for each entry that means no resource of the manifest, or no field of those.

    So it does for rules of health that say neither true nor false of such a resource.
    """
    found = list(manifests.find_objects(manifest, lambda _: True))
    rendered = names.listed([str(resource) for resource, _ in found], _MOST) or "nothing"
    for place in _unmatched(config, found):
        yield f"module.yaml: {place}; the chart renders {rendered}"
    yield from _fields(config, found)
    yield from _without_verdict(config, found)


def _without_verdict(config: module_config.ModuleConfig, found: Resources) -> Iterator[str]:
    evaluator = cel_rules.CelEvaluator()
    for index, rule in enumerate(config.health.rules):
        meant = [
            body for each, body in found if (each.api_version, each.kind) == (rule.api_version, rule.kind)
        ]
        for key, expression in (("healthy", rule.healthy), ("failed", rule.failed)):
            for body in meant[:1] if expression else ():
                if kind := health_rules.no_verdict(expression, body, evaluator):
                    yield (
                        f"module.yaml: health.rules[{index}].{key} gives {kind}, not true or false, over the "
                        f"{rule.kind} that the chart renders: compare it with something"
                    )


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

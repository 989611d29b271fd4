"""A section that was copied into the ConfigMap with its key, and so lies one level too deep."""

from collections.abc import Iterable

from addon_operator.kernel import json_types
from addon_operator.values import origins


def is_doubled(key: str, section: json_types.JsonObject, files: Iterable[origins.Layer]) -> bool:
    """Say whether a section holds nothing but its own key, and below it what the files have beside that key.

    A chart may well have a subchart of the module's name: then the files say so, too.
    """
    inner = section.get(key)
    if len(section) != 1 or not isinstance(inner, dict):
        return False
    keys = set().union(*(layer.section for layer in files))
    return key not in keys and not keys.isdisjoint(inner)

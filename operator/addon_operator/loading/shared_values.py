"""The ``values.yaml`` of a modules directory: keys in it that no module there has."""

import pathlib
from collections.abc import Collection, Iterator
from typing import Final

from addon_operator.kernel import names
from addon_operator.values import sources

MOST: Final = 20
"""Keys that are named; to look for similar ones takes a while for each."""


def strangers(common: sources.ValuesFile, modules: Collection[names.ModuleName]) -> Iterator[str]:
    """Yield a sentence for each key that means nothing for ``modules``, those in the file's directory."""
    directory = pathlib.Path(common.source).parent
    sections = {names.GLOBAL_KEY, *map(names.values_key, modules)}
    switches = {*map(names.enabled_key, modules)}
    unknown: list[tuple[str, Collection[str]]] = [
        *((key, sections) for key in common.sections if key not in sections),
        *((key, switches) for key in common.enabled if key not in switches),
    ]
    for key, known in unknown[:MOST]:
        nearest = names.nearest(key, known)
        hint = f"; did you mean {nearest!r}?" if nearest else ""
        yield f"{common.source}, key {key}: no module in {directory} has it{hint}"
    if (more := len(unknown) - MOST) > 0:
        yield f"{common.source}: no module in {directory} has {more} more keys"

"""What merging presets into a pod may cost: each container gets every entry of every preset."""

from collections.abc import Collection
from typing import Final

from addon_operator.kernel import errors, json_types
from addon_operator.podpreset import env_sources, model

PRESETS_MAX: Final = 1000
"""How many presets may match one pod."""
ENTRIES_MAX: Final = 50_000
"""How many entries they may have, counted once for each container."""
CHARACTERS_MAX: Final = 8 << 20
"""How many characters these entries may have; the API server takes no pod of more than 3 MiB."""


class MergeCostError(errors.AddonOperatorError):
    """The presets that match a pod are too many or too large: nothing is injected from any of them."""


def check(pod: json_types.KubernetesObject, presets: Collection[model.Preset]) -> None:
    """Raises :class:`MergeCostError` if these presets are more than may be merged into the pod."""
    containers = len(env_sources.containers(pod))
    if len(presets) > PRESETS_MAX:
        raise _error(f"{len(presets)} presets match the pod, and {PRESETS_MAX} may")
    entries = sum(_entries(preset, containers) for preset in presets)
    if entries > ENTRIES_MAX:
        raise _error(
            f"the presets that match the pod have {entries} entries for its containers, "
            f"and {ENTRIES_MAX} may be"
        )
    if sum(preset.characters(containers) for preset in presets) > CHARACTERS_MAX:
        raise _error(f"the presets that match the pod add more than {CHARACTERS_MAX} characters to it")


def _entries(preset: model.Preset, containers: int) -> int:
    for_each = len(preset.env) + len(preset.env_from) + len(preset.volume_mounts)
    return containers * for_each + len(preset.volumes)


def _error(problem: str) -> MergeCostError:
    return MergeCostError(f"No preset was injected: {problem}.")

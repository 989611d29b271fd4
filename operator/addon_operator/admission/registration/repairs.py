"""How often what others change may be repaired: ever slower, if they undo each repair at once."""

import dataclasses
from typing import Final

from addon_operator.aio import waiting

# Whoever undoes our repairs at once is a program: repairing ever slower leaves the cluster in peace.
_PAUSES: Final = waiting.Backoff(1.0, 60.0)
_AT_ONCE: Final = 2


@dataclasses.dataclass(slots=True)
class Repairs:
    """How often something had to be repaired lately."""

    streak: int = 0
    last: float = float("-inf")

    def allowed_at(self) -> float:
        """Return the monotonic time of the next repair."""
        late = self.streak - _AT_ONCE
        return self.last + (_PAUSES.after(late) if late > 0 else 0.0)

    def note(self, now: float) -> None:
        """Note a repair."""
        self.streak = self.streak + 1 if now - self.last < 2 * _PAUSES.longest else 1
        self.last = now


def fought(called: str, kind: str, name: str) -> str:
    """Say that somebody undoes repairs; ``kind`` is that of the object as kubectl takes it."""
    return (
        f"somebody changes {called} as often as it is restored; "
        f"'kubectl get {kind} {name} --show-managed-fields -o yaml' shows who"
    )

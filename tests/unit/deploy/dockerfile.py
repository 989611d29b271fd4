"""A Dockerfile as far as tests look at it: instructions with their words, and stages."""

import dataclasses
import pathlib
import re
from typing import Final

ROOT: Final = pathlib.Path(__file__).parents[3]
PATH: Final = ROOT / "deploy" / "docker" / "Dockerfile"
_CONTINUED: Final = re.compile(r"\\\n")


@dataclasses.dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, on one line."""

    name: str
    arguments: str

    @property
    def words(self) -> list[str]:
        """The arguments without flags."""
        return [word for word in self.arguments.split() if not word.startswith("--")]


def read(path: pathlib.Path = PATH) -> list[Instruction]:
    """All instructions in their order."""
    kept = [line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    lines = _CONTINUED.sub(" ", "\n".join(kept)).splitlines()
    parts = (line.strip().split(maxsplit=1) for line in lines if line.strip())
    return [Instruction(name.upper(), " ".join(rest)) for name, *rest in parts]


def last_stage(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions of the image that is kept."""
    start = max(number for number, one in enumerate(instructions) if one.name == "FROM")
    return instructions[start:]


def copied(instructions: list[Instruction]) -> list[str]:
    """Sources of the checkout that are copied into a stage."""
    copies = (one for one in instructions if one.name == "COPY" and "--from=" not in one.arguments)
    return [source for one in copies for source in one.words[:-1]]

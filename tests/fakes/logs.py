"""A log that remembers its lines."""


class Lines:
    """Takes the place of a structlog logger."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def info(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(("info", event))

    def warning(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(("warning", event))

    def error(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(("error", event))

    @property
    def warnings(self) -> list[str]:
        return [text for level, text in self.lines if level == "warning"]

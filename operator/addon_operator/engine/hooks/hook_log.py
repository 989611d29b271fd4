"""The output of hooks in the operator's log."""

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from addon_operator.hook_contract import hook_log_lines

OUTPUT_FIELD: Final = "output"


class HookLog:
    """Writes each line of a hook's output as a record; JSON lines as records of their own if asked."""

    def __init__(self, logger: structlog.typing.FilteringBoundLogger, *, merge_json: bool = False) -> None:
        self._logger = logger
        self._merge_json = merge_json

    def handler(self, fields: Mapping[str, str], stream: str) -> Callable[[str], None]:
        """What takes the lines of ``stream`` (``stdout`` or ``stderr``) of a run with these log fields."""
        own = {**fields, OUTPUT_FIELD: stream}
        logger = self._logger.bind(**own)

        def write(text: str) -> None:
            if not text.strip():
                return
            if self._merge_json:
                line = hook_log_lines.structured(text, own)
                getattr(logger, line.level)(line.message, **line.fields)
            else:
                logger.info(text)

        return write

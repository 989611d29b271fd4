"""What the operator calls the states of its converge; without imports, as a command waits for one."""

from typing import Final

NOT_STARTED: Final = "STARTUP_CONVERGE_NOT_STARTED"
STARTING: Final = "STARTUP_CONVERGE_IN_PROGRESS"
DONE: Final = "STARTUP_CONVERGE_DONE"
RUNNING: Final = "CONVERGE_IN_PROGRESS"
WAITING: Final = "CONVERGE_WAIT_TASK"
"""No state of its own: ``/status/converge`` prints it after :data:`DONE`, as that of the Go operator."""
REMOVALS: Final = "REMOVALS_UNDER_WAY"
"""No state of its own either: how many modules and releases are being removed beside the converge."""
STANDBY: Final = "STANDBY"
ADMISSION_ONLY: Final = "ADMISSION_ONLY"

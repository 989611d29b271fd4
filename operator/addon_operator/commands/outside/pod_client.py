"""Asking the debug endpoint of the operator that leads, through ``exec`` in its pod.

The command in the pod prints the answer; what is shown, and how, is decided here, where the terminal is.
"""

import asyncio
from typing import Final

from addon_operator.commands.outside import leader
from addon_operator.commands.outside import place as places
from addon_operator.debug import debug_client
from addon_operator.kube.client import client, pod_exec

_PROGRAM: Final = "addon-operator"
_GRACE_SECONDS: Final = 5.0
"""What a process in a pod may take to begin and to end."""


class PodClient(debug_client.DebugClient):
    """Requests to the operator of a cluster; each finds the one that leads then."""

    def __init__(self, place: places.Place, timeout: float = debug_client.TIMEOUT_SECONDS) -> None:
        self._place = place
        self._timeout = timeout

    @property
    def place(self) -> str:
        """Where the operator is, for a person."""
        return f"in {self._place}"

    def _request(self, method: str, target: str, body: str | None) -> str:  # noqa: ARG002 - a body is a POST
        return asyncio.run(self._ask(target, body))

    async def _ask(self, target: str, body: str | None) -> str:
        command = [_PROGRAM, "raw", target] if body is None else [_PROGRAM, "raw", target, "--post", body]
        async with client.KubeClient(self._place.access) as kube:
            container = await leader.find(kube, self._place)
            try:
                output = await pod_exec.output(kube, container, command, self._timeout + _GRACE_SECONDS)
            except pod_exec.ExecError as error:
                raise debug_client.DebugClientError(str(error).removeprefix("Error: ")) from None
        return output.decode(errors="replace")

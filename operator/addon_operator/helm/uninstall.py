"""``helm uninstall``: the end of a release."""

from addon_operator.helm import command
from addon_operator.kernel import durations


async def uninstall(
    helm: command.Helm, call: command.Call, timeout: float, *, keep_history: bool = False
) -> None:
    """Uninstall the release with its history, if that is not to be kept; one that is not there is fine.

    ``timeout`` is in seconds, for each single step of Helm. Raises
    :class:`.HelmError` when Helm fails.
    """
    arguments = ["uninstall", call.module, "--ignore-not-found", "--timeout", durations.text_of(timeout)]
    if keep_history:
        arguments.append("--keep-history")
    await helm.run(call, arguments, command.time_limit(timeout))

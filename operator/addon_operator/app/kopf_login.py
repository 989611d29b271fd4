"""Credentials of our client, for Kopf."""

from addon_operator.kube.access import credentials
from addon_operator.kube.client import client


class KopfLogin:
    """Gives Kopf the credentials that our own client uses; a second login means that they were refused."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube
        self._used = False

    async def __call__(self) -> credentials.Credentials:
        """Credentials for a new session of Kopf's."""
        current = await self._kube.current_credentials(renew=self._used)
        self._used = True
        return current

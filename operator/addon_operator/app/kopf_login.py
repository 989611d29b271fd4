"""Credentials of our client, in the shape that Kopf wants."""

import datetime as dt

import kopf

from addon_operator.kube import client, credentials


class KopfLogin:
    """Gives Kopf the credentials that our own client uses; a second login means that they were refused."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube
        self._used = False

    async def __call__(self) -> kopf.ConnectionInfo:
        """Credentials for a new session of Kopf's."""
        current = await self._kube.current_credentials(renew=self._used)
        self._used = True
        return connection_info(current)


def connection_info(current: credentials.Credentials) -> kopf.ConnectionInfo:
    """The same credentials as Kopf's data class."""
    scheme, _, token = (current.authorization or "").partition(" ")
    return kopf.ConnectionInfo(
        server=current.server,
        ca_path=current.ca_file,
        insecure=not current.verify,
        scheme=scheme or None,
        token=token or None,
        certificate_path=current.certificate_file,
        private_key_path=current.key_file,
        proxy_url=current.proxy,
        expiration=_expiration(current),
    )


def _expiration(current: credentials.Credentials) -> dt.datetime | None:
    if current.expires is None:
        return None
    return dt.datetime.fromtimestamp(current.expires, tz=dt.UTC)

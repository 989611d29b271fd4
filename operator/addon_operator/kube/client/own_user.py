"""Who the operator is for the API server: the name that stands in its admission reviews and audit log.

Source: SelfSubjectReview of ``authentication.k8s.io/v1``, which everybody may create by default.
"""

import base64
import binascii
from typing import Final

import orjson

from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client

_API_VERSION: Final = "authentication.k8s.io/v1"
_KIND: Final = "SelfSubjectReview"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class OwnUser:
    """The name of the user that a client's credentials stand for."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube
        self._name: str | None = None

    async def name(self) -> str | None:
        """Return the name; ``None`` if neither the API server nor a service account's token gives it."""
        if self._name is None:
            self._name = await self._asked() or await self._by_token()
        return self._name

    async def _asked(self) -> str | None:
        body = {"apiVersion": _API_VERSION, "kind": _KIND}
        try:
            answer = await self._kube.create(paths.of(_API_VERSION, "selfsubjectreviews"), body)
        except api_errors.KubernetesError:
            return None
        name = ((answer.get("status") or {}).get("userInfo") or {}).get("username")
        return name if isinstance(name, str) and name else None

    async def _by_token(self) -> str | None:
        try:
            current = await self._kube.current_credentials()
        except api_errors.KubernetesError:
            return None
        scheme, _, token = (current.authorization or "").partition(" ")
        return _subject(token) if scheme == "Bearer" else None


def _subject(token: str) -> str | None:
    """Return the service account that a token was made for."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) and subject.startswith(_SERVICE_ACCOUNT) else None

"""Running a command in a pod, by the API server's ``exec`` over a websocket.

Source: "v4.channel.k8s.io" of Kubernetes' remotecommand: the first byte of each message is its channel. A
websocket of our own, not ``kubectl exec``: it goes to the same server with the same credentials as all else.
"""

import asyncio
import http
from collections.abc import Sequence
from typing import Final

import aiohttp
import msgspec
import orjson
import yarl

from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client, connection

_PROTOCOL: Final = "v4.channel.k8s.io"
_OUTPUT, _ERRORS, _STATUS = 1, 2, 3
SECONDS: Final = 60.0
_MAX_BYTES: Final = 64 << 20
_SHOWN: Final = 400
_CONTAINER: Final = "addon-operator"
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"


class ExecError(api_errors.KubernetesError):
    """The command could not be run in the pod, or failed there."""


class Container(msgspec.Struct, frozen=True):
    """Where a command runs."""

    namespace: str
    pod: str
    name: str

    @classmethod
    def of(cls, pod: client.Object) -> "Container":
        """Return the container of a pod in which the operator runs."""
        names = [str(each["name"]) for each in pod["spec"]["containers"]]
        default = (pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER)
        name = next((each for each in (_CONTAINER, default) if each in names), names[0])
        return cls(str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"]), name)

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.pod}"


async def output(
    kube: client.KubeClient, place: Container, command: Sequence[str], seconds: float = SECONDS
) -> bytes:
    """Return what a command prints that may run for so long.

    Raises :class:`ExecError` and other errors of the API client.
    """
    using = await kube.current_credentials()
    path = paths.of("v1", "pods", namespace=place.namespace, name=place.pod, subresource="exec")
    query = [("container", place.name), ("stdout", "true"), ("stderr", "true")]
    query += [("command", word) for word in command]
    url = yarl.URL(using.server + path, encoded=True).with_query(query)
    headers = {} if using.authorization is None else {"Authorization": using.authorization}
    async with await connection.open_session(using) as session:
        try:
            async with (
                asyncio.timeout(seconds),
                session.ws_connect(
                    url,
                    protocols=(_PROTOCOL,),
                    headers=headers,
                    proxy=using.proxy,
                    server_hostname=using.tls_server_name,
                    max_msg_size=_MAX_BYTES,
                ) as stream,
            ):
                return await _read(stream, place)
        except aiohttp.WSServerHandshakeError as error:
            refused = error.status
        except TimeoutError:
            raise ExecError(f"{place} did not answer within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise api_errors.Unreachable(connection.sentence_of(error, using.server)) from error
    raise await _refusal(kube, place, path, refused)


async def _read(stream: aiohttp.ClientWebSocketResponse, place: Container) -> bytes:
    texts: dict[int, bytearray] = {_OUTPUT: bytearray(), _ERRORS: bytearray(), _STATUS: bytearray()}
    async for message in stream:
        if message.type is aiohttp.WSMsgType.BINARY and message.data[:1]:
            texts.setdefault(message.data[0], bytearray()).extend(message.data[1:])
        if sum(map(len, texts.values())) > _MAX_BYTES:
            raise ExecError(f"the answer of {place} is larger than {_MAX_BYTES >> 20} MiB")
    try:
        ended = orjson.loads(bytes(texts[_STATUS]))
        status, message_of = str(ended["status"]), str(ended.get("message") or "it failed")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ExecError(f"the connection to {place} broke before the command ended") from None
    if status != "Success":
        said = " ".join(texts[_ERRORS].decode(errors="replace").split())
        raise ExecError((said or message_of)[:_SHOWN])
    return bytes(texts[_OUTPUT])


async def _refusal(
    kube: client.KubeClient, place: Container, path: str, status: int
) -> api_errors.KubernetesError:
    """Ask again in a plain request: the handshake gives a status without a reason."""
    try:
        await kube.get(path, query={"container": place.name, "command": "true", "stdout": "true"})
    except api_errors.ApiError as error:
        if error.status != http.HTTPStatus.BAD_REQUEST or "pgrade" not in error.message:
            return error
    except api_errors.KubernetesError as error:
        return error
    if status == http.HTTPStatus.FORBIDDEN:
        return ExecError(
            f"you may not run commands in {place}: add to your Role the rule "
            'apiGroups: [""], resources: ["pods/exec"], verbs: ["create", "get"]'
        )
    return ExecError(f"the API server did not run a command in {place}: it answered with status {status}")

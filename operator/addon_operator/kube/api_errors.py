"""What can go wrong between the operator and the API server, each as one sentence for a person."""

# ruff: noqa: N818 - the names are the reasons that the API itself gives

import functools
import re
from collections.abc import Callable
from typing import Final, TypedDict

import orjson

from addon_operator.documents import quotations
from addon_operator.kernel import errors
from addon_operator.kube import paths

_SHOWN_HEAD: Final = 1000
_SHOWN_END: Final = 400
_SECRETS: Final = "secrets"
_SEE_LOG: Final = "the operator's log says why"
_QUOTE_NOTHING: Final = frozenset({401, 404, 410, 429, 503, 504})
_RBAC_MESSAGE: Final = re.compile(r'User "(?P<user>[^"]+)" cannot ')


OTHER_CLUSTER: Final = "choose another cluster with --context or --kubeconfig"
_USUAL_CREDENTIALS: Final = "the kubeconfig, or the service account"


class KubernetesError(errors.AddonOperatorError):
    """The root of everything that the API client raises."""


class AccessError(KubernetesError, errors.ConfigurationError):
    """There is no usable way to the cluster: kubeconfig, context, credentials."""


class Unreachable(KubernetesError):
    """No answer came from the API server: connection, TLS, time."""


class Fenced(KubernetesError):
    """A write that was not sent, because this replica does not lead."""


class BrokenAnswer(KubernetesError):
    """An answer came that is not what the API promises."""


class ApiStatus(TypedDict, total=False):
    """The parts of a ``meta/v1 Status`` that errors are made from."""

    reason: str
    message: str
    code: int
    missing: str
    """Name of what is not there; empty if the answer names nothing."""


class ApiError(KubernetesError):
    """The API server refused a request."""

    def __init__(
        self, target: paths.Target, status: int, reason: str, message: str, discreet: str | None = None
    ) -> None:
        """``discreet`` is the message for places where no values may be shown, if that is another one."""
        self.target = target
        """What the request pointed at."""
        self.status = status
        """HTTP status."""
        self.reason = reason
        """Machine-readable reason of the API, such as ``AlreadyExists``; empty if there was none."""
        self.message = message
        """Text of the API server."""
        self._discreet = message if discreet is None else discreet
        super().__init__(self.sentence(message))

    @property
    def without_values(self) -> str:
        """The same without what the API server quotes."""
        return self.sentence(self._discreet)

    def around(self, before: str = "", after: str = "", kind: "type[ApiError] | None" = None) -> "ApiError":
        """Return the same error with texts, which hold no values, around what the API server says.

        With ``kind`` it is one of another class.
        """
        return self._made(f"{before}{self.message}{after}", f"{before}{self._discreet}{after}", kind)

    def reworded(self, message: str) -> "ApiError":
        """Return the same error with a message, which holds no values, in the place of the API server's."""
        return self._made(message, message, None)

    def _made(self, message: str, discreet: str, kind: "type[ApiError] | None") -> "ApiError":
        # With all that a class keeps beside this.
        made = Exception.__new__(kind or type(self))
        made.__dict__.update(self.__dict__, message=message, _discreet=discreet)
        made.args = (made.sentence(message),)
        return made

    def sentence(self, message: str) -> str:
        """Return the text of the error with what the API server says, or a part of it."""
        label = f"{self.status} {self.reason}".strip()
        return f"the API server did not {self.target.verb} {self.target} ({label}): {message}"


class Unauthorized(ApiError):
    """401: the credentials are not accepted, not even after they were read again."""

    def __init__(
        self,
        target: paths.Target,
        status: int,
        reason: str,
        message: str,
        discreet: str | None = None,
        *,
        chosen: str = "",
    ) -> None:
        """``chosen`` is the context, and its files, whose credentials these are."""
        self._chosen = chosen
        super().__init__(target, status, reason, message, discreet)

    def sentence(self, message: str) -> str:
        """Return the text of the error."""
        whose = f"{self._chosen}, or {OTHER_CLUSTER}" if self._chosen else _USUAL_CREDENTIALS
        return (
            f"the API server does not accept the credentials ({message}): "
            f"check the token, certificate or exec plugin of {whose}"
        )


class Forbidden(ApiError):
    """403: a right is missing, or a policy of the cluster refuses the object."""

    def sentence(self, message: str) -> str:
        """Return the text of the error; for a missing right it names the rule to add."""
        denied = _RBAC_MESSAGE.search(self.message)
        if denied is None:
            return f"the API server refuses to {self.target.verb} {self.target}: {message}"
        kind = "ClusterRole" if self.target.namespace is None else "Role"
        rule = (
            f'apiGroups: ["{self.target.group}"], resources: ["{self.target.rbac_resource}"], '
            f'verbs: ["{self.target.verb}"]'
        )
        if not self.target.resource:
            rule = f'nonResourceURLs: ["{self.target.path}"], verbs: ["{self.target.verb}"]'
        return f"{denied['user']} may not {self.target.verb} {self.target}: add to its {kind} the rule {rule}"


class NotFound(ApiError):
    """404 of the API itself, which names what is not there: the object, or its namespace."""


class NotServed(ApiError):
    """404 that names nothing: the path is not served, or a gateway answered. It says nothing of objects."""


class Conflict(ApiError):
    """409: the object was changed by someone else meanwhile, or another manager owns a field."""


class AlreadyExists(Conflict):
    """409 on create: an object of that name is there."""


class Gone(ApiError):
    """410: a resourceVersion or continue token is too old."""


class Invalid(ApiError):
    """422: the object breaks a rule of its schema."""


class TooManyRequests(ApiError):
    """429: the API server is still overloaded after several tries."""


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotServed,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_answer(target: paths.Target, status: int, body: bytes, *, chosen: str = "") -> ApiError:
    """Return the error for an answer with a status of 400 or more; ``chosen``: see :class:`Unauthorized`."""
    answer = _status_of(body)
    reason = answer.get("reason") or ""
    kind = AlreadyExists if reason == "AlreadyExists" else _BY_STATUS.get(status, ApiError)
    if kind is NotServed and reason == "NotFound" and _names_missing(answer, target):
        kind = NotFound
    class_: Callable[..., ApiError] = (
        functools.partial(Unauthorized, chosen=chosen) if kind is Unauthorized else kind
    )
    message = answer.get("message") or " ".join(body.decode(errors="replace").split())
    if not message:
        return class_(target, status, reason, "no explanation was given")
    discreet = _cut(quotations.without_values(message))
    shown = discreet if target.resource == _SECRETS else _cut(quotations.without_contents(message))
    is_known = status in _QUOTE_NOTHING or quotations.is_known(message)
    return class_(target, status, reason, shown, discreet if is_known else _SEE_LOG)


def _status_of(body: bytes) -> ApiStatus:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(document, dict):
        return {}
    texts = {key: document[key] for key in ("reason", "message") if isinstance(document.get(key), str)}
    details = document.get("details")
    missing = details.get("name") if isinstance(details, dict) else ""
    return ApiStatus(
        reason=texts.get("reason", ""),
        message=texts.get("message", ""),
        missing=missing if isinstance(missing, str) else "",
    )


def _names_missing(answer: ApiStatus, target: paths.Target) -> bool:
    # Servers of APIServices may leave the details out.
    return bool(answer.get("missing")) or (
        target.name is not None and f'"{target.name}"' in answer.get("message", "")
    )


def _cut(text: str) -> str:
    """Return the head and the end of a long text: what was wrong with an object often stands behind it."""
    if len(text) <= _SHOWN_HEAD + _SHOWN_END:
        return text
    return f"{text[:_SHOWN_HEAD]} … {text[-_SHOWN_END:]}"

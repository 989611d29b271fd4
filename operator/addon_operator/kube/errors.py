"""What can go wrong between the operator and the API server, each as one sentence for a person."""

# ruff: noqa: N818 - the names are the reasons that the API itself gives

import re
from typing import Final, TypedDict

import orjson

from addon_operator.kernel import errors
from addon_operator.kube import paths

_SHOWN_LENGTH: Final = 500
_SECRETS: Final = "secrets"
_HIDDEN: Final = "***"
# The value is quoted as in Go, or it goes up to the explanation behind it.
_QUOTED_VALUE: Final = re.compile(
    r'((?:Invalid|Duplicate|Unsupported) value: )(?:"(?:[^"\\]|\\.)*"|`[^`]*`|[^"`].*?(?=: |$))', re.DOTALL
)
_RBAC_MESSAGE: Final = re.compile(r'User "(?P<user>[^"]+)" cannot ')


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


class Status(TypedDict, total=False):
    """The parts of a ``meta/v1 Status`` that errors are made from."""

    reason: str
    message: str
    code: int


class ApiError(KubernetesError):
    """The API server refused a request."""

    def __init__(self, target: paths.Target, status: int, reason: str, message: str) -> None:
        self.target = target
        """What the request pointed at."""
        self.status = status
        """HTTP status."""
        self.reason = reason
        """Machine-readable reason of the API, such as ``AlreadyExists``; empty if there was none."""
        self.message = message
        """Text of the API server."""
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """The text of the error."""
        label = f"{self.status} {self.reason}".strip()
        return f"the API server did not {self.target.verb} {self.target} ({label}): {self.message}"


class Unauthorized(ApiError):
    """401: the credentials are not accepted, not even after they were read anew."""

    def sentence(self) -> str:
        """The text of the error."""
        return (
            f"the API server does not accept the operator's credentials ({self.message}): "
            "check the token, certificate or exec plugin of the kubeconfig, or the service account"
        )


class Forbidden(ApiError):
    """403: a right is missing, or a policy of the cluster refuses the object."""

    def sentence(self) -> str:
        """The text of the error; for a missing right it names the rule to add."""
        denied = _RBAC_MESSAGE.search(self.message)
        if denied is None:
            return f"the API server refuses to {self.target.verb} {self.target}: {self.message}"
        kind = "ClusterRole" if self.target.namespace is None else "Role"
        rule = (
            f'apiGroups: ["{self.target.group}"], resources: ["{self.target.rbac_resource}"], '
            f'verbs: ["{self.target.verb}"]'
        )
        if not self.target.resource:
            rule = f'nonResourceURLs: ["{self.target.path}"], verbs: ["{self.target.verb}"]'
        return f"{denied['user']} may not {self.target.verb} {self.target}: add to its {kind} the rule {rule}"


class NotFound(ApiError):
    """404: the object, its namespace or its kind is not there."""


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
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_answer(target: paths.Target, status: int, body: bytes) -> ApiError:
    """The error for an answer with a status of 400 or more."""
    answer = _status_of(body)
    reason = answer.get("reason") or ""
    class_ = AlreadyExists if reason == "AlreadyExists" else _BY_STATUS.get(status, ApiError)
    message = answer.get("message") or _plain(body) or "no explanation was given"
    shown = without_values(message) if target.resource == _SECRETS else message
    return class_(target, status, reason, shown)


def without_values(message: str) -> str:
    """A refusal as the API server words it, without the fields, or the whole object, that it quotes."""
    return _QUOTED_VALUE.sub(rf"\g<1>{_HIDDEN}", message)


def _status_of(body: bytes) -> Status:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(document, dict):
        return {}
    texts = {key: document[key] for key in ("reason", "message") if isinstance(document.get(key), str)}
    return Status(reason=texts.get("reason", ""), message=texts.get("message", ""))


def _plain(body: bytes) -> str:
    text = " ".join(body.decode(errors="replace").split())
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"

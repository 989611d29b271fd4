"""What is registered with the API server: webhook configurations as it stores them; no requests.

Every field that the API knows is written out, with its default where we want that: what somebody adds is seen
then as well as what somebody changes. What a newer API adds by itself does not count, however deep it is.
Source: ``admissionregistration.k8s.io/v1`` of the Kubernetes API.
"""

import base64
import enum
import hashlib
import ipaddress
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import orjson

from addon_operator.kernel import errors
from addon_operator.kube.discovery import api_resources

API_VERSION: Final = "admissionregistration.k8s.io/v1"

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]


class AddressError(errors.ConfigurationError):
    """The API server could not call this address."""


class ConfigurationKind(enum.Enum):
    """What a configuration's webhooks may do; the value is the kind of the object."""

    MUTATING = "MutatingWebhookConfiguration"
    VALIDATING = "ValidatingWebhookConfiguration"

    @property
    def resource(self) -> api_resources.Resource:
        """The kind of the object, which every API server has."""
        return api_resources.Resource(API_VERSION, self.value, f"{self.value.lower()}s", namespaced=False)


class WebhookSpec(msgspec.Struct, frozen=True):
    """One webhook, and the requests about objects of namespaces that go to it."""

    name: str
    """A domain name of at least three parts."""
    path: str
    """Path on the admission site, with the slash."""
    operations: tuple[Operation, ...] = ()
    resource: str = ""
    """``pods`` is without its subresources."""
    group: str = ""
    version: str = "v1"
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    timeout_seconds: int = 5
    side_effects: Literal["None", "NoneOnDryRun"] = "None"
    reinvocation_policy: Literal["Never", "IfNeeded"] = "Never"
    """Only of mutating webhooks."""
    namespace_selector: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """A label selector as the API writes it."""
    match_conditions: Mapping[str, str] = msgspec.field(default_factory=dict)
    """CEL expressions by name; all have to hold."""
    object_selector: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """A label selector as the API writes it."""
    rules: Sequence[Mapping[str, Any]] = ()
    """As the API writes them, in place of operations, resource, group and version."""
    is_guarded: bool = False
    """Whether the path begins with a random part, without which nothing is answered."""


class WebhookConfiguration(msgspec.Struct, frozen=True):
    """One webhook configuration object."""

    kind: ConfigurationKind
    name: str
    webhooks: tuple[WebhookSpec, ...]
    made_by_others: bool = False
    """Whether somebody else creates and removes the object, as the chart does: its webhooks are ours."""
    namespace: str = ""
    """The operator's namespace: whoever deletes it deletes the object, too."""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What it says of its webhooks."""

    @property
    def path(self) -> str:
        """Path of the object."""
        return self.kind.resource.path(name=self.name)

    @property
    def collection(self) -> str:
        """Path of all objects of its kind."""
        return self.kind.resource.path()


class ServiceAddress(msgspec.Struct, frozen=True):
    """The admission site behind a Service of the cluster."""

    namespace: str
    name: str
    port: int = 443
    """Port of the Service."""

    def client_config(self, path: str) -> dict[str, Any]:
        """Say where the API server calls this path."""
        service = {"namespace": self.namespace, "name": self.name, "port": self.port, "path": path}
        return {"service": service}

    def server_names(self) -> frozenset[str]:
        """Return the names that the certificate needs; the API server uses ``name.namespace.svc``."""
        short = f"{self.name}.{self.namespace}"
        return frozenset({self.name, short, f"{short}.svc", f"{short}.svc.cluster.local"})


class UrlAddress(msgspec.Struct, frozen=True):
    """The admission site at a URL that the API server reaches, for an operator outside the cluster."""

    base: str
    """``https://host[:port][/prefix]``; see :func:`url_address`."""

    def client_config(self, path: str) -> dict[str, Any]:
        """Say where the API server calls this path."""
        return {"url": f"{self.base.rstrip('/')}{path}"}

    def server_names(self) -> frozenset[str]:
        """Return the names that the certificate needs."""
        return frozenset({urllib.parse.urlsplit(self.base).hostname or ""})


ClientAddress = ServiceAddress | UrlAddress


def url_address(url: str) -> UrlAddress:
    """Return the address for a base URL that a user gave.

    Raises :class:`AddressError` for what the API server would refuse.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port_is_usable = parts.port != 0
    except ValueError as error:
        raise AddressError(f"the webhook URL {url!r} is not a URL: {error}") from error
    if parts.scheme != "https" or not parts.hostname or not port_is_usable or not _is_host(parts.hostname):
        raise AddressError(
            f"the webhook URL {url!r} cannot be called by the API server: write https://HOST[:PORT][/PREFIX]"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise AddressError(
            f"the webhook URL {url!r} has a user, query or fragment, which the API server refuses: remove it"
        )
    return UrlAddress(url)


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return ":" not in host and host.isascii() and not host.startswith((".", "-"))
    return True


def webhooks_of(
    configuration: WebhookConfiguration, address: ClientAddress, bundle: bytes | None, key: str
) -> list[dict[str, Any]]:
    """Return the ``webhooks`` of the object; without ``caBundle`` if ``bundle`` is ``None``.

    ``key`` is the random part of guarded paths.
    """
    return [_webhook(configuration.kind, webhook, address, bundle, key) for webhook in configuration.webhooks]


def guarded(path: str, key: str) -> str:
    """Return a path with the random part that it needs."""
    return f"/{key}{path}"


def _webhook(
    kind: ConfigurationKind, webhook: WebhookSpec, address: ClientAddress, bundle: bytes | None, key: str
) -> dict[str, Any]:
    path = guarded(webhook.path, key) if webhook.is_guarded else webhook.path
    client_config = address.client_config(path)
    if bundle is not None:
        client_config["caBundle"] = base64.b64encode(bundle).decode()
    rule = {
        "operations": list(webhook.operations),
        "apiGroups": [webhook.group],
        "apiVersions": [webhook.version],
        "resources": [webhook.resource],
        "scope": "Namespaced",
    }
    written = {
        "name": webhook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config,
        "rules": list(webhook.rules) or [rule],
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": dict(webhook.namespace_selector),
        "objectSelector": dict(webhook.object_selector),
        "sideEffects": webhook.side_effects,
        "timeoutSeconds": webhook.timeout_seconds,
        "matchConditions": [
            {"name": name, "expression": expression} for name, expression in webhook.match_conditions.items()
        ],
    }
    if kind is ConfigurationKind.MUTATING:
        written["reinvocationPolicy"] = webhook.reinvocation_policy
    return written


def owner(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reference by which an object without namespace goes together with that namespace."""
    metadata = namespace["metadata"]
    return {"apiVersion": "v1", "kind": "Namespace", "name": metadata["name"], "uid": metadata["uid"]}


def is_owned(live: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Say whether an object has that owner, if there is one to have."""
    return wanted is None or wanted in (live["metadata"].get("ownerReferences") or [])


def with_owner(owners: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return owner references with that one; one of the same namespace, since deleted and made anew, goes."""
    key = (wanted["kind"], wanted["name"])
    return [*(one for one in owners if (one.get("kind"), one.get("name")) != key), wanted]


def digest(configuration: WebhookConfiguration, address: ClientAddress) -> str:
    """Return a digest of what is wanted, whatever the certificates and keys."""
    text = orjson.dumps(webhooks_of(configuration, address, None, "*"), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:16]


def is_annotated(live: Mapping[str, Any], configuration: WebhookConfiguration) -> bool:
    """Say whether an object has the annotations that it should have."""
    return configuration.annotations.items() <= (live["metadata"].get("annotations") or {}).items()


def with_bundles_of(wanted: Sequence[dict[str, Any]], live: Sequence[Mapping[str, Any]]) -> None:
    """Take over the ``caBundle`` that others gave to webhooks of the same name."""
    bundles = {webhook.get("name"): (webhook.get("clientConfig") or {}).get("caBundle") for webhook in live}
    for webhook in wanted:
        if bundle := bundles.get(webhook["name"]):
            webhook["clientConfig"]["caBundle"] = bundle


_DECIDING: Final = frozenset({"url", "service", "matchLabels", "matchExpressions"})
"""Fields that say who is called, and for what, also where we have none of them."""


def is_within(wanted: object, live: object) -> bool:
    """Say whether all that is wanted is stored so; what a newer API adds to it does not count.

    It counts if it is another address, or selects. Lists have to have the same items.
    """
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        added = live.keys() - wanted.keys()
        return _DECIDING.isdisjoint(added) and all(
            is_within(value, live.get(key)) for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(map(is_within, wanted, live))
    # An empty list or mapping is stored as no field.
    return wanted == live or (live is None and wanted in ([], {}))

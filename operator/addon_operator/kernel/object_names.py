"""What names and labels of Kubernetes objects look like, as patterns in RE2's syntax and as checks.

Source: "Object Names and IDs" and "Labels and Selectors" of the Kubernetes documentation.
"""

import re
from typing import Final

DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""A whole name of a namespace, Service or container (RFC 1123)."""
SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""A whole name of most objects; besides, it has at most :data:`SUBDOMAIN_MAX` characters."""
SUBDOMAIN_MAX: Final = 253
RELEASE_MAX: Final = 53
"""How long the name of a Helm release may be."""
_LABEL_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_KEY: Final = rf"({SUBDOMAIN}/)?{_LABEL_NAME}"
"""A whole key of a label or annotation; what stands before ``/`` is a subdomain."""
LABEL_VALUE: Final = f"({_LABEL_NAME})?"

_DNS_LABEL: Final = re.compile(DNS_LABEL)
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_LABEL_KEY: Final = re.compile(LABEL_KEY)
_LABEL_VALUE: Final = re.compile(LABEL_VALUE)


def is_dns_label(text: str) -> bool:
    """Whether a text can be the name of a namespace."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether a text can be the name of an object of most kinds."""
    return len(text) <= SUBDOMAIN_MAX and _SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether a text can be the key of a label."""
    prefix, slash, _ = text.rpartition("/")
    return _LABEL_KEY.fullmatch(text) is not None and (not slash or len(prefix) <= SUBDOMAIN_MAX)


def is_label_value(text: str) -> bool:
    """Whether a text can be the value of a label."""
    return _LABEL_VALUE.fullmatch(text) is not None


def is_release_name(text: str) -> bool:
    """Whether Helm takes a text as the name of a release."""
    return len(text) <= RELEASE_MAX and is_subdomain(text)

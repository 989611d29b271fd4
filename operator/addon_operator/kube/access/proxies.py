"""Which HTTP proxy leads to the API server, by the usual variables.

``NO_PROXY`` is read as Go programs read it (host names, domains, addresses, CIDR blocks, ``*``), because the
variables of a cluster are written for those.
"""

import ipaddress
import urllib.parse
from collections.abc import Mapping


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for requests to ``server``, or ``None`` to connect directly."""
    url = urllib.parse.urlsplit(server)
    host = url.hostname or ""
    proxy = _variable(environ, f"{url.scheme}_proxy")
    if not proxy or _is_loopback(host) or _is_excepted(host, url.port, _variable(environ, "no_proxy")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excepted(host: str, port: int | None, no_proxy: str) -> bool:
    return any(_matches(host, port, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(host: str, port: int | None, entry: str) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        return address is not None and _in_network(address, entry)
    name, _, entry_port = entry.rpartition(":") if _has_port(entry) else (entry, "", "")
    if entry_port and entry_port != str(port or ""):
        return False
    if address is not None:
        return address == _address(name.strip("[]"))
    bare = name.removeprefix("*").lstrip(".")
    return host.endswith(f".{bare}") or (host == bare and not name.startswith((".", "*")))


def _has_port(entry: str) -> bool:
    return entry.count(":") == 1 or "]:" in entry


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _in_network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, block: str) -> bool:
    try:
        return address in ipaddress.ip_network(block, strict=False)
    except ValueError:
        return False

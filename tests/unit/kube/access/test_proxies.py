"""Which proxy leads to the API server."""

from addon_operator.kube.access import proxies

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


SCHEMES: list[tuple[str, dict[str, str], str | None]] = [
    ("https://api.example.com:6443", {}, None),
    ("https://api.example.com", PROXY, "http://proxy:3128"),
    ("https://api.example.com", {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
    ("http://api.example.com", PROXY, None),
    ("http://api.example.com", {"HTTP_PROXY": "http://p"}, "http://p"),
    ("https://127.0.0.1:6443", PROXY, None),
    ("https://[::1]:6443", PROXY, None),
    ("https://localhost:6443", PROXY, None),
]


def test_the_variable_of_the_scheme_counts() -> None:
    found = [(server, environ, proxies.proxy_for(server, environ)) for server, environ, _ in SCHEMES]
    assert found == SCHEMES


EXCEPTIONS = [
    ("https://api.example.com", "*", True),
    ("https://api.example.com", "api.example.com", True),
    ("https://api.example.com", "example.com", True),
    ("https://api.example.com", ".example.com", True),
    ("https://api.example.com", "*.example.com", True),
    ("https://example.com", ".example.com", False),
    ("https://notexample.com", "example.com", False),
    ("https://API.example.com", "api.EXAMPLE.com", True),
    ("https://api.example.com:6443", "api.example.com:6443", True),
    ("https://api.example.com:6443", "api.example.com:443", False),
    ("https://10.0.0.1:6443", "10.0.0.0/8", True),
    ("https://11.0.0.1:6443", "10.0.0.0/8", False),
    ("https://10.0.0.1:6443", "10.0.0.1", True),
    ("https://10.0.0.1:6443", "a, , 10.0.0.1", True),
    ("https://[fd00::1]:6443", "fd00::/8", True),
    ("https://[fd00::1]:6443", "fd00::1", True),
    ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
    ("https://10.0.0.1:6443", "10.0.0.0/99", False),
    ("https://api.example.com", "", False),
]


def test_no_proxy_is_read_as_go_reads_it() -> None:
    found = [
        (server, no_proxy, proxies.proxy_for(server, PROXY | {"NO_PROXY": no_proxy}) is None)
        for server, no_proxy, _ in EXCEPTIONS
    ]
    assert found == EXCEPTIONS

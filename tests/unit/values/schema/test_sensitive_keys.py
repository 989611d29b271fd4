"""What is hidden by its path or by the name of its key."""

from addon_operator.kernel import json_types
from addon_operator.values.schema import sensitive_keys
from tests.support import rows
from tests.unit import costs

BY_NAME = sensitive_keys.SensitiveKeys(by_name=True)
HIDDEN = sensitive_keys.HIDDEN


@rows.each(
    "key",
    [
        "password", "adminPassword", "admin_password", "ADMIN_PASSWORD", "passwd", "redisPass", "token",
        "authToken", "secret", "clientSecret", "secretKey", "secretAccessKey", "accessKey", "apiKey",
        "apikey",
        "privateKey", "rootPassphrase", "argocdServerAdminPassword", "encryptionKey", "credentials",
        "connectionString", "htpasswd", "postgres-password",
    ],
)  # fmt: skip
def test_keys_that_say_so_are_hidden(key: str) -> None:
    assert BY_NAME.masked({"a": {key: "hunter2"}}) == {"a": {key: HIDDEN}}
    assert BY_NAME.masked_at(["a", key], "hunter2") == HIDDEN


@rows.each(
    ("key", "value"),
    [
        ("existingSecret", "name"), ("secretName", "name"), ("tokenTTL", 3600), ("tokenTTL", "1h"),
        ("passwordFile", "/etc/pw"), ("existingSecretPasswordKey", "pw"),
        ("automountServiceAccountToken", True),
        ("password", ""), ("password", None), ("password", {"valueFrom": {"secretName": "x"}}),
        ("secret", {"create": True, "name": "x"}), ("imagePullSecrets", [{"name": "regcred"}]),
        ("imagePullSecrets", ["regcred"]), ("pullSecret", "regcred"), ("key", "app.kubernetes.io/name"),
        ("keys", ["a"]), ("topologyKey", "zone"), ("tlsSecret", "web-tls"), ("token", False),
        ("maxTokens", 3),
        ("secretRef", "x"), ("author", "me"), ("url", "https://example.com:8443/x"), ("replicas", 3),
    ],
)  # fmt: skip
def test_what_only_sounds_like_a_secret_is_shown(key: str, value: json_types.JsonValue) -> None:
    assert BY_NAME.masked({key: value}) == {key: value}


@rows.each(
    ("given", "shown"),
    [
        ({"password": 12345}, {"password": HIDDEN}),
        ({"passwords": {"ann": "x1", "bob": "x2"}}, {"passwords": {"ann": HIDDEN, "bob": HIDDEN}}),
        ({"apiKeys": ["x1", "x2"]}, {"apiKeys": [HIDDEN, HIDDEN]}),
        ({"stringData": {"a": "x1"}}, {"stringData": {"a": HIDDEN}}),
        (
            {"env": [{"name": "DB_PASSWORD", "value": "x1"}, {"name": "MODE", "value": "fast"}]},
            {"env": [{"name": "DB_PASSWORD", "value": HIDDEN}, {"name": "MODE", "value": "fast"}]},
        ),
        ({"pem": "-----BEGIN RSA PRIVATE KEY-----\nabc"}, {"pem": HIDDEN}),
        ({"url": "postgres://app:hunter2@db/app"}, {"url": HIDDEN}),
        ({"credentials": {"a": "b", "password": "x"}}, {"credentials": {"a": "b", "password": HIDDEN}}),
    ],
    ids=["number", "mapping", "list", "string data", "env", "key material", "address", "credentials"],
)  # fmt: skip
def test_what_holds_secrets_is_hidden(given: json_types.JsonObject, shown: json_types.JsonObject) -> None:
    assert BY_NAME.masked(given) == shown


def test_what_only_a_name_hides_is_known() -> None:
    hidden = sensitive_keys.SensitiveKeys((("auth", "token"),), by_name=True)
    section: json_types.JsonObject = {
        "auth": {"token": "a", "password": "b"},
        "users": [{"secretKey": "c"}],
        "x": 1,
    }
    assert hidden.by_name_alone(section) == [("auth", "password"), ("users", "0", "secretKey")]


def test_paths_hide_whatever_is_there() -> None:
    paths = (("auth", "login"), ("*", "key"), ("users", "*", "note"), ("a.b",), ("whole",))
    hidden = sensitive_keys.SensitiveKeys(paths)
    given: json_types.JsonObject = {
        "auth": {"login": 5, "other": 1},
        "s3": {"key": "x"},
        "users": [{"note": "x", "name": "ann"}],
        "a.b": True,
        "whole": {"a": 1},
        "key": "shown",
    }
    assert hidden.masked(given) == {
        "auth": {"login": HIDDEN, "other": 1},
        "s3": {"key": HIDDEN},
        "users": [{"note": HIDDEN, "name": "ann"}],
        "a.b": HIDDEN,
        "whole": HIDDEN,
        "key": "shown",
    }
    assert hidden.masked_at(["whole", "a"], 1) == HIDDEN
    assert hidden.masked_at(["users", "0"], {"note": "x"}) == {"note": HIDDEN}
    assert hidden.masked_at(["auth"], {"login": "x"}) == {"login": HIDDEN}


def test_a_long_name_above_many_items_is_looked_at_once_per_item_at_most() -> None:
    def make(size: int) -> json_types.JsonObject:
        return {"x" * size + "Secret": [{"name": "a", "value": "b"} for _ in range(size // 10)]}

    assert costs.is_linear(make, BY_NAME.masked, 2000)
    assert BY_NAME.masked({"x" * 2000 + "Password": "hunter2"}) == {"x" * 2000 + "Password": HIDDEN}


def test_a_key_is_looked_up_once_however_many_paths_are_hidden() -> None:
    def make(size: int) -> tuple[sensitive_keys.SensitiveKeys, json_types.JsonObject]:
        paths = tuple((f"key{number}", "*", "deep") for number in range(size))
        return sensitive_keys.SensitiveKeys(paths), {
            f"key{number}": {"a": {"deep": 1}} for number in range(size)
        }

    assert costs.is_linear(make, lambda made: made[0].masked(made[1]), 300)
    hidden, value = make(2)
    assert hidden.masked(value) == {f"key{number}": {"a": {"deep": HIDDEN}} for number in range(2)}

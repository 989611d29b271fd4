"""What is hidden without a schema that says so: paths that ``module.yaml`` names, and keys by their names.

A name tells by its last word or words: ``adminPassword``, ``DB_PASSWORD`` and ``s3.secretKey`` hold secrets,
``existingSecret``, ``secretName``, ``passwordFile`` and ``tokenTTL`` do not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import structs

from addon_operator.kernel import json_types

HIDDEN: Final = "***"
"""What is shown of a sensitive value."""
ANY: Final = "*"
_TELLING: Final = 200
"""How many characters of a name are looked at, from its end."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORDS: Final = frozenset({"password", "passwd", "passphrase", "passcode", "pwd"})
"""Hidden if it is a number, too."""
_SECRETS: Final = _PASSWORDS | {
    "pass", "secret", "token", "credential", "credentials", "htpasswd", "apikey", "privatekey", "secretkey",
    "accesskey", "bearer", "jwt", "dsn", "kubeconfig", "dockerconfigjson", "keytab",
}  # fmt: skip
_KEYS: Final = frozenset(
    {"access", "account", "api", "app", "application", "auth", "client", "encryption", "hmac", "license",
     "master", "preshared", "private", "root", "secret", "shared", "signing", "ssh", "storage", "tls"}
)  # fmt: skip
"""What ``key`` is preceded by where it is key material."""
_PAIRS: Final = frozenset(
    {("connection", "string"), ("string", "data"), ("secret", "data"), ("secret", "env")}
)
_NAMES: Final = frozenset(
    {"existing", "pull", "external", "tls", "cert", "certificate", "ca", "use", "create"}
)
"""What makes a ``…Secret`` the name of a Secret, or a switch."""
_KEY_MATERIAL: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_IN_ADDRESS: Final = re.compile(r"\A[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:[^/\s@]+@")
_VARIABLE: Final = ("name", "value")
"""The keys of an item in a list of environment variables."""

Path = tuple[str, ...]
_Tree: TypeAlias = "dict[str | None, _Tree]"
_END: Final = None


class SensitiveKeys(msgspec.Struct, frozen=True):
    """What of a section is hidden."""

    paths: tuple[Path, ...] = ()
    """Keys from the section on; :data:`ANY` is any key, or any item of a list."""
    by_name: bool = False
    """Whether keys whose names say so are hidden."""

    def __bool__(self) -> bool:
        return bool(self.paths) or self.by_name

    def masked(self, value: json_types.JsonValue) -> json_types.JsonValue:
        """Return a copy of a section that shows :data:`HIDDEN` for each sensitive value."""
        return _masked(value, (_tree(self.paths),), "" if self.by_name else None)

    def by_name_alone(self, value: json_types.JsonValue) -> list[Path]:
        """Return the places of a section that are hidden only because a name says so."""
        described = structs.replace(self, by_name=False).masked(value)
        return list(_differing(described, self.masked(value), ()))

    def masked_at(self, path: Sequence[str], value: json_types.JsonValue) -> json_types.JsonValue:
        """Copy what stands, or will stand, at ``path`` (tokens of a JSON Pointer below the section)."""
        paths: Sequence[_Tree] = (_tree(self.paths),)
        name = ""
        for token in path:
            paths = _below(paths, token)
            if _is_end(paths):
                return HIDDEN
            # The items of a list, and what a mapping of secrets holds, are what their key says.
            name = name if token.isdecimal() or _is_plural(name) else token
        return _masked(value, paths, name if self.by_name else None)


def _differing(one: json_types.JsonValue, other: json_types.JsonValue, path: Path) -> Iterator[Path]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key, value in one.items():
            yield from _differing(value, other[key], (*path, key))
    elif isinstance(one, list) and isinstance(other, list):
        for index, (value, masked) in enumerate(zip(one, other, strict=True)):
            yield from _differing(value, masked, (*path, str(index)))
    elif one != other:
        yield path


def _tree(paths: Iterable[Path]) -> _Tree:
    """Return paths by their first keys, so that a key is looked up once however many there are."""
    tree: _Tree = {}
    for path in paths:
        below = tree
        for key in path:
            below = below.setdefault(key, {})
        below[_END] = {}
    return tree


def _below(trees: Sequence[_Tree], key: str) -> tuple[_Tree, ...]:
    return tuple(tree[each] for tree in trees for each in {key, ANY} if each in tree)


def _is_end(trees: Sequence[_Tree]) -> bool:
    return any(_END in tree for tree in trees)


def _masked(value: json_types.JsonValue, paths: Sequence[_Tree], name: str | None) -> json_types.JsonValue:
    """Copy the value without what is sensitive; ``name`` is its key, ``None`` if names do not count."""
    if _is_end(paths):
        return HIDDEN
    if isinstance(value, dict):
        variable = name is not None and _is_variable(value)
        return {
            key: HIDDEN
            if variable and key == _VARIABLE[1]
            else _masked(inner, _below(paths, key), _name_of(key, inner, name))
            for key, inner in value.items()
        }
    if isinstance(value, list):
        inner_name = name if name is None or _is_plural(name) else ""
        return [_masked(inner, _below(paths, str(index)), inner_name) for index, inner in enumerate(value)]
    return HIDDEN if name is not None and _is_hidden(name, value) else value


def _name_of(key: str, value: json_types.JsonValue, above: str | None) -> str | None:
    """Return the name by which a value is judged: all texts in ``passwords`` are passwords."""
    if above is None:
        return None
    return above if _is_plural(above) and isinstance(value, str) else key


def _is_hidden(name: str, value: json_types.JsonValue) -> bool:
    if isinstance(value, str) and value:
        return _says_secret(name) or bool(_KEY_MATERIAL.search(value) or _IN_ADDRESS.match(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and bool(words := _words(name)) and words[-1] in _PASSWORDS


def _is_variable(item: json_types.JsonObject) -> bool:
    """Say whether it gives an environment variable whose name says that it holds a secret."""
    name, value = (item.get(key) for key in _VARIABLE)
    return isinstance(name, str) and isinstance(value, str) and bool(value) and _says_secret(name)


def _words(name: str) -> list[str]:
    # The name of a mapping is looked at for each of its items.
    return [word.lower() for word in _WORD.findall(name[-_TELLING:])]


def _says_secret(name: str) -> bool:
    words = _words(name)
    if not words or "existing" in words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last.endswith("s") and last not in _SECRETS:
        last = last.removesuffix("s")
    if last == "secret":
        return before not in _NAMES
    if last == "key":
        return before in _KEYS
    return last in _SECRETS or (before, last) in _PAIRS


def _is_plural(name: str) -> bool:
    """Say whether the texts in a mapping or list of that name are secrets, whatever their own keys are."""
    words = _words(name)
    is_many = bool(words) and (words[-1].endswith("s") or words[-1] in ("data", "env"))
    return is_many and words[-1] not in ("secrets", "credentials", "pass") and _says_secret(name)

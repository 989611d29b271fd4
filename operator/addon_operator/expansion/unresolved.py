"""References of a container that stay as they are, found by names alone.

What variables hold does not matter for this, so nothing is expanded: the time and the memory are those of the
container's own size, whatever it refers to.
"""

import bisect
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from addon_operator.expansion import environment, fields, references, shells
from addon_operator.kernel.json_types import KubernetesObject

Keys = Mapping[str, Collection[str]]
"""Keys of ConfigMaps or Secrets: name → keys."""

_KEY_MAX: Final = 253
"""Longest key of a ConfigMap or Secret, in characters."""
_ALWAYS_DEFINED: Final = ("fieldRef", "resourceFieldRef", "fileKeyRef")


def unresolved_references(
    container: KubernetesObject,
    *,
    config_maps: Keys,
    secrets: Keys,
    service_variables: Iterable[Collection[str]],
    most: int = sys.maxsize,
) -> list[references.UnresolvedReference]:
    """Return what :func:`container_environment` calls ``unresolved``, in linear time and without any value.

    ``config_maps`` and ``secrets`` hold what is in the pod's namespace, ``service_variables`` the names of
    variables that the pod gets of Services, in any number of collections. It stops looking when it has found
    ``most`` references.

    Raises :class:`MalformedObjectError` for a container that the Kubernetes API would not take.
    """
    node = fields.named("container", container)
    keys = {"ConfigMap": config_maps, "Secret": secrets}
    return _Finder(node, keys, _EnvFrom(node, keys), tuple(service_variables), most).find()


class _EnvFrom:
    """The variables that ``envFrom`` defines, without a list of them: keys may have many prefixes."""

    def __init__(self, container: fields.Node, keys: Mapping[str, Keys]) -> None:
        self._found: dict[str, dict[tuple[str, str], Collection[str]]] = {}
        awaited: set[str] = set()
        for entry in container.children("envFrom"):
            kind, ref = environment.env_from_source(entry)
            name, prefix = ref.required_text("name"), entry.text("prefix")
            held = keys[kind].get(name)
            if held is not None:
                self._found.setdefault(prefix, {})[kind, name] = held
            elif not ref.flag("optional", default=False):
                awaited.add(prefix)
        self._lengths = sorted({len(prefix) for prefix in self._found})
        self._awaited = _shortest(awaited)

    def defines(self, name: str) -> bool:
        """Say whether a source that exists has the variable."""
        if not self._found or not environment.PASSED_ON.fullmatch(name):
            return False
        first = bisect.bisect_left(self._lengths, len(name) - _KEY_MAX)
        for length in self._lengths[first : bisect.bisect_left(self._lengths, len(name))]:
            for keys in self._found.get(name[:length], {}).values():
                if name[length:] in keys:
                    return True
        return False

    def may_define(self, name: str) -> bool:
        """Say whether a required source that does not exist yet can have the variable."""
        # Of the prefixes that do not begin each other, only the last one before the name can begin it.
        place = bisect.bisect_right(self._awaited, name)
        return place > 0 and name.startswith(self._awaited[place - 1])


def _shortest(prefixes: Iterable[str]) -> list[str]:
    """Return the prefixes that begin with no other one, in order."""
    shortest: list[str] = []
    for prefix in sorted(prefixes):
        if not shortest or not prefix.startswith(shortest[-1]):
            shortest.append(prefix)
    return shortest


class _Finder:
    """Goes through a container in the order in which the kubelet does."""

    def __init__(
        self,
        container: fields.Node,
        keys: Mapping[str, Keys],
        env_from: _EnvFrom,
        service_variables: tuple[Collection[str], ...],
        most: int,
    ) -> None:
        self._most = most
        self._container = container
        self._keys = keys
        self._env_from = env_from
        self._service_variables = service_variables
        self._defined: set[str] = set()
        self._awaited: set[str] = set()
        self._known: dict[str, bool] = {}
        self._script: str | None = None
        self._unresolved: dict[references.UnresolvedReference, None] = {}

    def find(self) -> list[references.UnresolvedReference]:
        for entry in self._container.children("env"):
            self._add_variable(entry)
        texts = {key: self._container.texts(key) for key in ("command", "args")}
        self._script = shells.script_place(texts["command"], texts["args"])
        for key, listed in texts.items():
            for i, text in enumerate(listed):
                self._refer(text, f"{key}[{i}]")
        return list(self._unresolved)

    def _add_variable(self, entry: fields.Node) -> None:
        name, value = entry.required_text("name"), entry.text("value")
        if value:
            self._refer(value, f"env {name}")
        elif entry.has("valueFrom") and not self._note_source(name, entry.child("valueFrom")):
            return
        self._defined.add(name)
        self._awaited.discard(name)

    def _note_source(self, name: str, source: fields.Node) -> bool:
        """Return whether the source gives a value now; if it still has to be there, the name is awaited."""
        if any(source.has(key) for key in _ALWAYS_DEFINED):
            return True
        kind, ref = environment.key_source(source)
        if ref.required_text("key") in self._keys[kind].get(ref.required_text("name"), ()):
            return True
        if not ref.flag("optional", default=False):
            # Whatever the name stood for so far, it will not when the container starts.
            self._awaited.add(name)
            self._defined.discard(name)
        return False

    def _refer(self, text: str, where: str) -> None:
        if len(self._unresolved) >= self._most:
            return
        for name in references.names(text):
            if not self._is_resolved(name):
                pending = name in self._awaited or self._env_from.may_define(name)
                reference = references.UnresolvedReference(name, where, pending, where == self._script)
                self._unresolved.setdefault(reference)
                if len(self._unresolved) >= self._most:
                    return

    def _is_resolved(self, name: str) -> bool:
        if name in self._defined or name in self._awaited:
            return name in self._defined
        if name not in self._known:
            given = any(name in names for names in self._service_variables)
            self._known[name] = given or self._env_from.defines(name)
        return self._known[name]

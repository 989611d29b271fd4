"""References of a container that stay as they are, found by names alone.

Of what variables hold, only that it is nothing matters, so nothing is expanded: the time and the memory are
those of the container's own size, whatever it refers to.
"""

import bisect
import sys
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from addon_operator.documents import text_parts
from addon_operator.expansion import downward, environment, fields, references, shells
from addon_operator.kernel.json_types import KubernetesObject

Keys = Mapping[str, Collection[str]]
"""Keys of ConfigMaps or Secrets: name → keys."""

EmptyKey: TypeAlias = tuple[str, str, str]
"""``ConfigMap`` or ``Secret``, its name, and a key with an empty value."""
_KEY_MAX: Final = 253
"""Longest key of a ConfigMap or Secret, in characters."""
_ALWAYS_DEFINED: Final = ("fieldRef", "resourceFieldRef", "fileKeyRef")


def unresolved_references(
    pod: KubernetesObject,
    container: KubernetesObject,
    *,
    config_maps: Keys,
    secrets: Keys,
    empty: Container[EmptyKey] = (),
    service_variables: Iterable[Collection[str]],
    most: int = sys.maxsize,
) -> list[references.UnresolvedReference]:
    """Return what :func:`container_environment` calls ``unresolved``, in linear time and without any value.

    ``config_maps`` and ``secrets`` hold what is in the pod's namespace, ``empty`` those keys of theirs that
    hold nothing, ``service_variables`` the names of variables that the pod gets of Services, in any number of
    collections. It stops looking when it has found ``most`` references.

    Raises :class:`MalformedObjectError` for a container that the Kubernetes API would not take.
    """
    node = fields.named("container", container)
    keys = {"ConfigMap": config_maps, "Secret": secrets}
    env_from = _EnvFrom(node, keys, empty)
    return _Finder(pod, node, keys, empty, env_from, tuple(service_variables), most).find()


class _EnvFrom:
    """The variables that ``envFrom`` defines, without a list of them: keys may have many prefixes."""

    def __init__(self, container: fields.Node, keys: Mapping[str, Keys], empty: Container[EmptyKey]) -> None:
        self._found: dict[str, dict[tuple[str, str], tuple[int, Collection[str]]]] = {}
        self._empty = empty
        awaited: set[str] = set()
        for place, entry in enumerate(container.children("envFrom")):
            kind, ref = environment.env_from_source(entry)
            name, prefix = ref.required_text("name"), entry.text("prefix")
            held = keys[kind].get(name)
            if held is not None:
                self._found.setdefault(prefix, {})[kind, name] = place, held
            elif not ref.flag("optional", default=False):
                awaited.add(prefix)
        self._lengths = sorted({len(prefix) for prefix in self._found})
        self._awaited = _shortest(awaited)

    def defines(self, name: str) -> bool:
        """Say whether a source that exists has the variable."""
        return next(self._definitions(name), None) is not None

    def is_empty(self, name: str) -> bool:
        """Say whether the last source that has the variable gives it nothing."""
        return max(self._definitions(name), default=(0, ("", "", "")))[1] in self._empty

    def _definitions(self, name: str) -> Iterator[tuple[int, EmptyKey]]:
        """Yield the places of what defines a variable, and the keys in question."""
        if not self._found or not environment.PASSED_ON.fullmatch(name):
            return
        first = bisect.bisect_left(self._lengths, len(name) - _KEY_MAX)
        for length in self._lengths[first : bisect.bisect_left(self._lengths, len(name))]:
            for (kind, source), (place, keys) in self._found.get(name[:length], {}).items():
                if name[length:] in keys:
                    yield place, (kind, source, name[length:])

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
        pod: KubernetesObject,
        container: fields.Node,
        keys: Mapping[str, Keys],
        empty: Container[EmptyKey],
        env_from: _EnvFrom,
        service_variables: tuple[Collection[str], ...],
        most: int,
    ) -> None:
        self._most = most
        mounts = enumerate(container.children("volumeMounts"))
        self._paths = {i: text for i, mount in mounts if (text := mount.text("subPathExpr"))}
        self._pod = pod
        self._container = container
        self._keys = keys
        self._empty_keys = empty
        self._env_from = env_from
        self._service_variables = service_variables
        self._defined: set[str] = set()
        self._empty: set[str] = set()
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
        for i, text in self._paths.items():
            self._refer(text, environment.sub_path_place(i), is_path=True)
        return list(self._unresolved)

    def _add_variable(self, entry: fields.Node) -> None:
        name, value = entry.required_text("name"), entry.text("value")
        is_empty = not value
        if value:
            self._refer(value, f"env {name}")
            is_empty = self._expands_to_nothing(value)
        elif entry.has("valueFrom"):
            if not self._note_source(name, entry.child("valueFrom")):
                return
            is_empty = self._is_empty_source(entry.child("valueFrom"))
        self._defined.add(name)
        (self._empty.add if is_empty else self._empty.discard)(name)
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

    def _is_empty_source(self, source: fields.Node) -> bool:
        if source.has("fieldRef"):
            return not downward.field_value(fields.named("pod", self._pod), source.child("fieldRef"))
        if any(source.has(key) for key in _ALWAYS_DEFINED):
            return False
        kind, ref = environment.key_source(source)
        return (kind, ref.required_text("name"), ref.required_text("key")) in self._empty_keys

    def _expands_to_nothing(self, text: str) -> bool:
        # Only paths of mounts differ in it.
        return (
            bool(self._paths)
            and not references.expand(text, lambda _: "")
            and all(
                self._is_resolved(name) and self._has_nothing(name) for name in text_parts.variables(text)
            )
        )

    def _has_nothing(self, name: str) -> bool:
        """Say whether a name that is resolved has an empty value."""
        if name in self._defined:
            return name in self._empty
        # Variables of Services are never empty, and stand behind those of the container.
        return self._env_from.defines(name) and self._env_from.is_empty(name)

    def _refer(self, text: str, where: str, *, is_path: bool = False) -> None:
        if len(self._unresolved) >= self._most:
            return
        for name in text_parts.variables(text):
            if not self._is_resolved(name) or (is_path and self._has_nothing(name)):
                pending = name in self._awaited or self._env_from.may_define(name)
                reference = references.UnresolvedReference(
                    name, where, pending, where == self._script, is_path
                )
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

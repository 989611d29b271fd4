"""The environment of a container, built the way the kubelet does: with all values, or by names alone.

By names alone, of what a variable holds only that it is nothing matters. Nothing is expanded, so the time and
the memory are those of the container's own size, whatever it refers to.
"""

import abc
import bisect
import re
import sys
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Final, Self, TypeAlias

from addon_operator.documents import text_parts
from addon_operator.expansion import downward, fields, references, services, shells
from addon_operator.kernel.json_types import KubernetesObject

Contents = Mapping[str, Mapping[str, str]]
"""Contents of ConfigMaps or Secrets: name → key → text."""
Keys = Mapping[str, Collection[str]]
"""Keys of ConfigMaps or Secrets: name → keys."""
EmptyKey: TypeAlias = tuple[str, str, str]
"""``ConfigMap`` or ``Secret``, its name, and a key with an empty value."""

# What current kubelets pass on: printable ASCII without the equals sign.
_PASSED_ON: Final = re.compile(r"[ -<>-~]+")
_KEY_REFS: Final = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
_ENV_FROM: Final = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
_VALUE_SOURCES: Final = ("fieldRef", "resourceFieldRef", *_KEY_REFS, "fileKeyRef")
_KEY_MAX: Final = 253
"""Longest key of a ConfigMap or Secret, in characters."""
_SOMETHING: Final = "x"
"""Stands for any value that is not empty."""


def container_environment(
    pod: KubernetesObject,
    container: KubernetesObject,
    *,
    services: Iterable[KubernetesObject],
    config_maps: Contents,
    secrets: Contents,
    master_services: Iterable[KubernetesObject],
    limit: int = fields.EXPANDED_MAX,
) -> references.ContainerEnvironment:
    """Return the environment, command, args and ``subPathExpr`` that a container of a pod gets.

    ``services`` are those of the pod's namespace, ``master_services`` those of ``default`` (only the one
    called ``kubernetes`` counts); ``config_maps`` and ``secrets`` hold what is in the pod's namespace, as
    name → key → text. Nothing is changed or kept.

    Raises :class:`MalformedObjectError` for objects that the Kubernetes API would not take, and
    :class:`ExpansionSizeError` as soon as names, values, command and args would have more than ``limit``
    characters together; a variable that is set again counts again.
    Source: "Building a container's environment" as the kubelet does it.
    """
    contents = {"ConfigMap": config_maps, "Secret": secrets}
    return _WithValues(pod, container, contents, services, master_services, limit).walk().result()


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
    keys = {"ConfigMap": config_maps, "Secret": secrets}
    return list(_ByNames(pod, container, keys, empty, tuple(service_variables), most).walk().unresolved)


class _Walk(abc.ABC):
    """Goes through a container in the order in which the kubelet does; each variable sees those before it."""

    def __init__(
        self, pod: KubernetesObject, container: KubernetesObject, contents: Mapping[str, Keys]
    ) -> None:
        self._pod = fields.named("pod", pod)
        self._container = fields.named("container", container)
        self._contents = contents
        self._script = shells.script_place(self._container.texts("command"), self._container.texts("args"))
        self._env: dict[str, str] = {}
        self._awaited: set[str] = set()
        self._awaited_prefixes: list[str] = []
        self.unresolved: dict[references.UnresolvedReference, None] = {}
        self._missing: list[references.MissingSource] = []
        self._texts: dict[str, list[str]] = {"command": [], "args": []}
        self._sub_paths: list[references.SubPath] = []

    def walk(self) -> Self:
        for place, entry in enumerate(self._container.children("envFrom")):
            self._add_source(place, entry)
        self._awaited_prefixes = _shortest(self._awaited_prefixes)
        for entry in self._container.children("env"):
            self._add_variable(entry)
        for key, expanded in self._texts.items():
            for i, text in enumerate(self._container.texts(key)):
                expanded.append(self._expand(text, f"{key}[{i}]"))
                self._spend(len(expanded[-1]))
        for i, mount in enumerate(self._container.children("volumeMounts")):
            if text := mount.text("subPathExpr"):
                value = self._expand(text, f"subPathExpr of volumeMounts[{i}]", is_path=True)
                self._spend(len(value))
                self._sub_paths.append(references.SubPath(mount.text("mountPath"), value))
        return self

    def _add_source(self, place: int, entry: fields.Node) -> None:
        kind, ref = _one_of(entry, _ENV_FROM, tuple(_ENV_FROM))
        name, prefix = ref.required_text("name"), entry.text("prefix")
        is_optional, held = ref.flag("optional", default=False), self._held(kind, name)
        if held is not None:
            self._take(place, prefix, kind, name, held)
        elif not is_optional:
            self._missing.append(references.MissingSource(f"{kind} {name}", None, f"envFrom[{place}]"))
            self._awaited_prefixes.append(prefix)

    def _add_variable(self, entry: fields.Node) -> None:
        name = entry.required_text("name")
        value: str | None = entry.text("value")
        if value:
            value = self._expand(value, f"env {name}")
        elif entry.has("valueFrom"):
            value = self._value_from(name, entry.child("valueFrom"))
        if value is not None:
            self._set(name, value)
            self._awaited.discard(name)

    def _set(self, name: str, value: str) -> None:
        self._spend(len(name) + len(value))
        self._env[name] = value

    def _value_from(self, name: str, source: fields.Node) -> str | None:
        if source.has("fieldRef"):
            return downward.field_value(self._pod, source.child("fieldRef"))
        if source.has("resourceFieldRef"):
            return self._resource(source.child("resourceFieldRef"))
        if source.has("fileKeyRef"):
            return downward.placeholder(f"fileKeyRef {source.child('fileKeyRef').required_text('key')}")
        kind, ref = _one_of(source, _KEY_REFS, _VALUE_SOURCES)
        held, key = self._held(kind, ref.required_text("name")), ref.required_text("key")
        if held is not None and key in held:
            return self._content(kind, ref.text("name"), key)
        if not ref.flag("optional", default=False):
            lacking = None if held is None else key
            source_name = f"{kind} {ref.text('name')}"
            self._missing.append(references.MissingSource(source_name, lacking, f"env {name}"))
            # Whatever the name stood for so far, it will not when the container starts.
            self._awaited.add(name)
            self._env.pop(name, None)
        return None

    def _value(self, name: str) -> str | None:
        """Return what a variable holds so far; ``None`` if it is undefined, or the container waits for it."""
        if name in self._env or name in self._awaited:
            return self._env.get(name)
        return self._given(name)

    def _note_unresolved(self, name: str, where: str, *, is_fatal: bool) -> None:
        """Note a reference that nothing resolves so far."""
        # Of the prefixes that do not begin each other, only the last one before the name can begin it.
        place = bisect.bisect_right(self._awaited_prefixes, name)
        is_brought = place > 0 and name.startswith(self._awaited_prefixes[place - 1])
        self.unresolved.setdefault(
            references.UnresolvedReference(
                name, where, is_brought or name in self._awaited, where == self._script, is_fatal
            )
        )

    def _held(self, kind: str, name: str) -> Collection[str] | None:
        """Return the keys of a ConfigMap or Secret; ``None`` if it does not exist."""
        return self._contents[kind].get(name)

    @abc.abstractmethod
    def _take(self, place: int, prefix: str, kind: str, name: str, held: Collection[str]) -> None:
        """Take the keys of a source of ``envFrom``."""

    @abc.abstractmethod
    def _content(self, kind: str, name: str, key: str) -> str:
        """Return what a key holds."""

    @abc.abstractmethod
    def _given(self, name: str) -> str | None:
        """Return the value of a variable that no entry of ``env`` sets."""

    @abc.abstractmethod
    def _resource(self, ref: fields.Node) -> str:
        """Return the value of a ``resourceFieldRef``."""

    @abc.abstractmethod
    def _expand(self, text: str, where: str, *, is_path: bool = False) -> str:
        """Expand a text, and note what stays unresolved in it; in a path an empty value counts as none."""

    def _spend(self, characters: int) -> None:  # noqa: B027 - only values have a size
        """Count characters of the result."""


class _WithValues(_Walk):
    """Collects the values."""

    def __init__(
        self,
        pod: KubernetesObject,
        container: KubernetesObject,
        contents: Mapping[str, Contents],
        own: Iterable[KubernetesObject],
        masters: Iterable[KubernetesObject],
        limit: int,
    ) -> None:
        super().__init__(pod, container, contents)
        self._limit = self._room = limit
        links = self._pod.child("spec").flag("enableServiceLinks", default=True)
        self._service_env = services.pod_service_environment(own, masters, links=links)
        self._spend(sum(len(name) + len(value) for name, value in self._service_env.items()))
        self._skipped: list[references.SkippedKey] = []

    def result(self) -> references.ContainerEnvironment:
        hidden = self._env.keys() | self._awaited
        left = {name: value for name, value in self._service_env.items() if name not in hidden}
        return references.ContainerEnvironment(
            env=self._env | left,
            command=self._texts["command"],
            args=self._texts["args"],
            sub_paths=self._sub_paths,
            unresolved=list(self.unresolved),
            missing=self._missing,
            skipped=self._skipped,
        )

    def _data(self, kind: str, name: str) -> fields.Node:
        return fields.root(f"{kind} {name}", {"data": self._contents[kind][name]}).child("data")

    def _held(self, kind: str, name: str) -> Collection[str] | None:
        return None if super()._held(kind, name) is None else self._data(kind, name).value

    def _take(self, place: int, prefix: str, kind: str, name: str, held: Collection[str]) -> None:  # noqa: ARG002
        for key, value in self._data(kind, name).text_map().items():
            if _PASSED_ON.fullmatch(prefix + key):
                self._set(prefix + key, value)
            else:
                self._skipped.append(references.SkippedKey(f"{kind} {name}", key, prefix + key))

    def _content(self, kind: str, name: str, key: str) -> str:
        return self._data(kind, name).text(key)

    def _given(self, name: str) -> str | None:
        return self._service_env.get(name)

    def _resource(self, ref: fields.Node) -> str:
        return downward.resource_value(self._pod, self._container, ref)

    def _expand(self, text: str, where: str, *, is_path: bool = False) -> str:
        def mapping(name: str) -> str:
            value = self._value(name)
            if value or (value is not None and not is_path):
                return value
            self._note_unresolved(name, where, is_fatal=is_path)
            return f"$({name})"

        try:
            return references.expand(text, mapping, limit=self._room)
        except fields.ExpansionSizeError:
            raise self._too_large() from None

    def _spend(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise self._too_large()

    def _too_large(self) -> fields.ExpansionSizeError:
        subject = f"{self._container.subject}: the environment with command and args"
        return fields.ExpansionSizeError(subject, self._limit)


class _ByNames(_Walk):
    """Looks names up in the keys of sources, without a list of the variables: keys may have many prefixes."""

    def __init__(
        self,
        pod: KubernetesObject,
        container: KubernetesObject,
        contents: Mapping[str, Keys],
        empty: Container[EmptyKey],
        service_variables: tuple[Collection[str], ...],
        most: int,
    ) -> None:
        super().__init__(pod, container, contents)
        self._empty = empty
        self._service_variables = service_variables
        self._most = most
        self._sources: dict[str, dict[tuple[str, str], tuple[int, Collection[str]]]] = {}
        self._lengths: list[int] = []
        self._known: dict[str, str | None] = {}

    def _take(self, place: int, prefix: str, kind: str, name: str, held: Collection[str]) -> None:
        if len(prefix) not in self._lengths:
            bisect.insort(self._lengths, len(prefix))
        self._sources.setdefault(prefix, {})[kind, name] = place, held

    def _content(self, kind: str, name: str, key: str) -> str:
        return "" if (kind, name, key) in self._empty else _SOMETHING

    def _given(self, name: str) -> str | None:
        if name not in self._known:
            defined = max(self._definitions(name), default=None)
            is_of_service = defined is None and any(name in names for names in self._service_variables)
            self._known[name] = (
                self._content(*defined[1]) if defined else _SOMETHING if is_of_service else None
            )
        return self._known[name]

    def _definitions(self, name: str) -> Iterator[tuple[int, EmptyKey]]:
        """Yield the places of sources that have a variable, and the keys in question."""
        if not self._sources or not _PASSED_ON.fullmatch(name):
            return
        first = bisect.bisect_left(self._lengths, len(name) - _KEY_MAX)
        for length in self._lengths[first : bisect.bisect_left(self._lengths, len(name))]:
            for (kind, source), (place, keys) in self._sources.get(name[:length], {}).items():
                if name[length:] in keys:
                    yield place, (kind, source, name[length:])

    def _resource(self, ref: fields.Node) -> str:  # noqa: ARG002
        return _SOMETHING

    def _expand(self, text: str, where: str, *, is_path: bool = False) -> str:
        is_empty = not references.expand(text, lambda _: "")
        for name in text_parts.variables(text):
            if len(self.unresolved) >= self._most:
                break
            value = self._value(name)
            is_empty = is_empty and value == ""
            if value is None or (is_path and not value):
                self._note_unresolved(name, where, is_fatal=is_path)
        return "" if is_empty else _SOMETHING


def _shortest(prefixes: Iterable[str]) -> list[str]:
    """Return the prefixes that begin with no other one, in order."""
    shortest: list[str] = []
    for prefix in sorted(prefixes):
        if not shortest or not prefix.startswith(shortest[-1]):
            shortest.append(prefix)
    return shortest


def _one_of(node: fields.Node, kinds: Mapping[str, str], choices: Iterable[str]) -> tuple[str, fields.Node]:
    """Return the kind of what the first of these fields refers to, and the reference."""
    for key, kind in kinds.items():
        if node.has(key):
            return kind, node.child(key)
    raise node.problem("", f"needs one of {', '.join(choices)}")

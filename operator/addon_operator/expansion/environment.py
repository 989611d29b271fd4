"""The environment of a container, built the way the kubelet does."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from addon_operator.expansion import downward, fields, references, services, shells
from addon_operator.kernel.json_types import KubernetesObject

Contents = Mapping[str, Mapping[str, str]]
"""Contents of ConfigMaps or Secrets: name → key → text."""

# What current kubelets pass on: printable ASCII without the equals sign.
PASSED_ON: Final = re.compile(r"[ -<>-~]+")
"""Names of variables that a container gets from ``envFrom``."""
_KEY_REFS: Final = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
_ENV_FROM: Final = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
_VALUE_SOURCES: Final = ("fieldRef", "resourceFieldRef", *_KEY_REFS, "fileKeyRef")


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
    pod_node = fields.named("pod", pod)
    builder = _Builder(
        pod_node,
        fields.named("container", container),
        {"ConfigMap": config_maps, "Secret": secrets},
        _service_variables(pod_node, services, master_services),
        limit,
    )
    return builder.build()


def _service_variables(
    pod: fields.Node, own: Iterable[KubernetesObject], masters: Iterable[KubernetesObject]
) -> dict[str, str]:
    links = pod.child("spec").flag("enableServiceLinks", default=True)
    return services.pod_service_environment(own, masters, links=links)


class _Source(msgspec.Struct, frozen=True):
    """A ConfigMap or Secret that something refers to."""

    label: str
    optional: bool
    data: fields.Node | None


class _Builder:
    """Collects variables in the order in which the kubelet does; each sees those before it."""

    def __init__(
        self,
        pod: fields.Node,
        container: fields.Node,
        contents: Mapping[str, Contents],
        service_env: dict[str, str],
        limit: int,
    ) -> None:
        self._script = shells.script_place(container.texts("command"), container.texts("args"))
        self._limit = limit
        self._room = limit
        self._pod = pod
        self._container = container
        self._contents = contents
        self._service_env = service_env
        self._spend(sum(len(name) + len(value) for name, value in service_env.items()))
        self._env: dict[str, str] = {}
        self._awaited: set[str] = set()
        self._awaited_prefixes: list[str] = []
        self._unresolved: dict[references.UnresolvedReference, None] = {}
        self._missing: list[references.MissingSource] = []
        self._skipped: list[references.SkippedKey] = []

    def build(self) -> references.ContainerEnvironment:
        for position, entry in enumerate(self._container.children("envFrom")):
            self._add_source(entry, f"envFrom[{position}]")
        for entry in self._container.children("env"):
            self._add_variable(entry)
        left = {name: value for name, value in self._service_env.items() if name not in self._env}
        return references.ContainerEnvironment(
            env=self._env | left,
            command=self._expanded("command"),
            args=self._expanded("args"),
            sub_paths=self._sub_paths(),
            unresolved=list(self._unresolved),
            missing=self._missing,
            skipped=self._skipped,
        )

    def _add_source(self, entry: fields.Node, where: str) -> None:
        kind, ref = env_from_source(entry)
        source = self._source(kind, ref)
        prefix = entry.text("prefix")
        if source.data is not None:
            self._add_keys(source.label, prefix, source.data)
        elif not source.optional:
            self._missing.append(references.MissingSource(source.label, None, where))
            self._awaited_prefixes.append(prefix)

    def _add_keys(self, label: str, prefix: str, data: fields.Node) -> None:
        for key, value in data.text_map().items():
            name = prefix + key
            if PASSED_ON.fullmatch(name):
                self._set(name, value)
            else:
                self._skipped.append(references.SkippedKey(label, key, name))

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

    def _spend(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise self._too_large()

    def _too_large(self) -> fields.ExpansionSizeError:
        subject = f"{self._container.subject}: the environment with command and args"
        return fields.ExpansionSizeError(subject, self._limit)

    def _value_from(self, name: str, source: fields.Node) -> str | None:
        if source.has("fieldRef"):
            return downward.field_value(self._pod, source.child("fieldRef"))
        if source.has("resourceFieldRef"):
            return downward.resource_value(self._pod, self._container, source.child("resourceFieldRef"))
        if source.has("fileKeyRef"):
            return downward.placeholder(f"fileKeyRef {source.child('fileKeyRef').required_text('key')}")
        return self._key_value(name, *key_source(source))

    def _key_value(self, name: str, kind: str, ref: fields.Node) -> str | None:
        source = self._source(kind, ref)
        key = ref.required_text("key")
        if source.data is not None and key in source.data.value:
            return source.data.text(key)
        if not source.optional:
            lacking = None if source.data is None else key
            self._missing.append(references.MissingSource(source.label, lacking, f"env {name}"))
            self._await(name)
        return None

    def _await(self, name: str) -> None:
        """Note that the name will stand for something else, or nothing, when the container starts."""
        self._awaited.add(name)
        self._env.pop(name, None)
        self._service_env.pop(name, None)

    def _source(self, kind: str, ref: fields.Node) -> _Source:
        name = ref.required_text("name")
        data = self._contents[kind].get(name)
        label = f"{kind} {name}"
        return _Source(
            label=label,
            optional=ref.flag("optional", default=False),
            data=None if data is None else fields.root(label, {"data": data}).child("data"),
        )

    def _expanded(self, key: str) -> list[str]:
        expanded = []
        for i, text in enumerate(self._container.texts(key)):
            expanded.append(self._expand(text, f"{key}[{i}]"))
            self._spend(len(expanded[-1]))
        return expanded

    def _sub_paths(self) -> list[references.SubPath]:
        paths = []
        for i, mount in enumerate(self._container.children("volumeMounts")):
            if text := mount.text("subPathExpr"):
                value = self._expand(text, sub_path_place(i), is_path=True)
                self._spend(len(value))
                paths.append(references.SubPath(mount.text("mountPath"), value))
        return paths

    def _expand(self, text: str, where: str, *, is_path: bool = False) -> str:
        def mapping(name: str) -> str:
            for context in (self._env, self._service_env):
                if name in context and (context[name] or not is_path):
                    return context[name]
            self._note_unresolved(name, where, is_fatal=is_path)
            return f"$({name})"

        try:
            return references.expand(text, mapping, limit=self._room)
        except fields.ExpansionSizeError:
            raise self._too_large() from None

    def _note_unresolved(self, name: str, where: str, *, is_fatal: bool) -> None:
        """Note a reference that nothing resolves so far."""
        pending = name in self._awaited or any(name.startswith(prefix) for prefix in self._awaited_prefixes)
        self._unresolved.setdefault(
            references.UnresolvedReference(name, where, pending, where == self._script, is_fatal)
        )


def sub_path_place(mount: int) -> str:
    """Say where the ``subPathExpr`` of a mount stands."""
    return f"subPathExpr of volumeMounts[{mount}]"


def env_from_source(entry: fields.Node) -> tuple[str, fields.Node]:
    """Return the kind of what an entry of ``envFrom`` reads, and the reference to it."""
    return _one_of(entry, _ENV_FROM, tuple(_ENV_FROM))


def key_source(source: fields.Node) -> tuple[str, fields.Node]:
    """Return the kind of the object whose key a ``valueFrom`` reads, and the reference to it."""
    return _one_of(source, _KEY_REFS, _VALUE_SOURCES)


def _one_of(node: fields.Node, kinds: Mapping[str, str], choices: Iterable[str]) -> tuple[str, fields.Node]:
    for key, kind in kinds.items():
        if node.has(key):
            return kind, node.child(key)
    raise node.problem("", f"needs one of {', '.join(choices)}")

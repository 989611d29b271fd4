"""Which release is that of a module: in the whole operator a release goes by the name of its module."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from addon_operator.modules import model


class ReleaseLocation(NamedTuple):
    """Namespace and name of a release, as Helm knows it."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ReleaseLocations:
    """Where the releases of modules are.

    A release without a module goes by its name; by ``namespace/name`` if it is in another namespace than the
    operator's, or if its name is that of a module whose release is elsewhere.
    """

    def __init__(self, namespace: str) -> None:
        """``namespace`` is that of the operator."""
        self.own_namespace = namespace
        self._places: dict[str, ReleaseLocation] = {}
        self._keys: dict[ReleaseLocation, str] = {}
        self._turns: dict[str, int] = {}

    def assign(self, modules: Iterable[model.Module]) -> frozenset[str]:
        """Say which modules there are, in run order; gives those whose release was elsewhere until now."""
        modules, before = tuple(modules), self._places
        self._turns = {module.name: turn for turn, module in enumerate(modules)}
        self._places = {
            module.name: ReleaseLocation(module.config.namespace or self.own_namespace, module.release)
            for module in modules
        }
        self._keys = {}
        # Of two modules with one release the one that may run has it: the other's module.yaml is wrong.
        for module in sorted(modules, key=lambda each: bool(each.problem)):
            self._keys.setdefault(self._places[module.name], module.name)
        return frozenset(name for name, place in self._places.items() if before.get(name, place) != place)

    @property
    def modules(self) -> Collection[str]:
        """The names of all modules."""
        return self._places.keys()

    def turn(self, key: str) -> tuple[int, str]:
        """Return what sorts releases as their modules run; those without a module come first."""
        return self._turns.get(key, -1), key

    @property
    def of_modules(self) -> frozenset[str]:
        """The namespaces that modules say, without the operator's."""
        return frozenset(place.namespace for place in self._places.values()) - {self.own_namespace}

    def ignored(self, releases: Iterable[str]) -> frozenset[str]:
        """Return what releases of the operator's namespace go by."""
        return frozenset(self.key(ReleaseLocation(self.own_namespace, name)) for name in releases)

    def is_elsewhere(self, key: str) -> bool:
        """Say whether a release is in another namespace than the operator's."""
        return self.of(key).namespace != self.own_namespace

    def of(self, key: str) -> ReleaseLocation:
        """Return the place of a release."""
        if (place := self._places.get(key)) is not None:
            return place
        namespace, _, name = key.rpartition("/")
        return ReleaseLocation(namespace or self.own_namespace, name)

    def key(self, place: ReleaseLocation) -> str:
        """Return what a release goes by."""
        if (module := self._keys.get(place)) is not None:
            return module
        is_plain = place.namespace == self.own_namespace and place.name not in self._places
        return place.name if is_plain else str(place)

    def successor(self, key: str) -> str | None:
        """Return the module whose release this probably was before it moved: one of that name."""
        name = self.of(key).name
        return name if key not in self._places and name in self._places else None

    def is_of_module(self, key: str) -> bool:
        """Say whether a release is that of a module."""
        return key in self._places

    def title(self, key: str) -> str:
        """Return how people call a release: with its namespace only if that is not the operator's."""
        place = self.of(key)
        return place.name if place.namespace == self.own_namespace else str(place)

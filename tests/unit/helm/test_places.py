"""Which release is that of a module, and what releases go by."""

import pathlib

import pytest
from msgspec import structs

from addon_operator.helm import places
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config


def module(name: str, **config: str) -> model.Module:
    found = module_config.ModuleConfig(**config)  # type: ignore[arg-type] # as given
    return model.Module(ModuleName(name), 1, pathlib.Path(name), config=found)


@pytest.fixture
def where() -> places.ReleaseLocations:
    made = places.ReleaseLocations("addons")
    made.assign(
        [
            module("web"),
            module("ingress", release_name="nginx", namespace="edge"),
            module("db", release_name="pg"),
        ]
    )
    return made


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("web", ("addons", "web")),
        ("ingress", ("edge", "nginx")),
        ("db", ("addons", "pg")),
        ("old", ("addons", "old")),
        ("edge/old", ("edge", "old")),
        ("addons/db", ("addons", "db")),
    ],
)
def test_a_release_and_what_it_goes_by_belong_together(
    where: places.ReleaseLocations, key: str, place: tuple[str, str]
) -> None:
    assert where.of(key) == place
    assert where.key(places.ReleaseLocation(*place)) == key


def test_a_release_of_a_modules_name_that_is_not_the_modules_is_another_one(
    where: places.ReleaseLocations,
) -> None:
    assert where.key(places.ReleaseLocation("addons", "ingress")) == "addons/ingress"
    assert not where.is_of_module("addons/ingress")


def test_of_two_modules_with_one_release_the_one_that_runs_has_it() -> None:
    made = places.ReleaseLocations("addons")
    wrong = structs.replace(module("wrong", release_name="same"), problem="two of one name")
    made.assign([wrong, module("right", release_name="same", namespace="addons"), module("other")])
    assert made.key(places.ReleaseLocation("addons", "same")) == "right"


def test_people_hear_of_the_namespace_only_if_it_is_another_one(where: places.ReleaseLocations) -> None:
    assert [where.title(key) for key in ("web", "ingress", "db", "edge/old")] == [
        "web",
        "edge/nginx",
        "pg",
        "edge/old",
    ]


def test_the_namespaces_of_modules_are_known_without_the_operators(where: places.ReleaseLocations) -> None:
    assert where.of_modules == {"edge"}
    assert places.ReleaseLocations("addons").of_modules == frozenset()


def test_a_module_is_the_successor_of_what_bears_its_name_elsewhere(where: places.ReleaseLocations) -> None:
    keys = ("addons/ingress", "edge/ingress", "edge/web", "ingress", "edge/old")
    assert [where.successor(key) for key in keys] == ["ingress", "ingress", "web", None, None]

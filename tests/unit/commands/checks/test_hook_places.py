"""Where ``hooks check`` looks for hooks."""

import pathlib

import pytest

from addon_operator.commands.checks import hook_places
from addon_operator.hook_contract.configuration.hook_config import HookKind
from addon_operator.kernel import errors

Shown = tuple[str, str, HookKind | None]

TREE = [
    "addons/010-web/hooks/", "addons/010-web/enabled", "addons/020-db/templates/", "addons/plain/hooks/",
    "addons/.hidden/hooks/", "addons/bad_name/Chart.yaml", "addons/values.yaml",
    "addons/010-web/hooks/sub/a.sh",
    "global-hooks/hooks/g.sh", "global-hooks/openapi/", "flat-global/g.sh", "alone/hooks/h.sh",
    "only-hooks/one/hooks/", "only-hooks/two/hooks/", "project/modules/010-a/hooks/",
    "project/global-hooks/hooks/", "project/docs/", "project/crds/",
    "chart-only/Chart.yaml", "loose/x.sh", "plain-modules/one/hooks/", "plain-modules/two/Chart.yaml",
]  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("tree")
    for text in TREE:
        path = root / text
        if text.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    return root


@pytest.fixture(autouse=True)
def _in_the_tree(tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)


def configured(**environ: str) -> hook_places.Configured:
    return hook_places.configured({}, environ)


def shown(place: hook_places.HookRoot) -> Shown:
    root = place.root if not place.root.is_absolute() else place.root.relative_to(pathlib.Path.cwd())
    return str(root), place.owner, place.kind


MODULES: list[Shown] = [
    ("addons/010-web/hooks", "web", HookKind.MODULE),
    ("addons/020-db/hooks", "db", HookKind.MODULE),
    ("addons/bad_name/hooks", "bad_name", HookKind.MODULE),
    ("addons/plain/hooks", "plain", HookKind.MODULE),
]
GLOBAL: Shown = ("global-hooks/hooks", "global", HookKind.GLOBAL)


def test_the_configured_directories_are_all_global_hooks_and_modules() -> None:
    places = list(configured(MODULES_DIR="addons").places())
    assert [shown(place) for place in places] == [GLOBAL, *MODULES]


PLACES: dict[str, list[Shown]] = {
    "addons": MODULES,
    "addons/010-web": MODULES[:1],
    "addons/010-web/hooks": MODULES[:1],
    "addons/020-db": MODULES[1:2],
    "addons/plain": [("addons/plain/hooks", "plain", None)],
    "chart-only": [("chart-only/hooks", "chart-only", HookKind.MODULE)],
    "plain-modules": [("plain-modules/one/hooks", "one", HookKind.MODULE),
                       ("plain-modules/two/hooks", "two", HookKind.MODULE)],
    "only-hooks": [("only-hooks/one/hooks", "one", HookKind.MODULE),
                    ("only-hooks/two/hooks", "two", HookKind.MODULE)],
    "project": [("project/global-hooks/hooks", "global", HookKind.GLOBAL),
                 ("project/modules/010-a/hooks", "a", HookKind.MODULE)],
    "project/docs": [("project/docs", "docs", None)],
    "global-hooks": [GLOBAL],
    "global-hooks/hooks": [GLOBAL],
    "flat-global": [("flat-global", "flat-global", None)],
    "alone": [("alone/hooks", "alone", None)],
    "alone/hooks": [("alone/hooks", "alone", None)],
    "addons/010-web/hooks/sub/a.sh": MODULES[:1],
    "addons/010-web/enabled": MODULES[:1],
    "global-hooks/hooks/g.sh": [GLOBAL],
    "alone/hooks/h.sh": [("alone/hooks", "alone", None)],
    "loose/x.sh": [("loose", "loose", None)],
}  # fmt: skip


def test_a_named_path_is_taken_for_what_it_looks_like() -> None:
    found = {path: list(configured().below(pathlib.Path(path))) for path in PLACES}
    assert {path: [shown(place) for place in places] for path, places in found.items()} == PLACES


def test_the_configured_directory_of_global_hooks_is_known_by_any_name() -> None:
    (place,) = configured(GLOBAL_HOOKS_DIR="flat-global").below(pathlib.Path("flat-global"))
    assert shown(place) == ("flat-global", "global", HookKind.GLOBAL)


def test_a_configured_directory_of_modules_is_one_whatever_it_holds() -> None:
    assert configured(MODULES_DIR="addons:loose").below(pathlib.Path("loose")) == []


def test_the_current_directory_can_be_one_of_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("addons/010-web/hooks")
    (place,) = configured().below(pathlib.Path())
    assert (place.root, place.owner, place.kind) == (pathlib.Path(), "web", HookKind.MODULE)


def test_the_current_directory_can_be_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("addons/010-web")
    (place,) = configured().below(pathlib.Path())
    assert (place.root, place.owner, place.script) == (
        pathlib.Path("hooks"),
        "web",
        pathlib.Path("enabled"),
    )


def test_only_a_module_as_a_whole_brings_its_enabled_script() -> None:
    (module,) = configured().below(pathlib.Path("addons/010-web"))
    (hook,) = configured().below(pathlib.Path("addons/010-web/hooks/sub/a.sh"))
    assert (module.script, module.only) == (pathlib.Path("addons/010-web/enabled"), None)
    assert (hook.script, hook.only) == (None, pathlib.Path("addons/010-web/hooks/sub/a.sh"))


def test_a_name_that_no_module_can_have_is_kept_with_what_is_wrong() -> None:
    place = configured().below(pathlib.Path("addons"))[2]
    assert "'bad_name' cannot be the name of a Helm release" in place.problem


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        (
            {"MODULES_DIR": "addons:nowhere"},
            "modules directory /.*/nowhere does not exist; name it with MODULES",
        ),
        ({"MODULES_DIR": "addons", "GLOBAL_HOOKS_DIR": "no"}, "global hooks directory /.*/no does not exist"),
    ],
    ids=["modules", "global hooks"],
)
def test_a_configured_directory_must_exist(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=sentence):
        list(configured(**environ).places())


def test_the_default_directory_of_global_hooks_need_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    pathlib.Path("elsewhere/none").mkdir(parents=True)
    monkeypatch.chdir("elsewhere")
    (place,) = configured(MODULES_DIR="none").places()
    assert place.owner == "global"


def test_a_named_path_must_exist() -> None:
    with pytest.raises(errors.ConfigurationError, match=r"^/.*/nowhere does not exist; name a directory"):
        configured().below(pathlib.Path("nowhere"))

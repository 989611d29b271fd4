"""A ``module.yaml`` of Deckhouse: known as such, and read as far as it means something here.

Deckhouse's own controller reads that file, not addon-operator. Source of its keys: "module.yaml" in the
documentation of module development of Deckhouse.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types

_SHARED: Final = frozenset({"description", "namespace"})
"""Keys that both formats have."""
_INSTEAD: Final[Mapping[str, str]] = {
    "accessibility": "put only modules into MODULES_DIR that the cluster may have",
    "critical": "every module is retried until it works; no key is needed",
    "disable": "hooks with beforeDeleteHelm can refuse or prepare a removal",
    "exclusiveGroup": "an enabled script that reads global.enabledModules can say no",
    "name": "the name of the module is that of its directory, such as 010-NAME",
    "stage": "description is for people; no key decides by it",
    "subsystems": "labels of the chart's own templates, or description, are for people",
    "tags": "labels of the chart's own templates, or description, are for people",
    "update": "versions are those of the directory or of chart.version; no key decides by it",
    "weight": "the order is the number before the directory's name, such as 340-NAME",
}
_OF_NAMESPACE: Final = "releases live in the operator's namespace; templates name those of objects"
_OPTIONAL: Final = "!optional"
_SHOWN: Final = 60
_AMBIGUOUS: Final = frozenset({"name", "tags", "update"})
"""Keys of Deckhouse that people write by mistake, too."""
_UNMISTAKABLE: Final = frozenset((*_INSTEAD, "descriptions", "requirements")) - _AMBIGUOUS
_REQUIREMENTS: Final[Mapping[str, str]] = {
    "bootstrapped": "requires.apis can name an API that is there only then",
    "deckhouse": "there is no Deckhouse here, and nothing is compared with its version",
}


def is_deckhouse(found: json_types.JsonObject, ours: frozenset[str]) -> bool:
    """Say whether a document is Deckhouse's, and nothing in it belongs to us; ``ours`` are all our keys."""
    return bool(_UNMISTAKABLE & found.keys()) and not (ours - _SHARED) & found.keys()


def remedies() -> Mapping[str, str]:
    """Return what to do with Deckhouse's keys in a file that has some of ours, too."""
    return {
        **{key: f"it is a key of Deckhouse; remove it: {instead}" for key, instead in _INSTEAD.items()},
        "descriptions": "it is a key of Deckhouse; write description, one line",
        "requirements": "it is a key of Deckhouse; write requires",
    }


def converted(found: json_types.JsonObject) -> json_types.JsonObject:
    """Return what the file says in our keys.

    Required modules stand in the order of the file; those that are optional are left out.
    """
    read: Mapping[str, Any] = found
    requires = {key: value for key, value in _requires(read.get("requirements")) if value}
    descriptions = read.get("descriptions")
    description = descriptions.get("en") if isinstance(descriptions, dict) else read.get("description")
    return {
        **({"description": description} if description else {}),
        **({"requires": requires} if requires else {}),
    }


def _requires(requirements: object) -> Iterator[tuple[str, json_types.JsonValue]]:
    if not isinstance(requirements, dict):
        return
    yield "kubernetes", requirements.get("kubernetes")
    if isinstance(modules := requirements.get("modules"), dict):
        yield "modules", required_modules(modules)


def required_modules(modules: Mapping[str, Any]) -> list[json_types.JsonValue]:
    """Return the names in ``requirements.modules`` without those that may be missing."""
    return [name for name, versions in modules.items() if not str(versions).rstrip().endswith(_OPTIONAL)]


def place_in_file(found: json_types.JsonObject, path: json_pointers.Path) -> json_pointers.Path:
    """Return where a place of :func:`converted` stands in the file."""
    read: Mapping[str, Any] = found
    match path:
        case ("requires", "modules", int(index)):
            return ("requirements", "modules", str(required_modules(read["requirements"]["modules"])[index]))
        case ("requires", *more):
            return ("requirements", *more)
        case ("description",) if isinstance(read.get("descriptions"), dict):
            return ("descriptions", "en")
    return path


def misshapen(found: json_types.JsonObject) -> Iterator[tuple[json_pointers.Path, str]]:
    """Yield what in the requirements cannot be read."""
    if (requirements := found.get("requirements")) is None:
        return
    if not isinstance(requirements, dict):
        yield ("requirements",), "this is not a mapping; write kubernetes: and modules: on lines below it"
    elif not isinstance(requirements.get("modules", {}), dict | None):
        yield (
            ("requirements", "modules"),
            "this is not a mapping; write NAME: RANGE, such as cert-manager: '>= 1.0.0', on lines below it",
        )


def summary(found: json_types.JsonObject) -> str:
    """Return one sentence for the log about what is not read."""
    passed = sorted(_passed_over(found))
    keys = f"{', '.join(passed)} {'is' if len(passed) == 1 else 'are'} not read here; " if passed else ""
    return (
        f"this is a module.yaml of Deckhouse: {keys}"
        "'addon-operator module lint' says what takes the place of each key"
    )


def notes(found: json_types.JsonObject) -> Iterator[tuple[json_pointers.Path, str]]:
    """Yield for each key that is passed over, or means less here, what takes its place."""
    for key in sorted(_passed_over(found)):
        instead = _OF_NAMESPACE if key == "namespace" else _INSTEAD.get(key, "nothing here takes its place")
        yield (key,), f"not read here: {instead}"
    read: Mapping[str, Any] = found
    requirements = read.get("requirements") or {}
    for key in sorted(requirements.keys() - {"kubernetes", "modules"}):
        said = _REQUIREMENTS.get(key, "requires has kubernetes, modules and apis")
        yield ("requirements", key), f"not read here: {said}"
    for name, versions in (requirements.get("modules") or {}).items():
        yield ("requirements", "modules", name), _of_versions(str(versions)[:_SHOWN])


def _of_versions(versions: str) -> str:
    if versions.rstrip().endswith(_OPTIONAL):
        return "not read here: a module that may be missing needs no key; lower orders run first"
    return f"the module is required, and {versions!r} is not compared: modules have no version here"


def _passed_over(found: json_types.JsonObject) -> frozenset[str]:
    return frozenset(found) - {"description", "descriptions", "requirements"}

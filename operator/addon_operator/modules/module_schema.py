"""The JSON Schema of ``module.yaml`` for its reader; :mod:`.editor_schema` has that of editors."""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.kernel import json_types
from addon_operator.modules import deckhouse_config

EXACT_VERSION: Final = r"v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?"
CHART_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_PORT: Final = (
    r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
)
_HOST: Final = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
_HERE: Final = r"(?:localhost|127\.0\.0\.1|\[::1\])"
ADDRESS: Final = rf"oci://{_HOST}{_PORT}(?:/[^\s?#:@]*)?|https://{_HOST}{_PORT}(?:/[^\s?#]*)?|http://{_HERE}{_PORT}(?:/[^\s?#]*)?"
"""Of a repository of charts."""

_Schema = Mapping[str, Any]
MOST_PATHS: Final = 100
"""How many paths may be sensitive: each is looked for among all values."""
_LIST_REMEDY: Final = "write a list, such as [a, b]"


def _object(
    description: str, /, elsewhere: Mapping[str, str] | None = None, **properties: _Schema
) -> _Schema:
    """Describe a mapping; ``elsewhere`` says what to do with keys that belong to another place."""
    return {
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "x-elsewhere": elsewhere or {},
    }


def _text(description: str, **more: object) -> _Schema:
    return {"description": description, "type": "string", "minLength": 1, **more}


def _list(description: str, items: _Schema) -> _Schema:
    return {"description": description, "type": "array", "items": items, "x-remedy": _LIST_REMEDY}


def _flag(description: str) -> _Schema:
    return {"description": description, "type": "boolean", "default": False}


_RESOURCE: Final[Mapping[str, _Schema]] = {
    "kind": _text("The kind of the resource; * stands for any characters."),
    "name": _text("The name of the resource; * stands for any characters."),
}
_VALUES_ELSEWHERE: Final = "values of the chart belong in values.yaml, below the key of the module"
_GLOBAL_REMEDY: Final = "write a list of keys, such as [domain], or all"
_CHART: Final = {
    **_object(
        "The Helm chart of the module. Without this key it is chart/, or the module's directory itself.",
        {
            key: f"write {key} beside chart, not below it"
            for key in ("namespace", "releaseName", "createNamespace")
        },
        repository=_text("oci://…, or https://… of an index.yaml; without it the chart is a directory."),
        name=_text("The chart's name in the repository."),
        version=_text("The exact version of the chart in the repository."),
        digest=_text(
            "The digest that the chart must have: of its manifest in a registry, or of its archive.",
            format="digest",
        ),
        path=_text("The chart's directory, relative to the module's."),
        values={
            "description": "root: the chart reads the module's section as .Values; default for repository "
            "and for chart/. section: .Values has global and the module's section below its key.",
            "enum": ["root", "section"],
            "x-remedy": f"write root or section; {_VALUES_ELSEWHERE}",
        },
        **{
            "global": {
                "description": "Keys of the shared global that a chart with values at the root gets, or all.",
                "default": [],
                "if": {"type": "string"},
                "then": {"enum": ["all"], "x-remedy": _GLOBAL_REMEDY},
                "else": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "x-remedy": _GLOBAL_REMEDY,
                },
            }
        },
    ),
    "x-remedy": "write path, or repository, name and version, on lines below it",
}
_REQUIRES: Final = _object(
    "What must be there for the module to be enabled.",
    kubernetes=_text("A range of versions of the cluster.", format="version-range", examples=[">= 1.30"]),
    modules=_list(
        "Modules that must be enabled, and healthy before this one runs.",
        {
            "if": {"type": "string"},
            "then": _text("The name of a module.", format="module-name"),
            "else": {
                **_object(
                    "A module by name.",
                    name=_text("The name of a module.", format="module-name"),
                    until={
                        "description": "healthy: it was healthy once since its last revision; the default. "
                        "ready: its last run succeeded.",
                        "enum": ["healthy", "ready"],
                    },
                ),
                "required": ["name"],
                "x-remedy": "write the name of a module, or name and until below each other",
            },
        },
    ),
    apis=_list(
        "APIs that the cluster must serve.", _text("Such as monitoring.coreos.com/v1.", format="served-api")
    ),
)
HEALTH_RULES: Final = _list(
    "When resources of kinds without conditions are healthy, and when they have failed.",
    {
        **_object(
            "A rule for one kind, in CEL over self.",
            apiVersion=_text("Such as example.com/v1.", format="api-version"),
            kind=_text("The kind of the resources."),
            healthy=_text("Such as self.status.phase == 'Running'."),
            failed=_text("Such as self.status.phase == 'Broken'."),
        ),
        "required": ["apiVersion", "kind", "healthy"],
    },
)
_HEALTH: Final = _object(
    "When the module's resources are healthy, and what its runs do with that.",
    wait=_flag("Whether a run ends only when the resources are healthy."),
    timeout=_text("How long a run waits for that; default: 5m.", format="period"),
    deadline=_text("For how long a resource may be in progress; default: 10m.", format="period"),
    test=_flag("Whether the chart's tests run after an install or upgrade that is healthy."),
    rules=HEALTH_RULES,
    ignore=_list(
        "Resources whose health does not count.",
        {**_object("Resources by kind and name.", **_RESOURCE), "minProperties": 1},
    ),
)
_DRIFT: Final = _object(
    "What happens when somebody changes the content of the module's resources.",
    mode={
        "description": "Whether that is ignored, reported or corrected; default: the setting DRIFT_MODE.",
        "enum": ["ignore", "warn", "correct"],
    },
    ignore=_list(
        "Fields that do not count.",
        {
            **_object(
                "Fields of resources; without paths, the whole resources.",
                **_RESOURCE,
                paths={
                    **_list("JSON pointers.", _text("Such as /spec/replicas.", format="json-pointer")),
                    "minItems": 1,
                },
            ),
            "minProperties": 1,
        },
    ),
)
_PATCH: Final = {
    **_object(
        "A change of what the chart renders, as kustomize's.",
        target=_object(
            "The resources; what is not said stands for all. Names may have * or be regular expressions.",
            group=_text("The API group, such as apps."),
            version=_text("The version of the API group, such as v1."),
            kind=_text("The kind."),
            name=_text("The name."),
            namespace=_text("The namespace."),
            labelSelector=_text("Labels, such as app=web."),
            annotationSelector=_text("Annotations, such as team=a."),
        ),
        patch={
            "description": "A strategic merge patch (a mapping), or operations of RFC 6902 (a list).",
            "if": {"type": "array"},
            "else": {"type": "object", "x-remedy": "write what changes, or a list of operations"},
        },
    ),
    "required": ["target", "patch"],
}


def _texts(description: str) -> _Schema:
    return {"description": description, "type": "object", "additionalProperties": {"type": "string"}}


WINDOWS: Final = _list(
    "When changes may be made to what runs; at any other time they wait. An empty list: at any time.",
    {
        **_object(
            "A window, which opens again and again.",
            schedule=_text("A crontab that says when it opens.", format="crontab", examples=["0 22 * * 1-5"]),
            duration=_text("How long it stays open, such as 4h.", format="period"),
            timezone=_text(
                "On whose clock the crontab is read; default: UTC.",
                format="timezone",
                examples=["Europe/Berlin"],
            ),
        ),
        "required": ["schedule", "duration"],
        "x-remedy": 'write {schedule: "0 22 * * 1-5", duration: 4h}',
    },
)
SCHEMA: Final[json_types.JsonObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "module.yaml",
    **_object(
        "What a module of addon-operator says of itself. All keys are optional.",
        {
            **dict.fromkeys(("repository", "version", "digest", "path", "global"), "write it below chart"),
            "name": "a chart's name belongs below chart; for a release, write releaseName",
            "values": _VALUES_ELSEWHERE,
            "enabled": "the switch belongs in values.yaml, as the module's key with Enabled",
            "dependsOn": "write requires.modules",
            **{key: said for key, said in deckhouse_config.remedies().items() if key != "name"},
        },
        description=_text("One line for people: what the module is for."),
        namespace=_text(
            "Where the release and its record live; default: the operator's namespace.", format="dns-label"
        ),
        createNamespace=_flag("Whether a namespace that is missing is created."),
        chart=_CHART,
        releaseName=_text("The name of the release; default: the module's name.", format="release-name"),
        sensitive=_list(
            "Paths of the module's section that are hidden wherever values are shown; * is any key.",
            _text("Such as auth.password or *.secretKey."),
        ),
        requires=_REQUIRES,
        labels=_texts("Labels on every resource of the release."),
        annotations=_texts("Annotations on every resource of the release."),
        patches=_list("Changes of what the chart renders.", _PATCH),
        health=_HEALTH,
        drift=_DRIFT,
        remediation=_object(
            "What follows when an upgrade fails.",
            rollback=_flag("Whether the release goes back to the last revision that worked."),
        ),
        removal=_object(
            "How the module is disabled or purged.",
            confirm=_flag("Whether that waits until somebody confirms it."),
            data={
                "description": "What becomes of what holds data; default: the setting REMOVAL_DATA.",
                "enum": ["keep", "delete"],
            },
        ),
        windows=WINDOWS,
    ),
}

"""The JSON Schema of ``module.yaml`` for editors: plain 2020-12, which says all that the reader checks.

The reader knows formats of its own, and what keys mean together; here these are patterns and conditions.
Some things no schema can say: a module that requires itself, a file that is too large, a period of more than
292 years, a time zone that does not exist, and a crontab that names a time that never comes.
"""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.hook_contract import crontab
from addon_operator.kernel import json_types, names, version_ranges
from addon_operator.modules import module_schema, windows

_END: Final = r"(?![\s\S])"
"""The end of a text; ``$`` may stand before a line feed."""
_ADDITIONS: Final = ("format", "x-elsewhere", "x-remedy")
_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_WORD: Final = "[a-z][a-z0-9]*"
_UNIT: Final = "(ns|us|µs|μs|ms|s|m|h)"
_NUMBER: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_NUMERIC: Final = "(0|[1-9][0-9]*)"
_ANY: Final = "(0|[1-9][0-9]*|[xX*])"
_IDENTIFIER: Final = "(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD: Final = r"(\+[0-9A-Za-z.-]+)?"
_PRERELEASE: Final = rf"{_NUMERIC}(\.{_NUMERIC}){{0,2}}-{_IDENTIFIER}(\.{_IDENTIFIER})*{_BUILD}"
_VERSION: Final = rf"v?({_ANY}(\.{_ANY}){{0,2}}{_BUILD}|{_PRERELEASE})"
_NUMBERED: Final = rf"v?({_NUMERIC}(\.{_ANY}){{0,2}}{_BUILD}|{_PRERELEASE})"
"""What has a bound: of ``x``, nothing is more or less."""
_CLAUSE: Final = rf"((>=|=>|=|!=)?\s*{_VERSION}|(>|<=|=<|<|~>|~|\^)\s*{_NUMBERED})"
_CLAUSES: Final = rf"{_CLAUSE}((\s*,\s*|\s+){_CLAUSE})*(\s*,)?"
_ALTERNATIVE: Final = rf"\s*({_VERSION}(\s*,)?\s+-\s+{_NUMBERED}(\s*,)?|{_CLAUSES})\s*"
_CRON_VALUE: Final = "([0-9]{1,2}|[A-Za-z]{3})"
_CRON_ITEM: Final = rf"([*?]|{_CRON_VALUE}(-{_CRON_VALUE})?)(/[0-9]{{1,2}})?"
_CRON_FIELD: Final = f"{_CRON_ITEM}(,{_CRON_ITEM})*"
_CRON_WORD: Final = "@(yearly|annually|monthly|weekly|daily|midnight|hourly)"
_ZONE: Final = "[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*"
_CRONTAB: Final = rf"\s*((CRON_)?TZ={_ZONE}\s+)?({_CRON_WORD}|{_CRON_FIELD}(\s+{_CRON_FIELD}){{4,5}})\s*"


def _whole(pattern: str) -> str:
    return f"^({pattern}){_END}"


_FORMATS: Final[Mapping[str, Mapping[str, object]]] = {
    "digest": {"pattern": _whole("sha256:[0-9a-f]{64}")},
    "dns-label": {"pattern": _whole(_LABEL)},
    "release-name": {"pattern": _whole(names.SUBDOMAIN), "maxLength": names.RELEASE_MAX},
    "module-name": {
        "pattern": _whole(rf"(?!global{_END})[a-z0-9]+(-{_WORD})*"),
        "maxLength": names.RELEASE_MAX,
    },
    "api-version": {"pattern": _whole(rf"({names.SUBDOMAIN}/)?[a-z]([-a-z0-9]*[a-z0-9])?")},
    "served-api": {"pattern": _whole(f"v1|{names.SUBDOMAIN}/[a-z]([-a-z0-9]*[a-z0-9])?")},
    "version-range": {
        "pattern": _whole(rf"{_ALTERNATIVE}(\|\|{_ALTERNATIVE})*"),
        "maxLength": version_ranges.MAX_CHARS,
    },
    "period": {"pattern": _whole(rf"(?=.*[1-9])\+?({_NUMBER}{_UNIT})+"), "maxLength": 100},
    "crontab": {"pattern": _whole(_CRONTAB), "maxLength": crontab.MAX_CHARS},
    "timezone": {"pattern": _whole(_ZONE)},
    "json-pointer": {"pattern": _whole(r"/([^~]|~[01])*")},
}
_SENSITIVE: Final = _whole(r"(?![/$])(?![\s\S]*\[)(\\[^\n]|[^.\\])+(\.(\\[^\n]|[^.\\])+)*")
_ADDRESS: Final = _whole(module_schema.ADDRESS)


def schema() -> json_types.JsonObject:
    """Return the schema."""
    made: dict[str, Any] = _plain(module_schema.SCHEMA)
    made["type"] = ["object", "null"]
    properties = made["properties"]
    properties["windows"]["maxItems"] = windows.MOST_WINDOWS
    properties["sensitive"]["maxItems"] = module_schema.MOST_PATHS
    properties["sensitive"]["items"]["pattern"] = _SENSITIVE
    made |= _if(
        {"required": ["createNamespace"], "properties": {"createNamespace": {"const": True}}},
        {"required": ["namespace"]},
    )
    properties["chart"] |= _if(
        {"required": ["repository"]},
        {
            "required": ["name", "version"],
            "properties": {
                "repository": {"pattern": _ADDRESS},
                "name": {"pattern": _whole(module_schema.CHART_NAME)},
                "version": {"pattern": _whole(module_schema.EXACT_VERSION)},
                "path": False,
            },
        },
        {
            "properties": {
                **dict.fromkeys(("name", "version", "digest"), False),
                "path": {"pattern": rf"^(?!/)(?!([\s\S]*/)?\.\.(/|{_END}))"},
            }
        },
    )
    return made


def _if(condition: object, then: object, otherwise: object = True) -> dict[str, Any]:
    # Nothing is said of a value that is not a mapping: "type" does that.
    return {"if": condition, "then": then, "else": otherwise}


def _plain(node: Any) -> Any:  # noqa: ANN401  # a schema, or a part of one
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    plain = {key: _plain(value) for key, value in node.items() if key not in _ADDITIONS}
    return plain | dict(_FORMATS[node["format"]]) if isinstance(node.get("format"), str) else plain

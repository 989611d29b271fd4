"""The rules of ``module lint``: their names, which do not change, and what each is about."""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class Rule(enum.StrEnum):
    """What a finding breaks; the value is what people write."""

    MODULE = "module"
    MODULE_YAML = "module-yaml"
    RELEASE_NAMESPACE = "release-namespace"
    UNUSED_FILE = "unused-file"
    VALUES_FILE = "values-file"
    BOOLEAN_WORD = "boolean-word"
    UNKNOWN_SECTION = "unknown-section"
    SCHEMA = "schema"
    SCHEMA_KEYWORD = "schema-keyword"
    SCHEMA_RULE = "schema-rule"
    STALE_SCHEMA = "stale-schema"
    VALUES = "values"
    EXAMPLE = "example"
    HOOK_FILE = "hook-file"
    HOOK_CONFIG = "hook-config"
    CHART = "chart"
    TESTS_IN_CHART = "tests-in-chart"
    CHART_NOT_CACHED = "chart-not-cached"
    UNKNOWN_VALUE = "unknown-value"
    RENDER = "render"
    OBJECT = "object"
    OBJECT_SHARED = "object-shared"
    DATA_DELETED = "data-deleted"
    UNKNOWN_FIELD = "unknown-field"
    INCOMPLETE_OBJECT = "incomplete-object"
    CRD = "crd"
    CRD_SHARED = "crd-shared"
    LINT_IGNORE = "lint-ignore"


ABOUT: Final[Mapping[Rule, str]] = MappingProxyType(
    {
        Rule.MODULE: "A module can be loaded: its name, module.yaml and hooks are right.",
        Rule.MODULE_YAML: "What module.yaml says has an effect.",
        Rule.RELEASE_NAMESPACE: "Nobody but the operator writes the records of the release.",
        Rule.UNUSED_FILE: "Files and charts lie where they are looked for.",
        Rule.VALUES_FILE: "values.yaml is YAML with sections and switches.",
        Rule.BOOLEAN_WORD: "Words such as yes, which some readers of YAML take for booleans, are quoted.",
        Rule.UNKNOWN_SECTION: "Sections and switches in the shared values.yaml belong to a module.",
        Rule.SCHEMA: "OpenAPI schemas can be read and used.",
        Rule.SCHEMA_KEYWORD: "Keywords of schemas check something.",
        Rule.SCHEMA_RULE: "Rules in CEL can be evaluated.",
        Rule.STALE_SCHEMA: "The schema of values.yaml for editors is that of the OpenAPI schemas.",
        Rule.VALUES: "The values of all files are what schemas allow.",
        Rule.EXAMPLE: "The values in examples/ are what schemas allow.",
        Rule.HOOK_FILE: "What looks like a hook is one.",
        Rule.HOOK_CONFIG: "A hook can be started with --config, and prints a configuration that is right.",
        Rule.CHART: "The chart is complete: Chart.yaml, dependencies, values and schemas.",
        Rule.TESTS_IN_CHART: "Tests of a module are not a part of its chart, so no release stores them.",
        Rule.CHART_NOT_CACHED: "A chart from a repository is in the cache, so that it can be checked.",
        Rule.UNKNOWN_VALUE: "Templates read values that there can be, and public charts know what is set.",
        Rule.RENDER: "The chart renders, with the values of the files and with each example.",
        Rule.OBJECT: "Kubernetes takes what is rendered.",
        Rule.OBJECT_SHARED: "An object belongs to one module.",
        Rule.DATA_DELETED: "A chart has no data deleted that nobody asked to delete.",
        Rule.UNKNOWN_FIELD: "What is rendered has only fields that Kubernetes knows.",
        Rule.INCOMPLETE_OBJECT: "What is rendered has all fields that Kubernetes requires.",
        Rule.CRD: "Definitions in crds/ can be applied, and each is there once.",
        Rule.CRD_SHARED: "A definition belongs to one module.",
        Rule.LINT_IGNORE: "A comment that ignores a rule names it, gives a reason, and is needed.",
    }
)
"""What holds if a rule is kept: one sentence each."""

_OF_VALUES: Final = frozenset(
    {
        Rule.VALUES_FILE,
        Rule.BOOLEAN_WORD,
        Rule.UNKNOWN_SECTION,
        Rule.SCHEMA,
        Rule.SCHEMA_KEYWORD,
        Rule.SCHEMA_RULE,
        Rule.STALE_SCHEMA,
        Rule.VALUES,
        Rule.EXAMPLE,
    }
)
_OF_HOOKS: Final = frozenset({Rule.HOOK_FILE, Rule.HOOK_CONFIG})


def topic(rule: Rule) -> str:
    """Return what a rule is about: ``values``, ``hooks``, or else the ``module``."""
    return "values" if rule in _OF_VALUES else "hooks" if rule in _OF_HOOKS else "module"

"""The shape of the bindings that answer the API server, by their key in the configuration.

Source: "kubernetesValidating" and "kubernetesMutating" of shell-operator's documents, and
``admissionregistration.k8s.io/v1`` of the Kubernetes API, to which most fields go as they are.
"""

from collections.abc import Mapping
from typing import Final

from addon_operator.hook_contract.configuration import conversion_bindings, schema_parts

LONGEST_SECONDS: Final = 30
"""What the API server waits at the most."""
MOST_CONDITIONS: Final = 64
"""What the API server takes of ``matchConditions``."""

_GROUP: Final[schema_parts.Schema] = {"type": "string", "format": "rule-group"}
_RULE_VERSION: Final[schema_parts.Schema] = {"type": "string", "format": "rule-version"}
_RESOURCE: Final[schema_parts.Schema] = {"type": "string", "format": "rule-resource"}
_RULE: Final = schema_parts.mapping(
    {
        "apiGroups": schema_parts.listing(_GROUP, at_least=1),
        "apiVersions": schema_parts.listing(_RULE_VERSION, at_least=1),
        "resources": schema_parts.listing(_RESOURCE, at_least=1),
        "operations": schema_parts.listing({"enum": ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]}, 1),
        "scope": {"enum": ["Cluster", "Namespaced", "*"]},
    },
    required=("apiGroups", "apiVersions", "resources", "operations"),
)
_CONDITION: Final = schema_parts.mapping(
    {"name": {"type": "string", "format": "label-key"}, "expression": schema_parts.NAME},
    required=("name", "expression"),
)
_NAMESPACE: Final = schema_parts.mapping(
    {"labelSelector": schema_parts.LABEL_SELECTOR},
    required=("labelSelector",),
    elsewhere={
        "nameSelector": "the API server selects namespaces by labels: write a labelSelector, "
        "with the label kubernetes.io/metadata.name for a name"
    },
)
_NEVER_RUNS: Final = "this binding runs for requests of the API server, not in a queue; remove it"
_ADMISSION: Final = schema_parts.mapping(
    {
        "name": {"type": "string", "format": "webhook-name"},
        "group": schema_parts.TEXT,
        "includeSnapshotsFrom": schema_parts.listing(schema_parts.NAME, at_least=1),
        "labelSelector": schema_parts.LABEL_SELECTOR,
        "namespace": _NAMESPACE,
        "rules": schema_parts.listing(_RULE, at_least=1),
        "failurePolicy": {"enum": ["Ignore", "Fail"]},
        "locks": {"enum": ["cluster"]},
        "sideEffects": {"enum": ["None", "NoneOnDryRun"]},
        "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": LONGEST_SECONDS},
        "matchConditions": schema_parts.listing(_CONDITION),
    },
    required=("name", "rules"),
    elsewhere={
        "queue": _NEVER_RUNS,
        "allowFailure": "write failurePolicy: Ignore, or let the hook answer",
        "objectSelector": "write labelSelector",
        "namespaceSelector": "write 'namespace' with a 'labelSelector' in it",
        "matchPolicy": "it is always Equivalent; remove it",
        "clientConfig": "the operator writes it; remove it",
    },
)

_VERSION: Final[schema_parts.Schema] = {"type": "string", "format": "api-version"}
_CONVERSION: Final = schema_parts.mapping(
    {
        "name": schema_parts.TEXT,
        "group": schema_parts.TEXT,
        "includeSnapshotsFrom": schema_parts.listing(schema_parts.NAME, at_least=1),
        "crdName": {"type": "string", "format": "crd-name"},
        "conversions": schema_parts.listing(
            schema_parts.mapping(
                {"fromVersion": _VERSION, "toVersion": _VERSION}, required=("fromVersion", "toVersion")
            ),
            at_least=1,
        ),
    },
    required=("crdName", "conversions"),
    elsewhere={"queue": _NEVER_RUNS},
)

ADMISSION: Final[Mapping[str, schema_parts.Schema]] = {
    key: schema_parts.listing(_ADMISSION, at_least=1)
    for key in ("kubernetesValidating", "kubernetesMutating")
}
"""Schema of each list of bindings about which admission asks."""
BY_KEY: Final[Mapping[str, schema_parts.Schema]] = {
    **ADMISSION,
    conversion_bindings.KEY: schema_parts.listing(_CONVERSION, at_least=1),
}
"""Schema of each list of bindings that the API server asks."""

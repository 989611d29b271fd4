"""Where releases outside of the operator's namespace are, as the cluster remembers it.

The operator cannot know that from modules that are gone. So it keeps an object beside Helm's records, of the
same kind: the one list that reads the records brings it, too. Without such releases there is no such object.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from addon_operator.kernel import json_types
from addon_operator.kube import api_errors
from addon_operator.kube.client import client

NAME: Final = "addon-operator-release-namespaces"
SELECTOR: Final = "owner in (helm,addon-operator)"
"""Selects Helm's records and this object."""
_ANNOTATION: Final = "addon-operator.io/release-namespaces"
_KINDS: Final = {"secrets": "Secret", "configmaps": "ConfigMap"}


def find(objects: Iterable[json_types.KubernetesObject], own_namespace: str) -> frozenset[str]:
    """Return the namespaces that the object names among those that were listed."""
    for each in objects:
        metadata: Mapping[str, Any] = each.get("metadata") or {}
        is_own = metadata.get("namespace", own_namespace) == own_namespace
        if is_own and metadata.get("name") == NAME:
            text = (metadata.get("annotations") or {}).get(_ANNOTATION, "")
            return frozenset(filter(None, text.split(",")))
    return frozenset()


async def save(api: client.KubeClient, path: str, namespaces: frozenset[str]) -> None:
    """Write the object anew, or delete it if there is nothing to remember.

    ``path`` is that of Helm's records in the operator's namespace.
    """
    target = f"{path}/{NAME}"
    if not namespaces:
        with contextlib.suppress(api_errors.NotFound):
            await api.delete(target)
        return
    body = {
        "apiVersion": "v1",
        "kind": _KINDS[path.rpartition("/")[2]],
        "metadata": {
            "name": NAME,
            "labels": {"owner": "addon-operator"},
            "annotations": {_ANNOTATION: ",".join(sorted(namespaces))},
        },
    }
    await api.apply(target, body, force=True)

"""Records of releases as Helm keeps them: read, and changed behind the operator's back."""

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

from tests.integration import cluster_objects


def packed(release: dict[str, Any], driver: str = "secret") -> str:
    """What a record of this content stores."""
    text = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    return (base64.b64encode(text) if driver == "secret" else text).decode()


def change(
    site: cluster_objects.Objects,
    release: str,
    number: int | str,
    edit: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    driver: str = "secret",
    namespace: str = "",
) -> str:
    """Change what the record of a revision says; what it stored before."""
    name = f"sh.helm.release.v1.{release}.v{number}"
    stored = str(site.get(driver, name, namespace)["data"]["release"])
    text = base64.b64decode(base64.b64decode(stored) if driver == "secret" else stored)
    changed = edit(json.loads(gzip.decompress(text)))
    site.patch(driver, name, {"data": {"release": packed(changed, driver)}}, namespace=namespace)
    return stored

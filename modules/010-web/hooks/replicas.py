#!/usr/bin/env python3
"""Set the number of replicas before Helm runs.

To change values, a hook writes a JSON patch (RFC 6902) to the file that VALUES_JSON_PATCH_PATH names. A
hook of a module may only write below the module's own key. The operator keeps the patch in memory and
applies it on top of the values files and the ConfigMap. A patch that changes nothing triggers nothing.
"""

import json
import os
import sys

CONFIG = """
configVersion: v1
beforeHelm: 10
"""


def main() -> None:
    with open(os.environ["VALUES_PATH"], encoding="utf-8") as file:
        values = json.load(file)
    default = 2 if values["global"].get("highAvailability") else 1
    replicas = values["web"].get("replicas") or default
    patch = [{"op": "add", "path": "/web/internal", "value": {"replicas": replicas}}]
    with open(os.environ["VALUES_JSON_PATCH_PATH"], "w", encoding="utf-8") as file:
        json.dump(patch, file)


if __name__ == "__main__":
    if "--config" in sys.argv[1:]:
        print(CONFIG)
    else:
        main()

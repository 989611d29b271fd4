#!/usr/bin/env python3
"""Generate an identity for the cluster, once.

Patches of VALUES_JSON_PATCH_PATH are kept in memory and lost when the operator stops. To keep a value,
write it to CONFIG_VALUES_JSON_PATCH_PATH: the operator stores it in its ConfigMap, beside the values that
people write there.
"""

import json
import os
import sys
import uuid

CONFIG = """
configVersion: v1
onStartup: 10
"""


def main() -> None:
    with open(os.environ["VALUES_PATH"], encoding="utf-8") as file:
        if json.load(file)["global"].get("clusterId"):
            return
    patch = [{"op": "add", "path": "/global/clusterId", "value": str(uuid.uuid4())}]
    with open(os.environ["CONFIG_VALUES_JSON_PATCH_PATH"], "w", encoding="utf-8") as file:
        json.dump(patch, file)
    print("This cluster now has an identity: see 'global' in the ConfigMap.")


if __name__ == "__main__":
    if "--config" in sys.argv[1:]:
        print(CONFIG)
    else:
        main()

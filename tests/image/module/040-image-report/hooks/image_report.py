#!/usr/bin/env python3
"""Says which Python a hook gets, and what can be imported there."""

import importlib.util
import os
import sys

from addon_operator import hook

CONFIG = {"configVersion": "v1", "beforeHelm": 10}
ASKED = ("a_package_for_hooks", "addon_operator", "aiohttp", "kopf", "kubernetes", "rich", "yaml")


def main(run: hook.Run) -> None:
    found = {
        "executable": sys.executable,
        "prefix": sys.prefix,
        "uid": os.getuid(),
        "imports": sorted(name for name in ASKED if importlib.util.find_spec(name)),
    }
    run.values.set("imageReport.python", found)


if __name__ == "__main__":
    hook.run(CONFIG, main)

#!/usr/bin/env python3
"""Look the names up whenever the module runs.

VALUES_PATH names a file with the values as JSON. A hook fails if it exits with a code other than 0: the
operator retries its module with growing pauses, and modules with higher numbers wait for it.
"""

import json
import os
import socket
import sys

CONFIG = """
configVersion: v1
afterHelm: 10
"""


def is_known(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return False
    return True


def main() -> int:
    with open(os.environ["VALUES_PATH"], encoding="utf-8") as file:
        section = json.load(file)["dnsCheck"]
    unknown = [name for name in section["names"] if not is_known(name)]
    for name in unknown:
        print(f"The DNS does not know {name}.", file=sys.stderr)
    print(f"{len(section['names']) - len(unknown)} of {len(section['names'])} names are known to the DNS.")
    return 1 if unknown and section.get("required") else 0


if __name__ == "__main__":
    if "--config" in sys.argv[1:]:
        print(CONFIG)
    else:
        sys.exit(main())

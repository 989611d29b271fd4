"""The command line: one file per verb; it renders and decides nothing.

What a verb does stands in ``commands``.
"""

import sys

if sys.version_info < (3, 11, 4):
    sys.exit(
        "Error: addon-operator needs Python 3.11.4 or newer, and this is "
        f"{'.'.join(map(str, sys.version_info[:3]))}; start it with another one"
    )

"""A program that holds many hooks: without ``#!`` and without a compiler.

The program is a link to the interpreter. Started as ``PROGRAM hook list`` it runs the directory ``hook``
beside it, and that answers. So there is one program in a directory.
"""

import json
import os
import pathlib
import sys
import textwrap
from typing import Any

_ANSWERS = """\
import os, sys, time

ASKED = sys.argv[1:]


def fail(text):
    import json
    sys.stderr.write(json.dumps({{"message": text}}) + "\\n")
    sys.exit(1)


if ASKED == ["list"]:
    print({listed!r})
    sys.exit()
if ASKED == ["config"]:
    print({config!r})
    sys.exit()
import json, pathlib  # take as long as all of the above


def read(variable):
    with open(os.environ[variable]) as file:
        return json.load(file)


def write(variable, *documents):
    with open(os.environ[variable], "a") as file:
        file.writelines(json.dumps(document) + "\\n" for document in documents)


{body}
"""


def write(directory: pathlib.Path, name: str, config: Any, body: str = "") -> pathlib.Path:  # noqa: ANN401 - JSON
    """Put a program into a directory of hooks; ``body`` is Python that is run for all other questions.

    It finds the words behind ``hook`` in ``ASKED``, and has ``read``, ``write`` and ``fail``.
    """
    answers = directory / "hook"
    answers.mkdir(parents=True, exist_ok=True)
    hooks = config if isinstance(config, list) else config.get("hooks", [])
    listed = [
        f"Found {len(hooks)} items:",
        *(f"{i} - {each['metadata']['name']}" for i, each in enumerate(hooks)),
    ]
    text = _ANSWERS.format(listed="\n".join(listed), config=json.dumps(config), body=textwrap.dedent(body))
    (answers / "__main__.py").write_text(text)
    program = directory / name
    if not program.is_symlink():
        program.symlink_to(os.path.realpath(sys.executable))
    return program

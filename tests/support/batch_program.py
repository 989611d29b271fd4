"""A program that holds many hooks: without ``#!`` and without a compiler.

The program is a link to the interpreter. Started as ``PROGRAM hook list`` it runs the directory ``hook``
beside it, and that answers. So there is one program in a directory.
"""

import json
import os
import pathlib
import sys
import textwrap

_ANSWERS = """\
import json, os, pathlib, sys, time

CONFIG = json.loads({config!r})
ASKED = sys.argv[1:]


def read(variable):
    return json.loads(pathlib.Path(os.environ[variable]).read_text())


def write(variable, *documents):
    with open(os.environ[variable], "a") as file:
        file.writelines(json.dumps(document) + "\\n" for document in documents)


def fail(text):
    sys.stderr.write(json.dumps({{"message": text}}) + "\\n")
    sys.exit(1)


hooks = CONFIG if isinstance(CONFIG, list) else CONFIG.get("hooks", [])
if ASKED == ["list"]:
    print(f"Found {{len(hooks)}} items:")
    for number, hook in enumerate(hooks):
        print(f"{{number}} - {{hook['metadata']['name']}}")
    sys.exit()
if ASKED == ["config"]:
    print(json.dumps(CONFIG))
    sys.exit()
{body}
"""


def write(directory: pathlib.Path, name: str, config: object, body: str = "") -> pathlib.Path:
    """Put a program into a directory of hooks; ``body`` is Python that is run for all other questions.

    It finds the words behind ``hook`` in ``ASKED``, and has ``read``, ``write`` and ``fail``.
    """
    answers = directory / "hook"
    answers.mkdir(parents=True, exist_ok=True)
    text = _ANSWERS.format(config=json.dumps(config), body=textwrap.dedent(body))
    (answers / "__main__.py").write_text(text)
    program = directory / name
    if not program.is_symlink():
        program.symlink_to(os.path.realpath(sys.executable))
    return program

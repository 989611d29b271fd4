"""Names of files beside hooks that say that the file is none: data, libraries, tests."""

import pathlib
import re
from typing import Final

LIBRARY: Final = "lib"
_DATA_SUFFIXES: Final = frozenset(
    {".adoc", ".cer", ".cfg", ".conf", ".crt", ".css", ".csv", ".dist", ".env", ".example", ".gz", ".html",
     ".ini", ".j2", ".jinja", ".jinja2", ".jq", ".key", ".libsonnet", ".lock", ".log", ".mod", ".patch",
     ".pem", ".png", ".properties", ".proto", ".pub", ".rego", ".rst", ".sample", ".sha256", ".sql", ".sum",
     ".svg", ".tar", ".template", ".tgz", ".tmpl", ".toml", ".tpl", ".tsv", ".typed", ".whl", ".xml", ".yml",
     ".zip"}
)  # fmt: skip
_LIBRARY_SUFFIXES: Final = frozenset({".a", ".jar", ".o", ".pyc", ".pyi", ".so"})
_LEFT_BEHIND: Final = (".bak", ".orig", ".rej", ".swp", ".tmp", "~")
_DATA_STEMS: Final = frozenset(
    {"authors", "changelog", "codeowners", "containerfile", "contributing", "copying", "dockerfile",
     "gemfile", "jenkinsfile", "justfile", "license", "makefile", "notice", "owners", "pipfile", "procfile",
     "readme", "requirements", "taskfile", "vagrantfile", "version"}
)  # fmt: skip
_LIBRARY_WORDS: Final = frozenset(
    {"common", "func", "funcs", "function", "functions", "helper", "helpers", "lib", "libraries", "library",
     "libs", "shared", "util", "utilities", "utils"}
)  # fmt: skip
"""Ends of names; ``lib`` stands at the beginning, too."""
_TEST: Final = re.compile(r"conftest\.py|test_.*\.py|.*_test\.\w+|.*\.bats")
_DIRECTORIES: Final = frozenset(
    {"data", "docs", "examples", "include", "includes", "node_modules", "templates", "testdata", "vendor"}
)
_TEST_DIRECTORIES: Final = frozenset({"test", "tests"})
_INCLUDED: Final = frozenset({".awk", ".bash", ".js", ".lua", ".pl", ".pm", ".py", ".rb", ".sh", ".zsh"})
_WORDS: Final = re.compile(r"[^a-z]+")


def is_data(name: str) -> bool:
    """Say whether a file's path below the directory of hooks tells that it is no program."""
    *directories, own = name.lower().split("/")
    path = pathlib.PurePosixPath(own)
    return (
        path.suffix in _DATA_SUFFIXES
        or own.endswith(_LEFT_BEHIND)
        or own.partition(".")[0] in _DATA_STEMS
        or not _DIRECTORIES.isdisjoint(directories)
    )


def is_library(name: str) -> bool:
    """Say whether a file's path below the directory of hooks tells that hooks or tests include it."""
    *directories, own = name.lower().split("/")
    path = pathlib.PurePosixPath(own)
    is_named_so = path.suffix in _LIBRARY_SUFFIXES or own.startswith("_") or _TEST.fullmatch(own) is not None
    is_among_tests = not _TEST_DIRECTORIES.isdisjoint(directories)
    return is_named_so or is_among_tests or any(map(_is_for_others, (path.stem, *directories)))


def may_be_included(name: str) -> bool:
    """Say whether it is in a language whose programs include files that do not begin with ``#!``."""
    return pathlib.PurePosixPath(name.lower()).suffix in _INCLUDED


def _is_for_others(stem: str) -> bool:
    words = [word for word in _WORDS.split(stem) if word] or [""]
    return words[0] == LIBRARY or words[-1] in _LIBRARY_WORDS

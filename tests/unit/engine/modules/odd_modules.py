"""Directories of modules with each of their files in odd forms: types, sizes, encodings and contents."""

import dataclasses
import gzip
import io
import json
import os
import pathlib
import shutil
import socket
import tarfile
from collections.abc import Callable, Iterator
from typing import Final

GOOD: Final[dict[str, str]] = {
    "values.yaml": "{key}Enabled: true\n{key}: {{size: 1}}\n",
    "openapi/config-values.yaml": "type: object\nproperties: {size: {type: integer}}\n",
    "openapi/values.yaml": "x-extend: {schema: config-values.yaml}\n",
    "crds/a.yaml": "",
    "enabled": "#!/bin/sh\n",
    "hooks/a.sh": "#!/bin/sh\n",
}
"""Files of every module; ``{key}`` in values is the module's values key."""
OWN_CHART: Final = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
}
STOCK_CHART: Final = {
    "module.yaml": "chart: {path: chart}\n",
    "chart/Chart.yaml": (
        "apiVersion: v2\nname: web\nversion: 1.0.0\n"
        "dependencies: [{name: sub, version: 1.0.0}, {name: packed, version: 1.0.0}]\n"
    ),
    "chart/values.yaml": "size: 1\n",
    "chart/values.schema.json": '{"properties": {"size": {"type": "integer"}}}',
    "chart/.helmignore": "*.bak\n",
    "chart/Chart.lock": "digest: sha256:0\n",
    "chart/requirements.yaml": "",
    "chart/crds/a.yaml": "",
    "chart/templates/a.yaml": "kind: {{ .Values.size }}\n",
    "chart/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "chart/charts/sub/values.yaml": "a: 1\n",
    "chart/charts/sub/values.schema.json": "{}",
}
PACKED: Final = "chart/charts/packed-1.0.0.tgz"

_TEXTS: Final[dict[str, bytes]] = {
    "empty": b"",
    "null": b"null",
    "number": b"5",
    "word": b"word",
    "list": b"[1, {a: b}]",
    "wrong keys": b"5: 6\nnull: 7\n? [a]\n: 8\n",
    "other mapping": b"a: {b: [c]}\nreplicaCount: 1\n",
    "binary": bytes(range(256)),
    "not utf-8": b"a: \xff\xfe",
    "utf-16": "a: b\n".encode("utf-16"),
    "nul": b"a: \0\n",
    "unclosed": b'{"a": [',
    "deep": b"[" * 3000,
    "deep mapping": b'{"a":' * 3000 + b"1" + b"}" * 3000,
    "anchors": b"a: &a [1]\n" + b"".join(b"b%d: &b%d [%s]\n" % (n, n, b"*a," * 9) for n in range(9)),
    "numbers": b"a: .inf\nb: .nan\nc: %s\nd: 2001-99-99\n" % (b"9" * 400),
    "tags": b"a: !!python/object:os.system {}\nb: !x y\n<<: 5\n",
    "documents": b"---\na: 1\n---\nb: 2\n",
    "long key": b"%s: 1\n" % (b"k" * 5_000),
}
_KEYWORDS: Final = (
    *("allOf", "anyOf", "not", "if", "$id", "$ref", "$schema", "$anchor", "$defs", "definitions"),
    *("properties", "patternProperties", "type", "required", "enum", "items", "format"),
)
_LISTS: Final = ("allOf", "oneOf", "type", "required", "dependentSchemas", "$dynamicRef")
_SCHEMAS: Final = (
    *({keyword: 5} for keyword in _KEYWORDS),
    *({keyword: [5]} for keyword in _LISTS),
    {"$id": "http://["},
    {"$ref": "http://["},
    {"$ref": "#/a~2b/%zz"},
    {"$schema": "http://["},
    {"properties": {"size": {"pattern": "("}}},
    {"properties": {"size": {"$ref": "#"}}},
    {"allOf": [{"$ref": "#"}]},
    {"default": 5, "x-extend": 5, "x-kubernetes-validations": 5, "x-sensitive": 5},
    {"x-extend": {"schema": 5}, "x-kubernetes-validations": [5], "x-required-for-helm": 5},
)
_CHARTS: Final = (
    *(f"dependencies: {value}" for value in ("5", "word", "{a: b}", "[5]", "[null]", "[{name: 5}]", "[{}]")),
    *(
        f"dependencies: [{{name: sub, {key}: {value}}}]"
        for key in ("condition", "tags", "alias", "import-values", "version", "repository")
        for value in ("5", "{a: b}")
    ),
    "name: 5",
    "name: [a]",
    "version: 5",
    "version: 9999999999999999999999.1.2",
    "type: {a: b}",
    "type: [a]",
    "apiVersion: []",
    "keywords: 5",
)


_READ: Final = ("values.yaml", "Chart.yaml", "module.yaml", "ents.yaml", "json", "ignore", "crds/a.yaml")
"""How files end whose content is looked at, and not just copied or run."""


def _pipe(path: pathlib.Path) -> None:
    os.mkfifo(path)


def _socket(path: pathlib.Path) -> None:
    before = pathlib.Path.cwd()
    os.chdir(path.parent)  # The path of a socket must be short.
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def _sparse(path: pathlib.Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


_TYPES: Final[dict[str, Callable[[pathlib.Path], None]]] = {
    "directory": pathlib.Path.mkdir,
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link out": lambda path: path.symlink_to("/etc/passwd"),
    "pipe": _pipe,
    "socket": _socket,
    "unreadable": lambda path: path.touch(mode=0),
    "a tebibyte": _sparse,
}


@dataclasses.dataclass(frozen=True)
class Odd:
    """One module with one odd file."""

    what: str
    place: str
    make: Callable[[pathlib.Path], None]

    def prepare(self, directory: pathlib.Path, key: str) -> None:
        """Write the module with everything right."""
        write(directory, key, is_stock=self.place.startswith("chart/") or self.place in STOCK_CHART)

    def spoil(self, directory: pathlib.Path) -> None:
        """Put this in the place of one file."""
        path = directory / self.place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        self.make(path)


def write(directory: pathlib.Path, key: str, *, is_stock: bool) -> None:
    """Write a module with everything right."""
    for name, text in (GOOD | (STOCK_CHART if is_stock else OWN_CHART)).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(key=key) if name == "values.yaml" else text)
    if is_stock:
        (directory / PACKED).write_bytes(_archive("packed/Chart.yaml", b"name: packed\nversion: 1.0.0\n"))


def _archive(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _sparse_archives() -> Iterator[bytes]:
    """Yield archives whose headers of sparse files are nonsense."""
    for records in ("GNU.sparse.map=a,b", "GNU.sparse.size=x", "GNU.sparse.major=1\nGNU.sparse.minor=0"):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            member = tarfile.TarInfo("packed/Chart.yaml")
            member.pax_headers = dict(line.split("=", 1) for line in records.splitlines())
            member.size = 600
            archive.addfile(member, io.BytesIO(b"x" * 600))
        yield made.getvalue()
    header = bytearray(tarfile.TarInfo("packed/a").tobuf(tarfile.GNU_FORMAT))
    header[156:157], header[386:410] = b"S", b"not octal digits at all!"
    header[148:156] = b"%06o\0 " % (256 + sum(header[:148]) + sum(header[156:]))
    yield gzip.compress(bytes(header) + bytes(1024))


def _writing(content: bytes) -> Callable[[pathlib.Path], None]:
    def write_content(path: pathlib.Path) -> None:
        path.write_bytes(content)

    return write_content


def _of_archives() -> Iterator[Odd]:
    whole = _archive("packed/Chart.yaml", b"name: packed\n")
    odd = {
        "cut": whole[: len(whole) // 2],
        "not packed": gzip.decompress(whole),
        "two headers": whole + whole,
        "garbage behind": whole + b"garbage",
        "outside": _archive("../packed/Chart.yaml", b"name: packed\n"),
        "absolute": _archive("/Chart.yaml", b"name: packed\n"),
        "chart of a number": _archive("packed/Chart.yaml", b"5"),
        "chart not text": _archive("packed/Chart.yaml", b"\xff\xfe"),
        "archive in it": _archive("packed/charts/a.tgz", b"nothing"),
        "schema of nonsense": _archive("packed/values.schema.json", b'{"$id": 5}'),
        **{f"sparse {number}": content for number, content in enumerate(_sparse_archives())},
    }
    for what, content in (odd | _TEXTS).items():
        yield Odd(what, PACKED, _writing(content))


def _of_directories() -> Iterator[Odd]:
    for place in ("crds", "hooks", "openapi", "templates", "chart/charts", "chart/templates", "chart/crds"):
        for what in ("pipe", "link to nothing", "link to itself", "unreadable"):
            yield Odd(f"{what} for a directory", place, _TYPES[what])


def variants() -> Iterator[Odd]:
    """Yield all of them."""
    places = (*GOOD, *OWN_CHART, *STOCK_CHART)
    for place in (place for place in places if place.endswith(_READ)):
        yield from (Odd(what, place, _writing(content)) for what, content in _TEXTS.items())
    for place in (*places, PACKED):
        yield from (Odd(what, place, make) for what, make in _TYPES.items())
    for place in ("chart/values.schema.json", "chart/charts/sub/values.schema.json", "openapi/values.yaml"):
        for schema in _SCHEMAS:
            text = json.dumps(schema)
            yield Odd(text, place, _writing(text.encode()))
    for place in ("Chart.yaml", "chart/Chart.yaml", "chart/charts/sub/Chart.yaml"):
        for line in _CHARTS:
            key = line.partition(":")[0]
            kept = [
                each for each in STOCK_CHART["chart/charts/sub/Chart.yaml"].splitlines() if key not in each
            ]
            yield Odd(line, place, _writing("\n".join([*kept, line]).encode()))
    yield from _of_archives()
    yield from _of_directories()

"""Modules of many shapes, and random changes of them as people make them."""

import pathlib
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import yaml

CANARY: Final = "canary-of-the-trial"
"""Begins whatever is secret here."""
_SECTION: Final = {"a": "one", "b": 2, "list": ["x", "y"], "unused": "nothing", "on": True, "dsn": "plain"}
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "password": {"type": "string", "x-sensitive": True, "minLength": 60},
        "port": {"type": "integer", "x-sensitive": True, "maximum": 99},
        "filled": {"type": "string", "default": "by-the-schema"},
    },
}
_HOOK: Final = """\
#!/bin/bash
if [[ "${1:-}" == "--config" ]]; then echo '{"configVersion": "v1", "beforeHelm": 1}'; exit 0; fi
printf '[{"op":"add","path":"/SECTION/given","value":"by-a-hook"}]' > "$VALUES_JSON_PATCH_PATH"
"""
_OBJECT: Final = """\
apiVersion: v1
kind: KIND
metadata: {name: "NAME"}
"""


def _object(name: str, data: Mapping[str, str], kind: str = "ConfigMap", *, part: str = "data") -> str:
    head = _OBJECT.replace("KIND", kind).replace("NAME", name)
    return head + f"{part}:\n" + "".join(f"  {key}: {text}\n" for key, text in data.items())


SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": {"a": "{{ .Values.SECTION.a | quote }}", "b": "{{ .Values.SECTION.b | quote }}"},
    "secret": {
        "a": "{{ .Values.SECTION.a | quote }}",
        "sum": "{{ printf `%v` .Values.SECTION.password | sha256sum }}",
        "port": "{{ .Values.SECTION.port | quote }}",
        "token": "{{ .Values.SECTION.token | default `` | quote }}",
        "joined": "user={{ .Values.SECTION.token | default `` }}/{{ .Values.SECTION.a }}",
    },
    "random": {"a": "{{ .Values.SECTION.a | quote }}", "id": "{{ randAlphaNum 16 | quote }}"},
    "tpl": {
        "a": '{{ tpl "{{ .Values.SECTION.a }}" . | quote }}',
        "l": "{{ join `,` .Values.SECTION.list | quote }}",
    },
    "apis": {
        "a": "{{ .Values.SECTION.a | quote }}",
        "v": "{{ .Capabilities.KubeVersion.Version | quote }}",
        "policy": '{{ .Capabilities.APIVersions.Has "policy/v1" | quote }}',
    },
    "looking": {
        "a": "{{ .Values.SECTION.a | quote }}",
        "kept": '{{ with lookup "v1" "ConfigMap" .Release.Namespace "kube-root-ca.crt" }}'
        "{{ .metadata.name | quote }}{{ else }}{{ randAlphaNum 9 | quote }}{{ end }}",
    },
    "listing": {
        "a": "{{ .Values.SECTION.a | quote }}",
        "mods": "{{ join `,` .Values.global.enabledModules | quote }}",
    },
    "shared": {"a": "{{ .Values.SECTION.a | quote }}", "g": "{{ .Values.global.domain | quote }}"},
    "hooked": {
        "a": "{{ .Values.SECTION.a | quote }}",
        "h": "{{ .Values.SECTION.given | default `none` | quote }}",
    },
    "defaults": {"a": "{{ .Values.SECTION.a | quote }}", "f": "{{ .Values.SECTION.filled | quote }}"},
    "switch": {
        "a": "{{ .Values.SECTION.a | quote }}",
        "on": "{{ if .Values.SECTION.on }}yes{{ else }}no{{ end }}x",
    },
}
"""What the ConfigMap of a module has, by the shape of the module."""


class RandomModules:
    """A modules directory that changes."""

    def __init__(self, modules: pathlib.Path, seed: int) -> None:
        self.root = modules
        self._random = random.Random(seed)
        self._numbers = iter(range(1, 10_000))
        self.common: dict[str, object] = {"global": {"domain": "example.com", "other": 1}}
        for shape in SHAPES:
            self.add(shape)
        self.write_common()

    def write_common(self) -> None:
        """Write ``values.yaml`` of the directory."""
        (self.root / "values.yaml").write_text(yaml.safe_dump(self.common))

    def add(self, shape: str = "") -> str:
        """Add a module that is enabled."""
        shape = shape or self._random.choice(list(SHAPES))
        name = f"{shape}{next(self._numbers)}"
        path = self.root / f"{self._random.randint(10, 90):03}-{name}"
        (path / "templates").mkdir(parents=True)
        (path / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 0.1.0\n")
        data = {key: text.replace("SECTION", name) for key, text in SHAPES[shape].items()}
        (path / "templates" / "first.yaml").write_text(_object("{{ .Release.Name }}", data))
        if shape in ("secret", "plain"):
            secret = {
                "fixed": "written-here",
                "p": f"{{{{ .Values.{name}.password | default `none` | quote }}}}",
            }
            text = _object("{{ .Release.Name }}", secret, "Secret", part="stringData")
            (path / "templates" / "secret.yaml").write_text(text)
        if shape in ("secret", "defaults"):
            (path / "openapi").mkdir()
            (path / "openapi" / "config-values.yaml").write_text(yaml.safe_dump(_open(_SCHEMA)))
        if shape == "hooked":
            (path / "hooks").mkdir()
            (path / "hooks" / "give.sh").write_text(_HOOK.replace("SECTION", name))
            (path / "hooks" / "give.sh").chmod(0o755)
        (path / "values.yaml").write_text(yaml.safe_dump({name: dict(_SECTION)}))
        self.common[f"{name}Enabled"] = True
        return name

    @property
    def names(self) -> list[str]:
        """All modules that are there."""
        return sorted(path.name.partition("-")[2] for path in self.root.iterdir() if path.is_dir())

    def path(self, name: str) -> pathlib.Path:
        """The directory of a module."""
        return next(path for path in self.root.iterdir() if path.name.partition("-")[2] == name)

    def change(self, count: int) -> list[str]:
        """Make so many changes, each of another module, or of what they share; return what they were."""
        self._mend()
        chosen = self._random.sample(self.names, min(count, len(self.names)))
        said = [self._change(name) for name in chosen]
        while len(said) < count:
            said.append(f"added {self.add()}")
        if self._random.random() < 0.3:
            said[-1] += f"; {self._change_shared()}"
        if len(self.names) < len(SHAPES):
            said[-1] += f"; added {self.add()}"
        self.write_common()
        return said

    def _mend(self) -> None:
        """Take back what was broken on purpose."""
        for broken in self.root.glob("*/templates/broken.yaml"):
            broken.unlink()

    def _change(self, name: str) -> str:
        kinds = list(self._kinds())
        (kind,) = self._random.choices([each for each, _ in kinds], [weight for _, weight in kinds])
        kind(name)
        return f"{kind.__name__.strip('_')} {name}"

    def _kinds(self) -> Iterator[tuple[Callable[[str], None], int]]:
        yield self._value, 5
        yield self._common_value, 3
        yield self._template, 4
        yield self._comment, 2
        yield self._unused_value, 2
        yield self._layout, 1
        yield self._object_more, 2
        yield self._object_less, 2
        yield self._fixed_secret, 2
        yield self._switch, 3
        yield self._remove, 1
        yield self._order, 1
        yield self._labels, 2
        yield self._release_name, 1
        yield self._enabled_script, 1
        yield self._version, 1
        yield self._schema, 1
        yield self._broken, 1
        yield self._list_value, 2

    def _change_shared(self) -> str:
        if self._random.random() < 0.7:
            self.common["global"] = {"domain": f"{self._word()}.example.com", "other": 1}
            return "global value"
        self.common["global"] = {**self.common["global"], "other": self._word()}  # type: ignore[dict-item]
        return "unused global value"

    def _word(self) -> str:
        return f"w{self._random.randint(0, 3)}"

    def _edit(self, name: str, **values: object) -> None:
        path = self.path(name) / "values.yaml"
        document = yaml.safe_load(path.read_text())
        document[name] |= values
        path.write_text(yaml.safe_dump(document))

    def _value(self, name: str) -> None:
        self._edit(name, a=self._word())

    def _list_value(self, name: str) -> None:
        self._edit(
            name,
            list=[self._word() for _ in range(self._random.randint(0, 3))],
            on=self._random.random() < 0.5,
        )

    def _common_value(self, name: str) -> None:
        self.common[name] = (
            {"b": self._random.randint(0, 3), "a": self._word()} if self._random.random() < 0.7 else {}
        )

    def _unused_value(self, name: str) -> None:
        self._edit(name, unused=self._word())

    def _template(self, name: str) -> None:
        path = self.path(name) / "templates" / "first.yaml"
        lines = [line for line in path.read_text().splitlines() if not line.startswith("  more:")]
        path.write_text("\n".join([*lines, f"  more: {self._word()}\n"]))

    def _comment(self, name: str) -> None:
        path = self.path(name) / "templates" / "first.yaml"
        path.write_text(f"# {self._word()}\n{{{{/* {self._word()} */}}}}\n" + path.read_text())

    def _layout(self, name: str) -> None:
        path = self.path(name) / "values.yaml"
        path.write_text(
            f"# {self._word()}\n" + yaml.safe_dump(yaml.safe_load(path.read_text()), sort_keys=False)
        )

    def _object_more(self, name: str) -> None:
        path = self.path(name) / "templates" / f"{self._word()}.yaml"
        path.write_text(_object(f"{{{{ .Release.Name }}}}-{path.stem}", {"k": self._word()}))

    def _object_less(self, name: str) -> None:
        for path in sorted((self.path(name) / "templates").glob("w*.yaml"))[:1]:
            path.unlink()

    def _fixed_secret(self, name: str) -> None:
        path = self.path(name) / "templates" / "secret.yaml"
        if path.exists():
            lines = [line for line in path.read_text().splitlines() if not line.startswith("  fixed:")]
            path.write_text("\n".join([*lines, f"  fixed: {self._word()}\n"]))
        else:
            self._value(name)

    def _switch(self, name: str) -> None:
        key = f"{name}Enabled"
        self.common[key] = not self.common.get(key, False)

    def _remove(self, name: str) -> None:
        shutil.rmtree(self.path(name))
        self.common = {
            key: value for key, value in self.common.items() if key not in (name, f"{name}Enabled")
        }

    def _order(self, name: str) -> None:
        path = self.path(name)
        path.rename(path.with_name(f"{self._random.randint(10, 90):03}-{name}"))

    def _labels(self, name: str) -> None:
        self._about(name, labels={"team": self._word()})

    def _release_name(self, name: str) -> None:
        self._about(name, releaseName=f"{name}-{self._word()}")

    def _about(self, name: str, **keys: object) -> None:
        path = self.path(name) / "module.yaml"
        document = yaml.safe_load(path.read_text()) if path.exists() else {}
        path.write_text(yaml.safe_dump({**document, **keys}))

    def _enabled_script(self, name: str) -> None:
        path = self.path(name) / "enabled"
        verdict = self._random.choice(("true", "false"))
        path.write_text(f'#!/bin/bash\necho {verdict} > "$MODULE_ENABLED_RESULT"\n')
        path.chmod(0o755)

    def _version(self, name: str) -> None:
        version = f"0.{self._random.randint(1, 3)}.0"
        (self.path(name) / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: {version}\n")

    def _schema(self, name: str) -> None:
        directory = self.path(name) / "openapi"
        if not directory.exists():
            self._value(name)
            return
        schema = _open(_SCHEMA)
        schema["properties"]["filled"]["default"] = self._word()
        (directory / "config-values.yaml").write_text(yaml.safe_dump(schema))

    def _broken(self, name: str) -> None:
        (self.path(name) / "templates" / "broken.yaml").write_text('{{ fail "broken on purpose" }}')

    def secrets(self) -> tuple[dict[str, str], dict[str, str]]:
        """What ConfigMap and values Secret have to say of modules with secrets."""
        of_shape = [name for name in self.names if name.startswith("secret")]
        config = {
            name: yaml.safe_dump({"password": f"{CANARY}-{name}-{'p' * 60}", "port": 42}) for name in of_shape
        }
        secret = {name: yaml.safe_dump({"token": f"{CANARY}-token-{name}"}) for name in of_shape}
        return config, secret


def _open(schema: Mapping[str, object]) -> dict[str, dict[str, dict[str, object]]]:
    """Return a copy of a schema that allows other keys."""
    copied: dict[str, dict[str, dict[str, object]]] = yaml.safe_load(yaml.safe_dump(dict(schema)))
    copied["additionalProperties"] = True  # type: ignore[assignment]
    return copied

"""Writing values as YAML that people can read and that our own reader reads back the same."""

from typing import Any, Final

import yaml

from addon_operator.kernel import json_types
from addon_operator.values import json_documents, yaml_reading, yaml_scalars

_STRING_TAG: Final = "tag:yaml.org,2002:str"
_NOT_PLAIN: Final = "quoted"
_WIDTH: Final = 2**31 - 1


class _Dumper(yaml.CSafeDumper):
    """Block style, lists indented, and quotes around whatever any YAML reader might take for no string."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ANN401  # PyYAML's
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # has no stub
        if tag == _STRING_TAG and implicit[0] and not isinstance(yaml_scalars.plain(value), str):
            return _NOT_PLAIN
        return tag

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # PyYAML's interface
        return True


def _represent_string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(_STRING_TAG, text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_string)


def dump(section: json_types.JsonObject) -> str:
    """The section as YAML in block style, keys in their order, multi-line strings as blocks."""
    text = str(
        yaml.dump(
            section,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            width=_WIDTH,
        )
    )
    return text if _reads_back(text, section) else json_documents.encode(section).decode() + "\n"


def _reads_back(text: str, section: json_types.JsonObject) -> bool:
    # Emitters of block scalars have known holes; JSON is YAML too, and has none.
    try:
        return json_documents.equal(yaml_reading.load(text, "rendered YAML"), section)
    except yaml_reading.YamlError:
        return False

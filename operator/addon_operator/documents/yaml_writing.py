"""Writing values as YAML that people can read and that our own reader reads back the same."""

from typing import Any, Final

import yaml

from addon_operator.documents import json_documents, yaml_loader, yaml_reading
from addon_operator.kernel import json_types

_STRING_TAG: Final = "tag:yaml.org,2002:str"
_NOT_PLAIN: Final = "quoted"
_WIDTH: Final = 2**31 - 1


class LinesDumper(yaml.CSafeDumper):
    """Writes everything out, and texts of several lines as lines."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # PyYAML's interface
        """Write everything out."""
        return True


LinesDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar(_STRING_TAG, text, style="|" if "\n" in text else None)
)


class _Dumper(LinesDumper):
    """Block style, lists indented, and quotes around whatever any YAML reader might take for no string."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ANN401  # PyYAML's
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # has no stub
        if tag == _STRING_TAG and implicit[0] and not isinstance(yaml_loader.plain(value), str):
            return _NOT_PLAIN
        return tag


class _QuotingDumper(_Dumper):
    """Double quotes and escapes: less pleasant, but any text survives it."""


_QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar(_STRING_TAG, text, style='"')
)


def dump(section: json_types.JsonValue) -> str:
    """Return the section, or any document, as YAML in block style, keys in order, long strings as blocks."""
    text = _dump(section, _Dumper, allow_unicode=True)
    # Block scalars and unusual characters have holes in the emitter.
    return text if _reads_back(text, section) else _dump(section, _QuotingDumper, allow_unicode=False)


def _dump(section: json_types.JsonValue, dumper: type[_Dumper], *, allow_unicode: bool) -> str:
    return str(
        yaml.dump(
            section,
            Dumper=dumper,
            sort_keys=False,
            allow_unicode=allow_unicode,
            default_flow_style=False,
            width=_WIDTH,
        )
    )


def _reads_back(text: str, section: json_types.JsonValue) -> bool:
    try:
        return json_documents.equal(yaml_reading.load(text, "rendered YAML"), section)
    except yaml_reading.YamlError:
        return False

"""How the sources of values lie on each other."""

from addon_operator.documents import json_documents
from addon_operator.kernel import json_types


def merge(*layers: json_types.JsonObject) -> json_types.JsonObject:
    """The layers laid on each other, lowest first.

    Mappings are merged deep; lists and scalars are replaced whole; an explicit ``null`` stays ``null``.
    Keys keep the order in which they first appear. The result shares nothing with the layers.
    Source: "Merged values" of the addon-operator documentation.
    """
    result: json_types.JsonObject = {}
    for layer in layers:
        _lay(result, layer)
    return result


def _lay(below: json_types.JsonObject, above: json_types.JsonObject) -> None:
    for key, value in above.items():
        present = below.get(key)
        if isinstance(value, dict):
            target = present if isinstance(present, dict) else {}
            below[key] = target
            _lay(target, value)
        else:
            below[key] = json_documents.copy_value(value)

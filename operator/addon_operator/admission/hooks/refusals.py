"""What the API server has against a webhook, said so that the author of its hook finds it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from addon_operator.admission.hooks import hook_specs
from addon_operator.hook_contract import hook_entries
from addon_operator.hook_contract.configuration import webhook_bindings
from addon_operator.kernel import errors
from addon_operator.kube import api_errors

_PLACE: Final = re.compile(r"webhooks\[(?P<number>[0-9]{1,6})\]")
"""Where something is wrong in an object that holds webhooks."""


class WebhookRefusedError(errors.AddonOperatorError):
    """The API server does not take a webhook as its hook declares it."""


Tables: TypeAlias = Mapping[webhook_bindings.ReviewType, Mapping[str, hook_specs.Registered]]


def named(
    error: errors.AddonOperatorError, written: Tables, entries: Sequence[hook_entries.WebhookEntry]
) -> errors.AddonOperatorError:
    """Return the error with the hook and its field in place of a number, if it is about one of the entries.

    ``written`` is what was to be registered, by what is asked and by name.
    """
    if not isinstance(error, api_errors.ApiError) or (place := _PLACE.search(error.message)) is None:
        return error
    kinds = hook_specs.KINDS.items()
    asked = next((asked for asked, kind in kinds if kind.plural == error.target.resource), None)
    number = int(place["number"])
    names = sorted(written[asked]) if asked is not None else []
    wrong = asked, names[number] if number < len(names) else ""
    entry = next((entry for entry in entries if (entry.binding.type, entry.binding.name) == wrong), None)
    if entry is None:
        return error
    said = error.message[place.start() :].replace(f"webhooks[{number}].", "")
    return WebhookRefusedError(f"the API server does not take {entry}: {said}; correct its configuration")

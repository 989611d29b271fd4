"""Stand-ins for values that nobody may see: keyed hashes, by a key that is thrown away.

Equal values have equal stand-ins at one place, and nobody can try values until one fits, not even who writes
them elsewhere in the same file. Texts become texts and numbers become numbers, so that charts render.
Switches, ``null`` and empty texts stay: they say what is on, and keep no secret.
"""

import hashlib
import hmac
from collections.abc import Collection
from typing import Final

from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types
from addon_operator.values.schema import schema_violations, schemas

PREFIX: Final = "hidden-"
_DIGITS: Final = 24
_LEAST: Final = 100
_NUMBERS: Final = 900


class StandIns:
    """Makes stand-ins by one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, value: json_types.JsonValue, place: json_pointers.Tokens) -> json_types.JsonValue:
        """Return a document with a stand-in for each text and number; ``place``: where it is."""
        if isinstance(value, dict):
            return {key: self.of(inner, (*place, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner, place) for inner in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        digest = self.digest(f"{json_pointers.render(place)}\n{value}")
        if isinstance(value, str):
            return f"{PREFIX}{digest[:_DIGITS]}"
        return _LEAST + int(digest, 16) % _NUMBERS

    def where_masked(
        self, value: json_types.JsonValue, masked: json_types.JsonValue, place: json_pointers.Tokens
    ) -> json_types.JsonValue:
        """Return the document with stand-ins where ``masked``, the same document, shows nothing."""
        if masked == schemas.HIDDEN:
            return self.of(value, place)
        if isinstance(value, dict) and isinstance(masked, dict):
            return {
                key: self.where_masked(inner, masked.get(key), (*place, key)) for key, inner in value.items()
            }
        if isinstance(value, list) and isinstance(masked, list) and len(value) == len(masked):
            return [self.where_masked(*each, place) for each in zip(value, masked, strict=True)]
        return value

    def digest(self, text: str) -> str:
        """Return the keyed hash of a text."""
        return hmac.new(self._key, text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()


class HiddenPlaces:
    """The places of hidden values: what is wrong with stand-ins says nothing."""

    def __init__(self, hidden: Collection[str]) -> None:
        """``hidden``: places of values, as JSON pointers with their section's key."""
        places = [json_pointers.parse(place) for place in hidden]
        self._below = {place[:length] for place in places for length in range(len(place))}
        self._places = set(places)
        # The values of a chart from a repository have no section of their own.
        self._below |= {place[1:] for place in self._below}
        self._places |= {place[1:] for place in places}

    def leave(self, violation: schema_violations.Violation) -> bool:
        """Say whether something is wrong, and not with a hidden value or with what holds it."""
        keys = tuple(str(key) for key in violation.keys)
        if keys in self._below:
            return violation.is_missing_key
        return not any(keys[:length] in self._places for length in range(1, len(keys) + 1))

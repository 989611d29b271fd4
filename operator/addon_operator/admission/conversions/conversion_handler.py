"""Answers the conversion reviews of the API server."""

import asyncio
import time
from typing import Final

from addon_operator.admission import reviews
from addon_operator.admission.conversions import conversion_reviews, converter
from addon_operator.admission.registration import conversion_specs
from addon_operator.hook_contract import conversions
from addon_operator.kernel import names

ROUTE: Final = f"{conversion_specs.PATH}{{name}}"
"""The path at which the API server asks; the name of the definition is at its end."""


class ConversionHandler(reviews.BodyHandler):
    """Has objects converted."""

    def __init__(self, declared: converter.DeclaredConversions) -> None:
        self._converter = converter.Converter(declared)

    async def answer(self, name: str, body: bytes, seconds: float) -> bytes:
        """Return all objects converted, or why they cannot be."""
        arrived = time.monotonic()
        if not names.is_crd_name(name):
            raise reviews.MalformedReviewError("the path does not end in the name of a definition")
        # Reviews of many objects take their time.
        review = await asyncio.to_thread(conversion_reviews.parse, body, name)
        try:
            converted = await self._converter.convert(review, arrived, seconds)
        except conversions.ConversionError as error:
            return conversion_reviews.refusal(review, str(error))
        try:
            return await asyncio.to_thread(conversion_reviews.answer, review, converted)
        except TypeError:
            return conversion_reviews.refusal(review, conversions.too_deep(converted))

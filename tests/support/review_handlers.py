"""Handlers of admission reviews that do what a test says."""

from collections.abc import Awaitable, Callable

from typing_extensions import override

from addon_operator.admission import reviews


class Calling(reviews.ReviewHandler):
    """Lets a function decide."""

    def __init__(self, call: Callable[[reviews.Review], Awaitable[reviews.ReviewVerdict]]) -> None:
        self._call = call

    @override
    async def decide(self, review: reviews.Review) -> reviews.ReviewVerdict:
        return await self._call(review)

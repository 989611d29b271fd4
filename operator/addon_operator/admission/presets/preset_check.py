"""Reviews of presets: what a setting of the operator does not allow is refused."""

from collections.abc import Collection, Sequence

from addon_operator.admission import reviews
from addon_operator.podpreset import model


class PresetCheck(reviews.ReviewHandler):
    """Refuses PodPresets with what a setting of the operator does not allow, which no CRD can know.

    A handler of reviews: what it does not refuse goes on to the next one.

    While no operator answers, the API server stores what would be refused here: it is invalid all the same.
    """

    def __init__(self, allowed_volumes: Collection[str], then: reviews.ReviewHandler) -> None:
        self._allowed_volumes = allowed_volumes
        self._then = then

    async def decide(self, review: reviews.Review) -> reviews.ReviewVerdict:
        """Refuse a new preset that is in order but for what the setting says."""
        if review.operation == "CREATE" and not review.sub_resource and review.object is not None:
            parsed = model.parse(review.object, self._allowed_volumes)
            if isinstance(parsed, model.InvalidPreset) and isinstance(
                model.parse(review.object), model.Preset
            ):
                return _refusal(parsed.reasons)
        return await self._then.decide(review)


def _refusal(reasons: Sequence[str]) -> reviews.ReviewVerdict:
    causes = [reviews.cause(reason) for reason in reasons]
    return reviews.ReviewVerdict(allowed=False, message="; ".join(reasons), causes=causes)

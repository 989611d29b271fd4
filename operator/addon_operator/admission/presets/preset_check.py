"""Refuses PodPresets with what a setting of the operator does not allow, which no CRD can know."""

from collections.abc import Collection, Sequence

from addon_operator.admission import reviews
from addon_operator.podpreset import model


class PresetCheck:
    """A handler of reviews of PodPresets: what it does not refuse goes on to the next one.

    While no operator answers, the API server stores what would be refused here: it is invalid all the same.
    """

    def __init__(self, allowed_volumes: Collection[str], then: reviews.Handler) -> None:
        self._allowed_volumes = allowed_volumes
        self._then = then

    async def __call__(self, review: reviews.Review) -> reviews.Verdict:
        """Refuse a new preset that is in order but for what the setting says."""
        if review.operation == "CREATE" and not review.sub_resource and review.object is not None:
            parsed = model.parse(review.object, self._allowed_volumes)
            if isinstance(parsed, model.InvalidPreset) and isinstance(
                model.parse(review.object), model.Preset
            ):
                return _refusal(parsed.reasons)
        return await self._then(review)


def _refusal(reasons: Sequence[str]) -> reviews.Verdict:
    parts = [reason.partition(": ") for reason in reasons]
    causes = [reviews.Cause(field, message) for field, _, message in parts]
    return reviews.Verdict(allowed=False, message="; ".join(reasons), causes=causes)

"""The mutating webhook for pods: presets are merged into a pod that is being created."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from addon_operator.admission import events, reviews
from addon_operator.admission.pods import env_sources_reader
from addon_operator.admission.presets import preset_notices
from addon_operator.kernel import clock, json_types
from addon_operator.podpreset import env_sources, merge, model, selection

PATH: Final = "/mutate-pods"
"""Where the API server calls the webhook."""
SOURCES_SECONDS: Final = 1.0
"""How long ConfigMaps and Secrets are waited for while a pod is admitted."""

_log = logging.getLogger(__name__)


class Merger:
    """Finds out what presets do to a pod."""

    def __init__(self, presets: preset_notices.PresetNotices, sources: env_sources_reader.EnvSources) -> None:
        self._presets = presets
        self._sources = sources

    async def merge(
        self, namespace: str, pod: json_types.KubernetesObject
    ) -> merge.Injection | merge.Conflicted:
        """Return what the presets of the namespace add to the pod, or why they cannot.

        Raises :class:`.MergeCostError` when they are too many or too large.
        """
        if selection.is_exempt(pod):
            return merge.Injection((), ())
        labels = (pod.get("metadata") or {}).get("labels") or {}
        matching = await self._presets.match(namespace, labels)
        if not matching:
            return merge.Injection((), ())
        merge.check_cost(pod, matching)
        wanted = env_sources.sources_needed(pod, matching)
        contents = await self._sources.read(namespace, wanted, SOURCES_SECONDS) if wanted else {}

        def keys(reference: model.SourceRef) -> Collection[str] | None:
            return contents.get(reference, env_sources_reader.MISSING).keys

        return merge.inject(pod, matching, keys)


class PodHandler(reviews.ReviewHandler):
    """Answers reviews of pods; an error of ours never refuses one."""

    def __init__(self, merger: Merger, tell: events.Listener, time: clock.Clock) -> None:
        self._merger = merger
        self._tell = tell
        self._clock = time

    async def decide(self, review: reviews.Review) -> reviews.ReviewVerdict:
        """Answer with the patch that the presets make."""
        pod = review.object
        if review.operation != "CREATE" or review.sub_resource or pod is None:
            return reviews.ReviewVerdict()
        started = self._clock.monotonic()
        result, patch = await self._result(review, pod)
        self._tell(events.PodAdmitted(review.namespace, result, self._clock.monotonic() - started))
        return reviews.ReviewVerdict(patch=patch)

    async def _result(
        self, review: reviews.Review, pod: json_types.KubernetesObject
    ) -> tuple[events.Result, Sequence[Mapping[str, Any]]]:
        try:
            merged = await self._merger.merge(review.namespace, pod)
        except merge.MergeCostError as error:
            _log.warning("a pod of namespace %s was admitted without presets: %s", review.namespace, error)
            return "error", ()
        except Exception:  # noqa: BLE001 - whatever it is, the pod is admitted as it came
            _log.exception("a pod of namespace %s was admitted without presets", review.namespace)
            return "error", ()
        if isinstance(merged, merge.Conflicted):
            return "conflict", ()
        if not merged.patch:
            return "unchanged", ()
        # A pod may be admitted twice, and has its presets for the first time once.
        annotations = (pod.get("metadata") or {}).get("annotations") or {}
        new = [one.name for one in merged.applied if merge.is_new(one, annotations)]
        if new and not review.dry_run:
            self._tell(events.PresetsAnswered(review.namespace, new, "injected"))
        return "injected", [dict(operation) for operation in merged.patch]

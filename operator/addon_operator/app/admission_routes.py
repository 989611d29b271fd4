"""What the admission site answers: a path for each webhook that is registered, and no others."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from addon_operator.admission import review_shapes, reviews
from addon_operator.admission.server import site
from addon_operator.app import admission_webhooks
from addon_operator.podpreset import model
from addon_operator.settings import settings as settings_module

# The API server writes a byte with up to six. A review of an edit has the ConfigMap twice, with at most 1 MiB
# of data (which is checked) and 256 KiB of annotations each.
_CONFIG_BYTES: Final = 16 << 20
# The API server stores no object over 1.5 MiB.
_PRESET_BYTES: Final = 10 << 20
_NOTICE_SECONDS: Final = 1.5


@dataclasses.dataclass(frozen=True, slots=True)
class Handlers:
    """Who answers the reviews of each webhook."""

    mutate_pods: reviews.Handler
    check_pods: reviews.Handler
    notice_presets: reviews.Handler
    check_config: reviews.Handler


def routes(settings: settings_module.Settings, handlers: Handlers) -> Mapping[str, site.Route]:
    """The paths and their bounds. What has effects beyond its answer takes complete reviews only."""
    pods = review_shapes.ReviewShape("", "pods")
    presets = review_shapes.ReviewShape(model.GROUP, model.PLURAL)
    found = {
        admission_webhooks.MUTATE_PODS: site.Route(handlers.mutate_pods, "allow"),
        admission_webhooks.CHECK_PODS: site.Route(
            handlers.check_pods, "allow", timeout=_NOTICE_SECONDS, shape=pods
        ),
        admission_webhooks.NOTICE_PRESETS: site.Route(
            handlers.notice_presets, "allow", timeout=_NOTICE_SECONDS, shape=presets, max_body=_PRESET_BYTES
        ),
    }
    if settings.config_validation:
        found[admission_webhooks.CHECK_CONFIG] = site.Route(
            handlers.check_config,
            "allow",
            shape=review_shapes.ReviewShape(bounds_data=True),
            max_body=_CONFIG_BYTES,
        )
    return found

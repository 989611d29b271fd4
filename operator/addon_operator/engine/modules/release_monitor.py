"""The releases of modules, watched: what they hold, how that is, what is absent, and what was restored."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from addon_operator.engine.definitions import crd_guard
from addon_operator.engine.drift import (
    content_drift,
    drift,
    followed_releases,
    module_healths,
    record_watch,
    watched_resources,
)
from addon_operator.engine.modules import module_releases


class ReleaseMonitor(msgspec.Struct, frozen=True):
    """Watches the resources of releases, and has those restored that disappear."""

    drift: drift.Drift
    resources: watched_resources.WatchedResources
    followed: followed_releases.FollowedReleases
    releases: module_releases.ModuleReleases
    guard: crd_guard.CrdGuard
    healths: module_healths.ModuleHealths
    content: content_drift.ContentDrift
    records: record_watch.RecordWatch

    @property
    def parts(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """What follows and restores until cancelled, each by itself."""
        return {
            "followed": self.followed.work,
            "drift": self.drift.work,
            "health": self.healths.work,
            "content": self.content.work,
            "definitions": self.guard.work,
            "records": self.records.work,
        }

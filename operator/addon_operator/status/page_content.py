"""What the status page shows, gathered at one moment."""

import dataclasses

from addon_operator.engine import introspection
from addon_operator.engine.drift import watched_resources
from addon_operator.status import health, status_page


class PageContent:
    """Gathers what the page shows; of an operator without an engine, only its state."""

    def __init__(self, status: health.OperatorStatus) -> None:
        self._status = status
        self._views: introspection.Introspection | None = None
        self._resources: watched_resources.WatchedResources | None = None

    def show(self, views: introspection.Introspection, resources: watched_resources.WatchedResources) -> None:
        """Show modules and queues as well, and which objects several modules have."""
        self._views, self._resources = views, resources

    async def gather(self) -> status_page.Content:
        """Return what there is now, gathered in pieces: others have their turn meanwhile."""
        status = self._status
        content = status_page.Content(
            state=status.converge()[0], unready=status.unready_reason(), refusals=status.refusals()
        )
        if self._views is None or self._resources is None:
            return content
        return dataclasses.replace(
            content,
            modules=await self._views.modules(),
            errors=self._views.errors_without_values(),
            queues=self._views.queue_heads(),
            shared=self._resources.shared,
        )

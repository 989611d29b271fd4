"""Stored presets, reviews, and a gate that a test opens when it likes."""

import asyncio
from typing import Any, Final

from addon_operator.admission import events, reviews

PRESETS: Final = "/apis/settings.k8s.io/v1alpha1/podpresets"
IN_SHOP: Final = "/apis/settings.k8s.io/v1alpha1/namespaces/shop/podpresets"
PODS: Final = "/api/v1/namespaces/shop/pods"
EVENTS: Final = "/api/v1/namespaces/shop/events"
LABELS: Final = {"role": "frontend"}

Object = dict[str, Any]


def preset(
    name: str = "p",
    version: int = 1,
    *,
    namespace: str = "shop",
    uid: str | None = None,
    metadata: Object | None = None,
    status: Object | None = None,
    **fields: object,
) -> Object:
    """A preset as the API server stores it; ``fields`` are of ``spec``."""
    written = {
        "name": name,
        "namespace": namespace,
        "uid": name if uid is None else uid,
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **(metadata or {}),
    }
    spec = {"selector": {"matchLabels": LABELS}, "env": [{"name": "A", "value": "1"}], **fields}
    return {"metadata": written, "spec": spec, "status": status or {}}


def listing(*items: Object, version: int = 100) -> Object:
    return {"items": list(items), "metadata": {"resourceVersion": str(version)}}


def pod(*containers: Object, annotations: Object | None = None, **spec: object) -> Object:
    metadata: Object = {"name": "web-1", "namespace": "shop", "uid": "u1", "labels": dict(LABELS)}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": list(containers) or [container()], **spec}}


def container(name: str = "app", **fields: object) -> Object:
    return {"name": name, "image": "i", **fields}


def review(
    object_: Object | None,
    *,
    operation: str = "CREATE",
    dry_run: bool = False,
    old: Object | None = None,
    sub_resource: str = "",
    namespace: str = "shop",
) -> reviews.Review:
    pods = reviews.GroupVersionName("", "v1", "pods")
    return reviews.Review(
        uid="review",
        kind=pods,
        resource=pods,
        sub_resource=sub_resource,
        name="",
        namespace=namespace,
        operation=operation,
        dry_run=dry_run,
        user="somebody",
        object=object_,
        old_object=old,
    )


class Seen:
    """Remembers what the cache tells of presets."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, type]] = []
        self.gone: list[str] = []

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.PresetStored():
                self.stored.append((event.parsed.name, type(event.parsed)))
            case events.PresetGone():
                self.gone.append(f"{event.namespace}/{event.name}")


class Gate:
    """Instead of sleeping: waits until the test lets all sleepers go on."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._open = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._open.wait()

    def open(self) -> None:
        self._open.set()

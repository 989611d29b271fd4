"""The answer to the review of a pod."""

from collections.abc import Mapping, Sequence
from typing import Any

import jsonpatch
import pytest

from addon_operator.admission.pods import env_sources_reader, pod_handler
from addon_operator.podpreset import merge
from tests.support.api_server import Pauses
from tests.unit.admission.objects import Object, container, pod, preset, review
from tests.unit.admission.pods.pod_fakes import Observer, Presets, Sources, merger

APPLIED = "podpreset.admission.kubernetes.io/podpreset-p"


@pytest.fixture
def observer() -> Observer:
    return Observer()


def handler(observer: Observer, presets: Presets, sources: Sources | None = None) -> pod_handler.PodHandler:
    return pod_handler.PodHandler(merger(presets, sources), observer, Pauses())


def patched(given: Object, patch: Sequence[Mapping[str, Any]]) -> Object:
    changed: Object = jsonpatch.apply_patch(given, list(patch))
    return changed


async def test_a_matching_preset_is_injected_and_counted(observer: Observer) -> None:
    given = pod()
    verdict = await handler(observer, Presets(preset(version=7))).decide(review(given))
    changed = patched(given, verdict.patch)
    assert changed["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert changed["metadata"]["annotations"] == {APPLIED: "7"}
    assert (observer.results, observer.injected) == ([("shop", "injected")], ["shop/p"])


async def test_the_namespace_is_that_of_the_request(observer: Observer) -> None:
    given = pod()
    given["metadata"]["namespace"] = "elsewhere"
    verdict = await handler(observer, Presets(preset())).decide(review(given))
    assert verdict.patch


async def test_a_second_pass_adds_nothing_and_counts_nothing(observer: Observer) -> None:
    handle, given = handler(observer, Presets(preset())), pod()
    first = await handle.decide(review(given))
    second = await handle.decide(review(patched(given, first.patch)))
    assert second.patch == ()
    assert observer.injected == ["shop/p"]
    assert [result for _, result in observer.results] == ["injected", "unchanged"]


async def test_a_container_that_came_in_between_is_served_but_not_counted_again(observer: Observer) -> None:
    handle, given = handler(observer, Presets(preset())), pod()
    between = patched(given, (await handle.decide(review(given))).patch)
    between["spec"]["containers"].append(container("sidecar"))
    second = await handle.decide(review(between))
    assert patched(between, second.patch)["spec"]["containers"][1]["env"]
    assert observer.injected == ["shop/p"]


async def test_a_pod_that_brought_an_old_annotation_along_is_counted_and_has_the_version_written(
    observer: Observer,
) -> None:
    given = pod(annotations={APPLIED: "3"})
    verdict = await handler(observer, Presets(preset(version=7))).decide(review(given))
    assert patched(given, verdict.patch)["metadata"]["annotations"] == {APPLIED: "7"}
    assert observer.injected == ["shop/p"]


async def test_a_dry_run_gets_the_same_patch_and_leaves_no_trace_in_the_status(observer: Observer) -> None:
    verdict = await handler(observer, Presets(preset())).decide(review(pod(), dry_run=True))
    assert verdict.patch
    assert observer.injected == []


async def test_a_conflict_leaves_the_pod_as_it_is(observer: Observer) -> None:
    given = pod(container(env=[{"name": "A", "value": "2"}]))
    verdict = await handler(observer, Presets(preset())).decide(review(given))
    assert (verdict.allowed, verdict.patch) == (True, ())
    assert observer.results == [("shop", "conflict")]


@pytest.mark.parametrize(
    ("source", "result"),
    [
        (env_sources_reader.EnvSource(frozenset("A")), "conflict"),
        (env_sources_reader.EnvSource(frozenset("B")), "injected"),
        (env_sources_reader.MISSING, "injected"),
        (env_sources_reader.UNREADABLE, "injected"),
    ],
    ids=["defines it", "defines another", "missing", "unreadable"],
)
async def test_a_variable_is_compared_with_the_sources_of_the_pod(
    observer: Observer, source: env_sources_reader.EnvSource, result: str
) -> None:
    given = pod(container(envFrom=[{"configMapRef": {"name": "c"}}]))
    sources = Sources(c=source)
    await handler(observer, Presets(preset()), sources).decide(review(given))
    assert observer.results == [("shop", result)]
    assert sources.asked == [("shop", ["ConfigMap c"])]


async def test_nothing_is_read_that_decides_nothing(observer: Observer) -> None:
    sources = Sources()
    await handler(observer, Presets(preset()), sources).decide(review(pod()))
    assert sources.asked == []


@pytest.mark.parametrize(
    "annotations",
    [
        {"kubernetes.io/config.mirror": ""},
        {"podpreset.admission.kubernetes.io/exclude": "true"},
    ],
    ids=["mirror pod", "excluded"],
)
async def test_an_exempt_pod_is_left_alone(observer: Observer, annotations: Object) -> None:
    verdict = await handler(observer, Presets(preset())).decide(review(pod(annotations=annotations)))
    assert verdict.patch == ()
    assert observer.results == [("shop", "unchanged")]


@pytest.mark.parametrize(
    ("object_", "operation", "sub_resource"),
    [(pod(), "UPDATE", ""), (pod(), "CREATE", "binding"), (None, "CREATE", "")],
    ids=["update", "subresource", "no object"],
)
async def test_reviews_of_other_things_are_allowed_and_not_counted(
    observer: Observer, object_: Object | None, operation: str, sub_resource: str
) -> None:
    given = review(object_, operation=operation, sub_resource=sub_resource)
    verdict = await handler(observer, Presets(preset())).decide(given)
    assert (verdict.allowed, verdict.patch, observer.results) == (True, (), [])


async def test_more_presets_than_may_be_merged_leave_the_pod_as_it_is(
    observer: Observer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "PRESETS_MAX", 3)
    presets = Presets(*(preset(f"p{number}") for number in range(4)))
    verdict = await handler(observer, presets).decide(review(pod()))
    assert (verdict.allowed, verdict.patch) == (True, ())
    assert observer.results == [("shop", "error")]
    assert "4 presets match the pod" in caplog.text
    assert "Traceback" not in caplog.text


async def test_an_error_of_ours_does_not_refuse_a_pod(
    observer: Observer, caplog: pytest.LogCaptureFixture
) -> None:
    presets = Presets()
    presets.error = RuntimeError("a defect")
    verdict = await handler(observer, presets).decide(review(pod()))
    assert (verdict.allowed, verdict.patch) == (True, ())
    assert observer.results == [("shop", "error")]
    assert "a defect" in caplog.text


@pytest.mark.parametrize(
    "broken",
    [
        {"metadata": {"labels": {"role": "frontend"}}, "spec": {"containers": ["text"]}},
        {"metadata": {"labels": {"role": "frontend"}}, "spec": {"containers": [{"env": [1]}]}},
        {"metadata": {"labels": ["role"]}},
        {"metadata": "text"},
    ],
)
async def test_a_pod_that_is_none_is_allowed(
    observer: Observer, broken: Object, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await handler(observer, Presets(preset())).decide(review(broken))).allowed
    assert observer.results == [("shop", "error")]

"""Objects of mixed versions are converted by the hooks that say they can, one run for each step."""

import asyncio
import time
from typing import Any

import pytest

from addon_operator.admission.conversions import conversion_reviews, converter
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.kernel.json_types import JsonObject

CRD = "crontabs.example.com"
GROUP = "example.com"


class Hook:
    """A hook that notes what it converts."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.asked: list[tuple[str, str, list[str]]] = []

    async def convert(self, request: hook_entries.StepRequest) -> conversions.ConversionAnswer:
        names = [str(each["name"]) for each in request.objects]
        self.asked.append((request.rule.from_version, request.rule.to_version, names))
        if self.fails:
            return conversions.ConversionAnswer(failed_message=self.fails)
        return conversions.ConversionAnswer(
            [{**each, "apiVersion": request.version} for each in request.objects]
        )

    def entry(
        self, *pairs: tuple[str, str], owner: str = "cron", crd: str = CRD
    ) -> hook_entries.ConversionEntry:
        rules = tuple(conversion_bindings.ConversionRule(*pair) for pair in pairs)
        binding = conversion_bindings.ConversionBinding(crd, rules, "up")
        return hook_entries.Entry(owner, "convert.sh", binding, self.convert)


def review(version: str, *objects: tuple[str, str]) -> conversion_reviews.ConversionReview:
    listed: list[Any] = [{"apiVersion": f"{GROUP}/{each}", "name": name} for each, name in objects]
    return conversion_reviews.ConversionReview("1", CRD, f"{GROUP}/{version}", listed)


def declared(*entries: hook_entries.ConversionEntry) -> converter.DeclaredConversions:
    known = converter.DeclaredConversions()
    for owner in {entry.owner for entry in entries}:
        known.replace(owner, [entry for entry in entries if entry.owner == owner])
    return known


async def convert(
    known: converter.DeclaredConversions, asked: conversion_reviews.ConversionReview
) -> list[tuple[Any, Any]]:
    found = await converter.convert(known, asked, time.monotonic())
    return [(each["apiVersion"], each["name"]) for each in found]


async def test_objects_of_mixed_versions_come_back_in_their_order() -> None:
    hook = Hook()
    known = declared(hook.entry(("v1alpha1", "v1beta1"), ("example.com/v1beta1", "v1")))
    mixed = review("v1", ("v1beta1", "a"), ("v1alpha1", "b"), ("v1", "c"), ("v1alpha1", "d"))
    assert await convert(known, mixed) == [("example.com/v1", name) for name in "abcd"]
    assert hook.asked == [
        ("v1alpha1", "v1beta1", ["b", "d"]),
        ("example.com/v1beta1", "v1", ["a", "b", "d"]),
    ]


async def test_a_chain_may_go_through_several_hooks() -> None:
    first, second = Hook(), Hook()
    known = declared(first.entry(("v1", "v2"), owner="a"), second.entry(("v2", "v3"), owner="b"))
    assert await convert(known, review("v3", ("v1", "x"))) == [("example.com/v3", "x")]
    assert (len(first.asked), len(second.asked)) == (1, 1)


async def test_what_a_hook_says_of_its_failure_reaches_the_user() -> None:
    hook = Hook("spec.cron is odd")
    with pytest.raises(conversions.ConversionError) as raised:
        await convert(declared(hook.entry(("v1", "v2"), ("v2", "v3"))), review("v3", ("v1", "x")))
    assert str(raised.value) == "spec.cron is odd"
    assert len(hook.asked) == 1


async def test_without_a_chain_nothing_is_run() -> None:
    hook = Hook()
    known = declared(hook.entry(("v1", "v2")), hook.entry(("v2", "v3"), crd="other.example.com"))
    with pytest.raises(conversions.NoChainError, match=r"declared are example\.com/v1 to example\.com/v2$"):
        await convert(known, review("v2", ("v1", "x"), ("v3", "y")))
    assert hook.asked == []


async def test_no_objects_need_no_hook() -> None:
    assert await convert(declared(), review("v2")) == []


async def test_a_conversion_of_two_owners_is_an_error_of_the_second_by_name() -> None:
    hook = Hook()
    known = declared(hook.entry(("v1", "v2"), owner="web"), hook.entry(("v1", f"{GROUP}/v2"), owner="cron"))
    known.check("cron")
    with pytest.raises(converter.DeclaredTwiceError) as raised:
        known.check("web")
    binding = "kubernetesCustomResourceConversion up of hook convert.sh of module"
    assert str(raised.value) == (
        f"{binding} web converts {CRD} from example.com/v1 to example.com/v2, and so does {binding} cron, "
        "which counts; remove one of the two"
    )
    await known.keep_only(["web"])
    known.check("web")


async def test_hooks_go_when_they_convert_nothing_any_more() -> None:
    gate, known = asyncio.Event(), converter.DeclaredConversions()

    async def slow(request: hook_entries.StepRequest) -> conversions.ConversionAnswer:
        await gate.wait()
        after = [{**each, "apiVersion": request.version} for each in request.objects]
        return conversions.ConversionAnswer(after)

    rule = conversion_bindings.ConversionRule("v1", "v2")
    binding = conversion_bindings.ConversionBinding(CRD, (rule,))
    known.replace("cron", [hook_entries.Entry("cron", "convert.sh", binding, slow)])
    group = CRD.partition(".")[2]
    item: JsonObject = {"apiVersion": f"{group}/v1", "kind": "CronTab", "metadata": {"name": "a"}}
    review = conversion_reviews.ConversionReview("1", CRD, f"{group}/v2", [item])
    converting = asyncio.create_task(converter.convert(known, review, time.monotonic()))
    await asyncio.sleep(0)
    going = asyncio.create_task(known.keep_only([]))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (going.done(), known.places) == (False, {("cron", "convert.sh")})
    gate.set()
    await going
    assert known.places == set()
    assert (await converting)[0]["apiVersion"] == f"{group}/v2"


async def test_what_was_replaced_is_not_asked_any_more() -> None:
    old, new = Hook(), Hook()
    known = declared(old.entry(("v1", "v2")))
    known.replace("cron", [new.entry(("v1", "v2"))])
    await convert(known, review("v2", ("v1", "x")))
    assert (len(old.asked), len(new.asked)) == (0, 1)
    known.replace("cron", ())
    assert known.of(CRD) == {}


async def test_the_fallback_is_asked_for_steps_that_were_not_begun_here() -> None:
    own, other = Hook(), Hook()
    known = declared(own.entry(("v1", "v2")))

    async def find(crd_name: str) -> list[hook_entries.ConversionEntry]:
        assert crd_name == CRD
        return [other.entry(("v1", "v2"), ("v2", "v3"))]

    known.fallback = find
    assert await convert(known, review("v2", ("v1", "x"))) == [("example.com/v2", "x")]
    assert await convert(known, review("v3", ("v1", "x"))) == [("example.com/v3", "x")]
    assert len(own.asked) == 2
    assert [step[:2] for step in other.asked] == [("v2", "v3")]


async def test_a_chain_for_which_the_time_is_over_says_so_and_blames_no_hook() -> None:
    hook = Hook()
    known = declared(hook.entry(("v1", "v2"), ("v2", "v3"), ("v3", "v4")))
    asked = review("v4", ("v1", "x"))
    with pytest.raises(conversions.ConversionError, match="has 3 steps, and the time was over after 1: decl"):
        await converter.convert(known, asked, time.monotonic() - 8.5, 10.0)
    assert len(hook.asked) == 1

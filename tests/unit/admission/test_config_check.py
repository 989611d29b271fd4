"""Reviews of ConfigMaps: which are looked at, and what is answered."""

import asyncio
from typing import Any

import msgspec
import pytest

from addon_operator.admission import config_check, reviews
from tests.support import clocks, rows

WRONG = ("web.port: must be an integer, not true (a.yaml)", "key 'api': line 2: this is not YAML")


class Checker:
    def __init__(self, *violations: str, warnings: tuple[str, ...] = ()) -> None:
        self._findings = config_check.Findings(violations, warnings)
        self.asked: list[tuple[config_check.Data, config_check.Data]] = []

    async def findings(self, data: config_check.Data, before: config_check.Data) -> config_check.Findings:
        self.asked.append((data, before))
        return self._findings


def body(data: dict[str, str] | None) -> dict[str, Any]:
    return {"metadata": {"name": "values"}} | ({"data": data} if data is not None else {})


EDIT = reviews.Review(
    uid="u",
    kind=reviews.GroupVersionName("", "v1", "ConfigMap"),
    resource=reviews.GroupVersionName("", "v1", "configmaps"),
    sub_resource="",
    name="values",
    namespace="addons",
    operation="UPDATE",
    dry_run=False,
    user="somebody",
    object=body({"web": "port: true"}),
    old_object=body({"web": "port: 1"}),
)


async def operator() -> str | None:
    return "system:serviceaccount:addons:operator"


async def someone_who_may(_review: reviews.Review) -> bool:
    return True


async def nobody() -> str | None:
    return None


async def verdict(
    checker: Checker,
    writer: config_check.Writer = operator,
    **changes: Any,  # noqa: ANN401 - of any field
) -> reviews.ReviewVerdict:
    check = config_check.ConfigCheck(
        "addons", "values", checker.findings, writer, someone_who_may, clocks.Pauses()
    )
    return await check.decide(msgspec.structs.replace(EDIT, **changes))


async def test_a_right_edit_is_allowed_with_its_warnings() -> None:
    checker = Checker(warnings=("w" * 300,))
    found = await verdict(checker)
    assert (found.allowed, found.warnings) == (True, ["w" * 256])
    assert checker.asked == [({"web": "port: true"}, {"web": "port: 1"})]


async def test_a_wrong_edit_is_refused_with_all_that_is_wrong() -> None:
    found = await verdict(Checker(*WRONG))
    assert not found.allowed
    assert found.message == f"the values ConfigMap would be invalid: {WRONG[0]}; {WRONG[1]}"
    assert list(found.causes) == [
        reviews.Cause("web.port", "must be an integer, not true (a.yaml)"),
        reviews.Cause("key 'api'", "line 2: this is not YAML"),
    ]


async def test_a_sentence_without_a_place_is_shown_whole() -> None:
    assert list((await verdict(Checker("it is wrong"))).causes) == [reviews.Cause("data", "it is wrong")]


async def test_a_wrong_config_map_cannot_be_created() -> None:
    checker = Checker(*WRONG)
    assert not (await verdict(checker, operation="CREATE", old_object=None)).allowed
    assert checker.asked[0][1] == {}


@rows.each(
    "changes",
    [
        {"name": "other"},
        {"namespace": "other"},
        {"operation": "DELETE"},
        {"sub_resource": "status"},
        {"field_manager": "addon-operator", "user": "system:serviceaccount:addons:operator"},
        {"object": body({"web": "port: 1"})},
        {"object": body(None), "old_object": body({})},
    ],
    ids=["name", "namespace", "delete", "sub-resource", "operator", "same-data", "no-data"],
)
async def test_what_is_not_an_edit_of_values_is_not_looked_at(changes: dict[str, Any]) -> None:
    checker = Checker(*WRONG)
    assert (await verdict(checker, **changes)).allowed
    assert checker.asked == []


@rows.each(
    ("changes", "writer"),
    [
        ({"field_manager": "addon-operator"}, operator),
        ({"user": "system:serviceaccount:addons:operator", "field_manager": "kubectl-edit"}, operator),
        ({"field_manager": "addon-operator"}, nobody),
        ({"field_manager": "addon-operator", "user": ""}, nobody),
    ],
    ids=["somebody who calls himself so", "the operator's user by hand", "unknown", "no name at all"],
)
async def test_nobody_but_the_operator_writes_unchecked(
    changes: dict[str, Any], writer: config_check.Writer
) -> None:
    assert not (await verdict(Checker(*WRONG), writer, **changes)).allowed


async def test_a_name_that_stands_in_the_object_alone_counts() -> None:
    assert not (await verdict(Checker(*WRONG), operation="CREATE", name="")).allowed


async def test_an_edit_that_writes_binary_data_is_warned_of() -> None:
    changed = {**body({"web": "port: 1"}), "binaryData": {"db": "AA=="}}
    told = "the values ConfigMap: binaryData is not read (db); write text under data"
    assert await verdict(Checker(), object=changed) == reviews.ReviewVerdict(warnings=(told,))
    assert await verdict(Checker(), object=changed, old_object=changed) == reviews.ALLOWED


class Comparing:
    """A rule compares what is proposed with the number in the Secret."""

    asked = 0

    async def findings(self, data: config_check.Data, before: config_check.Data) -> config_check.Findings:
        self.asked += 1
        await asyncio.sleep(0)
        wrong = () if data["web"] == "pin: 42" else ("web: the pins must be equal, not *** and 42",)
        return config_check.Findings((), (), wrong, ("the program says 42",))


async def test_who_may_not_read_the_secret_is_told_only_that_it_speaks_against_it_and_not_often() -> None:
    checker, time, readers = Comparing(), clocks.Pauses(), {"admin"}

    async def may_read(review: reviews.Review) -> bool:
        return review.user in readers

    check = config_check.ConfigCheck("addons", "values", checker.findings, operator, may_read, time)

    async def guess(number: int, user: str = "somebody") -> reviews.ReviewVerdict:
        review = msgspec.structs.replace(EDIT, object=body({"web": f"pin: {number}"}), user=user)
        return await check.decide(review)

    said = [each.message for each in await asyncio.gather(*(guess(number) for number in range(40)))]
    assert (len(set(said[:5])), len(set(said[5:])), checker.asked) == (1, 1, 5), "however many at once"
    only = said[0]
    assert only.endswith(
        "data: refused, by a rule that looks at values of the Secret, which you may not read"
    )
    late = await guess(42)
    assert (late.allowed, checker.asked) == (False, 5), "the right number is refused, too, and not looked at"
    assert (await guess(42, "other")).warnings == []
    assert "the pins must be equal" in (await guess(1, "admin")).message
    assert (await guess(42, "admin")).warnings == ["the program says 42"]
    time.now += 601
    assert (await guess(42)).allowed


class Differing:
    """A rule wants what is proposed to differ from the number in the Secret."""

    async def findings(self, data: config_check.Data, before: config_check.Data) -> config_check.Findings:
        wrong = ("web: the pins must differ",) if data["web"] == "pin: 42" else ()
        return config_check.Findings((), (), wrong, (), {"web"})


async def test_that_an_edit_fits_the_secret_is_told_no_more_often_than_that_it_does_not() -> None:
    async def nobody_may(_: reviews.Review) -> bool:
        return False

    check = config_check.ConfigCheck(
        "addons", "values", Differing().findings, operator, nobody_may, clocks.Pauses()
    )

    async def guess(number: int, user: str) -> bool:
        review = msgspec.structs.replace(EDIT, object=body({"web": f"pin: {number}"}), user=user)
        return (await check.decide(review)).allowed

    assert [await guess(7, "somebody") for _ in range(20)] == [True] * 20, "to ask again tells nothing"
    assert [await guess(number, "somebody") for number in range(8, 13)] == [True] * 4 + [False]
    many = [await guess(number, f"user-{number}") for number in range(1000, 1100)]
    assert many == [True] * 45 + [False] * 55, "who says to be many is answered fifty times in all"


async def test_what_was_there_before_an_edit_is_a_guess_as_well() -> None:
    """A rule about transitions refuses the right number in the place of what is replaced."""

    async def nobody_may(_: reviews.Review) -> bool:
        return False

    class Leaving:
        async def findings(self, _: config_check.Data, before: config_check.Data) -> config_check.Findings:
            wrong = ("web: the pin must not go",) if before["web"] == "pin: 42" else ()
            return config_check.Findings((), (), wrong, (), {"web"})

    check = config_check.ConfigCheck(
        "addons", "values", Leaving().findings, operator, nobody_may, clocks.Pauses()
    )
    guesses = [msgspec.structs.replace(EDIT, old_object=body({"web": f"pin: {n}"})) for n in range(30, 43)]
    assert [(await check.decide(guess)).allowed for guess in guesses] == [True] * 5 + [False] * 8


@pytest.mark.parametrize("says_who_may", [True, False])
async def test_who_says_to_be_many_users_is_answered_fifty_times_about_the_secret(
    *, says_who_may: bool
) -> None:
    checker, time = Comparing(), clocks.Pauses()

    async def may_read(_: reviews.Review) -> bool:
        return says_who_may

    check = config_check.ConfigCheck("addons", "values", checker.findings, operator, may_read, time)

    def guess(number: int) -> reviews.Review:
        return msgspec.structs.replace(EDIT, object=body({"web": f"pin: {number}"}), user=f"user-{number}")

    guesses = [guess(number) for number in (*range(1000, 1099), 42)]
    answers = await asyncio.gather(*map(check.decide, guesses))
    assert {answer.allowed for answer in answers} == {False}
    assert sum(answer.message.startswith("the values ConfigMap") for answer in answers) == 50
    time.now += 601
    assert (await check.decide(guess(42))).allowed

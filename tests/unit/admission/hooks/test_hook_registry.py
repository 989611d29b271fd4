"""Which webhooks of hooks are registered, and who is asked."""

from collections.abc import Mapping, Sequence

import pytest
from typing_extensions import override

from addon_operator.admission import reviews
from addon_operator.admission.hooks import hook_registry, hook_reviews
from addon_operator.admission.registration import registration_specs
from addon_operator.hook_contract import hook_entries
from addon_operator.hook_contract.configuration.webhook_bindings import ReviewType, WebhookBinding
from addon_operator.hook_contract.outputs import review_answers
from addon_operator.kernel import errors
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from tests.support import rows

TEMPLATE = registration_specs.WebhookConfiguration(
    registration_specs.ConfigurationKind.VALIDATING, "x-hooks", (), namespace="ops"
)
DENIED = review_answers.AdmissionAnswer(allowed=False, message="no")


class Kube(client.KubeClient):
    """Nothing is registered yet."""

    def __init__(self) -> None:
        """Nobody is asked."""

    @override
    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> dict[str, object]:
        raise api_errors.NotFound(paths.target("GET", path), 404, "NotFound", "none")


class Registrar:
    """Remembers what was written."""

    def __init__(self) -> None:
        self.written: list[list[str]] = []
        self.problems: dict[registration_specs.ConfigurationKind, str] = {}
        self.refuse: errors.AddonOperatorError | None = None
        """What writing ends with, as long as a name contains ``bad``, or at all if ``refuses_all``."""
        self.refuses_all = False

    async def want(self, configurations: Sequence[registration_specs.WebhookConfiguration]) -> None:
        wanted = [spec.name for each in configurations for spec in each.webhooks]
        if self.refuse is not None and (self.refuses_all or any("bad" in name for name in wanted)):
            raise self.refuse
        self.written.append(wanted)

    async def keep(self) -> None:
        """Nobody changes anything."""

    def problem(self, kind: registration_specs.ConfigurationKind) -> str:
        return self.problems.get(kind, "")


def entry(owner: str, name: str) -> hook_entries.WebhookEntry:
    async def deny(_request: hook_entries.ReviewRequest) -> review_answers.AdmissionAnswer:
        return DENIED

    return hook_entries.Entry(owner, "guard.sh", WebhookBinding(ReviewType.VALIDATING, name), deny)


def review(name: str) -> reviews.Review:
    nothing = reviews.GroupVersionName("", "v1", "")
    path = f"/hooks/validating/{name}"
    return reviews.Review(
        "1",
        nothing,
        nothing,
        "",
        "",
        "",
        "CREATE",
        dry_run=False,
        user="",
        object=None,
        old_object=None,
        path=path,
    )


async def test_what_is_removed_is_allowed_and_what_never_was_is_not_answered() -> None:
    served, registrar = hook_reviews.HookReviews(), Registrar()
    registry = hook_registry.HookRegistry(Kube(), registrar, TEMPLATE, served)
    await registry.open("shop", [entry("shop", "a.b.c")])
    await registry.open("web", [entry("web", "d.e.f")])
    assert not (await served.decide(review("a.b.c"))).allowed
    await registry.keep_only({"", "web"})
    assert registrar.written == [["a.b.c"], ["a.b.c", "d.e.f"], ["d.e.f"]]
    assert (await served.decide(review("a.b.c"))).allowed
    assert not (await served.decide(review("d.e.f"))).allowed
    with pytest.raises(reviews.UnansweredError, match=r"no hook answers at '/hooks/validating/x\.y\.z' here"):
        await served.decide(review("x.y.z"))


async def test_a_name_that_another_module_has_is_an_error_that_names_both() -> None:
    registrar = Registrar()
    registry = hook_registry.HookRegistry(Kube(), registrar, TEMPLATE, hook_reviews.HookReviews())
    await registry.open("shop", [entry("shop", "a.b.c")])
    with pytest.raises(
        hook_entries.WebhookNameError, match=r"module web .*of module shop has the name a\.b\.c"
    ):
        await registry.open("web", [entry("web", "a.b.c")])
    assert registrar.written == [["a.b.c"]]


async def test_nothing_is_written_where_nothing_changes() -> None:
    registrar = Registrar()
    registry = hook_registry.HookRegistry(Kube(), registrar, TEMPLATE, hook_reviews.HookReviews())
    await registry.open("web", [])
    await registry.open("shop", [entry("shop", "a.b.c")])
    await registry.open("shop", [entry("shop", "a.b.c")])
    await registry.keep_only({"shop"})
    assert registrar.written == [["a.b.c"]]


PATH = paths.of("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", name="x-hooks")
INVALID = api_errors.ApiError(
    paths.target("PUT", PATH),
    422,
    "Invalid",
    'ValidatingWebhookConfiguration "x-hooks" is invalid: webhooks[1].matchConditions[0].expression: '
    "Invalid value: compilation failed",
)
FORBIDDEN = api_errors.Forbidden(paths.target("PUT", PATH), 403, "Forbidden", "a right is missing")
REFUSALS = {
    "invalid": INVALID,
    "too large": api_errors.ApiError(paths.target("PUT", PATH), 413, "", "request is too large"),
    "server error": api_errors.ApiError(paths.target("PUT", PATH), 500, "InternalError", "no"),
    "unreachable": api_errors.Unreachable("nobody answers"),
}


@rows.each("refused", REFUSALS.values(), ids=list(REFUSALS))
async def test_what_the_api_server_does_not_take_of_one_module_is_the_trouble_of_no_other(
    refused: errors.AddonOperatorError,
) -> None:
    registrar = Registrar()
    registry = hook_registry.HookRegistry(Kube(), registrar, TEMPLATE, hook_reviews.HookReviews())
    await registry.open("shop", [entry("shop", "a.b.c")])
    registrar.refuse = refused
    with pytest.raises(errors.AddonOperatorError):
        await registry.open("web", [entry("web", "bad.b.c")])
    await registry.open("late", [entry("late", "d.e.f")])
    await registry.keep_only({"web", "late"})
    assert registrar.written[-2:] == [["a.b.c", "d.e.f"], ["d.e.f"]]
    registrar.refuse = None
    await registry.open("web", [entry("web", "bad.b.c")])
    assert registrar.written[-1] == ["bad.b.c", "d.e.f"]


async def test_a_right_that_is_missing_stops_only_what_needs_it() -> None:
    registrar = Registrar()
    registrar.refuse, registrar.refuses_all = FORBIDDEN, True
    registry = hook_registry.HookRegistry(Kube(), registrar, TEMPLATE, hook_reviews.HookReviews())
    with pytest.raises(api_errors.Forbidden):
        await registry.open("web", [entry("web", "a.b.c")])
    await registry.open("late", [])
    await registry.keep_only({"late"})


async def test_what_the_api_server_does_not_take_is_said_by_module_hook_and_field() -> None:
    registrar = Registrar()
    registry = hook_registry.HookRegistry(Kube(), registrar, TEMPLATE, hook_reviews.HookReviews())
    await registry.open("shop", [entry("shop", "a.b.c")])
    registrar.refuse = INVALID
    with pytest.raises(errors.AddonOperatorError) as said:
        await registry.open("web", [entry("web", "bad.b.c")])
    assert str(said.value) == (
        "the API server does not take kubernetesValidating bad.b.c of hook guard.sh of module web: "
        "matchConditions[0].expression: Invalid value: compilation failed; correct its configuration"
    )


async def test_what_was_opened_is_in_trouble_as_its_kind_is_or_once_it_is_not_registered() -> None:
    registrar, hook = Registrar(), entry("shop", "a.b.c")
    registry = hook_registry.HookRegistry(Kube(), registrar, TEMPLATE, hook_reviews.HookReviews())
    await registry.open("shop", [hook])
    registrar.problems = {registration_specs.ConfigurationKind.MUTATING: "somebody undoes it"}
    assert registry.trouble(hook) == ""
    registrar.problems = {registration_specs.ConfigurationKind.VALIDATING: "somebody undoes it"}
    assert registry.trouble(hook) == "somebody undoes it"
    await registry.keep_only({"web"})
    assert registry.trouble(hook) == "it is not registered any more"

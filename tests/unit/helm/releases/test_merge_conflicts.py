"""What is told of an upgrade that fails over what somebody wrote, from real errors and objects."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from addon_operator.helm import helm_errors, messages
from addon_operator.helm.releases import live_objects, merge_conflicts
from addon_operator.kernel import names
from addon_operator.kube import api_errors, paths
from addon_operator.modules import manifests
from tests.support import rows
from tests.unit.helm import recorded_upgrades

WEB = names.ModuleName("web")


class Live(live_objects.LiveObjects):
    """One object; the API server takes a patch, or does not."""

    def __init__(self, found: Mapping[str, Any] | None, *, takes: bool = True) -> None:
        self.found = found
        self.takes = takes
        self.asked: list[Sequence[Mapping[str, Any]]] = []

    @override
    async def get(
        self, module: names.ModuleName, resource: manifests.ManifestResource
    ) -> tuple[manifests.Object, str]:
        if self.found is None:
            raise api_errors.Unreachable(paths.Target("get", "things"), "no answer")
        return dict(self.found), "addons"

    @override
    async def would_take(
        self,
        module: names.ModuleName,
        resource: manifests.ManifestResource,
        operations: Sequence[Mapping[str, Any]],
    ) -> bool:
        self.asked.append(operations)
        return self.takes


async def told(case: str, helm: int = 3, live: Live | None = None) -> helm_errors.HelmError:
    recorded = recorded_upgrades.CASES[case, helm]
    text = messages.explanation(recorded["stderr"], 1)
    error = helm_errors.HelmError(WEB, text.text, text.without_values)
    return await merge_conflicts.explained(
        error, live or Live(recorded["live"]), recorded["manifest"], error.message
    )


@rows.each("helm", [3, 4])
async def test_object_cause_who_and_the_command_that_mends_it_come_before_what_helm_says(helm: int) -> None:
    error = await told("service-port-number", helm)
    for text in (error.message, error.without_values.removeprefix("module web: ")):
        assert text.startswith(
            "Service web: kubectl-edit added /spec/ports/1, and the API server does not take that together "
            "with what the chart says; remove it with: kubectl -n addons patch service web --type=json -p '["
            '{"op":"test","path":"/spec/ports/1/name","value":"metrics"},{"op":"remove","path":"/spec/ports/1"}'
            "]'; UPGRADE FAILED: "
        )


async def test_what_cannot_be_removed_alone_is_edited() -> None:
    live = Live(recorded_upgrades.CASES["probe-handler", 3]["live"], takes=False)
    text = (await told("probe-handler", live=live)).message
    assert "; make it as the chart says with 'kubectl -n addons edit deployment web'; UPGRADE FAILED" in text
    assert [each["op"] for each in live.asked[0]] == ["test", "remove"]


async def test_what_became_immutable_is_made_anew() -> None:
    live = Live(recorded_upgrades.CASES["configmap-immutable", 3]["live"], takes=False)
    text = (await told("configmap-immutable", live=live)).message
    assert text.startswith("ConfigMap web: kubectl-edit added /immutable, ")
    assert "; nobody can undo that: delete it with 'kubectl -n addons delete configmap web'" in text


async def test_without_an_answer_or_a_change_of_others_the_error_stays_as_it_is() -> None:
    recorded = recorded_upgrades.CASES["service-port-number", 3]
    for live in (Live(None), Live({**recorded["live"], "metadata": {"name": "web"}})):
        assert (await told("service-port-number", live=live)).message.startswith("UPGRADE FAILED: ")

"""A state file's content, for tests to change."""

from addon_operator.commands.plan_state import plan_state

RECORD = "/api/v1/namespaces/addons/secrets/sh.helm.release.v1.web.v3"


def state() -> plan_state.PlanState:
    return plan_state.PlanState(
        recorded_at=1.0, namespace="addons", hash_key="00", settings={}, answers={"/version": {"a": "b"}},
        objects={"/api/v1/namespaces/addons": {"metadata": {"name": "addons"}}},
        absent=["/api/v1/namespaces/addons/configmaps/gone"],
        collections=["/apis/apiregistration.k8s.io/v1/apiservices"],
        releases=[plan_state.KeptRelease(
            path=RECORD, labels={"owner": "helm", "name": "web"}, manifest="a: b", hooks=[], server_side=False
        )],
        hook_values=plan_state.HookValues(
            source="nothing", operator=None, releases={}, shared=[], switches={}, modules={}
        ),
    )  # fmt: skip

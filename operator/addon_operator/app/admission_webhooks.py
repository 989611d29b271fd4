"""Which webhooks are registered, and what answers at their paths: there are no others."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from addon_operator.admission import review_budget, review_shapes, reviews
from addon_operator.admission.certificates import certificate_store
from addon_operator.admission.conversions import converter
from addon_operator.admission.hooks import hook_registry, hook_reviews
from addon_operator.admission.pods import pod_handler
from addon_operator.admission.registration import registration_specs
from addon_operator.admission.server import site
from addon_operator.podpreset import model, selection
from addon_operator.settings import settings as settings_module

CHECK_PODS: Final = "/check-pods"
NOTICE_PRESETS: Final = "/notice-podpresets"
CHECK_CONFIG: Final = "/check-config"

HOOK_LIMITS: Final = review_budget.Limits(
    requests=3 * site.CONNECTIONS.connections // 4, memory_bytes=192 << 20
)
"""What requests that hooks answer may take: they may wait for long, each on a connection of its own, and
leave a quarter of the connections to pods. What is over that is a failed call for the API server."""
_HOOK_SECONDS: Final = 30.0
_SYSTEM_NAMESPACE: Final = "kube-system"
_DOMAIN: Final = "admission.addon-operator.io"
_NOTICE_TIMEOUT: Final = 2
_TIMEOUT: Final = 5
_ANNOTATIONS: Final = "object.metadata.annotations"
_NAME: Final = "object.metadata.name"
_NOT_A_MIRROR: Final = {
    "not-a-mirror-pod": f"!has({_ANNOTATIONS}) || !('{selection.MIRROR}' in {_ANNOTATIONS})"
}
_NOT_EXCLUDED: Final = {
    "not-excluded": f"!has({_ANNOTATIONS}) || !('{selection.EXCLUDE}' in {_ANNOTATIONS}) "
    f"|| {_ANNOTATIONS}['{selection.EXCLUDE}'] != 'true'"
}
# The API server writes a byte with up to six. A review of an edit has the ConfigMap twice, with at most 1 MiB
# of data (which is checked) and 256 KiB of annotations each.
_CONFIG_BYTES: Final = 16 << 20
# The API server stores no object over 1.5 MiB.
_PRESET_BYTES: Final = 10 << 20
_NOTICE_SECONDS: Final = 1.5


def client_address(settings: settings_module.Settings) -> registration_specs.ClientAddress:
    """Say how the API server calls this operator."""
    if settings.webhook_url:
        return registration_specs.url_address(settings.webhook_url)
    return registration_specs.ServiceAddress(settings.namespace, settings.webhook_service)


def configurations(settings: settings_module.Settings) -> tuple[registration_specs.WebhookConfiguration, ...]:
    """Return this operator's configurations, named after its namespace so that several get along."""
    given = settings.webhook_configuration
    return tuple(
        registration_specs.WebhookConfiguration(
            kind,
            given or f"addon-operator-{settings.namespace}",
            tuple(webhooks),
            made_by_others=given is not None,
            namespace=settings.namespace,
        )
        for kind, webhooks in (
            (registration_specs.ConfigurationKind.MUTATING, [_mutate_pods(settings)]),
            (registration_specs.ConfigurationKind.VALIDATING, _validating(settings)),
        )
    )


def hooks_template(settings: settings_module.Settings) -> registration_specs.WebhookConfiguration:
    """Return what the objects for webhooks of hooks have in common."""
    given = settings.webhook_configuration
    return registration_specs.WebhookConfiguration(
        registration_specs.ConfigurationKind.VALIDATING,
        f"{given or f'addon-operator-{settings.namespace}'}{hook_registry.SUFFIX}",
        (),
        made_by_others=given is not None,
        namespace=settings.namespace,
    )


def _validating(settings: settings_module.Settings) -> Iterator[registration_specs.WebhookSpec]:
    yield _check_pods(settings)
    yield _notice_presets(settings)
    if settings.config_validation:
        yield _check_config(settings)


def _mutate_pods(settings: settings_module.Settings) -> registration_specs.WebhookSpec:
    policy: Literal["Ignore", "Fail"] = "Fail" if settings.webhook_failure_policy == "fail" else "Ignore"
    return registration_specs.WebhookSpec(
        name=f"podpreset.{_DOMAIN}",
        path=pod_handler.PATH,
        operations=("CREATE",),
        resource="pods",
        failure_policy=policy,
        timeout_seconds=_TIMEOUT,
        side_effects="NoneOnDryRun",
        reinvocation_policy="IfNeeded",
        namespace_selector=_exempting(settings),
        match_conditions=_NOT_A_MIRROR | _NOT_EXCLUDED,
    )


def _check_pods(settings: settings_module.Settings) -> registration_specs.WebhookSpec:
    """Have pods checked that presets pass over: they may have references all the same."""
    conditions = _NOT_A_MIRROR if settings.expansion_events else _NOT_A_MIRROR | _NOT_EXCLUDED
    return registration_specs.WebhookSpec(
        name=f"podevents.{_DOMAIN}",
        path=CHECK_PODS,
        operations=("CREATE",),
        resource="pods",
        timeout_seconds=_NOTICE_TIMEOUT,
        side_effects="NoneOnDryRun",
        namespace_selector=_exempting(settings),
        match_conditions=conditions,
    )


def _notice_presets(settings: settings_module.Settings) -> registration_specs.WebhookSpec:
    return registration_specs.WebhookSpec(
        name=f"podpresets.{_DOMAIN}",
        path=NOTICE_PRESETS,
        operations=("CREATE", "DELETE"),
        resource=model.PLURAL,
        group=model.GROUP,
        version=model.VERSION,
        timeout_seconds=_NOTICE_TIMEOUT,
        namespace_selector=_exempting(settings),
    )


def _check_config(settings: settings_module.Settings) -> registration_specs.WebhookSpec:
    """Have only the values ConfigMap checked. The handler lets through what hooks have the operator write.

    A condition here could not distinguish it from what somebody else writes by the same field manager: the
    operator's user may change, and is another one in each cluster.
    """
    return registration_specs.WebhookSpec(
        name=f"config.{_DOMAIN}",
        path=CHECK_CONFIG,
        is_guarded=True,
        operations=("CREATE", "UPDATE"),
        resource="configmaps",
        timeout_seconds=_TIMEOUT,
        namespace_selector={"matchLabels": {"kubernetes.io/metadata.name": settings.namespace}},
        match_conditions={
            # With generateName there is no name yet.
            "values-config-map": f"has({_NAME}) && {_NAME} == '{settings.config_map}'"
        },
    )


def _exempting(settings: settings_module.Settings) -> dict[str, object]:
    """Return all namespaces but those that must come up without this operator."""
    exempt = sorted({_SYSTEM_NAMESPACE, settings.namespace})
    return {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": exempt}]
    }


def routes(
    settings: settings_module.Settings,
    *,
    mutate_pods: reviews.ReviewHandler,
    check_pods: reviews.ReviewHandler,
    notice_presets: reviews.ReviewHandler,
    check_config: reviews.ReviewHandler,
    ask_hooks: reviews.ReviewHandler,
    convert: reviews.BodyHandler,
    guard: certificate_store.CertificateStore,
) -> Mapping[str, site.Route]:
    """Return the paths and their bounds. What has effects beyond its answer takes complete reviews only."""
    pods = review_shapes.ReviewShape("", "pods")
    presets = review_shapes.ReviewShape(model.GROUP, model.PLURAL)
    by_path = {
        pod_handler.PATH: site.Route(mutate_pods),
        CHECK_PODS: site.Route(check_pods, timeout=_NOTICE_SECONDS, shape=pods),
        NOTICE_PRESETS: site.Route(
            notice_presets, timeout=_NOTICE_SECONDS, shape=presets, max_body=_PRESET_BYTES
        ),
    }
    account = review_budget.MemoryBudget(HOOK_LIMITS)
    by_path[converter.ROUTE] = site.Route(
        convert, timeout=_HOOK_SECONDS, ready=lambda: True, account=account, guard=guard
    )
    for path in hook_reviews.ROUTES.values():
        by_path[path] = site.Route(
            ask_hooks,
            timeout=_HOOK_SECONDS,
            shape=review_shapes.AS_SENT,
            raw=True,
            ready=lambda: True,
            account=account,
            guard=guard,
        )
    if settings.config_validation:
        by_path[CHECK_CONFIG] = site.Route(
            check_config,
            shape=review_shapes.ReviewShape(bounds_data=True),
            max_body=_CONFIG_BYTES,
            guard=guard,
        )
    return by_path

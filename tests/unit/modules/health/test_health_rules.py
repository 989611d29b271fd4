"""How resources are by rules in CEL."""

import pytest

from addon_operator.modules.health import health_rules
from addon_operator.modules.health.resource_health import HealthState
from addon_operator.values.schema import cel_functions, cel_rules
from tests.support import rows

EVALUATOR = cel_rules.CelEvaluator()
HEALTHY, FAILED = "self.status.phase == 'Open'", "self.status.phase == 'Burnt'"


@rows.each(
    ("phase", "expected"),
    [
        ("Open", (HealthState.HEALTHY, "")),
        ("Burnt", (HealthState.FAILED, f"meets {FAILED}")),
        ("Building", (HealthState.PROGRESSING, "phase is Building")),
        ("Odd", (HealthState.PROGRESSING, f"does not meet {HEALTHY}")),
    ],
)
def test_a_resource_is_as_its_rule_says(phase: str, expected: tuple[HealthState, str]) -> None:
    assert health_rules.judged(HEALTHY, FAILED, {"status": {"phase": phase}}, EVALUATOR) == expected


def test_without_a_status_it_is_in_progress() -> None:
    state, told = health_rules.judged(HEALTHY, FAILED, {"kind": "Shop"}, EVALUATOR)
    assert (state, told) == (HealthState.PROGRESSING, f"does not meet {HEALTHY}")


def test_a_rule_that_says_nothing_of_a_resource_says_so() -> None:
    state, told = health_rules.judged("self.status.phase < 3", "", {"status": {"phase": "x"}}, EVALUATOR)
    assert state is HealthState.PROGRESSING
    assert told == "its rule says nothing of it: self.status.phase < 3 cannot be evaluated over it"


def test_a_rule_that_is_neither_true_nor_false_is_named_with_what_it_gives_instead() -> None:
    for value, kind in (("Open", "a text"), (3, "a number"), ([1], "a list"), ({"a": 1}, "a mapping")):
        state, told = health_rules.judged("self.status.phase", "", {"status": {"phase": value}}, EVALUATOR)
        assert state is HealthState.PROGRESSING
        expected = f"its rule says nothing of it: self.status.phase gives {kind}, not true or false"
        assert told == expected


ON_TEXTS = [
    signature.partition("(")[0]
    for signature in cel_functions.FUNCTIONS
    if signature.partition("(")[2].startswith("string")
]
ON_RECEIVERS = [
    signature.partition("(")[0].partition(".")[2]
    for signature in cel_functions.FUNCTIONS
    if signature.partition(".")[0] in ("string", "list", "map") and "()" in signature
]
CONVERSIONS = ("int", "uint", "double", "bool", "duration", "timestamp", "bytes")
EXPRESSIONS = [
    "self.spec.key", "self.spec.key > 1", "self.spec.list", "self.spec.map[self.spec.key + 'x'] == 1",
    "self.spec.key.matches(self.spec.key + '[')", "self.spec.key.find(self.spec.key + '[') == ''",
    "self.spec.list[self.spec.key] == 1", "{self.spec.key: 1, self.spec.key: 2} == {}",
    "self.spec.key.foo == 1",
    *(f"{name}(self.spec.key) == 1" for name in (*CONVERSIONS, *ON_TEXTS)),
    *(f"self.spec.{kind}.{name}() == 1" for name in ON_RECEIVERS for kind in ("key", "list", "map")),
]  # fmt: skip


@rows.each("expression", EXPRESSIONS)
def test_what_is_told_of_a_resource_shows_nothing_of_it(expression: str) -> None:
    spec = {"key": "s3cret", "list": ["s3cret"], "map": {"s3cret": "s3cret"}}
    for rules in ((expression, ""), ("true", expression)):
        _, told = health_rules.judged(*rules, {"spec": spec}, EVALUATOR)
        assert "s3cret" not in told


def test_what_is_no_rule_is_known_before_it_meets_anything() -> None:
    assert health_rules.problem("self.status.phase == 'Open'", EVALUATOR) == ""
    assert health_rules.problem("self.status.", EVALUATOR).startswith("this is not a rule in CEL: ")
    assert "1000 characters" in health_rules.problem("a" * 1001, EVALUATOR)


def test_rules_of_all_modules_are_a_list_as_yaml_or_json() -> None:
    text = "[{apiVersion: x.io/v1, kind: Shop, healthy: self.status.open}]"
    (rule,) = health_rules.read(text)
    assert rule.document == {"apiVersion": "x.io/v1", "kind": "Shop", "healthy": "self.status.open"}
    assert health_rules.read("") == health_rules.read("[]") == ()


@rows.each(
    ("text", "said"),
    [
        ("[{kind: Shop}]", "the key 'apiVersion' is missing"),
        ("[{apiVersion: x.io/v1, kind: Shop, healthy: 'self.'}]", "Shop: this is not a rule in CEL"),
        ("{a: b}", "write a list"),
        ("0", "write a list"),
        ("{}", "write a list"),
        ("[", "the list, line 2"),
    ],
)
def test_wrong_rules_are_told(text: str, said: str) -> None:
    with pytest.raises(health_rules.RulesError) as caught:
        health_rules.read(text)
    assert said in str(caught.value)


def test_all_rules_of_kinds_yaml_are_rules() -> None:
    rules = health_rules.of_kinds().rules
    wrong = {
        f"{rule.kind}: {said}"
        for rule in rules
        for text in (rule.healthy, rule.failed)
        if text and (said := health_rules.problem(text, EVALUATOR))
    }
    assert (wrong, len(rules) > 10) == (set(), True)


def conditions(**each: str) -> dict[str, object]:
    return {"status": {"conditions": [{"type": name, "status": status} for name, status in each.items()]}}


GLOO, SCALER = ("gateway.solo.io/v1", "RouteTable"), ("autoscaling/v2", "HorizontalPodAutoscaler")
CREATING = {"type": "NotReady", "status": "True", "reason": "Creating"}
QUEUES, SCHEDULE = ("rabbitmq.com/v1beta1", "RabbitmqCluster"), ("argoproj.io/v1alpha1", "CronWorkflow")
BUCKET, MODEL = ("s3.aws.upbound.io/v1beta1", "Bucket"), ("serving.kserve.io/v1beta1", "InferenceService")
MARIA, SOURCE = (
    ("k8s.mariadb.com/v1alpha1", "MariaDB"),
    ("grafana.integreatly.org/v1beta1", "GrafanaDatasource"),
)
CHECK, POLICY = (
    ("cluster.x-k8s.io/v1beta1", "MachineHealthCheck"),
    (
        "nmstate.io/v1",
        "NodeNetworkConfigurationPolicy",
    ),
)
STORE, VOLUME = ("velero.io/v1", "BackupStorageLocation"), ("longhorn.io/v1beta2", "Volume")
TARGET, KAFKA = ("longhorn.io/v1beta2", "BackupTarget"), ("kafka.strimzi.io/v1beta2", "Kafka")
BUCKET_URL, PAUSED = {"spec": {"backupTargetURL": "s3://copies"}}, {"currentStepState": "StepPaused"}
FUNCTION, ROLLOUT = ("openfaas.com/v1", "Function"), ("rollouts.kruise.io/v1beta1", "Rollout")
ACCOUNT = ("capabilities.3scale.net/v1beta1", "DeveloperAccount")
DATABASE, TEMPLATE = (
    ("postgresql.cnpg.io/v1", "Database"),
    ("templates.gatekeeper.sh/v1", "ConstraintTemplate"),
)
SERVICE, VAULT = ("serving.knative.dev/v1", "Service"), ("secrets.hashicorp.com/v1beta1", "VaultConnection")
REPOSITORY = ("source.toolkit.fluxcd.io/v1", "HelmRepository")


@rows.each(
    ("of_kind", "resource", "state"),
    [
        (GLOO, {"status": {"state": 1}}, HealthState.HEALTHY),
        (GLOO, {"status": {"statuses": {"gloo-system": {"state": "Rejected"}}}}, HealthState.FAILED),
        (GLOO, {}, HealthState.PROGRESSING),
        (SCALER, conditions(ScalingActive="True", ScalingLimited="True"), HealthState.HEALTHY),
        (SCALER, {"status": {"desiredReplicas": 1}}, HealthState.HEALTHY),
        (REPOSITORY, {"spec": {"type": "oci"}}, HealthState.HEALTHY),
        (REPOSITORY, {"spec": {}} | conditions(Ready="True"), HealthState.HEALTHY),
        (REPOSITORY, {"spec": {}} | conditions(Ready="False"), HealthState.FAILED),
        (
            QUEUES,
            conditions(
                AllReplicasReady="True", ClusterAvailable="True", ReconcileSuccess="True", NoWarnings="False"
            ),
            HealthState.HEALTHY,
        ),
        (QUEUES, conditions(AllReplicasReady="False", ReconcileSuccess="Unknown"), HealthState.PROGRESSING),
        (QUEUES, conditions(AllReplicasReady="True", ReconcileSuccess="False"), HealthState.FAILED),
        (SCHEDULE, {}, HealthState.HEALTHY),
        (SCHEDULE, conditions(SubmissionError="True"), HealthState.FAILED),
        (BUCKET, conditions(Synced="True"), HealthState.PROGRESSING),
        (BUCKET, conditions(Synced="True", Ready="True"), HealthState.HEALTHY),
        (BUCKET, conditions(Synced="False", Ready="True"), HealthState.FAILED),
        (BUCKET, conditions(Synced="True", Ready="True", LastAsyncOperation="False"), HealthState.FAILED),
        (MODEL, {"status": {"modelStatus": {"transitionStatus": "InvalidSpec"}}}, HealthState.FAILED),
        (MODEL, conditions(Ready="True"), HealthState.HEALTHY),
        (MARIA, conditions(Ready="True", Updated="False"), HealthState.PROGRESSING),
        (MARIA, conditions(Ready="True", Updated="True"), HealthState.HEALTHY),
        (SOURCE, {"status": {"hash": "a", "lastMessage": "no such host"}}, HealthState.FAILED),
        (SOURCE, {"status": {"NoMatchingInstances": True}}, HealthState.PROGRESSING),
        (SOURCE, conditions(DatasourceSynchronized="True"), HealthState.HEALTHY),
        (CHECK, conditions(RemediationAllowed="True"), HealthState.HEALTHY),
        (CHECK, conditions(RemediationAllowed="False"), HealthState.FAILED),
        (STORE, {"status": {"phase": "Unavailable"}}, HealthState.FAILED),
        (STORE, {"status": {"phase": "Available"}}, HealthState.HEALTHY),
        (VOLUME, {"status": {"state": "attached", "robustness": "degraded"}}, HealthState.PROGRESSING),
        (VOLUME, {"status": {"state": "detached", "robustness": "unknown"}}, HealthState.HEALTHY),
        (TARGET, {"status": {"available": True}}, HealthState.HEALTHY),
        (TARGET, BUCKET_URL | conditions(Unavailable="True"), HealthState.FAILED),
        (TARGET, {"spec": {"backupTargetURL": ""}} | conditions(Unavailable="True"), HealthState.HEALTHY),
        (FUNCTION, conditions(Ready="True", Healthy="False"), HealthState.HEALTHY),
        (FUNCTION, conditions(Ready="False", Stalled="True"), HealthState.FAILED),
        (ROLLOUT, {"status": {"phase": "Progressing", "canaryStatus": PAUSED}}, HealthState.HEALTHY),
        (ROLLOUT, {"status": {"phase": "Progressing"}}, HealthState.PROGRESSING),
        (ACCOUNT, conditions(Waiting="True", Ready="False"), HealthState.HEALTHY),
        (ACCOUNT, conditions(Invalid="True"), HealthState.FAILED),
        (KAFKA, conditions(Ready="True", Warning="True"), HealthState.HEALTHY),
        (KAFKA, {"status": {"conditions": [CREATING]}}, HealthState.PROGRESSING),
        (KAFKA, {"status": {"conditions": [CREATING | {"reason": "TimeoutException"}]}}, HealthState.FAILED),
        (DATABASE, {"status": {"applied": False}}, HealthState.FAILED),
        (DATABASE, {"status": {"applied": True}}, HealthState.HEALTHY),
        (TEMPLATE, {"status": {"created": True, "byPod": [{"id": "a"}]}}, HealthState.HEALTHY),
        (TEMPLATE, {"status": {"created": True, "byPod": [{"errors": [{}]}]}}, HealthState.FAILED),
        (SERVICE, conditions(Ready="Unknown"), HealthState.PROGRESSING),
        (SERVICE, conditions(Ready="False"), HealthState.FAILED),
        (VAULT, {"status": {"valid": False}}, HealthState.FAILED),
        (VAULT, {"status": {"valid": True}}, HealthState.HEALTHY),
        (POLICY, conditions(Available="False", Ignored="True"), HealthState.HEALTHY),
    ],
)
def test_kinds_with_words_of_their_own_are_as_their_rules_say(
    of_kind: tuple[str, str], resource: dict[str, object], state: HealthState
) -> None:
    rule = health_rules.of_kind(*of_kind)
    assert rule is not None
    assert health_rules.judged(rule.healthy, rule.failed, resource, EVALUATOR)[0] is state


def test_another_kind_of_the_same_name_has_no_rule() -> None:
    assert health_rules.of_kind("example.com/v1", "RouteTable") is None

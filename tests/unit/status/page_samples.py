"""What pages are tried with: modules in every state, and as many as are wanted."""

from typing import Any, Final

from addon_operator.engine import introspection
from addon_operator.modules import findings, windows
from addon_operator.status import module_status, page_content

AT: Final = "2026-11-25T03:12:40Z"
LATER: Final = "2026-11-25T03:17:10Z"


_BY_KEY: Final = {kind.key: kind for kind in reversed(findings.TABLE) if kind.key}


def row(name: str, order: int = 10, state: str = "Ready", **fields: Any) -> introspection.ModuleRow:  # noqa: ANN401
    """Return a module that is well, but for what is given: fields of its row, and findings by their keys."""
    by_key = {key: fields.pop(key) for key in _BY_KEY if key in fields}
    found = [
        findings.Finding(_BY_KEY[key], tuple(texts) if isinstance(texts, list) else (texts,))
        for key, texts in by_key.items()
    ]
    plain: introspection.ModuleRow = {
        "name": name,
        "description": "",
        "release": name,
        "order": order,
        "enabled": state != "Disabled",
        "state": state,
        "health": "Healthy" if state == "Ready" else "",
        "healthMessage": "",
        "findings": [],
        "reason": "enabled by modules/values.yaml",
        "suspended": "",
        "requires": [],
        "hooks": 2,
        "lastRun": AT,
        "lastError": "",
        "tries": 0,
        "nextTry": None,
        "cure": [],
        "waitingBindings": [],
        "answering": [],
        "runningHooks": [],
        "atHook": "",
        "heldBack": None,
    }
    made = introspection.ModuleRow(**{**plain, **fields})  # type: ignore[typeddict-item]  # by name
    health = {"Failed": findings.UNHEALTHY, "Progressing": findings.PROGRESSING}.get(made["health"])
    if health is not None:
        found.append(findings.Finding(health, (made["healthMessage"] or "a resource",)))
    if held := made["heldBack"]:
        told = f"{windows.waiting(held['until'], held['confirm'])}: {held['what']}"
        found.append(findings.Finding(findings.HELD_BACK, (told,)))
    if made["suspended"]:
        found.append(findings.Finding(findings.SUSPENDED, (made["suspended"].removeprefix("suspended: "),)))
    made["findings"] = [row for each in findings.worst_first(found) for row in each.rows]
    return made


_ALSO: Final = ("Drifted", "Suspended", "ConfigValid", "HooksWork")


def shown(revision: int, *events: module_status.ToldEvent) -> module_status.Shown:
    """Return what a Module object shows."""
    return {
        "since": dict.fromkeys(("Ready", "Healthy", "Enabled", *_ALSO), AT),
        "revision": revision,
        "events": list(events),
    }


FAILURE: Final = (
    "helm upgrade failed: failed calling webhook validate.nginx.ingress.kubernetes.io: no endpoints "
    "available for service ingress-admission"
)
SUSPENDED: Final = "the disks are replaced, ask Alice (by alice, since 03:12, for 2 h)"
FAILING: Final = (
    "hook records.py on services failed 12 times: exit code 3; 'addon-operator module describe dns' shows "
    "the end of what it wrote, and the operator's log more of it"
)
WAITING: Final = (
    "binding shops (Shop) of hook orders.sh waits: the API server has no kind 'Shop' of shop.example.com/v1"
)
UNHEALTHY: Final = (
    'ImagePullBackOff "registry/grafana:11.3" (pod grafana-7d9c-x2x): Deployment grafana, 1 of 3 pods ready'
)


def every_state() -> page_content.Content:
    """Return an operator with a module in each state."""
    modules = [
        row("cert-manager", 10, description="Certificates of the cluster"),
        row("ingress-nginx", 20, "Failed", tries=4, nextTry=LATER, requires=["module cert-manager"],
            cure=["endpoints of Service ingress/ingress-admission"]),
        row("grafana", 30, health="Failed", healthMessage=UNHEALTHY),
        row("external-dns", 30, drift="Deployment external-dns: /spec/replicas (by kubectl-edit)"),
        row("storage", 30, suspended=f"suspended: {SUSPENDED}"),
        row("logging", 40, heldBack={"what": "an upgrade", "until": LATER, "since": AT, "confirm": ""}),
        row("web", 50, health="Progressing", healthMessage="2 of 5 pods updated: Deployment web"),
        row("reports", 50, "Pending", waitsFor=["ingress-nginx (Failed)"]),
        row("dns", 50, hooksFail=[FAILING, f"{FAILING}, again"]),
        row("shops", 50, bindingsWait=[WAITING]),
        row("mail", 55, waitsFor=["ingress-nginx (Failed)"]),
        row("vpn", 60, wrongValues="ConfigMap addons/addon-operator: vpn.port: 'x' is not a number"),
        row("legacy", 90, "Disabled", reason="disabled by ConfigMap addon-operator"),
        row("<script>alert('&')</script>", 99, "Disabled", reason="<b>bold</b>"),
    ]  # fmt: skip
    event: module_status.ToldEvent = {
        "time": AT, "type": "Warning", "reason": "Failed", "message": "A run of the module failed.",
    }  # fmt: skip
    return page_content.Content(
        namespace="addons",
        state="STARTUP_CONVERGE_IN_PROGRESS",
        unready="the first converge is not done: module ingress-nginx failed 4 times",
        refusals=["ConfigMap addons/addon-operator is invalid since 03:12: vpn.port: 'x' is not a number"],
        modules=modules,
        errors={"ingress-nginx": FAILURE},
        objects={each["name"]: shown(3, event) for each in modules},
        places={"ingress-nginx": {"index": 1, "doing": "run of the module", "state": "backoff"}},
        global_hooks=["hook nodes.sh on nodes failed 3 times: exit 1"],
        queues=[
            {"name": "main", "tasksCount": 2, "status": "backoff", "headAge": 312.0, "headTries": 4},
            {"name": "pods", "tasksCount": 0, "status": "", "headAge": 0.0, "headTries": 0},
        ],
        shared=[("grafana and web", "ConfigMap addons/dashboards")],
        shared_total=1,
    )


def standby() -> page_content.Content:
    """Return a replica that stands by, and shows what the leader wrote of the modules."""
    leader = every_state()
    return page_content.Content(
        namespace="addons",
        state="STANDBY: addon-operator-7d9c8b6f5-x2x4l leads",
        leader="addon-operator-7d9c8b6f5-x2x4l",
        port=9650,
        modules=leader.modules,
        errors=leader.errors,
        objects={each["name"]: shown(3) for each in leader.modules},
        stored=page_content.Stored(
            written=AT, trouble="the API server cannot be reached: connection refused", trouble_since=AT
        ),
    )


def many(number: int) -> page_content.Content:
    """Return an operator with so many modules that are well."""
    modules = [row(f"module-{n}", n // 10, description=f"Add-on number {n}") for n in range(number)]
    event: module_status.ToldEvent = {
        "time": AT, "type": "Normal", "reason": "Ready", "message": "The module is ready.",
    }  # fmt: skip
    objects = {each["name"]: shown(n % 9 + 1, event) for n, each in enumerate(modules)}
    return page_content.Content(
        namespace="addons", state="STARTUP_CONVERGE_DONE", modules=modules, objects=objects
    )

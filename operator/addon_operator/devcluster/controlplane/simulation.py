"""What kwok makes of nodes and pods: documents of its kind ``Stage``, which it does not bring along.

The node is ready at once; a pod runs and is ready as soon as it is scheduled; a pod of a Job succeeds; a pod
that is being deleted goes at once. The format is that of https://kwok.sigs.k8s.io/docs/user/stages-configuration/.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

_DELETED: Final = ".metadata.deletionTimestamp"
_PHASE: Final = ".status.phase"
_READY: Final = '.status.conditions.[] | select(.type == "Ready") | .status'

_NODE_STATUS: Final = """
conditions:
{{ range NodeConditions }}
- {type: {{ .type }}, status: {{ .status | Quote }}, reason: {{ .reason }}, message: {{ .message | Quote }},
   lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}}
{{ end }}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
- {type: Hostname, address: {{ NodeName | Quote }}}
nodeInfo:
  architecture: {{ index .metadata.labels "kubernetes.io/arch" }}
  operatingSystem: linux
  bootID: ""
  containerRuntimeVersion: kwok
  kernelVersion: kwok
  kubeProxyVersion: ""
  kubeletVersion: kwok
  machineID: ""
  osImage: ""
  systemUUID: ""
"""

_RUNNING_POD: Final = """
{{ $now := Now | Quote }}
phase: Running
startTime: {{ $now }}
conditions:
{{ range $type := list "PodScheduled" "Initialized" "ContainersReady" "Ready" }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ $now }}}
{{ end }}
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now }}}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  {{ if eq .restartPolicy "Always" }}
  started: true
  state: {running: {startedAt: {{ $now }}}}
  {{ else }}
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now }}, finishedAt: {{ $now }}}}
  {{ end }}
{{ end }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
{{ $host := or .spec.hostNetwork false }}
{{ with PodIPsWith .spec.nodeName $host .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
"""

_SUCCEEDED_POD: Final = """
{{ $now := Now | Quote }}
phase: Succeeded
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now }}, finishedAt: {{ $now }}}}
{{ end }}
"""

_Rule = Mapping[str, object]


def stages() -> str:
    """Return all stages as one file of YAML documents."""
    documents = (
        _stage("node-ready", "Node", [_rule(_READY, "NotIn", "True")], {"statusTemplate": _NODE_STATUS}),
        _stage(
            "pod-ready",
            "Pod",
            [_rule(_DELETED, "DoesNotExist"), _rule(_PHASE, "In", "Pending"), _rule(_READY, "NotIn", "True")],
            {"statusTemplate": _RUNNING_POD},
        ),
        _stage(
            "pod-of-a-job",
            "Pod",
            [
                _rule(_DELETED, "DoesNotExist"),
                _rule(_PHASE, "In", "Running"),
                _rule(".metadata.ownerReferences.[].kind", "In", "Job"),
            ],
            {"statusTemplate": _SUCCEEDED_POD},
        ),
        _stage("pod-deleted", "Pod", [_rule(_DELETED, "Exists")], {"delete": True}),
    )
    return "\n---\n".join(json.dumps(document) for document in documents) + "\n"


def _rule(key: str, operator: str, *values: str) -> _Rule:
    rule: dict[str, object] = {"key": key, "operator": operator}
    return {**rule, "values": values} if values else rule


def _stage(name: str, kind: str, rules: Sequence[_Rule], then: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": rules},
            "next": then,
        },
    }

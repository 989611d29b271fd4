"""Where the objects of a release are otherwise than its manifest says."""

from addon_operator.engine.drift import content_differences

MANIFEST = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, maxReplicas: 3}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: app}
spec: {scaleTargetRef: {name: app}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
spec: {scaleTargetRef: {name: nobody}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: broken}
spec: nothing
"""


def test_what_autoscalers_scale_is_named_with_its_kind() -> None:
    assert set(content_differences.scaled(MANIFEST)) == {("StatefulSet", "web"), ("Deployment", "app")}
    assert list(content_differences.scaled("")) == []

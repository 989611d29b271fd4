"""The preview of pods, from files and from a cluster."""

import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from addon_operator.commands.preview import preview, preview_admission, preview_cluster, preview_files
from addon_operator.kernel import errors
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth
from addon_operator.podpreset import model
from tests.support import api_server

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {role: frontend}}
spec:
  containers:
  - name: app
    image: i
    env: [{name: OWN, value: "1"}]
    args: ["$(DB_PORT) $(NOPE) $(date +%s)"]
  initContainers:
  - {name: setup, image: i}
"""
PRESET = """
apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata: {name: db, resourceVersion: "7"}
spec:
  selector: {matchLabels: {role: frontend}}
  env: [{name: DB_PORT, value: 6379}]
"""
FROM_SOURCES = """
apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata: {name: login}
spec:
  selector: {matchLabels: {role: frontend}}
  env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}]
  envFrom: [{configMapRef: {name: settings}}]
"""
SETTINGS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {MODE: fast}}\n"

Save = Callable[..., str]


@pytest.fixture
def save(tmp_path: pathlib.Path) -> Save:
    def file(name: str, *texts: str) -> str:
        path = tmp_path / name
        path.write_text("\n---\n".join(texts))
        return str(path)

    return file


@pytest.fixture
async def server() -> AsyncIterator[api_server.ApiServer]:
    async with api_server.running() as running:
        for namespace in ("default", "shop"):
            running.on("GET", f"/api/v1/namespaces/{namespace}/services", {"items": []})
            running.on("GET", presets_path(namespace), {"items": []})
        yield running


def presets_path(namespace: str) -> str:
    return f"/apis/settings.k8s.io/v1alpha1/namespaces/{namespace}/podpresets"


def no_access() -> auth.ClusterAccess:
    raise api_errors.AccessError("no credentials for a cluster were found")


def forbidden_access() -> auth.ClusterAccess:
    raise AssertionError("the cluster was looked for")


def no_stdin() -> bytes:
    raise AssertionError("standard input was read")


async def report(
    *files: str,
    access: Callable[[], auth.ClusterAccess] = no_access,
    **options: Any,  # noqa: ANN401  # the fields of a request
) -> preview.PreviewReport:
    request = preview.PreviewRequest(files=files, **options)
    return await preview.preview(request, access, no_stdin)


async def only(*files: str, **options: Any) -> preview_admission.PodPreview:  # noqa: ANN401  # as above
    found = await report(*files, **options)
    assert len(found.previews) == 1
    return found.previews[0]


async def test_a_preset_of_a_file_is_applied(save: Save) -> None:
    found = await only(save("pod.yaml", POD), presets=[save("presets.yaml", PRESET)])
    assert [(one.name, one.resource_version) for one in found.applied] == [("db", "7")]
    assert found.conflicts == ()
    annotations = found.admitted["metadata"]["annotations"]
    assert annotations == {"podpreset.admission.kubernetes.io/podpreset-db": "7"}
    own, added = {"name": "OWN", "value": "1"}, {"name": "DB_PORT", "value": "6379"}
    assert found.admitted["spec"]["containers"][0]["env"] == [own, added]
    assert found.admitted["spec"]["initContainers"][0]["env"] == [added]
    assert "annotations" not in found.submitted["metadata"]


async def test_each_container_has_its_environment(save: Save) -> None:
    found = await only(save("pod.yaml", POD), presets=[save("presets.yaml", PRESET)])
    app, setup = found.containers
    assert (app.name, setup.name) == ("app", "setup")
    assert app.environment.env == {"OWN": "1", "DB_PORT": "6379"}
    assert app.environment.args == ["6379 $(NOPE) $(date +%s)"]
    assert [(one.name, one.where) for one in app.unresolved] == [("NOPE", "args[0]")]
    assert setup.unresolved == []
    assert not found.is_clean


async def test_a_conflict_leaves_the_pod_as_it_was_and_has_the_events_text(save: Save) -> None:
    pod = POD.replace("OWN", "DB_PORT")
    found = await only(save("pod.yaml", pod), presets=[save("presets.yaml", PRESET)])
    assert found.admitted == found.submitted
    assert found.applied == ()
    message = "Conflict on pod preset. Duplicate env DB_PORT."
    assert [(one.preset, one.message) for one in found.conflicts] == [("db", message)]
    assert not found.is_clean


async def test_variables_come_from_the_objects_of_files(save: Save) -> None:
    secret = "{kind: Secret, metadata: {name: login}, stringData: {password: hunter2}}"
    found = await only(
        save("pod.yaml", POD),
        presets=[save("presets.yaml", FROM_SOURCES)],
        objects=[save("objects.yaml", SETTINGS, secret)],
        access=forbidden_access,
    )
    env = found.containers[0].environment.env
    assert env == {"OWN": "1", "MODE": "fast", "PASSWORD": "hunter2"}


async def test_a_variable_that_a_configmap_sets_too_is_a_conflict(save: Save) -> None:
    pod = POD.replace("OWN", "MODE")
    objects = save("objects.yaml", SETTINGS)
    found = await only(save("pod.yaml", pod), presets=[save("p.yaml", FROM_SOURCES)], objects=[objects])
    assert found.conflicts[0].problems == ("Env MODE is also set by envFrom ConfigMap settings.",)


async def test_presets_and_objects_may_stand_beside_the_pod(save: Save) -> None:
    found = await only(save("all.yaml", POD, FROM_SOURCES, SETTINGS))
    assert found.containers[0].environment.env["MODE"] == "fast"
    assert [one.source for one in found.containers[0].environment.missing] == ["Secret login"]


async def test_an_invalid_preset_is_ignored_and_named(save: Save) -> None:
    bad = PRESET.replace("{role: frontend}", "{}").replace("name: db", "name: bad")
    found = await report(save("pod.yaml", POD), presets=[save("presets.yaml", bad, PRESET)])
    assert [one.name for one in found.previews[0].applied] == ["db"]
    assert any("document 1: PodPreset bad is invalid and ignored: " in note for note in found.notes)


HOST = PRESET.replace(
    "env:", "volumes: [{name: v, hostPath: {path: /}}]\n  volumeMounts: [{name: v, mountPath: /v}]\n  env:"
)


@pytest.mark.parametrize(("allowed", "applied"), [({}, 0), ({"volume_types": ["hostPath"]}, 1)])
async def test_a_preset_with_a_type_of_volume_that_is_not_allowed_is_ignored_and_named(
    save: Save, allowed: dict[str, Any], applied: int
) -> None:
    found = await report(save("pod.yaml", POD), presets=[save("presets.yaml", HOST)], **allowed)
    assert len(found.previews[0].applied) == applied
    assert (
        any("spec.volumes[0].hostPath: volumes of this type" in note for note in found.notes) is not applied
    )


async def test_pods_of_several_documents_keep_their_order(save: Save) -> None:
    found = await report(
        save("pods.yaml", POD, POD.replace("web", "api")), presets=[save("presets.yaml", PRESET)]
    )
    assert [one.title for one in found.previews] == ["Pod web", "Pod api"]
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    "pod",
    [
        POD.replace("name: web,", 'name: web, annotations: {kubernetes.io/config.mirror: ""},'),
        POD.replace(
            "name: web,",
            'name: web, annotations: {podpreset.admission.kubernetes.io/exclude: "true"},',
        ),
        POD.replace("name: web,", "name: web, namespace: kube-system,"),
    ],
    ids=["mirror pod", "excluded", "kube-system"],
)
async def test_an_exempt_pod_gets_nothing_and_a_note(save: Save, pod: str) -> None:
    found = await report(save("pod.yaml", pod), presets=[save("presets.yaml", PRESET)])
    assert found.previews[0].admitted == found.previews[0].submitted
    assert any("presets do not apply" in note for note in found.notes)


@pytest.mark.parametrize(
    ("namespace", "given", "seen"),
    [(None, None, "default"), ("shop", None, "shop"), (None, "shop", "shop"), ("shop", "shop", "shop")],
    ids=["neither", "the manifest's", "the option's", "both"],
)
async def test_the_pods_namespace(save: Save, namespace: str | None, given: str | None, seen: str) -> None:
    pod = POD.replace("name: web,", f"name: web, namespace: {namespace},") if namespace else POD
    found = await only(save("pod.yaml", pod), presets=[save("presets.yaml", PRESET)], namespace=given)
    assert found.admitted["metadata"]["namespace"] == seen
    assert [one.name for one in found.applied] == ["db"]


async def test_two_namespaces_for_one_pod_are_an_error(save: Save) -> None:
    pod = POD.replace("name: web,", "name: web, namespace: shop,")
    with pytest.raises(preview_files.ManifestError, match=r"metadata\.namespace: is shop, but -n says other"):
        await report(save("pod.yaml", pod), presets=[save("presets.yaml", PRESET)], namespace="other")


async def test_without_a_cluster_files_are_enough_if_presets_are_among_them(save: Save) -> None:
    found = await report(save("pod.yaml", POD), presets=[save("presets.yaml", PRESET)])
    assert found.notes == ("only files are read: no credentials for a cluster were found",)


@pytest.mark.parametrize(
    "options",
    [{}, {"presets": True, "must_reach": True}, {"presets": True, "use_cluster": True}],
    ids=["nothing but a pod", "a cluster that was named", "a cluster that was asked for"],
)
async def test_a_cluster_that_is_needed_and_not_there_is_an_error(
    save: Save, options: dict[str, Any]
) -> None:
    if options.pop("presets", False):
        options["presets"] = [save("presets.yaml", PRESET)]
    with pytest.raises(errors.ConfigurationError, match="give --presets and --objects, or --no-cluster"):
        await report(save("pod.yaml", POD), **options)


async def test_no_cluster_means_none(save: Save) -> None:
    found = await report(save("pod.yaml", POD), use_cluster=False, access=forbidden_access)
    assert (found.previews[0].applied, found.notes) == ((), ())


@pytest.mark.parametrize(
    ("files", "presets", "message"),
    [
        ((SETTINGS,), (), "holds neither a Pod nor a workload"),
        ((POD,), (SETTINGS,), "holds no PodPreset; name a file with one"),
    ],
    ids=["no pod", "no preset"],
)
async def test_a_file_without_what_it_is_for_is_an_error(
    save: Save, files: tuple[str, ...], presets: tuple[str, ...], message: str
) -> None:
    with pytest.raises(preview_files.ManifestError, match=message):
        await report(save("a.yaml", *files), presets=[save("b.yaml", *presets)] if presets else [])


async def test_standard_input_is_read_once() -> None:
    with pytest.raises(preview_files.ManifestError, match="standard input can be read once"):
        await report("-", presets=["-"])


async def test_a_reference_that_no_container_can_have_is_reported_with_file_and_document(save: Save) -> None:
    wrong = "{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: other}}}"
    pod = POD.replace('{name: OWN, value: "1"}', wrong)
    with pytest.raises(preview_files.ManifestError, match=r"pod\.yaml, document 1: container app: env"):
        await report(save("pod.yaml", pod), presets=[save("presets.yaml", PRESET)])


async def test_pods_that_cannot_be_previewed_are_reported_beside_the_others(save: Save) -> None:
    no_text = POD.replace('value: "1"', "value: 1")
    other = "{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: other}}}"
    no_container = POD.replace('{name: OWN, value: "1"}', other)
    files = save("pods.yaml", no_text, POD, no_container)
    found = await report(files, presets=[save("presets.yaml", PRESET)])
    assert len(found.previews) == 1
    assert [str(problem).partition(": ")[0].rpartition("/")[2] for problem in found.problems] == [
        "pods.yaml, document 1, line 9, column 23",
        "pods.yaml, document 3",
    ]


async def test_when_no_pod_can_be_previewed_all_reasons_are_one_error(save: Save) -> None:
    wrong = POD.replace('value: "1"', "value: 1")
    with pytest.raises(preview_files.ManifestError) as raised:
        await report(save("pods.yaml", wrong, wrong), presets=[save("presets.yaml", PRESET)])
    lines = str(raised.value).splitlines()
    assert (lines[0], len(lines)) == ("2 pods cannot be previewed:", 3)


async def test_presets_of_other_namespaces_are_noted_once_and_only_if_no_pod_is_there(save: Save) -> None:
    pods = [
        POD.replace("name: web,", f"name: web{n}, namespace: {space},") for n in range(5) for space in "ab"
    ]
    presets = [PRESET.replace("name: db,", f"name: in-{space}, namespace: {space},") for space in "abcd"]
    found = await report(save("pods.yaml", *pods), presets=[save("presets.yaml", *presets)])
    assert [len(one.applied) for one in found.previews] == [1] * 10
    assert [
        note.partition(": ")[2].partition(" and ")[0] for note in found.notes if "in namespace" in note
    ] == [
        "PodPreset in-c is in namespace c",
        "PodPreset in-d is in namespace d",
    ]


async def test_a_claim_template_of_a_stateful_set_is_in_conflict_with_a_preset(save: Save) -> None:
    stateful = """
kind: StatefulSet
metadata: {name: web}
spec:
  volumeClaimTemplates: [{metadata: {name: data}}]
  template: {metadata: {labels: {role: frontend}}, spec: {containers: [{name: app}]}}
"""
    volumes = "volumes: [{name: data}]\n  volumeMounts: [{name: data, mountPath: /d}]\n  env:"
    preset = PRESET.replace("env:", volumes)
    found = await only(save("pod.yaml", stateful), presets=[save("presets.yaml", preset)])
    assert [one.message for one in found.conflicts] == ["Conflict on pod preset. Duplicate volume data."]


async def test_references_that_make_too_much_of_a_pod_are_one_sentence(save: Save) -> None:
    variables = ['{name: V0, value: "0123456789"}']
    variables += [f'{{name: V{n + 1}, value: "{f"$(V{n})" * 10}"}}' for n in range(12)]
    pod = POD.replace('{name: OWN, value: "1"}', ", ".join(variables))
    with pytest.raises(preview_files.ManifestError) as raised:
        await report(save("pod.yaml", pod), presets=[save("presets.yaml", PRESET)])
    assert str(raised.value).endswith(
        "pod.yaml, document 1: container app: the environment with command and args would have more than "
        "8388608 characters: let fewer variables refer to long ones"
    )


def stored(text: str, namespace: str) -> dict[str, Any]:
    [manifest] = preview_files.read(["-"], text.encode)
    content = dict(manifest.content)
    return {**content, "metadata": {**content["metadata"], "namespace": namespace, "resourceVersion": "42"}}


def reach(server: api_server.ApiServer, namespace: str | None = None) -> Callable[[], auth.ClusterAccess]:
    access = api_server.access_to(server.url)
    return lambda: auth.ClusterAccess(access.description, access.server, access.source, namespace=namespace)


async def test_presets_and_their_sources_come_from_the_cluster(
    save: Save, server: api_server.ApiServer
) -> None:
    server.on("GET", presets_path("shop"), {"items": [stored(FROM_SOURCES, "shop")]})
    server.on("GET", "/api/v1/namespaces/shop/secrets/login", {"data": {"password": "aHVudGVyMg=="}})
    server.on("GET", "/api/v1/namespaces/shop/configmaps/settings", {"data": {"MODE": "slow"}})
    master = {
        "metadata": {"name": "kubernetes"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]},
    }
    server.on("GET", "/api/v1/namespaces/default/services", {"items": [master]})
    found = await only(save("pod.yaml", POD), access=reach(server, "shop"))
    assert [(one.name, one.resource_version) for one in found.applied] == [("login", "42")]
    env = found.containers[0].environment.env
    assert (env["PASSWORD"], env["MODE"]) == ("hunter2", "slow")
    assert env["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"


async def test_a_file_goes_before_the_cluster_object_by_object(
    save: Save, server: api_server.ApiServer
) -> None:
    server.on("GET", presets_path("shop"), {"items": [stored(FROM_SOURCES, "shop")]})
    server.on("GET", "/api/v1/namespaces/shop/secrets/login", {"data": {"password": "aHVudGVyMg=="}})
    objects = [save("objects.yaml", SETTINGS)]
    found = await only(save("pod.yaml", POD), objects=objects, namespace="shop", access=reach(server))
    env = found.containers[0].environment.env
    assert (env["PASSWORD"], env["MODE"]) == ("hunter2", "fast")
    assert "GET /api/v1/namespaces/shop/configmaps/settings" not in server.requests


async def test_presets_of_files_stand_for_those_of_the_cluster(
    save: Save, server: api_server.ApiServer
) -> None:
    server.on("GET", presets_path("default"), {"items": [stored(FROM_SOURCES, "default")]})
    found = await only(save("pod.yaml", POD), presets=[save("presets.yaml", PRESET)], access=reach(server))
    assert [one.name for one in found.applied] == ["db"]


async def test_each_object_is_asked_for_once(save: Save, server: api_server.ApiServer) -> None:
    server.on("GET", presets_path("default"), {"items": [stored(FROM_SOURCES, "default")]})
    found = await report(save("pods.yaml", POD, POD, POD), access=reach(server))
    assert len(found.previews) == 3
    assert len(server.requests) == len(set(server.requests)) == 4


async def test_what_may_not_be_read_counts_as_missing_with_a_note(
    save: Save, server: api_server.ApiServer
) -> None:
    server.on("GET", presets_path("default"), {"items": [stored(FROM_SOURCES, "default")]})
    server.on("GET", "/api/v1/namespaces/default/services", api_server.status(403, "Forbidden"))
    server.on("GET", "/api/v1/namespaces/default/secrets/login", api_server.status(403, "Forbidden"))
    found = await report(save("pod.yaml", POD), access=reach(server))
    missing = [one.source for one in found.previews[0].containers[0].environment.missing]
    assert missing == ["ConfigMap settings", "Secret login"]
    assert [note.partition(":")[0] for note in found.notes] == [
        "Secret login counts as missing",
        "Services of namespace default are left out",
    ]


async def test_a_cluster_without_the_resource_has_no_presets(
    save: Save, server: api_server.ApiServer
) -> None:
    server.on("GET", presets_path("default"), api_server.NOT_SERVED)
    found = await report(save("pod.yaml", POD), access=reach(server))
    assert found.previews[0].applied == ()
    assert found.notes == ("the cluster has no PodPresets: apply crds/podpresets.yaml to install them",)


async def test_an_invalid_preset_of_the_cluster_is_named(save: Save, server: api_server.ApiServer) -> None:
    bad = stored(PRESET, "default") | {"spec": {}}
    server.on("GET", presets_path("default"), {"items": [bad]})
    found = await report(save("pod.yaml", POD), access=reach(server))
    assert found.notes == (
        "PodPreset db in namespace default is invalid and ignored: spec.selector: is required",
    )


async def test_presets_that_may_not_be_read_are_an_error(save: Save, server: api_server.ApiServer) -> None:
    server.on("GET", presets_path("default"), api_server.status(403, "Forbidden", "no"))
    with pytest.raises(api_errors.Forbidden):
        await report(save("pod.yaml", POD), access=reach(server))


async def test_services_of_a_variable_are_found_in_the_cluster_and_in_files(
    save: Save, server: api_server.ApiServer
) -> None:
    def service(name: str, address: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 1}]}}

    listed = {"items": [service("db", "10.0.0.1"), service("cache", "10.0.0.2")]}
    server.on("GET", "/api/v1/namespaces/default/services", listed)
    text = """
        {kind: Service, metadata: {name: db}, spec: {clusterIP: 10.0.0.9, ports: [{port: 1}]}}
        ---
        {kind: Service, metadata: {name: cache}, spec: {ports: [{port: 2}]}}
        ---
        {kind: Service, metadata: {name: new}, spec: {ports: [{port: 3}]}}
        ---
        {kind: Service, metadata: {name: headless}, spec: {clusterIP: None, ports: [{port: 4}]}}
    """.replace("\n        ", "\n")
    found = await only(save("pod.yaml", POD), objects=[save("objects.yaml", text)], access=reach(server))
    env = found.containers[0].environment.env
    assert (env["DB_SERVICE_HOST"], env["CACHE_SERVICE_HOST"]) == ("10.0.0.9", "10.0.0.2")
    assert env["CACHE_PORT"] == "tcp://10.0.0.2:2"
    assert env["NEW_PORT"] == "tcp://<spec.clusterIP>:3"
    assert "HEADLESS_SERVICE_HOST" not in env


async def test_services_of_a_cluster_that_does_not_answer_are_left_out_with_a_note(
    server: api_server.ApiServer,
) -> None:
    server.on("GET", "/api/v1/namespaces/shop/services", api_server.Answer(hang_up=True))
    async with api_server.client_of(server, api_server.Pauses()) as kube:
        cluster = preview_cluster.ClusterObjects(kube, ())
        assert await cluster.services("shop") == {}
    assert cluster.notes[0].startswith("Services of namespace shop are left out: ")


async def test_a_configmap_of_a_cluster_that_does_not_answer_is_an_error(
    server: api_server.ApiServer,
) -> None:
    server.on("GET", "/api/v1/namespaces/shop/configmaps/c", api_server.Answer(hang_up=True))
    async with api_server.client_of(server, api_server.Pauses()) as kube:
        with pytest.raises(api_errors.Unreachable):
            await preview_cluster.ClusterObjects(kube, ()).contents(
                "shop", [model.SourceRef("ConfigMap", "c")]
            )

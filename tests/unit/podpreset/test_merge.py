"""What presets add to a pod, and what stands in their way."""

from typing import Any

from addon_operator.podpreset import merge, selection
from tests.support import rows
from tests.unit.podpreset import builders
from tests.unit.podpreset.builders import (
    config_map,
    container,
    env,
    inject,
    injected,
    messages,
    mounting,
    only,
    pod,
    preset,
    secret,
)

EMPTY = {"name": "cache-volume", "emptyDir": {}}
OTHER = {"name": "other-volume", "emptyDir": {}}


def lists_of(given: builders.Pod, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = given["spec"]["containers"][index]
    return {key: found[key] for key in ("env", "envFrom", "volumeMounts") if key in found}


def test_the_simple_example_of_the_design() -> None:
    allow_database = preset("allow-database", version="42", env=[env("DB_PORT", 6379)], **mounting(EMPTY))
    website = pod(container("website", ports=[{"containerPort": 80}]))
    assert injected(website, allow_database) == {
        "metadata": {
            "labels": {"role": "frontend"},
            "annotations": {"podpreset.admission.kubernetes.io/podpreset-allow-database": "42"},
        },
        "spec": {
            "containers": [
                {
                    "name": "website",
                    "image": "i",
                    "ports": [{"containerPort": 80}],
                    "env": [{"name": "DB_PORT", "value": "6379"}],
                    "volumeMounts": [{"name": "cache-volume", "mountPath": "/cache"}],
                }
            ],
            "volumes": [EMPTY],
        },
    }


def test_the_conflict_example_of_the_design() -> None:
    website = pod(container(volumeMounts=[{"name": "cache-volume", "mountPath": "/cache"}]), volumes=[EMPTY])
    result = inject(website, preset(env=[env("DB_PORT", 6379)], **mounting(OTHER)))
    assert isinstance(result, merge.Conflicted)
    assert [one.message for one in result.conflicts] == [
        "Conflict on pod preset. Duplicate mountPath /cache."
    ]


def test_a_preset_sets_a_variable_that_its_own_envfrom_defines() -> None:
    both = preset(env=[env("duplicate_key", "FROM_ENV")], envFrom=[config_map("c")])
    changed = injected(pod(), both, keys={("ConfigMap", "c"): ["duplicate_key"]})
    assert lists_of(changed) == {"env": [env("duplicate_key", "FROM_ENV")], "envFrom": [config_map("c")]}


def test_several_presets_are_all_applied_the_oldest_first_then_by_name() -> None:
    b = preset("b", env=[env("B")])
    a = preset("a", env=[env("A")])
    oldest = preset("z", env=[env("Z")], created="2023-01-01T00:00:00Z")
    result = inject(pod(), b, a, oldest)
    assert isinstance(result, merge.Injection)
    assert [one.name for one in result.applied] == ["z", "a", "b"]
    assert [entry["name"] for entry in lists_of(injected(pod(), b, a, oldest))["env"]] == ["Z", "A", "B"]


def test_the_pods_own_entries_come_first_in_their_order() -> None:
    own = pod(container(env=[env("Z"), env("A")], envFrom=[secret("z")]))
    changed = injected(own, preset(env=[env("Y"), env("B")], envFrom=[secret("a")]))
    assert [entry["name"] for entry in lists_of(changed)["env"]] == ["Z", "A", "Y", "B"]
    assert lists_of(changed)["envFrom"] == [secret("z"), secret("a")]


def test_values_are_taken_verbatim() -> None:
    changed = injected(pod(), preset(env=[env("A", "$(B) $$(C)\n")]))
    assert lists_of(changed)["env"] == [env("A", "$(B) $$(C)\n")]


def test_volumes_are_written_as_the_preset_has_them_without_defaults() -> None:
    volume = {"name": "v", "secret": {"secretName": "s"}}
    assert injected(pod(), preset(**mounting(volume)))["spec"]["volumes"] == [volume]


def test_all_containers_init_containers_and_sidecars_are_changed_but_no_ephemeral_one() -> None:
    sidecar = container("sidecar", restartPolicy="Always")
    given = pod(
        container("one"),
        container("two"),
        initContainers=[container("init"), sidecar],
        ephemeralContainers=[container("debug")],
    )
    spec = injected(given, preset(env=[env("A")], **mounting(EMPTY)))["spec"]
    for changed in (*spec["containers"], *spec["initContainers"]):
        assert changed["env"] == [env("A")]
        assert changed["volumeMounts"] == [{"name": "cache-volume", "mountPath": "/cache"}]
    assert spec["ephemeralContainers"] == [container("debug")]


# The rows of the merge table: the same key and equal content, the same key and other content.

IDENTICAL = {
    "env": ({"env": [env("A", "1")]}, {}),
    "envFrom": ({"envFrom": [config_map("c", prefix="P_")]}, {}),
    "volume": ({"volumeMounts": [{"name": "cache-volume", "mountPath": "/cache"}]}, {"volumes": [EMPTY]}),
}


@rows.each(("own", "spec"), IDENTICAL.values(), ids=IDENTICAL)
def test_an_identical_entry_is_kept_once_at_the_pods_place(own: dict[str, Any], spec: dict[str, Any]) -> None:
    given = pod(container(**own), **spec)
    assert injected(given, preset(**own, **spec))["spec"] == given["spec"]


OPTIONAL = {"configMapRef": {"name": "c", "optional": True}}
CONFLICTS = {
    "env with another value": ({"env": [env("A", "1")]}, {"env": [env("A", "2")]}, "Duplicate env A."),
    "env with a source": (
        {"env": [env("A", "")]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        "Duplicate env A.",
    ),
    "envFrom that is optional": (
        {"envFrom": [config_map("c")]},
        {"envFrom": [OPTIONAL]},
        "Duplicate envFrom ConfigMap c.",
    ),
    "envFrom of a Secret that is optional": (
        {"envFrom": [{"secretRef": {"name": "s", "optional": False}, "prefix": "P_"}]},
        {"envFrom": [secret("s", prefix="P_")]},
        "Duplicate envFrom Secret s.",
    ),
    "mount of another volume at the path": (
        {"volumeMounts": [{"name": "mine", "mountPath": "/cache"}]},
        mounting(EMPTY),
        "Duplicate mountPath /cache.",
    ),
    "mount of the volume at the path with other options": (
        {"volumeMounts": [{"name": "cache-volume", "mountPath": "/cache", "readOnly": True}]},
        mounting(EMPTY),
        "Duplicate mountPath /cache.",
    ),
    "both the volume and the path are taken": (
        {
            "volumeMounts": [
                {"name": "cache-volume", "mountPath": "/elsewhere"},
                {"name": "mine", "mountPath": "/cache"},
            ]
        },
        mounting(EMPTY),
        "Duplicate mountPath /cache.",
    ),
}


@rows.each(("own", "lists", "message"), CONFLICTS.values(), ids=CONFLICTS)
def test_the_same_key_with_other_content_is_a_conflict(
    own: dict[str, Any], lists: dict[str, Any], message: str
) -> None:
    assert messages(pod(container(**own)), preset(**lists)) == only(message)


def test_a_preset_mounts_its_volume_at_two_paths() -> None:
    mounts = [{"name": "cache-volume", "mountPath": path} for path in ("/a", "/b")]
    changed = injected(pod(), preset(volumes=[EMPTY], volumeMounts=mounts))
    assert lists_of(changed)["volumeMounts"] == mounts


ORDERS = {
    "a variable that an own one refers to": ("X Y=$(A)", "A B", "X A Y B"),
    "what it refers to itself, in the presets' order": ("Y=$(B)", "C A B=$(A)$(C) D", "C A B Y D"),
    "even where one then does not see the other": ("Y=$(A)", "A=$(B) B", "A B Y"),
    "the first own entry that refers to it counts": ("Y=$(A) Z=$(A)", "A", "A Y Z"),
    "each goes to its own place": ("Y=$(B) X Z=$(A)", "A B", "B Y X A Z"),
    "what stands further up already": ("Y=$(A) Z=$(B)", "A B=$(A)", "A Y B Z"),
    "an escaped reference is none": ("Y=$$(A)", "A", "Y A"),
    "a reference behind an escaped dollar is one": ("Y=$$$(A)", "A", "A Y"),
    "no reference to the pod's own variable": ("Y=$(X) X", "A", "Y X A"),
    "what refers to an own entry before": ("X Y=$(A)", "A=$(X)", "X A Y"),
    "what refers to that entry": ("Z=$(B) Y=$(A)", "A=$(Y) B", "Z Y A B"),
    "what refers to an own entry further down": ("Y=$(A) X", "A=$(X)", "Y X A"),
    "an own entry whose last stands further down": ("X Y=$(A) X", "A=$(X)", "X Y X A"),
    "something that it refers to does": ("Y=$(A) X", "A=$(B) B=$(X)", "Y X A B"),
}


def variables(text: str) -> list[dict[str, Any]]:
    return [env(name, value) for name, _, value in (each.partition("=") for each in text.split())]


def test_a_variable_that_an_own_one_refers_to_goes_before_it() -> None:
    found = {}
    for why, (own, added, _) in ORDERS.items():
        changed = injected(pod(container(env=variables(own))), preset(env=variables(added)))
        entries = lists_of(changed)["env"]
        assert sorted(map(str, entries)) == sorted(map(str, variables(own) + variables(added)))
        found[why] = (own, added, " ".join(one["name"] for one in entries))
    assert found == ORDERS


def test_a_variable_of_one_preset_goes_before_with_what_it_refers_to_in_another() -> None:
    given = pod(container("one", env=variables("Y=$(A)")), container("two", env=variables("X")))
    presets = [preset("a", env=variables("B")), preset("b", env=variables("A=$(B)"))]
    changed = injected(given, *presets)
    one, two = changed["spec"]["containers"]
    assert (one["env"], two["env"]) == (variables("B A=$(B) Y=$(A)"), variables("X B A=$(B)"))
    assert injected(changed, *presets) == changed


NO_CONFLICTS = {
    "env names differ in case": ({"env": [env("A")]}, {"env": [env("a", "2")]}),
    "envFrom with another prefix": (
        {"envFrom": [config_map("c")]},
        {"envFrom": [config_map("c", prefix="P_")]},
    ),
    "ConfigMap and Secret of a name": ({"envFrom": [config_map("c")]}, {"envFrom": [secret("c")]}),
    "one volume at two paths": (
        {"volumeMounts": [{"name": "cache-volume", "mountPath": "/elsewhere"}]},
        mounting(EMPTY),
    ),
    "paths that differ in a slash": (
        {"volumeMounts": [{"name": "mine", "mountPath": "/cache/"}]},
        mounting(EMPTY),
    ),
    "path below another mount": (
        {"volumeMounts": [{"name": "mine", "mountPath": "/"}]},
        mounting(EMPTY),
    ),
}


@rows.each(("own", "lists"), NO_CONFLICTS.values(), ids=NO_CONFLICTS)
def test_entries_with_other_keys_are_added(own: dict[str, Any], lists: dict[str, Any]) -> None:
    changed = lists_of(injected(pod(container(**own)), preset(**lists)))
    for name, entries in own.items():
        assert changed[name] == [*entries, *lists[name]]


def test_an_entry_is_compared_with_the_last_of_its_name() -> None:
    given = pod(container(env=[env("A", "1"), env("A", "2")]))
    assert lists_of(injected(given, preset(env=[env("A", "2")]))) == {"env": [env("A", "1"), env("A", "2")]}
    assert messages(given, preset(env=[env("A", "1")])) == only("Duplicate env A.")


@rows.each("path", ["/a", "/b"])
def test_any_equal_mount_is_enough(path: str) -> None:
    mounts = [{"name": "cache-volume", "mountPath": "/a"}, {"name": "cache-volume", "mountPath": "/b"}]
    given = pod(container(volumeMounts=mounts), volumes=[EMPTY])
    assert injected(given, preset(**mounting(EMPTY, path)))["spec"] == given["spec"]


SELF_CONFLICTS = {
    "one name with two values": ({"env": [env("A", "1"), env("A", "2")]}, "Duplicate env A."),
}


@rows.each(("lists", "message"), SELF_CONFLICTS.values(), ids=SELF_CONFLICTS)
def test_a_preset_can_conflict_with_itself(lists: dict[str, Any], message: str) -> None:
    assert messages(pod(), preset(**lists)) == only(message)


# All or nothing.


def test_a_conflict_in_an_init_container_counts() -> None:
    given = pod(initContainers=[container("init", env=[env("A", "own")])])
    assert messages(given, preset(env=[env("A")])) == only("Duplicate env A.")


def test_a_conflict_in_an_ephemeral_container_does_not_count() -> None:
    given = pod(ephemeralContainers=[container("debug", env=[env("A", "own")])])
    assert lists_of(injected(given, preset(env=[env("A")])))["env"] == [env("A")]


def test_all_problems_of_a_preset_are_in_one_message_and_none_twice() -> None:
    own = {
        "env": [env("A", "own")],
        "envFrom": [config_map("c")],
        "volumeMounts": [{"name": "m", "mountPath": "/cache"}],
    }
    given = pod(container("one", **own), container("two", **own), volumes=[{"name": "cache-volume"}, OTHER])
    lists = {
        "env": [env("A", "1")],
        "envFrom": [OPTIONAL],
        **mounting({"name": "cache-volume", "secret": {"secretName": "s"}}),
    }
    assert messages(given, preset(**lists)) == only(
        "Duplicate env A. Duplicate envFrom ConfigMap c. Duplicate mountPath /cache. "
        "Duplicate volume cache-volume."
    )


def test_presets_that_add_the_same_add_it_once_and_both_are_noted() -> None:
    lists = {"env": [env("A")], "envFrom": [config_map("c")], **mounting(EMPTY)}
    changed = injected(pod(), preset("a", **lists), preset("b", **lists))
    assert lists_of(changed) == {
        "env": [env("A")],
        "envFrom": [config_map("c")],
        "volumeMounts": [{"name": "cache-volume", "mountPath": "/cache"}],
    }
    assert len(changed["metadata"]["annotations"]) == 2


WITH_VOLUME = pod(volumes=[EMPTY])
WITH_MOUNT = pod(container(volumeMounts=mounting(EMPTY)["volumeMounts"]))
PARTS: dict[str, tuple[builders.Pod, dict[str, Any]]] = {
    "env": (pod(), {"env": [env("A")]}),
    "envFrom": (pod(), {"envFrom": [config_map("c")]}),
    "env and envFrom": (pod(), {"env": [env("A")], "envFrom": [config_map("c")]}),
    "volume": (WITH_MOUNT, mounting(EMPTY)),
    "mount": (WITH_VOLUME, mounting(EMPTY)),
    "env and mount": (WITH_VOLUME, {"env": [env("A")], **mounting(EMPTY)}),
}


@rows.each(("given", "lists"), PARTS.values(), ids=PARTS)
def test_of_two_presets_only_the_first_adds_what_both_have(
    given: builders.Pod, lists: dict[str, Any]
) -> None:
    result = inject(given, preset("a", **lists), preset("b", **lists))
    assert isinstance(result, merge.Injection)
    assert [one.adds for one in result.applied] == [True, False]


def test_an_applied_preset_is_its_version_whatever_it_adds() -> None:
    result = inject(pod(container(env=[env("A")])), preset(env=[env("A")]))
    assert isinstance(result, merge.Injection)
    [applied] = result.applied
    assert not applied.adds
    assert applied == merge.AppliedPreset(applied.name, "1")
    assert merge.AppliedPreset(applied.name, "1").adds


def test_a_mount_with_a_list_in_it_is_another_one() -> None:
    # A newer API server may know fields of mounts that are lists.
    mount = {"name": "cache-volume", "mountPath": "/cache", "new": ["a"]}
    given = pod(container(volumeMounts=[mount]), volumes=[EMPTY])
    assert messages(given, preset(**mounting(EMPTY))) == only("Duplicate mountPath /cache.")


# A second pass.


def test_a_second_pass_changes_nothing() -> None:
    presets = (
        preset("a", env=[env("A"), env("B", 1)], envFrom=[config_map("c")], **mounting(EMPTY)),
        preset("b", envFrom=[secret("s")], **mounting(OTHER, "/other", readOnly=True)),
    )
    keys = {("ConfigMap", "c"): ["A", "B"], ("Secret", "s"): ["Z"]}
    once = injected(pod(initContainers=[container("init")]), *presets, keys=keys)
    result = inject(once, *presets, keys=keys)
    assert isinstance(result, merge.Injection)
    assert result.patch == ()


def test_a_second_pass_leaves_the_versions_of_the_first() -> None:
    once = injected(pod(), preset(version="1", env=[env("A")]))
    twice = injected(once, preset(version="2", env=[env("A")]))
    assert twice == once


@rows.each(
    ("own", "version"), [({}, "2"), ({"env": [env("A")]}, "1")], ids=["it adds something", "it adds nothing"]
)
def test_a_version_that_the_pod_brought_along_stays_only_if_the_preset_adds_nothing(
    own: dict[str, Any], version: str
) -> None:
    key = selection.applied_key("p")
    copied = pod(container(**own), annotations={key: "1", "other": "stays"})
    changed = injected(copied, preset(version="2", env=[env("A")]))
    assert changed["metadata"]["annotations"] == {key: version, "other": "stays"}


def test_a_second_pass_serves_a_container_that_was_added_in_between() -> None:
    given = preset(env=[env("A")], envFrom=[config_map("c")], **mounting(EMPTY))
    keys = {("ConfigMap", "c"): ["A"]}
    once = injected(pod(), given, keys=keys)
    once["spec"]["containers"].append(container("mesh"))
    result = inject(once, given, keys=keys)
    assert isinstance(result, merge.Injection)
    assert {operation["path"] for operation in result.patch} == {
        f"/spec/containers/1/{name}" for name in ("env", "envFrom", "volumeMounts")
    }


# The patch.


def test_without_presets_there_is_nothing_to_do() -> None:
    assert inject(pod()) == merge.Injection((), ())


def test_a_missing_list_is_created_and_an_existing_one_appended_to() -> None:
    given = pod(container("one"), container("two", env=[env("Z")]), annotations={"a": "b"})
    result = inject(given, preset("p", version="7", env=[env("A"), env("B")]))
    assert isinstance(result, merge.Injection)
    key = "podpreset.admission.kubernetes.io~1podpreset-p"
    assert list(result.patch) == [
        {"op": "add", "path": "/spec/containers/0/env", "value": [env("A"), env("B")]},
        {"op": "add", "path": "/spec/containers/1/env/-", "value": env("A")},
        {"op": "add", "path": "/spec/containers/1/env/-", "value": env("B")},
        {"op": "add", "path": f"/metadata/annotations/{key}", "value": "7"},
    ]


@rows.each("nothing", [None, []], ids=["null", "empty"])
def test_lists_that_are_null_or_empty_are_replaced(nothing: object) -> None:
    given = pod(container(env=nothing, volumeMounts=nothing), volumes=nothing, initContainers=nothing)
    changed = injected(given, preset(env=[env("A")], **mounting(EMPTY)))
    assert lists_of(changed)["env"] == [env("A")]
    assert changed["spec"]["volumes"] == [EMPTY]


@rows.each("given", [None, {}], ids=["null", "empty"])
def test_annotations_that_are_null_or_empty_are_replaced(given: object) -> None:
    changed = injected({**pod(), "metadata": {"annotations": given}}, preset(env=[env("A")]))
    assert changed["metadata"] == {"annotations": {selection.applied_key("p"): "1"}}


def test_a_pod_of_a_file_may_have_no_metadata() -> None:
    changed = injected({"spec": {"containers": [container()]}}, preset(env=[env("A")]))
    assert changed["metadata"] == {"annotations": {selection.applied_key("p"): "1"}}


def test_a_pod_of_a_file_may_have_no_spec() -> None:
    result = inject({"metadata": {}}, preset(env=[env("A")]))
    assert isinstance(result, merge.Injection)
    assert [operation["path"] for operation in result.patch] == ["/metadata/annotations"]

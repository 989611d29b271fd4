"""``spec.conversion`` of definitions is what hooks need, and set back when they go."""

import asyncio
import base64
import copy
from typing import Any

import orjson
import pytest
from typing_extensions import override

from addon_operator.admission.certificates import certificate_store, path_keys
from addon_operator.admission.conversions import conversion_registry, conversion_specs, converter
from addon_operator.admission.registration import registration_specs as specs
from addon_operator.aio import waiting
from addon_operator.hook_contract import conversions, hook_entries
from addon_operator.hook_contract.configuration import conversion_bindings
from addon_operator.kernel import errors
from tests.support import api_server, clocks, logs, watches

CRD = "crontabs.example.com"
OTHER = "jobs.example.com"
ADDRESS = specs.ServiceAddress("system", "addon-operator")
NONE = {"strategy": "None"}


async def _never(_: hook_entries.StepRequest) -> conversions.ConversionAnswer:
    raise AssertionError


ENTRY = hook_entries.Entry(
    "cron",
    "up.sh",
    conversion_bindings.ConversionBinding(CRD, (conversion_bindings.ConversionRule("v1", "v2"),), "up"),
    _never,
)
FOREIGN = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"url": "https://theirs.example/x", "caBundle": "eA=="},
        "conversionReviewVersions": ["v1", "v1beta1"],
    },
}


class Bundle(certificate_store.CertificateStore):
    """The authorities, as the certificate store gives them."""

    def __init__(self) -> None:
        self.text: bytes | None = b"one"
        self.calling_changed = waiting.News()
        self.key = "k1"
        self.keys = path_keys.PathKeys(
            api_server.client_of(api_server.ApiServer(), api_server.Pauses()),
            "system",
            "s",
            api_server.Pauses(),
        )

    @override
    async def refresh(self) -> certificate_store.Calling:
        return certificate_store.Calling(self.text, self.key)


class Sleeps(waiting.SystemTime):
    """A clock that a test moves; the watch, which finds no server, rests after its first try."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    @override
    def monotonic(self) -> float:
        return self.now

    @override
    async def sleep(self, seconds: float) -> None:
        if seconds != conversion_registry.SETTLE_SECONDS:
            await asyncio.Event().wait()
        self.slept.append(seconds)


class Definitions:
    """Definitions of an API server, with the rules of merge patches and resourceVersion."""

    def __init__(self, server: api_server.ApiServer) -> None:
        self.server = server
        self.by_name: dict[str, dict[str, Any]] = {}
        self.patches = 0
        self.refused: set[str] = set()
        """Those that a policy of the cluster keeps from being patched."""
        server.on("GET", conversion_specs.COLLECTION, self._list)
        for name in (CRD, OTHER):
            self._serve(name)

    def make(
        self, name: str = CRD, conversion: dict[str, Any] = NONE, stored: tuple[str, ...] = ("v2",)
    ) -> None:
        versions = [{"name": each, "storage": each == "v2"} for each in ("v1", "v2")]
        self.by_name[name] = {
            "metadata": {"name": name, "resourceVersion": "1", "labels": {"a": "b"}},
            "spec": {
                "group": "example.com",
                "names": {"plural": "crontabs"},
                "versions": versions,
                "conversion": copy.deepcopy(conversion),
            },
            "status": {"storedVersions": list(stored)},
        }

    def edit(self, name: str = CRD, **patch: dict[str, Any] | None) -> None:
        live = self.by_name[name]
        _merge(live, patch)
        live["metadata"]["resourceVersion"] = str(int(live["metadata"]["resourceVersion"]) + 1)

    def conversion(self, name: str = CRD) -> dict[str, Any]:
        found: dict[str, Any] = self.by_name[name]["spec"]["conversion"]
        return found

    def client_config(self, name: str = CRD) -> dict[str, Any]:
        found: dict[str, Any] = self.conversion(name)["webhook"]["clientConfig"]
        return found

    def note(self, name: str = CRD) -> dict[str, Any]:
        text = self.by_name[name]["metadata"].get("annotations", {}).get(conversion_specs.NOTE)
        found: dict[str, Any] = orjson.loads(text) if text else {}
        return found

    def _serve(self, name: str) -> None:
        def get(_asked: api_server.Asked) -> api_server.Answer:
            live = self.by_name.get(name)
            return api_server.Answer(live) if live else api_server.status(404, "NotFound")

        def patch(asked: api_server.Asked) -> api_server.Answer:
            live = self.by_name[name]
            if name in self.refused:
                return api_server.status(403, "Forbidden", "policy.example denied the request")
            if asked.body["metadata"].pop("resourceVersion") != live["metadata"]["resourceVersion"]:
                return api_server.status(409, "Conflict")
            self.patches += 1
            self.edit(name, **asked.body)
            return api_server.Answer(live)

        self.server.on("GET", conversion_specs.path_of(name), get)
        self.server.on("PATCH", conversion_specs.path_of(name), patch)

    def _list(self, _asked: api_server.Asked) -> api_server.Answer:
        items = [{"metadata": live["metadata"]} for live in self.by_name.values()]
        return api_server.Answer({"metadata": {"resourceVersion": "9"}, "items": items})


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            inner = target[key] if isinstance(target.get(key), dict) else {}
            target[key] = inner
            _merge(inner, value)
        else:
            target[key] = value


class Site:
    """What a test needs."""

    def __init__(self, server: api_server.ApiServer) -> None:
        self.server = server
        self.definitions = Definitions(server)
        self.bundle = Bundle()
        self.log = logs.Lines()
        self.time = Sleeps()

    def start(
        self, namespace: str = "system", *, needs_certificate: bool = False
    ) -> conversion_registry.ConversionRegistry:
        kube = api_server.client_of(self.server, api_server.Pauses())
        return conversion_registry.ConversionRegistry(
            kube,
            namespace,
            ADDRESS,
            self.bundle,
            self.log,
            converter.DeclaredConversions(),
            watches.shared(kube, self.time),
            needs_certificate=needs_certificate,
        )


@pytest.fixture
def site(server: api_server.ApiServer) -> Site:
    return Site(server)


@pytest.fixture
def definitions(site: Site) -> Definitions:
    site.definitions.make()
    return site.definitions


async def look(registry: conversion_registry.ConversionRegistry) -> None:
    """Let the registry look at its definitions once."""
    keeping = asyncio.create_task(registry.keep())
    await clocks.settle()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_a_definition_is_converted_by_the_admission_site(site: Site, definitions: Definitions) -> None:
    await site.start().register("cron", {CRD: ["x.sh"]})
    service = {"namespace": "system", "name": "addon-operator", "port": 443, "path": f"/k1/convert/{CRD}"}
    assert definitions.conversion() == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service, "caBundle": base64.b64encode(b"one").decode()},
            "conversionReviewVersions": ["v1"],
        },
    }
    assert definitions.note() == {"operator": "system", "hooks": [["cron", "x.sh"]], "before": NONE}
    assert site.time.slept == [conversion_registry.SETTLE_SECONDS]
    assert site.log.lines == [
        ("info", f"CustomResourceDefinition {CRD}: hooks convert its objects from now on")
    ]


async def test_what_is_as_it_should_be_is_not_written(site: Site, definitions: Definitions) -> None:
    for registry in (site.start(), site.start()):
        await registry.register("cron", {CRD: ["x.sh"]})
        await registry.register("cron", {CRD: ["x.sh"]})
    assert definitions.patches == 1


@pytest.mark.parametrize("before", [NONE, FOREIGN])
async def test_it_is_set_back_to_what_it_was(site: Site, before: dict[str, Any]) -> None:
    site.definitions.make(conversion=before)
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    assert site.definitions.conversion() != before
    await registry.register("cron", {})
    assert site.definitions.conversion() == before
    assert site.definitions.note() == {}
    assert [level for level, _ in site.log.lines] == ["info", "info"]


async def test_it_is_set_back_by_a_later_operator_too(site: Site, definitions: Definitions) -> None:
    await site.start().register("cron", {CRD: ["x.sh"]})
    await site.start().register("cron", {})
    assert definitions.conversion() == NONE


async def test_what_no_enabled_module_converts_any_more_is_set_back(site: Site) -> None:
    site.definitions.make()
    site.definitions.make(OTHER)
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    await registry.register("jobs", {OTHER: ["x.sh"]})
    await site.start().keep_only(["jobs", "web"])
    assert site.definitions.conversion() == NONE
    assert site.definitions.conversion(OTHER)["strategy"] == "Webhook"


async def test_what_cannot_be_set_back_is_the_error_of_its_module_alone_and_tried_again(site: Site) -> None:
    site.definitions.make()
    site.definitions.make(OTHER)
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    await registry.register("jobs", {OTHER: ["x.sh"]})
    site.definitions.refused.add(CRD)
    await registry.keep_only([])
    assert site.definitions.conversion(OTHER) == NONE
    assert registry.leaving == {"cron"}, "its hook is asked until it is set back"
    await registry.let_go("jobs")
    with pytest.raises(errors.AddonOperatorError, match=r"policy\.example denied the request"):
        await registry.let_go("cron")
    site.definitions.refused.clear()
    await registry.let_go("cron")
    assert site.definitions.conversion() == NONE
    assert registry.leaving == frozenset()


async def test_a_hook_that_converts_something_else_now_leaves_the_former(site: Site) -> None:
    site.definitions.make()
    site.definitions.make(OTHER)
    await site.start().register("cron", {CRD: ["x.sh"]})
    await site.start().register("cron", {OTHER: ["x.sh"]})
    assert site.definitions.conversion() == NONE
    assert site.definitions.conversion(OTHER)["strategy"] == "Webhook"


async def test_a_definition_of_two_owners_stays_until_both_are_gone(
    site: Site, definitions: Definitions
) -> None:
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    await registry.register("web", {CRD: ["x.sh"]})
    assert definitions.note()["hooks"] == [["cron", "x.sh"], ["web", "x.sh"]]
    await registry.register("cron", {})
    assert definitions.conversion()["strategy"] == "Webhook"
    await registry.register("web", {})
    assert definitions.conversion() == NONE


async def test_where_only_hooks_can_convert_what_is_stored_the_conversion_stays_and_says_why(
    site: Site,
) -> None:
    site.definitions.make(stored=("v1", "v2"))
    await site.start().register("cron", {CRD: ["x.sh"]})
    registry = site.start()
    await registry.keep_only(["web"])
    assert registry.leaving == {"cron"}, "the next operator knows that, too"
    await registry.let_go("web")
    with pytest.raises(
        conversion_registry.ConversionNeededError,
        match=rf"objects of CustomResourceDefinition {CRD} may be stored in v1, where only hooks can convert "
        "them, .*: have all of them stored in v2, or give it up",
    ):
        await registry.let_go("cron")
    await look(registry)
    assert site.definitions.conversion()["strategy"] == "Webhook"
    assert site.log.lines[-1] == ("warning", registry.trouble(ENTRY))
    site.definitions.edit(status={"storedVersions": ["v2"]})
    await registry.let_go("cron")
    assert site.definitions.conversion() == NONE
    assert registry.leaving == frozenset()


async def test_it_is_set_back_by_and_by_if_no_removal_asks_for_it(site: Site) -> None:
    site.definitions.make(stored=("v1", "v2"))
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    await registry.keep_only([])
    site.bundle.key = "k2"
    await look(registry)
    assert site.definitions.client_config()["service"]["path"] == f"/k2/convert/{CRD}"
    site.definitions.edit(status={"storedVersions": ["v2"]})
    await look(registry)
    assert site.definitions.conversion() == NONE


async def test_a_module_that_is_enabled_again_converts_on(site: Site) -> None:
    site.definitions.make(stored=("v1", "v2"))
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    await registry.keep_only([])
    await registry.register("cron", {CRD: ["x.sh"]})
    await registry.let_go("cron")
    assert site.definitions.conversion()["strategy"] == "Webhook"
    assert (registry.leaving, registry.trouble(ENTRY)) == (frozenset(), "")


@pytest.mark.parametrize(
    "edit",
    [
        {"conversion": {"strategy": "None", "webhook": None}},
        {"conversion": {"webhook": {"clientConfig": {"caBundle": "eA=="}}}},
        {"conversion": {"webhook": {"clientConfig": {"service": None, "url": "https://e"}}}},
    ],
    ids=["none", "caBundle", "url"],
)
async def test_an_edit_by_somebody_is_undone(
    site: Site, definitions: Definitions, edit: dict[str, Any]
) -> None:
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    before = orjson.dumps(definitions.conversion())
    definitions.edit(spec=edit)
    await look(registry)
    assert orjson.loads(before) == definitions.conversion()
    assert site.log.lines[-1][1].endswith("spec.conversion was changed by somebody and has been restored")
    await registry.register("cron", {})
    assert definitions.conversion() == NONE


async def test_whoever_changes_it_again_and_again_is_answered_ever_slower(
    site: Site, definitions: Definitions
) -> None:
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    for _ in range(5):
        definitions.edit(spec={"conversion": {"webhook": {"clientConfig": {"caBundle": "eA=="}}}})
        await look(registry)
    assert definitions.patches == 1 + 3
    assert "as often as it is restored" in registry.trouble(ENTRY)
    site.time.now += 50
    await look(registry)
    assert definitions.patches == 1 + 4
    assert registry.trouble(ENTRY), "nobody knows yet if it lasts this time"
    site.time.now += 1000
    await look(registry)
    assert not registry.trouble(ENTRY)
    assert definitions.client_config()["caBundle"] == base64.b64encode(b"one").decode()


async def test_it_follows_the_rotation_of_certificates(site: Site, definitions: Definitions) -> None:
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    for text in (b"one two", b"two", b"two three", b"three"):
        site.bundle.text = text
        await look(registry)
        assert definitions.client_config()["caBundle"] == base64.b64encode(text).decode()
    assert site.log.lines[-1][1].endswith("spec.conversion is up to date again")


async def test_it_follows_the_random_part_of_the_path_also_before_its_module_runs_again(
    site: Site, definitions: Definitions
) -> None:
    await site.start().register("cron", {CRD: ["x.sh"]})
    note, again = definitions.note(), site.start()
    site.bundle.key = "k2"
    await look(again)
    assert definitions.client_config()["service"]["path"] == f"/k2/convert/{CRD}"
    assert (definitions.note(), again.trouble(ENTRY)) == (note, "")
    assert set(site.bundle.keys.registered.values()) == {"k2"}
    definitions.edit(spec={"conversion": {"strategy": "None", "webhook": None}})
    site.bundle.key = "k3"
    await look(again)
    assert definitions.conversion() == NONE


async def test_an_annotation_that_was_taken_away_while_the_path_changed_does_not_bring_back_our_own_address(
    site: Site, definitions: Definitions
) -> None:
    site.bundle.key = "0" * 32
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    definitions.edit(metadata={"annotations": {conversion_specs.NOTE: None}})
    site.bundle.key = "1" * 32
    await registry.register("cron", {CRD: ["x.sh"]})
    assert definitions.note()["before"] == NONE


async def test_authorities_that_others_give_stay(site: Site) -> None:
    site.definitions.make(conversion=FOREIGN)
    site.bundle.text = None
    await site.start().register("cron", {CRD: ["x.sh"]})
    assert site.definitions.client_config()["caBundle"] == "eA=="


async def test_a_definition_that_comes_later_is_taken_care_of(site: Site) -> None:
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    assert site.time.slept == []
    site.definitions.make()
    await look(registry)
    assert site.definitions.conversion()["strategy"] == "Webhook"


async def test_a_definition_that_another_operator_converts_is_left_to_it(
    site: Site, definitions: Definitions
) -> None:
    await site.start("theirs").register("cron", {CRD: ["x.sh"]})
    with pytest.raises(conversion_specs.ConvertedByOtherError, match="by the operator in namespace theirs"):
        await site.start().register("cron", {CRD: ["x.sh"]})
    await site.start().keep_only([])
    assert definitions.conversion()["strategy"] == "Webhook"


async def test_without_its_annotation_it_is_not_taken_for_what_was_before(
    site: Site, definitions: Definitions
) -> None:
    registry = site.start()
    await registry.register("cron", {CRD: ["x.sh"]})
    definitions.edit(metadata={"annotations": None})
    await look(registry)
    assert definitions.note()["before"] == NONE


async def test_without_the_right_to_list_nothing_is_missing(site: Site, server: api_server.ApiServer) -> None:
    server.on("GET", conversion_specs.COLLECTION, api_server.status(403, "Forbidden"))
    await site.start().register("cron", {})
    await site.start().keep_only([])


async def test_a_missing_right_is_an_error_of_who_needs_it(site: Site, server: api_server.ApiServer) -> None:
    server.on("GET", conversion_specs.path_of(CRD), api_server.status(403, "Forbidden"))
    with pytest.raises(errors.AddonOperatorError):
        await site.start().register("cron", {CRD: ["x.sh"]})


async def test_a_hook_that_converts_is_refused_where_clients_need_a_certificate(
    site: Site, definitions: Definitions
) -> None:
    registry = site.start(needs_certificate=True)
    with pytest.raises(errors.ConfigurationError, match=r"up\.sh of module cron .* no certificate"):
        await registry.open("cron", [ENTRY])
    await registry.open("web", [])
    assert definitions.conversion() == NONE

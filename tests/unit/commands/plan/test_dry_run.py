"""What a plan asks the API server about new and changed objects."""

import dataclasses
import pathlib

from addon_operator.commands.plan import dry_run
from addon_operator.documents import manifest_diff
from addon_operator.helm import release_types
from addon_operator.kernel import names
from addon_operator.modules import model
from tests.support import api_server, clocks, kinds, rows

MODULE = model.Module(names.ModuleName("web"), 1, pathlib.Path("modules/010-web"))
PATH = "/api/v1/namespaces/addons/configmaps"


def config_map(name: str, rest: str = "") -> str:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{rest}"
    return f"---\n# Source: web/templates/{name}.yaml\n{text}"


def server_that_says(
    status: int = 0, message: str = "is invalid: x", *, there: bool = True
) -> api_server.ApiServer:
    """An API server that answers all that is tried with an error by status; objects exist if ``there``."""

    def tried(asked: api_server.Asked) -> api_server.Answer:
        assert asked.query["dryRun"] == "All"
        return api_server.status(status, "", message) if status else api_server.Answer({})

    server = api_server.ApiServer()
    server.on("POST", PATH, tried)
    server.on("PATCH", f"{PATH}/web", tried if there else api_server.status(404, "NotFound", "gone"))
    return server


@dataclasses.dataclass
class Asked:
    refused: str
    notes: list[str]


async def ask(server: api_server.ApiServer, after: str, before: str = "", left_out: str = "") -> Asked:
    notes: list[str] = []
    run = dry_run.DryRun(
        api_server.client_of(server, clocks.Pauses()), kinds.Kinds("ConfigMap"), 4, notes.append
    )
    changes = manifest_diff.diff(manifest_diff.parse(before), manifest_diff.parse(after))
    made = release_types.ReleasePreview(
        release_types.PlannedAction.UPGRADE, "", 1, changes=changes, before=before, manifest=after
    )
    return Asked(await run.refused(MODULE, "addons", made, left_out.__eq__), notes)


async def test_only_what_is_new_or_changes_is_tried() -> None:
    server = server_that_says()
    before = config_map("same") + config_map("old") + config_map("web", "data: {a: b, c: d}\n")
    after = config_map("same") + config_map("new") + config_map("web", "data: {a: x}\n")
    assert (await ask(server, after, before)).refused == ""
    assert server.writes == [f"POST {PATH}", f"PATCH {PATH}/web"]
    assert server.asked[1].body["data"] == {"a": "x", "c": None}, "what leaves the chart goes away"


@rows.each("status", [400, 422])
async def test_a_refusal_names_the_file_of_the_module(status: int) -> None:
    found = await ask(server_that_says(status), config_map("web"))
    assert found.refused.startswith("modules/010-web/templates/web.yaml: the API server did not create ")
    assert found.notes == []


@rows.each(
    ("status", "message", "is_noted"),
    [
        (403, "no", True),
        (503, "busy", True),
        (400, "admission webhook x denied the request: is invalid", True),
        (404, "no such namespace", False),
    ],
)
async def test_what_says_nothing_of_the_object_is_no_refusal(
    status: int, message: str, is_noted: bool
) -> None:
    found = await ask(server_that_says(status, message), config_map("web"))
    assert (found.refused, bool(found.notes)) == ("", is_noted)


async def test_an_object_that_is_gone_is_tried_as_a_new_one() -> None:
    server = server_that_says(422, there=False)
    assert (await ask(server, config_map("web", "data: {a: x}\n"), config_map("web"))).refused
    assert server.writes[-1:] == [f"POST {PATH}"]


async def test_a_hook_of_helm_is_made_anew_and_a_kind_that_a_converge_brings_is_left_out() -> None:
    hook = config_map("web", "data: {a: x}\n").replace("{name", "{annotations: {helm.sh/hook: x}, name")
    server = server_that_says()
    await ask(server, hook, hook.replace("a: x", "a: y"))
    assert server.writes[-1:] == [f"POST {PATH}"]
    assert (await ask(server_that_says(422), config_map("web"), left_out="ConfigMap")).refused == ""
    assert (await ask(server_that_says(422), config_map("web").replace("ConfigMap", "Thing"))).refused == ""

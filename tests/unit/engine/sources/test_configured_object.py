"""ConfigMap and Secret as parts of one configuration: what they say together, and whose mistake it is."""

import base64

import pytest

from addon_operator.engine.sources import configured_object
from addon_operator.kernel import names
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.objects import config_maps, values_secret
from addon_operator.values import checks, config_map_reader, sources, store
from addon_operator.values.schema import schemas
from tests.support import rows

WEB = ModuleName("web")
WEB_KEY = names.values_key(WEB)
NOT_YAML = "this is not valid YAML in UTF-8; it is not quoted, as it may be secret"
SCHEMA = """
required: [host]
properties:
  host: {type: string}
  size: {type: integer, maximum: 9}
  password: {type: string, minLength: 8}
"""


async def nothing() -> config_maps.Snapshot | None:
    return None


def objects() -> list[configured_object.ConfiguredObject]:
    found = [
        configured_object.ConfiguredObject(kind, f"{kind} ns/name", nothing)
        for kind in (configured_object.CONFIG_MAP, configured_object.SECRET)
    ]
    for each in found:
        each.know([WEB], config_map_reader.parse_section)
    return found


def look(config: dict[str, str], secret: dict[str, str]) -> configured_object.ConfigState:
    parts = [
        each.at(config_maps.Snapshot(data, "1"))
        for each, data in zip(objects(), (config, secret), strict=True)
    ]
    files = sources.parse_common_values("webEnabled: true", "values.yaml")
    checked = schemas.load_schemas((SCHEMA, "config-values.yaml"))
    values = store.ValuesStore([store.ModuleValues(WEB, files, schemas=checked)])
    return configured_object.look_at(parts, checks.Checks(values).config_violations)


def test_the_secret_lies_over_the_config_map() -> None:
    found = look({"web": "host: a\nsize: 1"}, {"web": "size: 2"})
    assert not found.is_wrong
    assert found.values.section(WEB_KEY) == {"host": "a", "size": 2}
    assert found.values.secret_section(WEB_KEY) == {"size": 2}


def test_a_secret_that_says_nothing_is_none() -> None:
    assert look({"web": "host: a"}, {"unknown": "key"}).values.secret is None


@rows.each(
    ("config", "secret", "blamed"),
    [
        pytest.param("host: a\nsize: 77", "{}", ["ConfigMap ns/name"], id="the ConfigMap's value"),
        pytest.param("host: a", "size: 77", ["Secret ns/name"], id="the Secret's value"),
        pytest.param("{}", "size: 1", ["ConfigMap ns/name"], id="a missing key"),
        pytest.param("size: [", "size: [", ["ConfigMap ns/name", "Secret ns/name"], id="both"),
    ],
)
def test_what_is_wrong_is_told_of_the_object_that_has_to_be_edited(
    config: str, secret: str, blamed: list[str]
) -> None:
    assert [each.source for each in look({"web": config}, {"web": secret}).blamed()] == blamed


def test_a_value_of_the_secret_is_not_shown_in_what_is_wrong() -> None:
    (sentence,) = look({"web": "host: a"}, {"web": "password: s3cret"}).sentences
    assert sentence == (
        "web.password: must have at least 8 characters, not *** (config-values.yaml; set in Secret ns/name)"
    )


@rows.each(
    ("data", "sentence"),
    [
        (
            {"web": "password: [s3cret"},
            f"key 'web', line 2, column 1: {NOT_YAML}",
        ),
        ({"web": "s3cret"}, "key 'web': a section must be YAML of a mapping, not a string"),
        ({"webEnabled": "s3cret"}, 'key \'webEnabled\': a switch must be "true" or "false"'),
        (
            {"webMaintenance": "s3cret"},
            "key 'webMaintenance': the maintenance mode must be 'NoResourceReconciliation' or empty",
        ),
    ],
    ids=["YAML", "no mapping", "switch", "maintenance"],
)
def test_what_cannot_be_read_of_a_secret_is_not_quoted(data: dict[str, str], sentence: str) -> None:
    assert look({"web": "host: a"}, data).sentences[:1] == (sentence,)


def test_bytes_in_a_secret_are_refused_with_their_key() -> None:
    data = values_secret.texts_of({"data": {"web": base64.b64encode(b"\xff").decode()}})
    (sentence,) = look({}, data).sentences
    assert sentence.startswith("key 'web', line 1, column 1: this is not valid YAML in UTF-8")


def test_keys_of_binary_data_are_named_and_not_read() -> None:
    (config, _) = objects()
    body = {"metadata": {"resourceVersion": "1"}, "data": {"web": "size: 1"}, "binaryData": {"db": "AA=="}}
    read = config.at(config_maps.snapshot_of(body)).reading.values
    assert read.warnings == (f"{config.source}: binaryData is not read (db); write text under data",)
    assert read.section(WEB_KEY) == {"size": 1}

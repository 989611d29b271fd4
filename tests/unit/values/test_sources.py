"""What files and the ConfigMap may say, and how a wrong one is told."""

import dataclasses

import pytest

from addon_operator.documents import yaml_reading
from addon_operator.kernel import json_types, names
from addon_operator.values import config_map_reader, sources
from tests.support import rows

NGINX = names.ModuleName("nginx-ingress")
SOME = names.ModuleName("some-module")
KNOWN = [NGINX, SOME]
NOT_QUOTED = "this is not valid YAML in UTF-8; it is not quoted, as it may be secret"


def test_a_common_file_has_global_values_sections_and_switches() -> None:
    text = "global: {a: 1}\nsomeModule: {b: [1]}\nnginxIngressEnabled: true\nsomeModuleEnabled: false\n"
    file = sources.parse_common_values(text, "modules/values.yaml")
    assert file.sections == {"global": {"a": 1}, "someModule": {"b": [1]}}
    assert file.enabled == {"nginxIngressEnabled": True, "someModuleEnabled": False}
    assert file.source == "modules/values.yaml"


def test_a_section_may_end_as_a_switch_does_and_have_a_name_of_one_letter() -> None:
    file = sources.parse_common_values("selfEnabled: {a: 1}\na: {b: 2}\n", "f")
    assert (file.sections, file.enabled) == ({"selfEnabled": {"a": 1}, "a": {"b": 2}}, {})


@rows.each(
    ("text", "switches"),
    [
        ("someModuleEnabled: true\n", {"someModuleEnabled": True}),
        ("a: [\nsomeModuleEnabled : false  # as of: today # now\n", {"someModuleEnabled": False}),
        ("someModuleEnabled: yes\nsomeModuleEnabled: true\n", {"someModuleEnabled": True}),
        ("nginxIngressEnabled: true\n  someModuleEnabled: true\nsomeModuleEnabled\ntrue\n", {}),
        ("", {}),
    ],
    ids=["as it is", "a broken line, a comment", "no switch before it", "others", "empty"],
)
def test_the_switch_of_a_file_that_cannot_be_read_is_that_of_its_line(
    text: str, switches: dict[str, bool]
) -> None:
    assert sources.switch_in(SOME, text) == switches


def test_an_empty_file_says_nothing() -> None:
    assert sources.parse_common_values("", "values.yaml") == sources.ValuesFile("values.yaml", {}, {})


def test_a_section_without_content_is_empty() -> None:
    assert sources.parse_common_values("global:\nsomeModule: ~\n", "f").sections == {
        "global": {},
        "someModule": {},
    }


@rows.each(
    ("text", "message"),
    [
        ("- a\n", "values.yaml: a values file must be a mapping, not a list"),
        ("global: 5\n", "line 1, column 1, key global: a section must be a mapping, not a number"),
        (
            "global: {}\nsomeModule: [1]\n",
            "line 2, column 1, key someModule: a section must be a mapping, not a list",
        ),
        (
            "someModuleEnabled: 'true'\n",
            "key someModuleEnabled: a switch must be true or false, not a string",
        ),
        ("someModuleEnabled:\n", "a switch must be true or false, not nothing\n"),
        (
            "some-module: {}\n",
            "key some-module: this is not a values key (camelCase); did you mean 'someModule'?",
        ),
        ("Global: {}\n", "did you mean 'global'?"),
        ("some_module: {}\n", "did you mean 'someModule'?"),
    ],
    ids=repr,
)
def test_a_wrong_common_file_is_reported_with_position_and_key(text: str, message: str) -> None:
    with pytest.raises(sources.ValuesFileError) as caught:
        sources.parse_common_values(text, "values.yaml")
    assert message in f"{caught.value}\n"


def test_a_modules_file_has_its_own_section_and_switch() -> None:
    file = sources.parse_module_values(SOME, "someModule: {a: 1}\nsomeModuleEnabled: true\n", "f")
    assert (file.sections, file.enabled) == ({"someModule": {"a": 1}}, {"someModuleEnabled": True})


@rows.each("key", ["global", "otherModule", "otherModuleEnabled", "some-module"])
def test_a_modules_file_with_another_key_names_file_and_key(key: str) -> None:
    with pytest.raises(sources.ValuesFileError) as caught:
        sources.parse_module_values(
            SOME, f"someModule: {{}}\n{key}: {{}}\n", "modules/001-some-module/values.yaml"
        )
    assert str(caught.value).startswith(
        f"modules/001-some-module/values.yaml, line 2, column 1, key {key}: "
        "the values of module 'some-module' may only set 'someModule' and 'someModuleEnabled'; "
    )


def test_values_of_a_chart_in_the_place_of_a_modules_are_one_mistake() -> None:
    text = "replicas: 1\nimage: {tag: a}\nglobal: {}\nmetricsEnabled: true\n"
    with pytest.raises(sources.ValuesFileError) as caught:
        sources.parse_module_values(SOME, text, "m/values.yaml", has_chart=True)
    assert len(caught.value.mistakes) == 1
    assert str(caught.value).startswith(
        "m/values.yaml, line 1, column 1, key replicas: no key of this file is 'someModule' or "
        "'someModuleEnabled', so these are values of a chart, not of the module; write all of them below "
        "'someModule', or, "
    )


def test_values_of_a_chart_are_one_mistake_though_one_key_is_like_the_name_of_the_module() -> None:
    text = "image: {}\nsomModule: {}\nresources: {}\nreplicas: 1\n"
    with pytest.raises(sources.ValuesFileError, match="these are values of a chart") as raised:
        sources.parse_module_values(names.ModuleName("some-module"), text, "m/values.yaml", has_chart=True)
    assert "somModule" not in str(raised.value)


@rows.each(
    "own", ["someModule: {a: 1}", "someModuleEnabled: true", "someModul: {}", "someModulEnabled: true"]
)
def test_with_a_key_of_the_modules_each_other_key_is_a_mistake_of_its_own(own: str) -> None:
    text = f"replicas: 1\nimage: {{tag: a}}\n{own}\n"
    with pytest.raises(sources.ValuesFileError) as caught:
        sources.parse_module_values(SOME, text, "m/values.yaml", has_chart=True)
    assert len(caught.value.mistakes) >= 2
    assert "values of a chart" not in str(caught.value)


def test_unreadable_yaml_in_a_file_is_its_own_error() -> None:
    with pytest.raises(yaml_reading.YamlError, match=r"f\.yaml, line 2"):
        sources.parse_common_values("a: 1\na: 2\n", "f.yaml")


def test_the_config_map_has_sections_switches_and_maintenance() -> None:
    data = {
        "global": "param1: 200\n",
        "someModule": "a: yes\n",
        "someModuleEnabled": "true",
        "nginxIngressEnabled": "false\n",
        "someModuleMaintenance": "NoResourceReconciliation",
    }
    config = config_map_reader.ConfigMapReader(KNOWN, "ConfigMap ns/values").read(data).usable()
    assert config.sections == {"global": {"param1": 200}, "someModule": {"a": True}}
    assert config.enabled == {"someModuleEnabled": True, "nginxIngressEnabled": False}
    assert config.maintenance == {"someModuleMaintenance": "NoResourceReconciliation"}
    assert config.warnings == ()
    assert config.source == "ConfigMap ns/values"


def test_a_missing_config_map_is_an_empty_one() -> None:
    assert config_map_reader.ConfigMapReader(KNOWN).read({}).usable() == sources.ConfigValues()


def test_a_section_that_says_false_disables_its_module() -> None:
    config = config_map_reader.ConfigMapReader(KNOWN).read({"someModule": "false"}).usable()
    assert (config.enabled, config.sections) == ({"someModuleEnabled": False}, {})


def test_the_alias_agrees_with_a_switch_that_says_the_same() -> None:
    config = (
        config_map_reader.ConfigMapReader(KNOWN)
        .read({"someModuleEnabled": "false", "someModule": "false"})
        .usable()
    )
    assert config.enabled == {"someModuleEnabled": False}


@rows.each(
    ("mode", "expected"),
    [
        ("", {}),
        ("noresourcereconciliation", {"someModuleMaintenance": "NoResourceReconciliation"}),
    ],
)
def test_a_maintenance_mode_is_empty_or_the_known_one_in_any_case(
    mode: str, expected: dict[str, str]
) -> None:
    assert (
        config_map_reader.ConfigMapReader(KNOWN).read({"someModuleMaintenance": mode}).usable().maintenance
        == expected
    )


@rows.each(
    ("data", "message"),
    [
        ({"global": "false"}, "key 'global': a section must be YAML of a mapping, not a boolean"),
        ({"someModule": "true"}, 'to enable the module, set someModuleEnabled: "true"'),
        ({"someModule": "- 1"}, "key 'someModule': a section must be YAML of a mapping, not a list"),
        ({"someModule": "a: 1\na: 2"}, "key 'someModule', line 2, column 1, key a: the key is already set"),
        (
            {"someModuleEnabled": "yes"},
            "key 'someModuleEnabled': a switch must be \"true\" or \"false\", not 'yes'",
        ),
        (
            {"someModuleMaintenance": "On"},
            "the maintenance mode must be 'NoResourceReconciliation' or empty, not 'On'",
        ),
        (
            {"someModule": "false", "someModuleEnabled": "true"},
            "key 'someModule' disables the module but 'someModuleEnabled' enables it",
        ),
    ],
    ids=repr,
)
def test_a_wrong_config_map_is_reported_with_its_key(data: dict[str, str], message: str) -> None:
    with pytest.raises(sources.ConfigMapError) as caught:
        config_map_reader.ConfigMapReader(KNOWN).read(data).usable()
    assert len(caught.value.violations) == 1
    assert message in caught.value.violations[0]


def test_all_violations_of_a_config_map_are_reported_at_once() -> None:
    data = {"global": "[1", "someModule": "7", "someModuleEnabled": "maybe", "nginxIngressEnabled": "true"}
    with pytest.raises(sources.ConfigMapError) as caught:
        config_map_reader.ConfigMapReader(KNOWN, "ConfigMap ns/values").read(data).usable()
    assert len(caught.value.violations) == 3
    assert str(caught.value).startswith("ConfigMap ns/values is invalid: key 'global', line 2")


@rows.each("flag", ["someModuleEnabled", "someModuleMaintenance"])
def test_a_switch_below_the_key_of_its_module_is_a_warning(flag: str) -> None:
    read = config_map_reader.ConfigMapReader(KNOWN, "ConfigMap a/b").read
    config = read({"someModule": f"a: 1\n{flag}: 'false'", "someModuleEnabled": "true"}).usable()
    assert config.enabled == {"someModuleEnabled": True}
    (warning,) = config.warnings
    assert warning == (
        f"ConfigMap a/b: {flag!r} below the key 'someModule' is a value, which switches nothing; "
        "write it as a key of its own, beside 'someModule'"
    )


@rows.each(
    ("flag", "place"),
    [("someModuleEnabled", "beside 'someModule'"), ("someModuleMaintenance", "in the values ConfigMap")],
)
def test_a_switch_below_the_key_of_its_module_in_a_file_is_told_with_its_line(flag: str, place: str) -> None:
    text = f"someModule:\n  a: 1\n  {flag}: false\n"
    module = sources.parse_module_values(SOME, text, "m/values.yaml")
    common = sources.parse_common_values(f"global: {{globalEnabled: true}}\n{text}", "values.yaml")
    said = (
        f"{flag!r} below the key 'someModule' is a value, which switches nothing; "
        f"write it as a key of its own, {place}"
    )
    assert module.misplaced == (f"m/values.yaml, line 3, column 3: {said}",)
    assert common.misplaced == (f"values.yaml, line 4, column 3: {said}",)
    assert module.enabled == common.enabled == {}


def test_so_many_switches_below_keys_of_a_file_are_told_one_by_one() -> None:
    text = "".join(f"m{n}: {{m{n}Enabled: true}}\n" for n in range(100))
    assert len(sources.parse_common_values(text, "values.yaml").misplaced) == 20


def test_global_values_have_no_switches_that_could_be_misplaced() -> None:
    config = config_map_reader.ConfigMapReader(KNOWN).read({"global": "globalEnabled: true"}).usable()
    assert config.warnings == ()


@rows.each(
    ("key", "hint"),
    [
        ("someModul", "did you mean 'someModule'?"),
        ("zzz", "no module has it"),
        ("some-module", "someModule"),
        ("someModulEnabled", "did you mean 'someModuleEnabled'?"),
        ("zzzEnabled", "no module has it"),
        ("someMleEnabled", "did you mean 'someModuleEnabled'?"),
        ("someModuleMaintenence", "did you mean 'someModuleMaintenance'?"),
        ("zzzMaintenance", "no module has it"),
    ],
)
def test_a_key_of_no_module_is_a_warning_even_if_its_text_is_broken(key: str, hint: str) -> None:
    config = (
        config_map_reader.ConfigMapReader(KNOWN).read({key: "{broken", "someModuleEnabled": "true"}).usable()
    )
    assert config.enabled == {"someModuleEnabled": True}
    assert len(config.warnings) == 1
    assert repr(key) in config.warnings[0]
    assert hint in config.warnings[0]


def test_a_reading_tells_what_is_wrong_and_has_the_rest() -> None:
    data = {"someModule": "[", "global": "a: 1", "someModuleEnabled": "true"}
    reading = config_map_reader.ConfigMapReader(KNOWN).read(data)
    assert reading.unreadable == {"someModule"}
    assert len(reading.violations) == 1
    assert reading.values.sections == {"global": {"a": 1}}
    assert reading.values.enabled == {"someModuleEnabled": True}


def test_a_section_whose_text_is_as_before_is_not_parsed_anew() -> None:
    reader = config_map_reader.ConfigMapReader(KNOWN)
    first = reader.read({"someModule": "a: 1", "global": "a: 1"}).values.sections
    second = reader.read({"someModule": "a: 1", "global": "a: 2"}).values.sections
    assert second[names.values_key(SOME)] is first[names.values_key(SOME)]
    assert second[names.GLOBAL_KEY] == {"a": 2}


def test_a_section_that_comes_back_after_a_mistake_is_read() -> None:
    reader = config_map_reader.ConfigMapReader(KNOWN)
    texts = ("a: 1", "[", "false", "a: 1")
    *_, last = [reader.read({"someModule": text}).values.sections for text in texts]
    assert last == {"someModule": {"a": 1}}


def test_of_many_unknown_keys_the_first_are_named_and_the_others_counted() -> None:
    def warnings(count: int) -> tuple[str, ...]:
        data = {f"zzz{number}": "" for number in range(count)}
        return config_map_reader.ConfigMapReader(KNOWN, "ConfigMap a/b").read(data).values.warnings

    assert (len(warnings(50)), len(warnings(51))) == (50, 51)
    assert warnings(51)[49] == "ConfigMap a/b: key 'zzz49' is unknown and ignored; no module has it"
    assert warnings(51)[50] == "ConfigMap a/b: 1 more keys are unknown and ignored"


def test_of_a_long_text_that_is_no_switch_the_beginning_is_quoted() -> None:
    [said] = config_map_reader.ConfigMapReader(KNOWN).read({"someModuleEnabled": "x" * 101}).violations
    assert said.endswith(f", not {'x' * 100!r}")


@rows.each(
    ("data", "violation"),
    [
        (
            {"someModule": "password: [hidden\n"},
            f"key 'someModule', line 2, column 1: {NOT_QUOTED}",
        ),
        ({"global": "- hidden"}, "key 'global': a section must be YAML of a mapping, not a list"),
        ({"someModuleEnabled": "hidden"}, 'key \'someModuleEnabled\': a switch must be "true" or "false"'),
        (
            {"someModuleMaintenance": "hidden"},
            "key 'someModuleMaintenance': the maintenance mode must be 'NoResourceReconciliation' or empty",
        ),
    ],
    ids=["broken YAML", "another type", "a switch", "a mode"],
)
def test_what_is_wrong_in_a_secret_is_told_without_its_text(data: dict[str, str], violation: str) -> None:
    reader = config_map_reader.ConfigMapReader(KNOWN, "Secret a/b", is_secret=True)
    assert reader.read(data).violations == (violation,)


def test_one_source_is_invalid_and_two_are() -> None:
    messages = [
        str(sources.ConfigMapError(name, ("a", "b"))) for name in ("Secret b", "ConfigMap a and Secret b")
    ]
    assert messages == ["Secret b is invalid: a; b", "ConfigMap a and Secret b are invalid: a; b"]


def test_a_section_that_the_secret_does_not_have_is_given_as_it_is() -> None:
    key = names.values_key(SOME)
    section: json_types.JsonObject = {"a": 1}
    config = sources.ConfigValues({key: section}, secret=sources.ConfigValues())
    assert config.section(key) is section
    above = sources.ConfigValues({key: {"b": 2}})
    assert dataclasses.replace(config, secret=above).section(key) == {"a": 1, "b": 2}


def test_the_highest_source_decides_and_without_any_it_is_the_default() -> None:
    key = names.enabled_key(SOME)
    file = sources.ValuesFile("values.yaml", enabled={key: True})
    config = sources.ConfigValues(enabled={key: True}, source="ConfigMap a/b")
    nothing = sources.ConfigValues()
    assert [
        sources.decide(SOME, (), {}, nothing),
        sources.decide(SOME, (file,), {}, nothing),
        sources.decide(SOME, (file,), {key: False}, nothing),
        sources.decide(SOME, (file,), {key: False}, config),
    ] == [
        sources.Flag(False, "disabled by default: no source sets someModuleEnabled", is_default=True),
        sources.Flag(True, "enabled by someModuleEnabled in values.yaml", is_default=False),
        sources.Flag(False, "disabled by someModuleEnabled of a global hook", is_default=False),
        sources.Flag(True, "enabled by someModuleEnabled in ConfigMap a/b", is_default=False),
    ]
    assert not sources.Flag(True, "as the test says").is_default


@rows.each(
    ("problem", "shown"),
    [
        ("key 'someModule', line 2: no 'hidden' here", "key 'someModule', line 2: no *** here"),
        ('key "hidden": found "hid\'den"', "key ***: found ***"),
        ("found 'hid\\'den' and \"hid\\\"den\"", "found *** and ***"),
        ("found 'hid\nden' and '' and \"\"", "found *** and *** and ***"),
        ("found 'hidden\\", "found ***"),
        ('found "hidden\\', "found ***"),
        ("found ':' and \"]\" and '\\t', not 'a' or '::'", "found ':' and \"]\" and '\\t', not *** or ***"),
    ],
    ids=repr,
)
def test_what_a_problem_quotes_is_left_out_but_for_punctuation(problem: str, shown: str) -> None:
    assert config_map_reader._without_quotations("someModule", problem) == shown


def test_a_reading_without_problems_has_none() -> None:
    reading = config_map_reader.ConfigMapReading(sources.ConfigValues())
    assert (reading.problems, reading.unreadable) == ((), frozenset())


@rows.each("is_secret", [False, True])
@rows.each(
    "text",
    [
        "a: hunter2: 1", "a: *hunter2", "a: \"\\hunter2\"", "a: 'hunter2", "a: [hunter2",
        "- hunter2", "hunter2", "a: 1\n b: hunter2", "a:\n\thunter2: 1",
        "%hunter2", "a: @hunter2", "a: {hunter2: 1",
        "a: it's hunter2: \"so\"", "a: !!int hunter2", "<<: hunter2",
    ],
)  # fmt: skip
def test_what_is_wrong_can_be_told_without_what_stands_there(text: str, is_secret: bool) -> None:
    source = "Secret a/b" if is_secret else "ConfigMap a/b"
    reader = config_map_reader.ConfigMapReader(KNOWN, source, is_secret=is_secret)
    found = reader.read(
        {"someModule": text, "someModuleEnabled": "hunter2", "nginxIngressMaintenance": "hunter2"}
    )
    assert [problem.key for problem in found.problems] == [
        "someModule", "someModuleEnabled", "nginxIngressMaintenance",
    ]  # fmt: skip
    for problem in found.problems:
        assert "hunter2" not in problem.without_values
        assert repr(problem.key) in problem.without_values

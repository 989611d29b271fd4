"""What people are told of drift, and that nothing of that is ever sent."""

import base64
import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from addon_operator.modules.drift import corrections, drift_report, field_drift


def changed(*paths: str, manager: str = "alice") -> list[field_drift.Difference]:
    return [
        field_drift.Difference(tuple(path.split("/")), tuple(path.split("/")), "1", "2", manager)
        for path in paths
    ]


def test_resources_fields_and_managers_are_named() -> None:
    found = {"ConfigMap web": changed("data/a"), "Deployment web": changed("spec/replicas", manager="")}
    assert drift_report.report(found) == drift_report.DriftReport(
        2, "ConfigMap web: /data/a (by alice); Deployment web: /spec/replicas"
    )
    scaled = [field_drift.Difference(("spec", "replicas"), ("spec", "replicas"), 2, 0, "kubectl")]
    assert drift_report.report({"Deployment web": scaled}).message == (
        "Deployment web: /spec/replicas (scaled to 0, chart says 2, by kubectl)"
    )
    assert drift_report.report({}) == drift_report.DriftReport()


def test_of_many_the_first_are_named() -> None:
    found = {f"ConfigMap {name}": changed(*("data/" + key for key in "abcde")) for name in "vwxyz"}
    told = drift_report.report(found)
    assert told.resources == 5
    assert told.message.count("/data/") == 9
    assert told.message.endswith("; and 2 more")
    assert "(by alice), 2 more" in told.message


VALUES = st.text(max_size=5) | st.just(drift_report.MASK)


@given(st.dictionaries(st.sampled_from("abc"), VALUES), st.dictionaries(st.sampled_from("abc"), VALUES))
def test_no_correction_holds_a_mask_and_no_shown_secret_a_value(
    wanted: dict[str, str], there: dict[str, str]
) -> None:
    """A mask that somebody means is in the manifest; then it is what the chart says."""
    expected: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "x"}, "stringData": wanted}
    live = {"metadata": {"name": "x"}, "data": {key: value.encode().hex() for key, value in there.items()}}
    found = field_drift.differences(expected, live)
    rows = drift_report.rows({"Secret x": found})
    assert all(row["expected"] == drift_report.MASK for row in rows)
    assert all(row["live"] in (None, drift_report.MASK) for row in rows)
    for body in (
        corrections.json_patch(live, found),
        corrections.kept_to(copy.deepcopy(expected), live, found),
    ):
        sent = json.dumps(body, ensure_ascii=False)
        assert drift_report.MASK not in sent or drift_report.MASK in wanted.values()


HIDDEN = st.integers(0, 999).map(lambda number: f"geheim-{number:03}")
PLAIN = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(alphabet="abc*", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=6,
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("x")},
    optional={key: st.dictionaries(st.sampled_from("ab"), HIDDEN) for key in ("labels", "annotations")},
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS = st.fixed_dictionaries(
    {"kind": st.just("Secret"), "metadata": METADATA},
    optional={
        "stringData": st.dictionaries(st.sampled_from("abcd"), HIDDEN),
        "data": st.dictionaries(st.sampled_from("abcd"), HIDDEN.map(encoded)),
        "type": HIDDEN,
    },
)
LIVE = st.fixed_dictionaries(
    {"metadata": METADATA},
    optional={
        "data": st.dictionaries(st.sampled_from("abcd"), HIDDEN.map(encoded)) | PLAIN,
        "immutable": st.booleans(),
        "type": HIDDEN,
    },
)
OTHERS = st.fixed_dictionaries(
    {"kind": st.just("Widget"), "metadata": st.just({"name": "x"})}, optional={"spec": PLAIN, "data": PLAIN}
)


@given(SECRETS, LIVE, OTHERS, OTHERS)
def test_whatever_is_changed_nothing_shown_holds_a_secret_and_nothing_sent_a_mask(
    secret: dict[str, Any], live: dict[str, Any], other: dict[str, Any], changed_other: dict[str, Any]
) -> None:
    pairs = {"Secret x": (secret, live), "Widget x": (other, changed_other)}
    found = {title: field_drift.differences(*pair, whoever=True) for title, pair in pairs.items()}
    shown = drift_report.report(found).message + json.dumps(drift_report.rows(found)) + repr(found)
    assert "geheim" not in shown
    assert encoded("geheim-")[:8] not in shown
    for title, (expected, there) in pairs.items():
        sent = [
            *corrections.json_patch(there, found[title]),
            corrections.kept_to(expected, there, found[title]),
        ]
        assert drift_report.MASK not in json.dumps(sent)

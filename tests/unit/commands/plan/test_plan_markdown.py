"""A plan as a comment: bounded, and nothing in it breaks out of its place."""

import pytest

from addon_operator.commands.plan import plan_markdown, plan_report
from addon_operator.documents import manifest_diff
from addon_operator.kernel.names import ModuleName


def module(name: str, *diff: str, reason: str = "because", pending: bool = False) -> plan_report.ModuleReport:
    key = manifest_diff.ManifestKey("ConfigMap", name)
    change = manifest_diff.ManifestChange(manifest_diff.ChangeKind.CHANGED, key, diff)
    release = plan_report.ReleaseReport(plan_report.PlanStep.UPGRADE, reason, 3, (), (change,))
    return plan_report.ModuleReport(ModuleName(name), 10, True, "enabled", release, is_pending=pending)


def comment(*modules: plan_report.ModuleReport) -> str:
    return plan_markdown.comment(plan_report.PlanReport("addons", modules, ()), "Releases: some.")


def test_a_diff_is_in_a_block_that_opens() -> None:
    text = comment(module("web", "-a", "+b"))
    assert "| `web` | 🟡 upgrade | because |" in text
    assert "<details><summary><b>web</b>: 1 object</summary>\n\n```diff\n-a\n+b\n```\n" in text


@pytest.mark.slow
def test_a_comment_never_has_more_characters_than_fit_and_says_what_is_cut() -> None:
    lines = [f"+{'x' * 100}{number}" for number in range(2000)]
    text = comment(*(module(f"m{number}", *lines) for number in range(300)))
    assert len(text) <= plan_markdown.MAX_CHARS
    assert "Cut: the diffs of `m0`" in text
    assert text.count("<details>") == text.count("</details>")
    assert text.count("```") % 2 == 0


def test_what_is_due_anyway_comes_last_and_is_marked() -> None:
    text = comment(module("old", "+a", pending=True), module("new", "+b"))
    assert "not by this change; because" in text
    assert text.index("<b>new</b>") < text.index("<b>old</b>")


def test_nothing_in_a_diff_or_a_reason_breaks_out_of_its_place() -> None:
    text = comment(module("web", "+```", "+</details>", reason="a | b <script> @team\nnext"))
    assert "````diff\n+```\n+</details>\n````\n" in text
    assert "a \\| b &lt;script&gt; &#64;team next" in text

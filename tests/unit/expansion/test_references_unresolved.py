"""The text of the Event for unresolved references."""

from addon_operator import expansion
from tests.support import rows


def reference(name: str, where: str = "args[0]", *, pending: bool = False) -> expansion.UnresolvedReference:
    return expansion.UnresolvedReference(name, where, pending)


def test_the_message_names_the_container_and_each_reference_with_its_place() -> None:
    message = expansion.unresolved_message("web", [reference("A", "env FOO"), reference("B", "args[1]")])
    assert message == "Container web: cannot expand $(A) in env FOO, $(B) in args[1]"


def test_without_unresolved_references_there_is_no_message() -> None:
    assert expansion.unresolved_message("web", []) is None


@rows.each("name", ["A", "a", "_", "my.env-name", "-x", ".x", "A1"])
def test_a_possible_name_counts(name: str) -> None:
    assert expansion.unresolved_message("web", [reference(name)]) == (
        f"Container web: cannot expand $({name}) in args[0]"
    )


@rows.each("name", ["", "date +%s", "1A", "A:x", "$(A", "A\n", "é", "A "], ids=repr)
def test_what_cannot_be_a_name_does_not_count(name: str) -> None:
    assert not reference(name).is_variable
    assert expansion.unresolved_message("web", [reference(name)]) is None


def test_what_the_container_waits_for_does_not_count() -> None:
    references = [reference("A", pending=True), reference("B")]
    assert expansion.unresolved_message("web", references) == "Container web: cannot expand $(B) in args[0]"


def test_references_are_equal_by_name_and_place() -> None:
    assert reference("A", pending=True) == expansion.UnresolvedReference("A", "args[0]")
    assert reference("A") == expansion.UnresolvedReference("A", "args[0]", in_script=True)
    assert reference("A", "args[1]") != reference("A")
    assert reference("B") != reference("A")


def test_a_reference_is_neither_waited_for_nor_a_shells_unless_somebody_says_so() -> None:
    found = expansion.UnresolvedReference("A", "args[0]")
    assert (found.pending, found.in_script) == (False, False)

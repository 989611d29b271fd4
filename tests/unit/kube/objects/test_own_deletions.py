"""Remembering which objects hooks deleted."""

from addon_operator.kube.objects.own_deletions import DeletedObject, OwnDeletions, Owner

WEB = Owner("web")


def key(name: str) -> DeletedObject:
    return DeletedObject("apps", "Deployment", "default", name)


def test_a_deletion_is_known_until_the_object_is_there_again() -> None:
    deletions = OwnDeletions()
    deletions.note(WEB, key("a"))
    assert deletions.deleted_by(key("a")) == WEB
    assert deletions.deleted_by(key("b")) is None
    deletions.forget(key("a"))
    assert deletions.deleted_by(key("a")) is None


def test_an_object_that_nobody_deleted_can_be_forgotten() -> None:
    OwnDeletions().forget(key("a"))


def test_the_last_to_delete_counts() -> None:
    deletions = OwnDeletions()
    deletions.note(WEB, key("a"))
    deletions.note(Owner("api"), key("a"))
    assert deletions.deleted_by(key("a")) == "api"


def test_the_oldest_deletions_make_room() -> None:
    deletions = OwnDeletions(capacity=2)
    for name in ("a", "b", "a", "c"):
        deletions.note(WEB, key(name))
    assert [name for name in "abc" if deletions.deleted_by(key(name))] == ["a", "c"]

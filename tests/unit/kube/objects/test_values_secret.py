"""What is read of a Secret."""

import base64

from addon_operator.kube.objects import values_secret


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_snapshot_has_the_texts_of_a_secret() -> None:
    body = {
        "metadata": {"resourceVersion": "7", "uid": "u"},
        "data": {"web": encoded("password: süß".encode()), "empty": "", "none": None},
    }
    found = values_secret.snapshot_of(body)
    assert found.data == {"web": "password: süß", "empty": "", "none": ""}
    assert (found.resource_version, found.uid) == ("7", "u")


def test_bytes_that_are_no_text_are_neither_lost_nor_taken_for_another_one() -> None:
    assert values_secret.texts_of({"data": {"web": encoded(b"a: \xff")}}) == {"web": "\0"}


def test_a_secret_without_data_is_an_empty_one() -> None:
    assert values_secret.snapshot_of({"metadata": {}}).data == {}

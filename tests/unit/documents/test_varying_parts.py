"""What is another one in each render of the same: random values, times, and what is made from them."""

import base64
import datetime as dt
import hashlib
import random
import string
import textwrap
from collections.abc import Callable

from addon_operator.documents import manifest_diff, varying_parts
from tests.support import rows
from tests.unit import costs

CHANCE = random.Random(7)


def letters(length: int = 20) -> str:
    return "".join(CHANCE.choices(string.ascii_letters + string.digits, k=length))


def encoded(length: int) -> str:
    return base64.b64encode(CHANCE.randbytes(length)).decode()


def time() -> dt.datetime:
    return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=CHANCE.randrange(10**8))


def config(text: str) -> str:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata:\n  text: |\n"
    return f"{head}{textwrap.indent(text, '    ')}\n"


def secret(text: str, value: str) -> str:
    data = base64.b64encode(f"{text}={value}\n".encode()).decode()
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: secret}}\ndata:\n  text: {data}\n"


def certificate() -> str:
    lines = textwrap.wrap(encoded(CHANCE.randrange(700, 800)), 64)
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----"])


def hook(size: str) -> str:
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: check-{letters(5).lower()}\n"
        f"  annotations: {{helm.sh/hook: post-install}}\ndata: {{size: {size!r}}}\n"
    )


def deployment(size: str) -> str:
    digest = hashlib.sha256(CHANCE.randbytes(8)).hexdigest()
    return (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec:\n  template:\n    metadata:\n"
        f"      annotations: {{checksum/secret: {digest}, rolled-at: '{time().isoformat()}'}}\n"
        "    spec:\n      containers:\n      - name: app\n        env:\n"
        f"        - {{name: SIZE, value: {size!r}}}\n        - {{name: TOKEN, value: {letters()}}}\n"
    )


RENDERS: list[Callable[[str], str]] = [
    lambda size: secret(f"size={size} password", letters()),
    lambda size: secret(f"size={size} key", encoded(32)),
    lambda size: config(f"size: {size}\npassword: {letters()}"),
    lambda size: config(f"size: {size}, password: {letters()}, name: app"),
    lambda size: config(f"url: postgres://app:{letters()}@db:5432/{size}?sslmode=disable"),
    lambda size: config(f"at: {time().isoformat()}\nsize: {size}"),
    lambda size: config(
        f"at: {time():%Y-%m-%d %H:%M:%S} +0000 UTC m=+0.{CHANCE.randrange(10**9):09}\nsize: {size}"
    ),
    lambda size: config(f"on {time():%a, %d %b %Y %H:%M:%S +0000} with {size}"),
    lambda size: config(f"{certificate()}\nsize: {size}"),
    lambda size: config(f"id: {CHANCE.randbytes(4).hex()}-{CHANCE.randbytes(2).hex()} {size}"),
    lambda size: config(f"app:$2a$10${encoded(39)} {size}"),
    hook,
    deployment,
    lambda size: f"{config(size)}---\n{hook('1')}---\n{deployment('1')}---\n{secret('x', letters())}",
]


def checked(*manifests: str) -> bool:
    return varying_parts.same(*map(manifest_diff.parse, manifests))


def digest(one: str, other: str) -> bytes:
    kept = varying_parts.steady(manifest_diff.parse(one), manifest_diff.parse(other))
    return manifest_diff.fingerprint(kept)


@rows.each("render", RENDERS)
def test_what_varies_from_render_to_render_makes_no_difference(render: Callable[[str], str]) -> None:
    for _ in range(6):
        assert digest(render("small"), render("small")) == digest(render("small"), render("small"))
        assert checked(render("small"), render("small"), render("small"))


@rows.each("render", RENDERS)
def test_what_changed_beside_it_is_seen(render: Callable[[str], str]) -> None:
    for _ in range(6):
        assert digest(render("small"), render("small")) != digest(render("large"), render("large"))
        assert not checked(render("small"), render("large"), render("large"))


def test_of_what_does_not_vary_every_change_counts() -> None:
    one = config("a: 1\nb: 2")
    assert digest(one, one) == manifest_diff.fingerprint(manifest_diff.parse(one))
    for other in (config("a: 1\nb: 3"), config("a: 1"), config("a: 1\nb: 2\nc: 3")):
        assert not checked(one, other, other)


@rows.each("render", [hook, lambda size: config(f"id: {letters()}")])
def test_another_number_of_objects_is_a_change(render: Callable[[str], str]) -> None:
    once, twice = render("1"), f"{hook('1')}---\n{render('1')}"
    assert not checked(once, twice, f"{hook('1')}---\n{render('1')}")
    assert not checked(twice, once, render("1"))


def test_keys_and_items_in_another_order_each_time_make_no_difference() -> None:
    def shuffled() -> str:
        items = list("abcdefgh")
        CHANCE.shuffle(items)
        return f"kind: X\nmetadata: {{name: x, labels: {{{letters()}: '1'}}}}\nitems: [{', '.join(items)}]\n"

    assert digest(shuffled(), shuffled()) == digest(shuffled(), shuffled())


@rows.each(
    "document",
    [
        lambda size: config("\n".join(f"{at} {letters()}" for at in range(size))),
        lambda size: config(" ".join(letters(4) for _ in range(size))),
        lambda size: f"kind: X\nitems: [{', '.join(letters() for _ in range(size))}]\n",
        lambda size: f"kind: X\nmap: {{{', '.join(f'{letters()}: 1' for _ in range(size))}}}\n",
        lambda size: "---\n".join(hook(str(at)) for at in range(size // 10)),
    ],
    ids=["lines", "words", "items", "keys", "objects"],
)
def test_it_costs_what_the_size_allows(document: Callable[[int], str]) -> None:
    def two(size: int) -> list[tuple[manifest_diff.ManifestDocument, ...]]:
        return [manifest_diff.parse(document(size)) for _ in range(2)]

    assert costs.is_linear(two, lambda renders: varying_parts.steady(*renders), 100)

"""Names of modules and the keys that are made from them, names of Kubernetes objects, and guesses at names.

A module directory ``NNN-some-module`` holds the module ``some-module``; its values live under ``someModule``,
its switch is ``someModuleEnabled`` and its maintenance flag ``someModuleMaintenance``.
Sources: "Values storage" and "Module structure" of the addon-operator documentation; "Object Names and IDs"
and "Labels and Selectors" of the Kubernetes documentation.
"""

import difflib
import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NewType

from addon_operator.kernel import errors

ModuleName = NewType("ModuleName", str)
"""Name of a module in kebab-case: the directory's name without its numeric prefix."""
ValuesKey = NewType("ValuesKey", str)
"""Name of a module in camelCase: the key of its section in the values."""

GLOBAL_KEY: Final = ValuesKey("global")
ENABLED_MODULES: Final = "enabledModules"
"""Key below ``global`` of all enabled modules, where no source has it."""
ENABLED_SUFFIX: Final = "Enabled"
MAINTENANCE_SUFFIX: Final = "Maintenance"

_DIRECTORY = re.compile(r"(?s)^(?:(?P<order>[0-9]+)-)?(?P<name>.+)\Z")
_UPPER = re.compile(r"[A-Z]")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_DIGIT_FIRST = re.compile(r"(?<=-)(?=[0-9])")


class ModuleNameError(errors.ConfigurationError):
    """A directory's name is not a usable module name."""


def values_key(module: ModuleName) -> ValuesKey:
    """Return the camelCase key of a module's section: ``some-module`` → ``someModule``."""
    first, *rest = module.split("-")
    return ValuesKey(first + "".join(part[:1].upper() + part[1:] for part in rest))


def module_name(key: str) -> ModuleName:
    """Return the module name that a values key belongs to: ``someModule`` → ``some-module``."""
    return ModuleName(_UPPER.sub(lambda match: "-" + match.group().lower(), key))


def enabled_key(module: ModuleName) -> str:
    """Return the key of the module's switch: ``some-module`` → ``someModuleEnabled``."""
    return values_key(module) + ENABLED_SUFFIX


def maintenance_key(module: ModuleName) -> str:
    """Return the key of the module's maintenance flag: ``some-module`` → ``someModuleMaintenance``."""
    return values_key(module) + MAINTENANCE_SUFFIX


def keys_of(module: ModuleName) -> tuple[str, str, str]:
    """Return all keys of the module: its section, its switch and its maintenance flag."""
    return values_key(module), enabled_key(module), maintenance_key(module)


def parse_module_directory(directory: str) -> tuple[int | None, ModuleName]:
    """Return order and name in a module directory's name: ``042-some-module`` → ``(42, "some-module")``.

    The order is ``None`` without a numeric prefix.

    Raises :class:`ModuleNameError` when the name does not survive the way to camelCase and back, is reserved,
    or cannot be the name of a Helm release.
    """
    match = _DIRECTORY.match(directory)
    if match is None:
        raise ModuleNameError("a module directory needs a name")
    order = int(match["order"]) if match["order"] else None
    name = ModuleName(match["name"])
    _check_name(directory, name)
    return order, name


def directory_order(directory: str) -> int | None:
    """Return the numeric prefix of a module directory's name, whatever follows it; ``None`` without one."""
    match = _DIRECTORY.match(directory)
    return int(match["order"]) if match and match["order"] else None


def stand_in(directory: str, taken: Collection[str]) -> ModuleName:
    """Return what a module is called whose directory's name cannot be used: the nearest name that can.

    It is none of ``taken``, so that the directory is in the way of no other module.
    """
    match = _DIRECTORY.match(directory)
    words = _NOT_IN_NAMES.sub("-", (match["name"] if match else directory).lower()).strip("-")
    words = _DIGIT_FIRST.sub("n", words)[: RELEASE_MAX // 2].strip("-")
    numbered = (ModuleName(f"{words or 'unnamed'}-n{number}") for number in itertools.count(1))
    candidates = itertools.chain([ModuleName(words)], numbered)
    return next(name for name in candidates if is_module_name(name) and name not in taken)


def is_module_name(name: str) -> bool:
    """Say whether a module can have this name."""
    try:
        _check_name(name, ModuleName(name))
    except ModuleNameError:
        return False
    return True


def _check_name(directory: str, name: ModuleName) -> None:
    back = module_name(values_key(name))
    if back != name:
        raise ModuleNameError(
            f"module directory {directory!r}: the name {name!r} becomes the values key "
            f"{values_key(name)!r}, which reads back as {back!r}; rename it to {_better(directory)!r}: "
            "lower-case words joined by single dashes, each starting with a letter"
        )
    if values_key(name) == GLOBAL_KEY:
        raise ModuleNameError(
            f"module directory {directory!r}: 'global' is the key of the global values; choose another name"
        )
    if not is_dns_label(name) or len(name) > RELEASE_MAX:
        raise ModuleNameError(
            f"module directory {directory!r}: {name!r} cannot be the name of a Helm release; use at most "
            f"{RELEASE_MAX} lower-case letters, digits and dashes, "
            "with a letter or digit at both ends"
        )


def _better(directory: str) -> str:
    """Return the nearest name that a module's directory can have."""
    match = _DIRECTORY.match(directory)
    prefix = f"{match['order']}-" if match and match["order"] else ""
    # The module keeps its values if it keeps its key.
    same_key = module_name(values_key(ModuleName(match["name"]))) if match else ""
    return prefix + (same_key if is_module_name(same_key) else stand_in(directory, ()))


def find(name: str, modules: Sequence[ModuleName]) -> ModuleName | None:
    """Return the module of that name, ``None`` for ``global``; directory and values key are accepted.

    Raises a :class:`.ConfigurationError` if there is none.
    """
    if name == GLOBAL_KEY:
        return None
    for module in modules:
        if name in (module, values_key(module)):
            return module
    raise errors.ConfigurationError(unknown(name, modules))


def unknown(name: str, modules: Sequence[ModuleName]) -> str:
    """Return the sentence for a name that no module has."""
    hint = did_you_mean(name, modules, f"there are {', '.join(modules) or 'none'}")
    return f"there is no module {name!r}; {hint}"


SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""A whole name of most objects; besides, it has at most 253 characters."""
SUBDOMAIN_MAX: Final = 253
_NOT_OF_PROMETHEUS: Final = re.compile(r"[^a-zA-Z0-9_:]")
LABEL_MAX: Final = 63
"""Of characters of a part of a domain, and of a label's value."""
RELEASE_MAX: Final = 53
"""How long the name of a Helm release may be."""
_OF_HELM: Final = ("app.kubernetes.io/managed-by", "meta.helm.sh/", "helm.sh/")
_LABEL_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS_LABEL: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_RESOURCE_PARTS: Final = 2
_LABEL_KEY: Final = re.compile(rf"({SUBDOMAIN}/)?{_LABEL_NAME}")
_LABEL_VALUE: Final = re.compile(f"({_LABEL_NAME})?")


def is_dns_label(text: str) -> bool:
    """Say whether a text can be the name of a namespace, Service or container (RFC 1123)."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Say whether a text can be the name of an object of most kinds."""
    return len(text) <= SUBDOMAIN_MAX and _SUBDOMAIN.fullmatch(text) is not None


def is_crd_name(text: str) -> bool:
    """Say whether a text can be the name of a CustomResourceDefinition: ``plural.group``."""
    plural, _, group = text.partition(".")
    return is_subdomain(text) and is_dns_label(plural) and is_subdomain(group)


def is_webhook_name(text: str) -> bool:
    """Say whether a webhook may have this name: a subdomain of at least three parts."""
    return is_subdomain(text) and text.count(".") > 1


def can_be_printed(text: str) -> bool:
    """Say whether a text is not empty and has no characters that cannot be printed, such as line breaks."""
    return bool(text) and text.isprintable()


def of_prometheus(text: str) -> str:
    """Return the name of a metric or a label as scrapers see it that do not take all of UTF-8.

    Source: "Escaping schemes" of Prometheus' documentation.
    """
    escaped = _NOT_OF_PROMETHEUS.sub("_", text)
    return f"_{escaped[1:]}" if escaped[:1].isdigit() else escaped


def is_resource(text: str) -> bool:
    """Say whether a text can be a resource of the API, such as ``pods`` or ``pods/status``."""
    parts = text.split("/")
    return len(parts) <= _RESOURCE_PARTS and all(map(is_subdomain, parts))


def is_label_key(text: str) -> bool:
    """Say whether a text can be the key of a label."""
    prefix, slash, _ = text.rpartition("/")
    return _LABEL_KEY.fullmatch(text) is not None and (not slash or len(prefix) <= SUBDOMAIN_MAX)


def is_free_label_key(text: str) -> bool:
    """Say whether users may give a label or an annotation of this name: Helm needs some for itself."""
    return is_label_key(text) and not text.startswith(_OF_HELM)


def is_label_value(text: str) -> bool:
    """Say whether a text can be the value of a label."""
    return _LABEL_VALUE.fullmatch(text) is not None


def is_release_name(text: str) -> bool:
    """Say whether Helm takes a text as the name of a release."""
    return len(text) <= RELEASE_MAX and is_subdomain(text)


_SHORTEST_SLIP: Final = 4
"""Of shorter names, many are like another one."""
_ALIKE: Final = 0.6
_MOST_COMPARED: Final = 200


def nearest(name: str, known: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Return the known name that looks most like this one, in capitals or not; ``None`` if none does.

    ``alike`` is from 0 to 1; 1 asks for the same characters. To compare long names takes long: there is none.
    """
    if len(name) > _MOST_COMPARED:
        return None
    names = {each.lower(): each for each in known if len(each) <= _MOST_COMPARED}
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=alike)
    return names[close[0]] if close else None


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """Return the known name of which this is a slip: one letter more, less or other, or two swapped."""
    return next((each for each in known if _is_slip(name.lower(), each.lower())), None)


def _is_slip(one: str, other: str) -> bool:
    if min(len(one), len(other)) < _SHORTEST_SLIP or abs(len(one) - len(other)) > 1:
        return False
    at = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1),
        min(len(one), len(other)),
    )
    ours, theirs = one[at:], other[at:]
    swapped = theirs[1:2] + theirs[:1] + theirs[2:]
    return ours == swapped or ours[1:] == theirs[1:] or ours[1:] == theirs or ours == theirs[1:]


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the question whether the nearest name was meant, or ``otherwise`` if there is none."""
    near = nearest(name, known)
    return otherwise if near is None else f"did you mean {near!r}?"


def listed(items: Sequence[str], most: int) -> str:
    """Return a list for a sentence: the first ``most`` items, and how many more there are."""
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more} more" if more > 0 else "")

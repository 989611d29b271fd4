"""Taking out of errors what they quote: objects and values, in the words of Helm, the API server and Go.

The texts are read from left to right, once, with what is between quotes or brackets as one piece: what was
opened and not closed goes to the end, so a text that was cut shows less and never more.
"""

import re
from collections.abc import Iterator
from typing import Final

HIDDEN: Final = "***"
"""Stands for what was taken out."""

_STRING: Final = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_QUOTED: Final = re.compile(_STRING, re.DOTALL)
_BRACKETS: Final = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)

_EVENT: Final = re.compile(
    # One character that Go's JSON decoder names is not the beginning of anything.
    r"(?P<shown>'(?:[\"{\[\]}]|\\.)'|"
    # The source of a template, and the rule that a value breaks, are the author's words and not values.
    r" at <[^\n]{0,1000}?>(?=:|\Z)|"
    r"(?:pattern|expression|validation is|should match|must match) '[^']{0,200}')|"
    # What follows is the object itself, as a difference or as bytes.
    r"(?P<dump>@@ -[0-9]+,[0-9]+ \+[0-9]|error found in #)|"
    r"(?P<scalar>(?:Invalid|Duplicate|Unsupported) value: (?![\"`{\[]|[\w.*&()]*+[\[{]))|"
    r"(?P<bound>(?:[mM]aximum|[mM]inimum|multipleOf): got )|"
    r"(?P<raw>(?:Invalid|Duplicate|Unsupported) value: (?=`)|\bregexp: [^`\n]{0,100}(?=`)|!!\w+ (?=`))|"
    r"(?P<anchor>unknown anchor (?='))|"
    r"(?P<against>- at '[^'\n]{0,300}': "
    r"(?='(?!(?:allOf|anyOf|oneOf|not)')[^\n]{0,1000}' (?:does not match|is not valid)))|"
    r"(?P<rest>can't iterate over |[nN]on-table value |with non table for \S+ )|"
    r"(?P<number>cannot unmarshal number (?=[-+.0-9eE]+ ))|"
    r"(?P<got>\bgot &(?:value\.valueUnstructured)?(?=\{))|"
    r'(?P<string>")|(?P<group>[\[{])'
)
_SOURCE: Final = re.compile(r" at <[^\n]{0,1000}?>(?=:|\Z)")
_TEMPLATE_BEFORE: Final = ("no template ", "associated with template ")
_TEXT_OF_VALUES: Final = "gotpl"
"""What Helm calls all templates of a chart together."""
_SCALAR: Final = re.compile(r"[^\n]*?(?=: |\]?(?:\n|\Z))")
_BOUND: Final = re.compile(r"[^\s,]+")
_RAW: Final = re.compile(r"`.*?(?:`(?= (?:as|into) )|`(?=: )|`?\Z)", re.DOTALL)
_ANCHOR: Final = re.compile(r"'.*?(?:'(?= referenced)|\Z)", re.DOTALL)
_AGAINST: Final = re.compile(r"'.*?'(?= (?:does not match|is not valid))", re.DOTALL)
_NUMBER: Final = re.compile(r"\S+")

_WORDS_BEFORE_NAMES: Final = (
    r"kind|resources?|group|namespaces?:?|name:|[uU]ser|version|from|webhook|policy|binding|key|field|executing|"
    r"function|chart|releases?|patch|delete|create|get|object|container|account|Not found:|must be set to|"
    r"must equal|current value is|conflicts? with|subresource|manager|Get|Head|Post|Put|Patch|Delete|"
    r"resource \w+|decode|validating|Missing|missing|for"
)
_NAME_BEFORE: Final = re.compile(
    rf'(?:\b(?:{_WORDS_BEFORE_NAMES}) |supported values: (?:"[^"]*", )*)\Z|(?:^|\W)type (?:Name|Kind) \Z'
)
_KIND_BEFORE: Final = re.compile(r"(?:^|[\s:(*])(?:[A-Z][A-Za-z0-9]+|[a-z]+s)(?:\.[a-z0-9.-]+)? \Z")
_STATE_BEHIND: Final = re.compile(
    r" (?:is |in |not |cannot |already |exists|denied|was |has )|: (?:the object|object|StorageError)"
)
_NAME: Final = re.compile(r"[-\w.:/@*()$<> =%,?&;]{1,253}")
_NOT_A_VALUE: Final = '"<secret contents redacted>"'
_CONTEXT: Final = 160
_NEAR: Final = 4096
"""Characters in which the source of a template stands before an error about it."""
_INDEX: Final = re.compile(r"\[[\w.*/ -]*\]")
_KEY: Final = r'\w+=(?:"(?:[^"\\]|\\.)*"|-?[0-9]+|true|false)'
_KEYS: Final = re.compile(rf"\[{_KEY}(?:,{_KEY})*\]")
_KEY_VALUE: Final = re.compile(r'(?<!\bname)(?<!\bprotocol)(?<!\bmountPath)="(?:[^"\\]|\\.)*"')
_BEFORE_KEYS: Final = "duplicate entries for key "
_ADDRESS: Final = re.compile(r"\[[0-9a-f]*:[0-9a-f:.]*\]")
_LIST_OF_ERRORS: Final = re.compile(
    r"\[(?=(?:[\w.]++(?:\[[^\]\n]*+\])?+)++: "
    r"(?:Required|Invalid|Forbidden|Duplicate|Unsupported|Not found|Internal|Too )"
    r"|ValidationError|resource mapping not found|unknown |error |invalid |spec\.)"
)
_TYPE_OR_EMPTY: Final = re.compile(r"\{\s*\}|\[(?:[\w.]+|interface \{\})?\]")
_TYPED: Final = re.compile(r"\{Value:[\w.+-]*\}")
_SHORT: Final = 200
_DOCUMENT: Final = re.compile(r'\\["n]|[{\[]')
_RUN: Final = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
_PART_OF_BASE64: Final = re.compile(r"[A-Za-z0-9+=]{40}")
_HEX: Final = re.compile(r"[0-9a-f]*")
# A template may have read a Secret, and its errors name no kind.
_MAYBE_OF_A_SECRET: Final = re.compile(r"\bsecrets?\b|\bexecuting \"", re.IGNORECASE)

_KNOWN: Final = re.compile(
    r"is invalid: |cannot be handled as a |json: cannot unmarshal |failed to create typed patch object|"
    r"to proper version|illegal base64 data|execution error at \(|parse error at \(|executing \"|"
    r"YAML parse error on |meet the specifications of the schema|no matches for kind|"
    r"Object 'Kind' is missing|"
    r"kind not set|cannot be imported into the current release|already exists|not found|"
    r"[tT]imed out waiting|"
    r"context deadline exceeded|not ready|cannot re-use a name|another operation|cluster unreachable|"
    r"connection refused|connection reset|i/o timeout|no such host|x509: |tls: |missing in charts/|"
    r"Chart\.ya?ml|chart requires kubeVersion|denied (?:the )?request|exceeded quota|"
    r"Too (?:long|many)|too large|"
    r"larger than max|[aA]pply failed with|is immutable|etcdserver: |no deployed releases|"
    r"is forbidden|"
    r"[uU]nauthorized|[cC]onflict|has been modified|quantities must match|field not declared|"
    r"error validating data|could not find the requested resource|BackoffLimitExceeded|DeadlineExceeded|"
    r"failed calling webhook|order in patch list|is being terminated|unable to parse YAML|"
    r"failed to delete release|larger than the maximum file size|Client\.Timeout exceeded|chart\.metadata\."
)


def is_known(text: str) -> bool:
    """Say whether Helm or the API server words its reasons so: then values and words can be distinguished."""
    return _KNOWN.search(text) is not None


def without_contents(text: str) -> str:
    """Return the text for the log: without whole objects, and without values that may be a Secret's."""
    return _cleaned(text, shows_values=_MAYBE_OF_A_SECRET.search(text) is None)


def without_values(text: str) -> str:
    """Return the text for everybody: of what it quotes, only names of objects, kinds and fields."""
    return _cleaned(text, shows_values=False)


def _cleaned(text: str, *, shows_values: bool) -> str:
    shown = "".join(_pieces(text, shows_values=shows_values))
    return _RUN.sub(_without_base64, shown)


def _pieces(text: str, *, shows_values: bool) -> Iterator[str]:
    position = 0
    while (event := _EVENT.search(text, position)) is not None:
        yield text[position : event.start()]
        kind = event.lastgroup
        if kind == "dump":
            yield HIDDEN
            return
        if kind == "string":
            position, shown = _string(text, event.start(), shows_values=shows_values)
        elif kind == "group":
            position, shown = _group(text, event.start())
        elif kind == "got":
            position, shown = _end_of_group(text, event.end()), ""
            yield f"got {_type_of(text[event.end() : position])}"
        else:
            position, shown = _introduced(text, event, shows_values=shows_values)
        yield shown
    yield text[position:]


def _introduced(text: str, event: re.Match[str], *, shows_values: bool) -> tuple[int, str]:
    """Say where a value ends that certain words introduce, and what is shown for it."""
    if event.lastgroup == "shown":
        return event.end(), event.group()
    if event.lastgroup == "rest":
        return len(text), f"{event.group()}{HIDDEN}"
    pattern = _VALUES[event.lastgroup or ""]
    value = pattern.match(text, event.end())
    end = value.end() if value is not None else len(text)
    is_shown = shows_values and event.lastgroup in ("scalar", "bound", "number")
    return end, event.group() + (text[event.end() : end] if is_shown else HIDDEN)


_VALUES: Final = {
    "scalar": _SCALAR,
    "bound": _BOUND,
    "raw": _RAW,
    "anchor": _ANCHOR,
    "against": _AGAINST,
    "number": _NUMBER,
}


def _string(text: str, start: int, *, shows_values: bool) -> tuple[int, str]:
    found = _QUOTED.match(text, start)
    end = found.end() if found is not None else len(text)
    quoted = text[start:end]
    if quoted in ('""', _NOT_A_VALUE):
        return end, quoted
    inner = quoted[1:-1]
    before = text[max(0, start - _CONTEXT) : start]
    is_value = before.endswith("value: ") and not before.endswith("supported value: ")
    if before.endswith(_TEMPLATE_BEFORE):
        return end, quoted if inner == _TEXT_OF_VALUES or _is_of_author(
            quoted, text[max(0, start - _NEAR) : start]
        ) else HIDDEN
    if shows_values:
        is_shown = len(inner) <= _SHORT and _DOCUMENT.search(inner) is None
    else:
        is_shown = not is_value and _is_name(inner, before, text[end : end + 20])
    return end, quoted if is_shown and quoted.endswith('"') else HIDDEN


def _is_of_author(quoted: str, before: str) -> bool:
    """Return whether the source of a template has it: what else is included may come from a value."""
    return any(quoted in source.group() for source in _SOURCE.finditer(before))


def _is_name(inner: str, before: str, behind: str) -> bool:
    if _NAME.fullmatch(inner) is None:
        return False
    if _NAME_BEFORE.search(before) is not None:
        return True
    return _KIND_BEFORE.search(before) is not None and _STATE_BEHIND.match(behind) is not None


def _group(text: str, start: int) -> tuple[int, str]:
    if _LIST_OF_ERRORS.match(text, start) is not None:
        return start + 1, text[start]
    end = _end_of_group(text, start)
    group = text[start:end]
    if _TYPE_OR_EMPTY.fullmatch(group) is not None:
        return end, group
    before = text[max(0, start - len(_BEFORE_KEYS)) : start]
    if before == _BEFORE_KEYS or before[-1:].isalnum() or before[-1:] in ("]", ")"):
        if _INDEX.fullmatch(group) is not None:
            return end, group
        if _KEYS.fullmatch(group) is not None:
            return end, _KEY_VALUE.sub(f"={HIDDEN}", group)
    if _ADDRESS.fullmatch(group) is not None:
        return end, group
    if '"' not in group and _TYPED.fullmatch(group) is None:
        # Go writes values without quotes in this form: a bracket may be a part of one.
        end = max(end, text.rfind("]", start) + 1, text.rfind("}", start) + 1)
    return end, HIDDEN


def _end_of_group(text: str, start: int) -> int:
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        if bracket.group() in ("[", "{"):
            depth += 1
        elif bracket.group() in ("]", "}"):
            depth -= 1
            if depth == 0:
                return bracket.end()
    return len(text)


def _type_of(group: str) -> str:
    """Return what kind a hidden value is: it helps somebody who forgot quotes."""
    inner = group[1:-1].removeprefix("Value:")
    if inner in ("true", "false"):
        return "a boolean"
    if re.fullmatch(r"[-+]?[0-9][0-9.eE+-]*", inner):
        return "a number"
    return {"map": "a map", "[]i": "a list"}.get(inner[:3], "another type")


def _without_base64(run: re.Match[str]) -> str:
    text = run.group()
    if _HEX.fullmatch(text) is not None or _PART_OF_BASE64.search(text) is None:
        return text
    return HIDDEN

"""Rules of schemas in CEL, evaluated by the CEL project's own runtime.

Source: "Validation rules" of the Kubernetes documentation on CustomResourceDefinitions.
:mod:`.schema_rules` makes the values that rules see, and
:mod:`.cel_functions` has the functions that Kubernetes adds to the language.
"""

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from addon_operator.kernel import json_types
from addon_operator.values.schema import cel_functions, schema_rules

if TYPE_CHECKING:
    from cel_expr_python import cel

_VARIABLES: Final = ("self", "oldSelf")
_NO_PROGRAM: Final = re.compile(r"\A\s*+(?://[^\n]*+\s*+)*+\Z")
_FIRST_PROBLEM: Final = re.compile(r"ERROR: <input>:(?P<line>\d+):(?P<column>\d+): (?P<problem>[^\n]*)")
_NOISE: Final = re.compile(r" \(in container '[^']*'\)")
_NO_KEY: Final = "NOT_FOUND: Key not found in map"
_TEXTS: Final = re.compile(
    # A text without an end ends with the expression: it is no expression, and nothing is searched twice.
    r"""[rRbB]{0,2}(?:'{3}.*?(?:'{3}|\Z)|"{3}.*?(?:"{3}|\Z)|'(?:\\.|[^'\\\n])*+'?|"(?:\\.|[^"\\\n])*+"?)|//[^\n]*""",
    re.DOTALL,
)
_ERROR: Final = "ERROR"
"""How the runtime calls what is no value, but why there is none."""
_KINDS: Final = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "a mapping"}
_USES: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)\b(?:\s*\.\s*([A-Za-z_]\w*+)(?!\s*\())?")


class CelEvaluator:
    """Compiles each rule once; implements :class:`.RuleEvaluator`.

    The runtime is loaded with the first rule: most schemas have none, and it takes memory.
    """

    def __init__(self) -> None:
        self._compile = functools.lru_cache(maxsize=None)(self._compiled)

    def check(self, expression: str) -> None:
        """Raise :class:`.RuleError` if the expression is not a rule."""
        self._compile(expression)

    def evaluate(self, expression: str, variables: Mapping[str, json_types.JsonValue]) -> bool:
        """Return the verdict.

        Raises :class:`.RuleError` if the expression gives none over these
        values, which is a :class:`.MissingKeyError` if a key is missing.
        """
        program, keys = self._compile(expression)
        data = {name: _part(value, keys) for name, value in variables.items()}
        try:
            given = program.eval(data=data)
            answer = given.value()
        except (RuntimeError, TypeError, ValueError) as error:
            raise _problem(_first_line(error)) from None
        if not isinstance(answer, bool):
            if given.type().name() == _ERROR:
                raise _problem(str(answer))
            raise schema_rules.NoVerdictError(str(answer), _KINDS.get(type(answer), "another value"))
        return answer

    def _compiled(self, expression: str) -> "tuple[cel.Expression, frozenset[str] | None]":
        from cel_expr_python import cel

        if _NO_PROGRAM.match(expression):
            raise schema_rules.RuleError("it is empty; write an expression over self")
        try:
            program = self._environment.compile(expression)
        except RuntimeError as error:
            raise schema_rules.RuleError(_reason(error)) from None
        if program.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
            kind = program.return_type().name()
            raise schema_rules.RuleError(f"it gives a value of type {kind}; a rule must be true or false")
        return program, used_keys(expression)

    @functools.cached_property
    def _environment(self) -> "cel.Env":
        from cel_expr_python import cel
        from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

        return cel.NewEnv(
            variables=dict.fromkeys(_VARIABLES, cel.Type.DYN),
            extensions=[
                ext_bindings.ExtBindings(),
                ext_encoders.ExtEncoders(),
                ext_math.ExtMath(),
                ext_optional.ExtOptional(),
                ext_strings.ExtStrings(),
            ],
            functions=cel_functions.declarations(),
        )


def used_keys(expression: str) -> frozenset[str] | None:
    """Return the keys of ``self`` and ``oldSelf`` that a rule names; ``None``: it may look at all."""
    uses = _USES.findall(_TEXTS.sub("''", expression))
    return None if "" in uses else frozenset(uses)


def _part(value: json_types.JsonValue, keys: frozenset[str] | None) -> json_types.JsonValue:
    # The runtime converts all that it is given, for each rule anew.
    if keys is None or not isinstance(value, dict):
        return value
    return {key: value[key] for key in keys if key in value}


def _problem(text: str) -> schema_rules.RuleError:
    is_missing = text.startswith(_NO_KEY)
    return schema_rules.MissingKeyError(text) if is_missing else schema_rules.RuleError(text)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _reason(error: Exception) -> str:
    match = _FIRST_PROBLEM.search(str(error))
    if match is None:
        return _first_line(error)
    problem = _NOISE.sub("", match["problem"])
    return f"{problem} (line {match['line']}, character {match['column']} of the rule)"

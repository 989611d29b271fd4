"""The program of the values worker: reads sections of the ConfigMap and checks values, one after the other.

It runs in a process of its own, which can be ended however long a rule or a pattern takes. Requests and
answers are JSON documents. It keeps the schemas that it was given.
"""

import pathlib
import resource
import sys
from typing import Any


class Worker:
    """Answers questions."""

    def __init__(self) -> None:
        from addon_operator.values.schema import cel_rules

        self._evaluator = cel_rules.CelEvaluator()
        self._schemas: dict[str, Any] = {}

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer; every error is an answer, too."""
        try:
            self._learn(question.get("learn", {}), is_chart=question["ask"] == "chart")
            answer: dict[str, Any] = getattr(self, f"_{question['ask']}")(question)
        except MemoryError:
            return {"bound": "memory"}
        except RecursionError:
            return {"bound": "depth"}
        except Exception as error:  # noqa: BLE001 - a defect is reported, without a text that may hold values
            return {"defect": _places(error)}
        return answer

    def _learn(self, definitions: dict[str, Any], *, is_chart: bool) -> None:
        from addon_operator.values.schema import chart_schemas, schemas

        for digest, (definition, source) in definitions.items():
            self._schemas[digest] = (
                chart_schemas.of_definition(definition)
                if is_chart
                else schemas.Schema(definition, source, self._evaluator)
            )

    def _hello(self, _: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _parse(self, question: dict[str, Any]) -> dict[str, Any]:
        from addon_operator.kernel import errors
        from addon_operator.values import inspectors

        try:
            return {"section": inspectors.HERE.parse_section(question["key"], question["text"])}
        except errors.ConfigurationError as error:
            return {"error": str(error)}

    def _config(self, question: dict[str, Any]) -> dict[str, Any]:
        from addon_operator.values import inspectors
        from addon_operator.values.schema import schemas

        config, values = (self._schemas.get(digest) for digest in question["schemas"])
        both = schemas.SectionSchemas(config, values)
        violations = inspectors.HERE.config_violations(**question["of"], section_schemas=both)
        return {"violations": list(map(_written, violations))}

    def _values(self, question: dict[str, Any]) -> dict[str, Any]:
        from addon_operator.values import inspectors

        schema = self._schemas[question["schemas"][0]]
        violations = inspectors.HERE.values_violations(**question["of"], schema=schema)
        return {"violations": list(map(_written, violations))}

    def _chart(self, question: dict[str, Any]) -> dict[str, Any]:
        from addon_operator.values import inspectors

        chart = self._schemas[question["schemas"][0]]
        return {
            "violations": list(map(_written, inspectors.HERE.chart_violations(question["values"], chart)))
        }

    def _health(self, question: dict[str, Any]) -> dict[str, Any]:
        from addon_operator.modules.health import health_rules

        healthy, failed = question["rule"]
        objects = question["objects"]
        return {"judged": [health_rules.judged(healthy, failed, each, self._evaluator) for each in objects]}

    def _jq(self, question: dict[str, Any]) -> dict[str, Any]:
        from addon_operator.hook_contract import jq_programs

        try:
            jq_programs.check_here(question["text"])
        except jq_programs.JqError as error:
            return {"error": str(error)}
        return {}

    def _index(self, question: dict[str, Any]) -> dict[str, Any]:
        from addon_operator.kernel import errors
        from addon_operator.modules import chart_index

        try:
            content = pathlib.Path(question["path"]).read_bytes()
            return {"found": chart_index.find(content, question["name"], question["version"])}
        except errors.ConfigurationError as error:
            return {"error": str(error)}
        except OSError as error:
            return {"error": f"index.yaml cannot be read: {error.strerror}"}

    def _documents(self, question: dict[str, Any]) -> dict[str, Any]:
        import orjson

        from addon_operator.documents import document_stream

        try:
            documents = document_stream.load_stream(question["text"])
        except document_stream.StreamError as error:
            return {"error": [error.index, error.reason]}
        for index, document in enumerate(documents):
            try:
                orjson.dumps(document)
            except orjson.JSONEncodeError as error:
                return {"error": [index, f"the API server cannot read it as JSON: {error}"]}
        return {"documents": documents}


def _written(violation: Any) -> list[Any]:  # noqa: ANN401  # its type is imported late
    return [violation.path, violation.rule, violation.value, violation.schema, violation.keys]


def _places(error: BaseException) -> str:
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(f"{pathlib.Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__} at {' > '.join(frames)}"


def main(descriptor: int, memory_bytes: int) -> None:
    """Serve on the inherited socket, with no more memory than that."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    import orjson

    from addon_operator.process.children import worker_frames

    worker_frames.limit(resource.RLIMIT_DATA, memory_bytes)
    worker = Worker()
    worker_frames.serve(descriptor, lambda body: orjson.dumps(worker.answer(orjson.loads(body))))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

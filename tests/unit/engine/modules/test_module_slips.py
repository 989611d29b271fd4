"""Keys that are probably misspelt are looked for once for each change."""

import pathlib
from collections.abc import Callable
from typing import Any

from msgspec import structs
from typing_extensions import override

from addon_operator.engine.modules import module_slips
from addon_operator.kernel.names import ModuleName, values_key
from addon_operator.modules import model
from addon_operator.values import inspectors, sources, store

WEB = ModuleName("web")


class Worker(inspectors.Inspector):
    """Counts what it is asked; ``is_lost``: answers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.is_lost = False

    @override
    def call(self, function: Callable[..., Any], *arguments: Any, gives: Any = Any) -> Any:
        if self.is_lost:
            raise inspectors.LostError("it took too long")
        self.asked += function.__module__.endswith("chart_slips")
        return function(*arguments)


async def test_slips_are_looked_for_once_for_each_change(tmp_path: pathlib.Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "a.yaml").write_text("{{ .Values.web.colr }}{{ .Values.web.size }}")
    web = model.Module(WEB, 1, tmp_path, has_chart=True)
    worker = Worker()
    files = sources.parse_common_values("web: {color: red}", "values.yaml")
    values = store.ValuesStore([store.ModuleValues(WEB, files)], inspector=worker)
    slips = module_slips.ModuleSlips(values)
    said = ["templates/a.yaml:1 reads .Values.web.colr, which nothing sets; did you mean 'color'?"]
    assert [await slips.of(web), await slips.of(web)] == [said, said]
    assert worker.asked == 1
    values.set_config(sources.ConfigValues({values_key(WEB): {"colr": "blue"}}))
    assert await slips.of(web) == []
    values.set_config(sources.ConfigValues())
    assert (await slips.of(structs.replace(web)), worker.asked) == (said, 3)
    worker.is_lost = True
    assert await slips.of(structs.replace(web)) == [], "what is beyond the worker's bounds has none"

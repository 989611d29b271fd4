"""The global hooks; see docs/how-to/test-a-module.md."""

import uuid

from addon_operator.testing import GlobalHooks, Modules


def test_the_identity_is_written_where_it_outlives_the_operator(global_hooks: GlobalHooks) -> None:
    run = global_hooks.hook("10-cluster-id.py").run()

    assert str(uuid.UUID(run.config_values["global"]["clusterId"]))
    assert global_hooks.hook("10-cluster-id.py").run(values=run.values).config_values == run.config_values


def test_modules_find_the_architecture_in_their_values(global_hooks: GlobalHooks, modules: Modules) -> None:
    architecture = global_hooks.hook("20-architecture.sh").run().values["global"]["discovery"]["architecture"]

    values = modules("010-web").values()
    values["global"]["discovery"] = {"architecture": architecture}
    assert modules("010-web").render(values, hooks=True).all("Deployment")

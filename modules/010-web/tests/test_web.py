"""Tests of the module in Python. The fixtures come with the operator; the import is for editors."""

import pytest

from addon_operator.testing import Module, Snapshot


@pytest.mark.parametrize(("available", "replicas"), [(False, 1), (True, 2)])
def test_high_availability_decides_about_replicas(module: Module, available: bool, replicas: int) -> None:
    run = module.hook("replicas.py").run(values=module.values(global_={"highAvailability": available}))

    assert run.values["web"]["internal"] == {"replicas": replicas}


def test_a_number_of_replicas_wins(module: Module) -> None:
    values = module.values(global_={"highAvailability": True}, web={"replicas": 5})

    assert module.render(values, hooks=True).one("Deployment", "web")["spec"]["replicas"] == 5


def test_titles_and_links_are_escaped(module: Module, snapshot: Snapshot) -> None:
    links = [{"name": "Docs & more", "url": "https://docs.example/?a=1&b=2"}]
    rendered = module.render(module.values(web={"title": "<Team A>", "links": links}), hooks=True)

    snapshot(rendered.one("ConfigMap", "web")["data"]["index.html"])


def test_pods_are_replaced_when_the_page_changes(module: Module) -> None:
    def template(title: str) -> object:
        rendered = module.render(module.values(web={"title": title}), hooks=True)
        return rendered.one("Deployment", "web")["spec"]["template"]

    assert template("Before") != template("After")


def test_the_report_names_the_page(module: Module) -> None:
    run = module.hook("report.sh").run(values=module.values(web={"title": "Team A"}))

    assert "'Team A' is served by the service 'web'" in run.log

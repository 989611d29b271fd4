"""Pulling charts, with scripts that stand in for helm; the real one is in tests/integration."""

import base64
import hashlib
import json
import pathlib
import re

import pytest

from addon_operator.helm import binary, command
from addon_operator.helm.repositories import chart_access, chart_pull
from addon_operator.kernel import json_types
from addon_operator.modules import chart_index, module_config
from tests.support import programs

DIGEST = "sha256:" + "a" * 64
OCI = module_config.ChartReference("oci://registry.example.com/charts", "web", "1.2.3")
HTTP = module_config.ChartReference("https://charts.example.com", "web", "1.2.3")
PULLS = 'while [ "$1" != --destination ]; do shift; done; echo archive > "$2/web-1.2.3.tgz"'
PASSWORD = "canary-password"


def read_index(path: pathlib.Path, name: str, version: str) -> json_types.JsonObject:
    return chart_index.find(path.read_bytes(), name, version)


class World:
    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.calls = root / "calls"
        self.major = 4
        self.access = chart_access.Access()

    def puller(self, body: str, seconds: float = 20) -> chart_pull.ChartPuller:
        script = self.root / "helm"
        script.write_text(f'#!/bin/sh\necho "$@" >> {self.calls}\n{body}\n')
        script.chmod(0o755)
        helm = command.Helm(
            binary.HelmBinary(script, f"v{self.major}.0.0", self.major, 0),
            command.HelmTarget("addons"),
            {"PATH": "/usr/bin:/bin", "HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "here"},
            self.root / "workspace",
            programs.programs(),
            lambda *_: None,
        )
        (self.root / "cas").write_text("SYSTEM")
        environ = {"SSL_CERT_FILE": str(self.root / "cas"), "HTTPS_PROXY": "http://proxy:1"}
        return chart_pull.ChartPuller(helm, self.access, environ, read_index, seconds)

    async def pull(self, body: str, wanted: module_config.ChartReference = OCI) -> str:
        async with self.puller(body).pulled(wanted) as archive:
            return archive.read_text()

    async def error(self, body: str, wanted: module_config.ChartReference = OCI) -> str:
        with pytest.raises(chart_pull.PullError) as caught:
            await self.pull(body, wanted)
        assert list((self.root / "workspace").iterdir()) == []
        return str(caught.value)

    def lets_in(self, host: str) -> None:
        auth = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        path = self.root / "config.json"
        path.write_text(json.dumps({"auths": {host: {"auth": auth}}}))
        self.access = chart_access.Access(path, self.access.ca_file)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


def digest(found: str, **fields: str) -> module_config.ChartReference:
    wanted = {"repository": OCI.repository, "name": "web", "version": "1.2.3"} | fields
    return module_config.ChartReference(**wanted, digest=found)


@pytest.mark.parametrize("stream", [1, 2], ids=["as Helm 4", "as Helm 3"])
async def test_the_digest_that_helm_prints_is_checked(world: World, stream: int) -> None:
    body = f"{PULLS}; echo 'Digest: {DIGEST}' >&{stream}"
    assert await world.pull(body, digest(DIGEST)) == "archive\n"
    said = await world.error(body, digest("sha256:" + "b" * 64))
    assert said == (
        f"chart web 1.2.3 of {OCI.repository} has the digest {DIGEST}, but module.yaml wants "
        f"sha256:{'b' * 64}; make sure that the chart was not replaced, then correct chart.digest"
    )


async def test_helm_finds_nothing_but_what_is_private_to_the_call(world: World) -> None:
    world.lets_in("registry.example.com")
    shows = "env > env; cp $HELM_REGISTRY_CONFIG registry; stat -c %a $HELM_REGISTRY_CONFIG > mode"
    await world.pull(f"(cd {world.root}; {shows}); {PULLS}")
    environ = dict(
        line.split("=", 1) for line in (world.root / "env").read_text().splitlines() if "=" in line
    )
    own = str(world.root / "workspace")
    for name in ("DOCKER_CONFIG", "HELM_CACHE_HOME", "HELM_CONTENT_CACHE", "HELM_REPOSITORY_CACHE"):
        assert environ[name].startswith(own), name
    assert (environ["HTTPS_PROXY"], environ["NO_PROXY"]) == ("http://proxy:1", "here")
    assert (environ["HTTP_PROXY"], environ["http_proxy"]) == ("http://127.0.0.1:0",) * 2
    assert "me:" not in world.calls.read_text()
    assert json.loads((world.root / "registry").read_text())["auths"]
    assert (world.root / "mode").read_text() == "600\n"
    assert list((world.root / "workspace").iterdir()) == []


@pytest.mark.parametrize(
    ("major", "repository", "flag"),
    [
        pytest.param(3, OCI.repository, "--ca-file", id="Helm 3 would fall back to plain HTTP"),
        pytest.param(4, OCI.repository, "", id="Helm 4 does not"),
        pytest.param(4, "oci://localhost:5000/charts", "--plain-http", id="this machine"),
    ],
)
async def test_plain_http_is_only_for_this_machine(
    world: World, major: int, repository: str, flag: str
) -> None:
    world.major = major
    await world.pull(PULLS, digest("", repository=repository))
    said = world.calls.read_text()
    assert [each for each in ("--ca-file", "--plain-http") if each in said] == [flag] * bool(flag)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Error: x: not found", "correct chart.name or chart.version in module.yaml"),
        (
            "Error: failed to fetch http://a/index.yaml : 404 Not Found",
            "has no index.yaml; if it is a registry",
        ),
        ("Error: unexpected status code 401 Unauthorized", "with CHART_CREDENTIALS"),
        ("Error: basic credential not found", "with CHART_CREDENTIALS"),
        ("Error: tls: x509: certificate signed by unknown authority", "with CHART_CA_FILE"),
        ("Error: http: server gave HTTP response to HTTPS client", "serve it by HTTPS"),
        ("Error: proxyconnect tcp: dial tcp 127.0.0.1:0: connect: connection refused", "serve it by HTTPS"),
        ("Error: dial tcp: connection refused", "the operator tries it again"),
        ("", "helm pull failed without a message; check that the repository can be reached"),
    ],
)
async def test_an_error_names_the_chart_and_what_to_do(world: World, said: str, advice: str) -> None:
    wanted = HTTP if "index.yaml" in said else OCI
    text = await world.error(f"echo '{said}' >&2; exit 1", wanted)
    assert text.startswith(f"cannot pull chart web 1.2.3 of {wanted.repository}: ")
    assert advice in text
    assert said.removeprefix("Error: ") in text


@pytest.mark.parametrize(
    ("newest", "before", "told"),
    [
        (
            "echo Pulled: r.example.com/web:2.0.0_b1 >&2",
            "echo Pulled: r.example.com/web:1.1.0",
            "the registry does not have it in version 1.2.3, but in 1.1.0 and 2.0.0+b1; correct ",
        ),
        ("echo Pulled: r/web:1.0.0", "echo Pulled: r/web:1.0.0", "in version 1.2.3, but in 1.0.0; correct"),
        ("echo Pulled: r/web:2.0.0", "exit 1", "in version 1.2.3, but in 2.0.0; correct chart.name or"),
        (
            "echo 'Error: GET \"https://r/v2/web/tags/list\": status code 404: name unknown' >&2; exit 1",
            "exit 9",
            "the registry has no chart 'web' at oci://registry.example.com/charts; correct chart.name or",
        ),
        ("echo 'Error: 403 denied' >&2; exit 1", "exit 9", "r/web:1.2.3: not found; correct chart.name or"),
        ("exec sleep 1000", "exit 9", "r/web:1.2.3: not found; correct chart.name or"),
    ],
    ids=["both", "one", "newer alone", "no chart", "not let in", "it hangs"],
)
async def test_a_version_that_a_registry_does_not_have_is_told_with_those_next_to_it(
    world: World, newest: str, before: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_pull, "_TAGS_SECONDS", 0.05 if "sleep" in newest else 60.0)
    text = await world.error(f"""\
        case "$*" in
        pull*) echo 'Error: r/web:1.2.3: not found' >&2; exit 1;;
        "show chart {OCI.repository}/web --version >=0.0.0-0") {newest};;
        "show chart {OCI.repository}/web --version <1.2.3") {before};;
        esac
    """)
    assert told in text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("lookup ghcr.io on 10.0.0.10:53: no such host", "cannot resolve ghcr.io"),
        ("lookup ghcr.io: server misbehaving", "cannot resolve ghcr.io"),
        ("dial tcp 192.0.2.1:443: connect: connection refused", "192.0.2.1:443 refuses connections"),
        ("dial tcp 192.0.2.1:443: i/o timeout", "192.0.2.1:443 does not answer"),
        ("dial tcp 192.0.2.1:443: connect: network is unreachable", "there is no way to 192.0.2.1:443"),
    ],
)
async def test_a_network_that_fails_is_told_in_one_short_line(world: World, said: str, shown: str) -> None:
    text = await world.error(f"echo 'Error: failed to do request: Get \"https://x/v2/\": {said}' >&2; exit 1")
    assert text == (
        f"cannot pull chart web 1.2.3 of oci://registry.example.com/charts: {shown}; check that the "
        "repository can be reached from here (HTTPS_PROXY, NO_PROXY); the operator tries it again"
    )


async def test_a_helm_that_brings_nothing_is_an_error(world: World) -> None:
    assert "helm pull failed without a message" in await world.error("exit 0")


async def test_a_directory_that_cannot_be_used_is_an_error(world: World) -> None:
    (world.root / "workspace").write_text("a file")
    with pytest.raises(chart_pull.PullError, match="workspace: File exists; check ADDON_OPERATOR_TMP_DIR"):
        await world.pull(PULLS)


async def test_an_error_shows_no_credentials(world: World) -> None:
    world.lets_in("registry.example.com")
    body = f'echo "Error: me:{PASSWORD} Get \\"https://store/blob?sig=canary\\": denied" >&2; exit 1'
    assert "canary" not in await world.error(body)


async def test_a_repository_that_hangs_is_an_error(world: World) -> None:
    with pytest.raises(
        chart_pull.PullError, match=r"did not answer within 0 s; check that the repository can be reached"
    ):
        async with world.puller("exec sleep 60", 0.2).pulled(OCI):
            pass


INDEX = """\
mkdir -p $HELM_REPOSITORY_CACHE
cat > $HELM_REPOSITORY_CACHE/charts-index.yaml <<'END'
entries:
  web:
  - version: 1.2.3
    digest: %s
    urls: [%s]
END
"""
SHA256 = hashlib.sha256(b"archive\n").hexdigest()


def serves(listed: str = SHA256, url: str = "web.tgz") -> str:
    return f'if [ "$1" = repo ]; then\n{INDEX % (listed, url)}else {PULLS}; fi'


async def test_an_archive_must_have_the_digests_of_the_index_and_of_the_module(world: World) -> None:
    where = {"repository": HTTP.repository}
    assert await world.pull(serves(), digest(f"sha256:{SHA256}", **where)) == "archive\n"
    assert "index.yaml says sha256:abc" in await world.error(serves("abc"), HTTP)
    assert f"module.yaml wants {DIGEST}" in await world.error(serves(), digest(DIGEST, **where))


async def test_credentials_of_an_index_are_in_a_private_file(world: World) -> None:
    world.lets_in("charts.example.com")
    keeps = f"cp -p $HELM_REPOSITORY_CONFIG {world.root}/repositories"
    await world.pull(f"{keeps}; {serves()}", HTTP)
    kept = world.root / "repositories"
    (entry,) = json.loads(kept.read_text())["repositories"]
    assert (entry["url"], entry["username"], entry["password"]) == (HTTP.repository, "me", PASSWORD)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in world.calls.read_text()


async def test_an_index_that_leads_to_plain_http_is_refused(world: World) -> None:
    said = await world.error(serves(url="http://elsewhere.example.com/web.tgz"), HTTP)
    assert "index.yaml names 'http://elsewhere.example.com/web.tgz', which is plain HTTP" in said
    assert "have it served by HTTPS" in said
    assert "pull" not in world.calls.read_text()


@pytest.mark.parametrize("url", ["http://127.0.0.1:10255/pods", "https://localhost/web.tgz", "http://[x"])
async def test_an_index_of_somebody_else_leads_to_no_neighbours(world: World, url: str) -> None:
    said = await world.error(serves(url=f"'{url}'"), HTTP)
    assert f"index.yaml names '{url}', which is " in said
    assert "pull" not in world.calls.read_text()


async def test_helm_gets_nothing_of_an_index_but_what_was_checked(world: World) -> None:
    keeps = f"cp $HELM_REPOSITORY_CACHE/charts-index.yaml {world.root}/kept"
    body = f'if [ "$1" = pull ]; then {keeps}; fi; {serves()}'
    await world.pull(body, HTTP)
    kept = json.loads((world.root / "kept").read_text())
    [item] = kept["entries"]["web"]
    assert item.keys() == {"apiVersion", "name", "version", "urls", "digest"}
    assert (item["version"], item["urls"]) == ("1.2.3", ["web.tgz"])


async def test_a_version_that_the_index_does_not_have_is_not_asked_for(world: World) -> None:
    said = await world.error(serves(), digest("", repository=HTTP.repository, version="9.9.9"))
    assert (
        "index.yaml does not have it in version 9.9.9, but in 1.2.3; correct chart.name or chart.version"
        in said
    )
    assert "pull" not in world.calls.read_text()


@pytest.mark.parametrize(
    ("body", "wanted", "what"),
    [
        (f"{PULLS}; echo 'Error: write x: file too large' >&2; exit 1", OCI, "its archive"),
        ("echo 'fatal error: runtime: out of memory' >&2; exit 2", OCI, "its archive"),
        ("echo '	write x-index.yaml: file too large'", HTTP, "the index.yaml of the repository"),
    ],
    ids=["file", "memory", "index"],
)
async def test_what_is_too_large_for_helm_is_named(
    world: World, body: str, wanted: module_config.ChartReference, what: str
) -> None:
    said = await world.error(body, wanted)
    assert said == (
        f"cannot pull chart {wanted}: {what} is too large; it may have 32 MiB: put the unpacked chart into "
        "the module's chart/ instead"
    )


async def test_helm_is_bounded(world: World) -> None:
    said = await world.error(f"sleep 0.1; cat /proc/self/limits > {world.root}/bounds; exit 1")
    limits = (world.root / "bounds").read_text()
    found = [re.search(rf"^Max {what} size +(\d+)", limits, re.MULTILINE) for what in ("file", "data")]
    assert [each and int(each[1]) >> 20 for each in found] == [32, 512], said


@pytest.mark.parametrize("code", [0, 1], ids=["as Helm 3", "as Helm 4"])
async def test_an_index_that_cannot_be_read_is_an_error_in_the_words_of_helm(world: World, code: int) -> None:
    body = (
        "echo 'Hang tight while we grab the latest from your chart repositories...'\n"
        "echo '...Unable to get an update from the \"charts\" chart repository (https://charts.example.com):'\n"
        "echo '	failed to fetch https://charts.example.com/index.yaml : 503 Service Unavailable'\n"
        "echo 'Update Complete. Happy Helming!'; echo 'Error: failed to update the following: [x]' >&2\n"
        f"exit {code}"
    )
    said = await world.error(body, HTTP)
    assert said == (
        "cannot pull chart web 1.2.3 of https://charts.example.com: failed to fetch "
        "https://charts.example.com/index.yaml : 503 Service Unavailable; check that the "
        "repository can be reached from here (HTTPS_PROXY, NO_PROXY); the operator tries it again"
    )

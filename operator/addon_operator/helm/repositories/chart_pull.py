"""Fetches the archive of a chart from its repository with ``helm pull``, and checks its digest.

Nothing of the operator's own configuration of Helm takes part: registries, repositories and caches are
private to one call. Credentials are given in files, never as arguments.
"""

import asyncio
import contextlib
import json
import pathlib
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from addon_operator.aio import threads
from addon_operator.helm import command
from addon_operator.helm.charts import chart_archives
from addon_operator.helm.repositories import chart_access
from addon_operator.kernel import errors, json_types
from addon_operator.modules import chart_index, module_config
from addon_operator.process.children import children
from addon_operator.values import redaction

_MIB: Final = 1024 * 1024
SECONDS: Final = 300.0
"""How long Helm may take for one step of a pull."""
BOUNDS: Final = children.ChildBounds(512 * _MIB, chart_archives.MAX_ARCHIVE)
"""What Helm may take: it reads an index.yaml into twenty times its size, and whatever a registry sends."""
_TAGS_SECONDS: Final = 30.0
"""How long the registry may take to tell which other versions it has."""
_OUTPUT_BYTES: Final = 64 * 1024
_OCI: Final = "oci://"
_SHOWN: Final = 200
_NAME: Final = "charts"
_FIRST_THAT_STAYS_WITH_TLS: Final = 4
"""The first major version of Helm that never falls back to plain HTTP by itself."""
_DIGEST: Final = re.compile(r"^Digest: (?P<digest>sha256:[0-9a-f]{64})\s*$", re.MULTILINE)
_PULLED: Final = re.compile(r"^Pulled: \S+:(?P<tag>[\w.-]{1,128})\s*$", re.MULTILINE)
_TAGS: Final = "/tags/list"
_NOT_FOUND: Final = re.compile(r"\b404\b")
_SPEAKS_TLS: Final = re.compile(r"HTTPS server|malformed HTTP|\bEOF\b|connection reset|broken pipe")
_SPEAKS_PLAIN_HTTP: Final = (
    "server gave HTTP response to HTTPS client|first record does not look like a TLS handshake"
)
_NO_PROXY_AT: Final = "127.0.0.1:0"
"""Where nobody can listen: the proxy for plain HTTP, to which redirects may lead. This machine needs none."""
_QUERY: Final = re.compile(r"(?<=://)(?P<address>[^\s\"?]+)\?[^\s\"]*")
_ERROR: Final = re.compile(r"^(?:Error: |\.\.\.Unable to get an update from .*:$)", re.MULTILINE)
_NOISE: Final = re.compile(r"^(?:Update Complete|Hang tight|Error: failed to update).*$", re.MULTILINE)
_CORRECT: Final = "correct chart.name or chart.version in module.yaml, or chart.repository"
_NO_INDEX: Final = re.compile(r"/index\.yaml\b.*\b404\b")
_ADVICE: Final = (
    (
        re.compile(r"\b40[13]\b|unauthorized|denied|forbidden|basic (?:auth|credential)", re.IGNORECASE),
        "name a Docker configuration that may read it with CHART_CREDENTIALS",
    ),
    (re.compile(r"x509|certificate|CHART_CA_FILE"), "name the CA of the repository with CHART_CA_FILE"),
    (
        re.compile(r"not found|\b404\b|no chart (?:name|version) found", re.IGNORECASE),
        _CORRECT,
    ),
    (
        re.compile(rf"{_SPEAKS_PLAIN_HTTP}|{re.escape(_NO_PROXY_AT)}"),
        "serve it by HTTPS; plain HTTP is only for this machine itself",
    ),
)
_OF_THE_NETWORK: Final = (
    (
        re.compile(
            r"\blookup ([^\s:]+)(?: on [^\s]+)?: (?:no such host|server misbehaving|[^\n]{0,1000}timeout)"
        ),
        "cannot resolve {}",
    ),
    (re.compile(r"dial tcp ([^\s]+): connect: connection refused"), "{} refuses connections"),
    (
        re.compile(r"dial tcp ([^\s]+): (?:connect: )?(?:no route to host|network is unreachable)"),
        "there is no way to {}",
    ),
    (re.compile(r"dial tcp ([^\s]+): (?:i/o timeout|connect: connection timed out)"), "{} does not answer"),
)
"""What Go says, with the name or address in question, and what it means."""
_TOO_LARGE: Final = re.compile(r"file too large|cannot allocate memory|out of memory|SIGXFSZ")
"""How Helm ends that needs more than :data:`BOUNDS`."""
_WHEN_AWAY: Final = (
    "check that the repository can be reached from here (HTTPS_PROXY, NO_PROXY); the operator tries it again"
)


ReadIndex: TypeAlias = Callable[[pathlib.Path, str, str], json_types.JsonObject]
"""Gives what an index.yaml says of a version of a chart, see :func:`.chart_index.find`."""


class PullError(errors.AddonOperatorError):
    """A chart cannot be pulled; the text names repository, chart, version, and what to do."""


class _HelmHome(msgspec.Struct, frozen=True):
    """Where one call of Helm has its files, all of them private."""

    path: pathlib.Path

    @property
    def environ(self) -> dict[str, str]:
        """What Helm would otherwise take from, or leave in, the operator's own places."""
        return {
            "DOCKER_CONFIG": str(self.path),
            "HELM_CACHE_HOME": str(self.path / "cache"),
            "HELM_CONTENT_CACHE": str(self.path / "content"),
            "HELM_REGISTRY_CONFIG": str(self.path / "registry.json"),
            "HELM_REPOSITORY_CONFIG": str(self.path / "repositories.json"),
            "HELM_REPOSITORY_CACHE": str(self.path / "index"),
        }

    @property
    def index(self) -> pathlib.Path:
        return self.path / "index" / f"{_NAME}-index.yaml"

    def write(self, name: str, text: str) -> pathlib.Path:
        """Write a file that nobody else may read."""
        path = self.path / name
        path.touch(mode=0o600)
        path.write_text(text, "utf-8")
        return path

    @property
    def pulled(self) -> pathlib.Path:
        return self.path / "pulled"

    def archive(self) -> pathlib.Path:
        """Return what was pulled; a path without a file if that is nothing."""
        return next(self.pulled.iterdir(), self.pulled / "archive")


class ChartPuller:
    """Runs ``helm pull`` with the settings for repositories."""

    def __init__(
        self,
        helm: command.Helm,
        access: chart_access.Access,
        environ: Mapping[str, str],
        read_index: ReadIndex,
        seconds: float = SECONDS,
    ) -> None:
        """``read_index`` is called in a thread."""
        self._helm = helm
        self._access = access
        self._environ = environ
        self._read_index = read_index
        self._seconds = seconds

    @contextlib.asynccontextmanager
    async def pulled(self, wanted: module_config.ChartReference) -> AsyncIterator[pathlib.Path]:
        """Give the archive of a chart, whose digest is right; it is removed afterwards.

        Raises :class:`PullError`.
        """
        with contextlib.ExitStack() as stack:
            try:
                place = self._place(stack)
                is_oci = wanted.repository.startswith(_OCI)
                await (self._from_registry(wanted, place) if is_oci else self._from_index(wanted, place))
            except errors.ConfigurationError as error:
                raise PullError(f"cannot pull chart {wanted}: {error}") from error
            except OSError as error:
                why = f"{error.filename}: {error.strerror}"
                raise PullError(f"cannot pull chart {wanted}: {why}; check ADDON_OPERATOR_TMP_DIR") from error
            yield place.archive()

    def _place(self, stack: contextlib.ExitStack) -> _HelmHome:
        self._helm.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = tempfile.TemporaryDirectory(
            prefix="pull-", dir=self._helm.workspace, ignore_cleanup_errors=True
        )
        place = _HelmHome(pathlib.Path(stack.enter_context(private)))
        place.pulled.mkdir()
        return place

    async def _from_registry(self, wanted: module_config.ChartReference, place: _HelmHome) -> None:
        if self._access.credentials is not None:
            # Helm's own errors quote a file that is not a Docker configuration.
            self._access.secrets()
            place.write("registry.json", self._access.text())
        arguments = ["pull", f"{wanted.repository}/{wanted.name}", "--version", wanted.version]
        arguments += ["--destination", str(place.pulled)]
        is_here = module_config.is_loopback(wanted.repository)
        flags = ["--plain-http"] if is_here else self._trust(place)
        done = await self._run(wanted, place, [*arguments, *flags])
        if is_here and done.exit_code != 0 and _SPEAKS_TLS.search(_said(done)):
            flags = self._trust(place)
            done = await self._run(wanted, place, [*arguments, *flags])
        if done.exit_code != 0 and _advice(_said(done)) is _CORRECT:
            absent = await self._absent(wanted, place, flags)
            raise _not_there(wanted, absent) if absent else self._error(wanted, _said(done), "its archive")
        self._check(wanted, place, done)
        digest = _DIGEST.search(_said(done))
        _check_digest(wanted, digest["digest"] if digest else "(not printed by Helm)")

    async def _absent(self, wanted: module_config.ChartReference, place: _HelmHome, flags: list[str]) -> str:
        """Say what a registry has in place of a version; empty if it does not tell."""
        newest = await self._newest(wanted, place, ">=0.0.0-0", flags)
        if newest is None:
            return ""
        if not newest:
            return f"the registry has no chart {wanted.name!r} at {wanted.repository}"
        before = await self._newest(wanted, place, f"<{wanted.version}", flags)
        there = " and ".join(dict.fromkeys(filter(None, (before, newest))))
        return f"the registry does not have it in version {wanted.version}, but in {there}"

    async def _newest(
        self, wanted: module_config.ChartReference, place: _HelmHome, versions: str, flags: list[str]
    ) -> str | None:
        """Return the newest of some versions; empty if there is no chart, ``None`` if nobody knows.

        For a range Helm asks the registry for its tags, with all that it needs to be let in.
        """
        arguments = ["show", "chart", f"{wanted.repository}/{wanted.name}", "--version", versions, *flags]
        try:
            done = await self._run(wanted, place, arguments, _TAGS_SECONDS)
        except PullError:
            return None
        if done.exit_code != 0:
            answer = _said(done).partition(_TAGS)[2].partition("\n")[0]
            return "" if _NOT_FOUND.search(answer) else None
        found = _PULLED.search(_said(done))
        return found["tag"].replace("_", "+") if found else None

    async def _from_index(self, wanted: module_config.ChartReference, place: _HelmHome) -> None:
        place.write("repositories.json", json.dumps({"repositories": [self._entry(wanted, place)]}))
        done = await self._run(wanted, place, ["repo", "update", _NAME])
        # Helm 3 leaves the beginning of an index that is too large.
        if not place.index.is_file() or _TOO_LARGE.search(_said(done)):
            raise self._error(wanted, _said(done), "the index.yaml of the repository")
        entry = await threads.run(threads.OUTPUTS, self._entry_of, place.index, wanted)
        _check_addresses(wanted, entry)
        # What was checked is what Helm takes, however it would have read the rest.
        place.index.write_bytes(_index_of(wanted, entry))
        arguments = ["pull", f"{_NAME}/{wanted.name}", "--version", wanted.version]
        arguments += ["--destination", str(place.pulled)]
        self._check(wanted, place, await self._run(wanted, place, arguments))
        digest = await asyncio.to_thread(chart_archives.sha256, place.archive())
        listed = str(entry.get("digest") or "").removeprefix("sha256:")
        if listed and digest != f"sha256:{listed}":
            raise PullError(
                f"chart {wanted} has the digest {digest}, but index.yaml says sha256:{listed}; "
                "the archive is damaged or was replaced: have the repository mended"
            )
        _check_digest(wanted, digest)

    def _entry(self, wanted: module_config.ChartReference, place: _HelmHome) -> dict[str, Any]:
        credentials = self._access.of(wanted.repository)
        entry: dict[str, Any] = {"name": _NAME, "url": wanted.repository}
        if credentials.username:
            entry |= {"username": credentials.username, "password": credentials.password}
        if self._access.ca_file is not None:
            entry["caFile"] = str(self._bundle(place))
        return entry

    def _trust(self, place: _HelmHome) -> list[str]:
        """Return flags; with a file of CAs Helm 3 does not fall back to plain HTTP, which it does else."""
        falls_back = self._helm.binary.major < _FIRST_THAT_STAYS_WITH_TLS
        if self._access.ca_file is None and not falls_back:
            return []
        return ["--ca-file", str(self._bundle(place))]

    def _bundle(self, place: _HelmHome) -> pathlib.Path:
        return place.write("ca.crt", self._access.bundle(self._environ))

    async def _run(
        self,
        wanted: module_config.ChartReference,
        place: _HelmHome,
        arguments: list[str],
        seconds: float = SECONDS,
    ) -> children.ChildResult:
        environ = place.environ | _without_plain_http(self._environ)
        most = min(seconds, self._seconds)
        done = await self._helm.run_apart(arguments, environ, most, _OUTPUT_BYTES, BOUNDS)
        if done.timed_out:
            raise PullError(
                f"cannot pull chart {wanted}: the repository did not answer within {self._seconds:.0f} s; "
                + _WHEN_AWAY
            )
        return done

    def _check(
        self, wanted: module_config.ChartReference, place: _HelmHome, done: children.ChildResult
    ) -> None:
        if done.exit_code != 0 or not place.archive().is_file():
            raise self._error(wanted, _said(done), "its archive")

    def _error(self, wanted: module_config.ChartReference, said: str, what: str) -> PullError:
        if _TOO_LARGE.search(said):
            return PullError(
                f"cannot pull chart {wanted}: {what} is too large; it may have "
                f"{chart_archives.MAX_ARCHIVE // _MIB} MiB: put the unpacked chart into the module's chart/ "
                "instead"
            )
        parts = _ERROR.split(_NOISE.sub("", said))
        text = " ".join(parts[-1].split())[:1000] or "helm pull failed without a message"
        # Addresses of storage behind a registry are signed.
        text = _QUERY.sub(r"\g<address>?…", redaction.redactor(self._access.secrets())(text))
        advice = _advice(text)
        if advice is _WHEN_AWAY:
            text = _plainly(text)
        if advice is _CORRECT:
            advice = _likely_mistake(wanted, text) or advice
        return PullError(f"cannot pull chart {wanted}: {text}; {advice}")

    def _entry_of(self, index: pathlib.Path, wanted: module_config.ChartReference) -> Mapping[str, Any]:
        try:
            entry = self._read_index(index, wanted.name, wanted.version)
        except errors.ConfigurationError as error:
            raise PullError(f"cannot pull chart {wanted}: {error}; have the repository mended") from error
        if (absent := entry.get("absent")) is not None:
            raise _not_there(wanted, str(absent))
        return entry


def _not_there(wanted: module_config.ChartReference, absent: str) -> PullError:
    advice = "" if absent.endswith("?") else _likely_mistake(wanted, absent) or _CORRECT
    return PullError(f"cannot pull chart {wanted}: {absent}" + (f"; {advice}" if advice else ""))


def _check_addresses(wanted: module_config.ChartReference, entry: Mapping[str, Any]) -> None:
    for address in entry["urls"]:
        if problem := chart_index.refused_address(wanted.repository, address):
            raise PullError(
                f"cannot pull chart {wanted}: index.yaml names {address[:_SHOWN]!r}, {problem}; have the "
                "repository mended"
            )


def _index_of(wanted: module_config.ChartReference, entry: Mapping[str, Any]) -> bytes:
    """Write an index with nothing but one version."""
    item = {key: value for key, value in entry.items() if value} | {"apiVersion": "v2", "name": wanted.name}
    return json.dumps({"apiVersion": "v1", "entries": {wanted.name: [item]}}).encode()


def _advice(text: str) -> str:
    """Return what to do about what Helm said."""
    return next((advice for pattern, advice in _ADVICE if pattern.search(text)), _WHEN_AWAY)


def _plainly(text: str) -> str:
    """Return a text of Go about the network in a few words."""
    for pattern, words in _OF_THE_NETWORK:
        if (match := pattern.search(text)) is not None:
            return words.format(match[1])
    return text


def _likely_mistake(wanted: module_config.ChartReference, text: str) -> str:
    """Say which mistake it probably is that nothing is found; empty if nobody knows."""
    if _NO_INDEX.search(text):
        return "chart.repository in module.yaml has no index.yaml; if it is a registry, write oci://"
    if wanted.repository.endswith(f"/{wanted.name}"):
        return "chart.repository ends with the chart's name; probably it must not"
    if wanted.version.startswith("v"):
        return f"correct chart.version in module.yaml; probably it is {wanted.version[1:]}, without the v"
    return ""


def _without_plain_http(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what keeps Helm from following a redirect to plain HTTP elsewhere.

    What ``NO_PROXY`` excepts is excepted from this, too; without a proxy it has no other use.
    """
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy"), f"http://{_NO_PROXY_AT}")
    if environ.get("HTTPS_PROXY") or environ.get("https_proxy"):
        return proxies
    return proxies | dict.fromkeys(("NO_PROXY", "no_proxy"), "")


def _said(done: children.ChildResult) -> str:
    return b"\n".join([done.stdout or b"", done.stderr]).decode(errors="replace")


def _check_digest(wanted: module_config.ChartReference, digest: str) -> None:
    if wanted.digest and digest != wanted.digest:
        raise PullError(
            f"chart {wanted} has the digest {digest}, but module.yaml wants {wanted.digest}; "
            "make sure that the chart was not replaced, then correct chart.digest"
        )

"""Whatever the debug endpoint is asked: an answer that fits, and nothing sensitive unless it is asked for."""

import hypothesis
import structlog
import yarl
from aiohttp import test_utils
from hypothesis import strategies as st

from addon_operator.debug import debug_site
from tests.unit.debug import inspected

SEGMENTS = st.sampled_from(
    [
        "module", "global", "queue", "config", "web", "kube-dns", "list", "values", "patches", "snapshots",
        "render", "main", "resource-monitor", "set", "..", "", "%2e%2e", "%00", "%c3%bc", "x" * 300,
    ]
)  # fmt: skip
ENDINGS = st.sampled_from(["", ".json", ".yaml", ".text", ".xml", "."])
QUERIES = st.sampled_from(["", "?global=true", "?global=maybe", "?diff=1", "?%00=1", "?showSensitive=no"])
METHODS = st.sampled_from(["GET", "GET", "GET", "POST", "PUT", "DELETE"])
REQUESTS = st.tuples(METHODS, st.lists(SEGMENTS, max_size=4), ENDINGS, QUERIES)
BODIES = st.sampled_from(
    [b"", b"name=log.level&value=debug", b"name=x&value=y", b"{}", b"\xff", b"value=debug"]
)
FEW = hypothesis.settings(max_examples=3, suppress_health_check=[hypothesis.HealthCheck.large_base_example])


@FEW
@hypothesis.given(st.lists(st.tuples(REQUESTS, BODIES), min_size=20, max_size=20))
async def test_a_request_of_any_shape_gets_an_answer_that_fits_and_no_secret(
    requests: list[tuple[tuple[str, list[str], str, str], bytes]],
) -> None:
    world = inspected.make()
    world.api.serve(world.engine)
    server = test_utils.TestServer(debug_site.application(world.api, structlog.get_logger()))
    async with test_utils.TestClient(server) as client:
        for (method, segments, ending, query), body in requests:
            url = yarl.URL(str(server.make_url("/")) + "/".join(segments) + ending + query, encoded=True)
            async with client.session.request(method, url, data=body) as answer:
                text = await answer.text()
                assert answer.status in {200, 400, 404, 405}
                assert inspected.SECRET not in text
                assert "Traceback" not in text

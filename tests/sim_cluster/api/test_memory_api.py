"""What the in-memory API has beyond a real one: faults, counts, and loud refusals."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from sim_cluster.api.server import MemoryApi

Json = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


class Client:
    """An HTTP client of one user."""

    def __init__(self, api: MemoryApi, session: aiohttp.ClientSession, token: str) -> None:
        self._api = api
        self._session = session
        self._token = token

    def ask(self, method: str, path: str, body: Json | None = None, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "User-Agent": "test/1"}
        if body is not None:
            headers["Content-Type"] = options.pop("content_type", "application/json")
            options["data"] = json.dumps(body)
        return self._session.request(method, self._api.url + path, headers=headers, **options)

    async def code(self, method: str, path: str, body: Json | None = None, **options: Any) -> int:
        async with self.ask(method, path, body, **options) as reply:
            return int(reply.status)

    async def read(self, method: str, path: str, body: Json | None = None, **options: Any) -> Json:
        async with self.ask(method, path, body, **options) as reply:
            found: Json = await reply.json()
            return found


@pytest.fixture
async def api() -> AsyncIterator[MemoryApi]:
    async with MemoryApi() as running:
        yield running


@pytest.fixture
async def session(api: MemoryApi) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cadata=api.ca_pem)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as opened:
        yield opened


@pytest.fixture
def client(api: MemoryApi, session: aiohttp.ClientSession) -> Client:
    return Client(api, session, api.admin_token)


def config_map(name: str = "c") -> Json:
    return {"metadata": {"name": name}, "data": {"a": "1"}}


async def test_each_server_is_alone() -> None:
    async with MemoryApi() as one, MemoryApi() as other:
        assert one.url != other.url
        assert one.admin_token != other.admin_token


async def test_a_kubeconfig_is_for_its_owner_alone(api: MemoryApi, tmp_path: Path) -> None:
    path = api.write_kubeconfig(tmp_path / "kubeconfig")

    config = yaml.safe_load(path.read_text())
    assert path.stat().st_mode & 0o077 == 0
    assert config["clusters"][0]["cluster"]["server"] == api.url


async def test_a_certificate_of_another_authority_is_not_trusted(api: MemoryApi) -> None:
    async with MemoryApi() as other:
        context = ssl.create_default_context(cadata=other.ca_pem)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as opened:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await opened.get(api.url + "/version")


async def test_plain_http_is_served_on_request() -> None:
    async with (
        MemoryApi(is_secure=False) as api,
        aiohttp.ClientSession() as opened,
        opened.get(api.url + "/readyz") as reply,
    ):
        assert await reply.text() == "ok"


async def test_the_namespaces_of_a_new_cluster_are_there(client: Client) -> None:
    body = await client.read("GET", "/api/v1/namespaces")

    names = {item["metadata"]["name"] for item in body["items"]}
    assert names == {"default", "kube-node-lease", "kube-public", "kube-system"}


async def test_every_namespace_has_an_account(client: Client) -> None:
    await client.code("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})

    path = "/api/v1/namespaces/new/serviceaccounts/default"
    assert await client.code("GET", path) == 200


async def test_the_next_requests_fail_and_then_no_more(api: MemoryApi, client: Client) -> None:
    api.faults.fail(429, retry_after_s=1, times=2, verb="list", resource="configmaps")

    codes = [await client.code("GET", MAPS) for _ in range(3)]

    assert codes == [429, 429, 200]


async def test_a_refusal_says_when_to_come_back(api: MemoryApi, client: Client) -> None:
    api.faults.fail(429, retry_after_s=7)

    async with client.ask("GET", MAPS) as reply:
        assert reply.headers["Retry-After"] == "7"
        assert (await reply.json())["details"]["retryAfterSeconds"] == 7


async def test_a_fault_hits_what_it_is_for(api: MemoryApi, client: Client) -> None:
    api.faults.fail(503, resource="deployments/scale", verb="patch")

    scale = "/apis/apps/v1/namespaces/default/deployments/d/scale"
    assert await client.code("GET", MAPS) == 200
    assert await client.code("GET", scale) == 404
    assert await client.code("PATCH", scale, {}, content_type=MERGE) == 503


async def test_a_fault_can_be_for_one_user(
    api: MemoryApi, client: Client, session: aiohttp.ClientSession
) -> None:
    operator = Client(api, session, api.add_user("operator", groups=("system:masters",)))
    api.faults.fail(500, user="operator")

    assert await client.code("GET", MAPS) == 200
    assert await operator.code("GET", MAPS) == 500


async def test_a_fault_can_be_a_matter_of_chance(api: MemoryApi, client: Client) -> None:
    fault = api.faults.fail(500, probability=0.5)

    codes = [await client.code("GET", MAPS) for _ in range(60)]

    assert set(codes) == {200, 500}
    assert codes.count(500) == fault.struck


async def test_faults_end_when_cleared(api: MemoryApi, client: Client) -> None:
    api.faults.fail(500)
    api.faults.clear()

    assert await client.code("GET", MAPS) == 200


async def test_a_request_hangs_until_the_fault_ends(api: MemoryApi, client: Client) -> None:
    fault = api.faults.hang(resource="configmaps")
    asked = asyncio.create_task(client.code("GET", MAPS))
    done, _ = await asyncio.wait([asked], timeout=0.2)

    api.faults.remove(fault)

    assert done == set()
    assert await asked == 200


async def test_an_answer_comes_late(api: MemoryApi, client: Client) -> None:
    api.faults.delay(5, resource="configmaps")

    with pytest.raises(TimeoutError):
        await client.code("GET", MAPS, timeout=aiohttp.ClientTimeout(total=0.2))


async def test_a_watch_tells_that_it_expired(api: MemoryApi, client: Client) -> None:
    api.faults.expire_watches(times=1)

    async with client.ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1") as reply:
        first = json.loads(await reply.content.readline())

    assert (first["type"], first["object"]["code"]) == ("ERROR", 410)


async def test_open_watches_are_cut(api: MemoryApi, client: Client) -> None:
    async with client.ask("GET", f"{MAPS}?watch=1") as reply:
        cut = api.faults.drop_watches("configmaps")
        with pytest.raises(aiohttp.ClientPayloadError):
            await reply.content.read()

    assert cut == 1


async def test_a_silent_watch_sends_nothing(api: MemoryApi, client: Client) -> None:
    api.faults.silent_watches(resource="configmaps")
    async with client.ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1") as reply:
        await client.code("POST", MAPS, config_map())
        text = await reply.content.read()

    assert text == b""


async def test_requests_are_counted_by_what_they_do(api: MemoryApi, client: Client) -> None:
    api.request_counts.clear()
    await client.code("POST", MAPS, config_map())
    await client.code("PATCH", f"{MAPS}/c", {"data": {"a": "2"}}, content_type=MERGE)
    await client.code("GET", MAPS)

    counts = api.request_counts
    assert counts.count(verb="patch", resource="configmaps", user="admin") == 1
    assert counts.writes() == 2
    assert counts.writes(user_agent="test/") == 2
    assert counts.writes(user_agent="kopf") == 0


@pytest.mark.parametrize("part", ["log", "exec", "attach", "portforward"])
async def test_what_is_missing_is_refused_aloud(client: Client, part: str) -> None:
    body = await client.read("GET", f"/api/v1/namespaces/default/pods/p/{part}")

    assert (body["code"], body["reason"]) == (501, "NotImplemented")
    assert "the in-memory API server does not implement" in body["message"]


async def test_what_is_stored_without_effect_is_warned_of(client: Client) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}

    async with client.ask("POST", "/api/v1/namespaces/default/resourcequotas", quota) as reply:
        assert "does not enforce" in reply.headers["Warning"]


async def test_a_watch_that_fell_too_far_behind_is_expired(api: MemoryApi, client: Client) -> None:
    first = await client.read("GET", MAPS)
    await client.code("POST", MAPS, config_map())
    for index in range(4100):
        key, fields = ("", "configmaps"), dict[str, str]()
        record = api.state.storage.collection(key).get("default", "c")
        assert record is not None
        api.state.storage.write(
            key, {**record.parsed(), "data": {"a": str(index)}}, fields, "MODIFIED"
        )

    version = first["metadata"]["resourceVersion"]
    url = f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}"
    async with client.ask("GET", url) as reply:
        event = json.loads(await reply.content.readline())

    assert event["object"]["reason"] == "Expired"
    assert "too old resource version" in event["object"]["message"]


async def test_no_credentials_are_nobody(api: MemoryApi, session: aiohttp.ClientSession) -> None:
    async with session.get(api.url + MAPS) as reply:
        body = await reply.json()

    assert reply.status == 403
    assert 'User "system:anonymous" cannot list' in body["message"]

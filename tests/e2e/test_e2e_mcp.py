"""`kmem mcp` and `kmem serve` as processes, asked by the official client and by the MCP Inspector."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.clients import installed
from tests.e2e.kmem import PROJECT, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "ada", {"KMEM_EXTRACTOR": "offline"})
    (machine.home / "mycelia" / ".git").mkdir(parents=True)
    yield machine
    if (machine.state / "daemon.sock").exists():
        machine.kmem("down")


def server(machine: Machine) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "kite_memory", "mcp"], env=machine.env(), cwd=machine.home / "mycelia"
    )


async def value_of(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
HOUSES = pytest.mark.parametrize("daemon", [False, True], ids=["without a daemon", "with a daemon"])


@ERAS
@HOUSES
def test_every_tool_answers_in_its_shape(machine: Machine, era: str, daemon: bool) -> None:
    """The client holds each answer against the shape that was declared, and raises where it differs."""
    if daemon:
        assert machine.kmem("up", "--yes", "--no-hooks").code == 0

    async def ask() -> None:
        async with Client(server(machine), mode=era) as client:
            uuid = (await value_of(client, "generate-conversation-id"))["claude_conversation_uuid"]
            record = {"topic": "Tea for the kettle", "summary": "The kettle service brews green tea from now on."}
            decision = {"decision": "Green tea for the kettle service", "reasoning": "black tea stalled its valve"}
            saved = await value_of(
                client,
                "save-conversation",
                claude_conversation_uuid=uuid,
                **record,
                decisions=[decision],
                full_transcript="user: tea?",
            )
            assert saved["saved"] and len(saved["notes"]) == 1
            context = await value_of(client, "get-context", query="which tea for the kettle?")
            assert "black tea stalled its valve" in context["text"]
            written = await value_of(client, "write_memory", key="project.tea", value={"kind": "green"}, tags=["tea"], ttl=3600)
            assert (written["project"], written["version"]) == ("mycelia", 1)
            assert (await value_of(client, "read_memory", key="project.tea"))["value"] == {"kind": "green"}
            assert [each["key"] for each in (await value_of(client, "list_memories", tags=["tea"]))["memories"]] == ["project.tea"]
            state = {"ai_id": "claude", "todos": ["fill the kettle"], "session_id": "s1"}
            await value_of(client, "ai_state_save", **state)
            await value_of(client, "ai_state_transfer", ai_id="claude", from_session="s1", to_session="s2")
            assert (await value_of(client, "ai_state_get", ai_id="claude", session_id="s2"))["transferred_from"] == "s1"
            assert len((await value_of(client, "ai_state_list"))["states"]) == 2
            resumed = await value_of(client, "smart_resume")
            assert "fill the kettle" in resumed["briefing"] and resumed["token_count"] <= 500
            remembered = await value_of(client, "remember", text="The kettle is descaled on Mondays at noon by the night shift.")
            hits = (await value_of(client, "search_notes", query="when is the kettle descaled?"))["hits"]
            assert hits[0]["id"] == remembered["id"]
            assert "night shift" in (await value_of(client, "get_note", note=remembered["id"]))["text"]
            assert "tea?" in (await value_of(client, "get_note", note=uuid, transcript=True))["transcript"]
            await value_of(client, "timeline")
            resources = (await client.list_resources()).resources
            assert any(remembered["id"] in str(resource.uri) for resource in resources)
            await value_of(client, "forget", note=remembered["id"])
            assert (await value_of(client, "delete_memory", key="project.tea"))["deleted"]
            assert not (await value_of(client, "read_memory", key="project.tea"))["found"]

    anyio.run(ask)


def test_all_tools_are_listed_where_that_is_asked_for(machine: Machine) -> None:
    everything = server(machine)
    everything.args = [*everything.args, "--tools", "all"]

    async def listed(started: StdioServerParameters) -> set[str]:
        async with Client(started, mode="legacy") as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    daily, all_of_them = anyio.run(listed, server(machine)), anyio.run(listed, everything)

    assert daily - all_of_them == {"more_tools"} and {"timeline", "delete_memory"} <= all_of_them - daily


@HOUSES
def test_two_servers_on_one_vault_lose_nothing(machine: Machine, daemon: bool) -> None:
    """Both count up one number, each over the version it has read; the later one gets a conflict and tries again."""
    if daemon:
        assert machine.kmem("up", "--yes", "--no-hooks").code == 0
    rounds = 12

    async def count(client: Client) -> int:
        conflicts = 0
        for _ in range(rounds):
            while True:
                read = await value_of(client, "read_memory", key="current.count")
                fields = {"key": "current.count", "value": read.get("value", 0) + 1, "expected_version": read.get("version", 0)}
                written = await client.call_tool("write_memory", fields)
                if not written.is_error:
                    break
                assert written.structured_content["error"]["kind"] == "conflict"
                conflicts += 1
        return conflicts

    async def ask() -> dict[str, Any]:
        async with Client(server(machine)) as one, Client(server(machine)) as other:
            async with anyio.create_task_group() as group:
                group.start_soon(count, one)
                group.start_soon(count, other)
            return await value_of(one, "read_memory", key="current.count")

    read = anyio.run(ask)

    assert (read["value"], read["version"]) == (2 * rounds, 2 * rounds)


@pytest.mark.parametrize("how", ["its input ends", "it is killed", "its agent dies"])
def test_a_server_ends_with_its_agent(machine: Machine, how: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kite_memory", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machine.env(),
        cwd=machine.home,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())

    match how:
        case "its input ends":
            process.stdin.close()
        case "it is killed":
            process.send_signal(signal.SIGTERM)
        case _:
            process.stdout.close()
            process.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n')
            process.stdin.flush()
    code = process.wait(30)
    record = process.stderr.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()

    assert answer["result"]["protocolVersion"] == "2024-11-05"
    assert code == (-signal.SIGTERM if how == "it is killed" else 0)
    assert b"Traceback" not in record


def hear_interrupts() -> None:
    """A shell that runs the tests in its background has them ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(sys.platform == "win32", reason="nobody asks a process to end there")
@pytest.mark.parametrize(("how", "ends"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_server_that_is_asked_to_end_says_no_more(machine: Machine, how: signal.Signals, ends: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kite_memory", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        env=machine.env(),
        cwd=machine.home,
        text=True,
        preexec_fn=hear_interrupts,
    )
    assert process.stderr is not None
    url = next(found[1] for line in process.stderr if (found := re.search(r"listening at (\S+);", line)))
    assert httpx2.get(url).status_code == 401

    process.send_signal(how)
    code = process.wait(30)
    record = process.stderr.read()
    process.stderr.close()

    assert (code, record) == (ends, "")


@contextmanager
def serving(machine: Machine, *arguments: str) -> Iterator[str]:
    """The address it says that it listens at."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kite_memory", "serve", "--port", "0", *arguments],
        stderr=subprocess.PIPE,
        env=machine.env(),
        cwd=machine.home,
        text=True,
    )
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if found := re.search(r"listening at (\S+);", line):
            break
    else:
        raise AssertionError("".join(lines))
    drain = threading.Thread(target=process.stderr.read, daemon=True)
    drain.start()
    try:
        yield found[1]
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
        drain.join(5)
        process.stderr.close()
    assert code in (0, 130)


def test_served_over_http_the_local_token_opens_and_nothing_else(machine: Machine) -> None:
    async def ask(url: str, token: str) -> dict[str, Any]:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}", "kite-project": "mycelia"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await value_of(client, "write_memory", key="project.tea", value="green")
            return await value_of(client, "read_memory", key="project.tea")

    with serving(machine, "--prefix", "random") as url:
        token = (machine.state / "local.token").read_text().strip()
        read = anyio.run(ask, url, token)
        refused = httpx2.post(
            url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"authorization": "Bearer kmem_a.b.0.c"}
        )
        elsewhere = httpx2.post(re.sub(r"(:\d+)/.*", r"\1/mcp", url), headers={"authorization": f"Bearer {token}"})

    assert (read["value"], read["project"]) == ("green", "mycelia")
    assert (refused.status_code, elsewhere.status_code) == (401, 404)
    assert {path.name for path in machine.state.iterdir() if path.stat().st_mode & 0o077} == set()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Signed by itself, for localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def test_another_address_takes_tls_and_a_token_that_was_made_for_it(machine: Machine) -> None:
    cert, key = certificate(machine.home)
    token = machine.kmem("token", "create", "laptop", "--project", "mycelia").out.strip()
    trusting = ssl.create_default_context(cafile=cert)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_memories", "arguments": {}}}
    headers = {"accept": "application/json, text/event-stream"}

    with serving(machine, "--host", "0.0.0.0", "--name", "localhost", "--tls-cert", str(cert), "--tls-key", str(key)) as url:
        at = url.replace("0.0.0.0", "localhost")
        well = httpx2.post(at, json=call, headers={**headers, "authorization": f"Bearer {token}"}, verify=trusting)
        without = httpx2.post(at, json=call, headers=headers, verify=trusting)
        with pytest.raises(httpx2.HTTPError):
            httpx2.post(at.replace("https:", "http:"), json=call, headers=headers)

    assert url.startswith("https://")
    assert well.status_code == 200 and well.json()["result"]["structuredContent"]["memories"] == []
    assert without.status_code == 401
    assert not (machine.state / "local.token").exists()


def inspect(machine: Machine, *arguments: str) -> Any:
    """What the Inspector prints, asked in the project's folder."""
    client = installed("mcp-inspector")
    assert client is not None
    start = [sys.executable, "-m", "kite_memory", "mcp"]
    environment = {**machine.env(), "PYTHONPATH": str(PROJECT)}
    handed = [word for name in ("KMEM_HOME", "PYTHONPATH", "KMEM_EXTRACTOR") for word in ("-e", f"{name}={environment[name]}")]
    done = subprocess.run(
        [client, "--cli", *handed, *start, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(machine.home)},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=machine.home / "mycelia",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


@pytest.mark.skipif(
    installed("mcp-inspector") is None, reason="the MCP Inspector is not installed; `.ci/run` installs it into .clients/"
)
def test_the_inspector_lists_and_calls_our_tools(machine: Machine) -> None:
    tools = inspect(machine, "--method", "tools/list")["tools"]
    called = inspect(
        machine,
        "--method",
        "tools/call",
        "--tool-name",
        "write_memory",
        "--tool-arg",
        "key=project.tea",
        "--tool-arg",
        "value=green",
    )
    resources = inspect(machine, "--method", "resources/list")["resources"]
    prompts = inspect(machine, "--method", "prompts/list")["prompts"]

    assert len(tools) == 13 and {"get_context", "write_memory", "more_tools"} <= {tool["name"] for tool in tools}
    assert called["structuredContent"]["version"] == 1 and not called.get("isError")
    assert [resource["mimeType"] for resource in resources] == ["text/markdown"]
    assert [prompt["name"] for prompt in prompts] == ["resume-work"]

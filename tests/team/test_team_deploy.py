"""The container and compose files of `docs/deploy`: their commands, run here against a real database, do what they promise."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from moto.server import ThreadedMotoServer

from kite_memory.config import check
from tests.e2e.kmem import PROJECT, Machine
from tests.fakes.postgres_server import PostgresServer, eventually

DEPLOY = PROJECT / "docs" / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
SECRETS = {"OWNER_PASSWORD": "one", "KITE_PASSWORD": "two", "OBJECTS_PASSWORD": "three", "SERVER_NAME": "memory.example.org"}


@pytest.fixture
def objects() -> Iterator[str]:
    storage = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    storage.start()
    host, port = storage.get_host_and_port()
    yield f"http://{host}:{port}"
    storage.stop()


def filled_in(value: str) -> str:
    """Return a value of the compose file as compose would fill it in."""
    return re.sub(r"\$\{(\w+):\?\}", lambda found: SECRETS[found[1]], value)


def environment(service: str) -> dict[str, str]:
    return {name: filled_in(str(value)) for name, value in COMPOSE["services"][service]["environment"].items()}


def test_what_the_container_is_built_from_is_there_and_is_all_that_the_wheel_needs() -> None:
    copied = [word for line in CONTAINERFILE.splitlines() if line.startswith("COPY") and "--from" not in line
              for word in shlex.split(line)[1:-1]]  # fmt: skip
    needed = {"pyproject.toml", "README.md", "LICENSE", "constraints.txt", "kite_memory", "prompts", "hooks", "vault_template"}

    assert needed <= set(copied)
    assert [name for name in copied if not (PROJECT / name).exists()] == []
    assert re.search(r"^USER 10001$", CONTAINERFILE, re.MULTILINE)


def test_every_secret_comes_from_outside_and_only_loopback_is_published() -> None:
    text = (DEPLOY / "compose.yaml").read_text()

    assert set(re.findall(r"\$\{(\w+)", text)) == set(SECRETS)
    assert not re.search(r"(?i)password: [^$]", text)
    assert [port for service in COMPOSE["services"].values() for port in service.get("ports", [])] == ["127.0.0.1:8377:8377"]


def test_images_are_named_with_their_registry_and_version() -> None:
    images = {service["image"] for service in COMPOSE["services"].values()} - {"kite-memory:local"}
    base = re.search(r"^ARG PYTHON=(.+)$", CONTAINERFILE, re.MULTILINE)

    assert base is not None
    assert [image for image in (*images, base[1]) if not re.fullmatch(r"[a-z.]+\.(io|org)/[a-z/]+:[\w.-]+", image)] == []


def test_the_configuration_is_one() -> None:
    team = check((DEPLOY / "config.toml").read_bytes(), DEPLOY / "config.toml").team

    assert (team.bucket, team.endpoint) == ("transcripts", "http://objects:9000")


def test_the_services_commands_set_up_a_database_and_a_bucket_and_serve_them(
    tmp_path: Path, server: PostgresServer, objects: str
) -> None:
    machine = Machine(home=tmp_path)
    machine.configure((DEPLOY / "config.toml").read_text().replace("http://objects:9000", objects))
    bucket = COMPOSE["services"]["bucket"]["command"][-1].removeprefix("objects/")
    key, secret = (environment("server")[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    storage = boto3.client("s3", endpoint_url=objects, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret)
    storage.create_bucket(Bucket=bucket)
    url = server.database()
    database = url.rpartition("/test_")[2].partition("?")[0]
    folder = str(server.data.parent)
    roles = {"POSTGRES_USER": "postgres", "POSTGRES_DB": f"test_{database}", "KITE_PASSWORD": "it's two", "PGHOST": folder}
    path = f"{server.programs}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", DEPLOY / "roles.sh"], env={"PATH": path, **roles}, check=True, capture_output=True, timeout=60)

    def here(service: str) -> dict[str, str]:
        """The service's environment, with this test's server in the database's place."""
        set_up = environment(service)
        user = set_up["KMEM_STORE"].partition("//")[2].partition("@")[0].replace("owner", "postgres")
        return {**set_up, "KMEM_STORE": f"postgresql://{user}@/test_{database}?host={folder}"}

    migrated = machine.kmem(*COMPOSE["services"]["migrate"]["command"], extra=here("migrate"))
    token = machine.kmem("token", "create", "ada-laptop", "--person", "ada", "--expires", "1d").out.strip()
    command = [filled_in(word) for word in COMPOSE["services"]["server"]["command"]]
    serving = subprocess.Popen(
        [sys.executable, "-m", "kite_memory", *command, "--port", "0"],
        env=machine.env(here("server")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stderr is not None
        port = next(found[1] for line in serving.stderr if (found := re.search(r":(\d+)/mcp", line)))
        assert eventually(lambda: _healthy(port))
        written = _call(port, token, "write_memory", key="port", value=5432, scope="shared")
        saved = _call(
            port, token, "save_conversation",
            claude_conversation_uuid="5f0e1d2c-0000-4000-8000-000000000001", source="claude_code", topic="deer in the orchard",
            summary="The fence of the orchard is raised to two metres, because deer jump over the old one.",
            full_transcript="tell me about the deer. " * 5_000,
        )  # fmt: skip
    finally:
        serving.terminate()
        serving.wait(30)
        if serving.stderr is not None:
            serving.stderr.close()
    audit = machine.kmem("admin", "audit", "--json", extra=here("server")).json()

    assert "the store is at this version" in migrated.err
    assert not written.get("isError", False)
    assert not saved.get("isError", False), saved
    assert {(line["person"], line["tool"]) for line in audit} == {("ada", "write_memory"), ("ada", "save_conversation")}
    (kept,) = storage.list_objects_v2(Bucket=bucket)["Contents"]
    assert b"team".hex() in kept["Key"]


def _call(port: str, token: str, tool: str, **arguments: object) -> dict[str, Any]:
    call = {"name": tool, "arguments": arguments}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/mcp",
        data=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode(),
        headers={
            "host": "memory.example.org", "authorization": f"Bearer {token}", "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        },
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=30) as answer:
        result: dict[str, Any] = json.loads(answer.read())["result"]
    return result


def _healthy(port: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=3) as answer:
            return bool(json.loads(answer.read()) == {"status": "ok"})
    except OSError:
        return False

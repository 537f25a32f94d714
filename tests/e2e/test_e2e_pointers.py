"""Twenty sessions of the real client: what a title promises is opened by the agent, without anyone being asked."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.kmem import Machine, claude_code
from tests.fakes.anthropic_server import AnthropicServer, Json, anthropic_server, text_message, tool_message

pytestmark = [
    pytest.mark.skipif(claude_code() is None, reason="Claude Code is not installed; `.ci/run` installs it into .clients/"),
    pytest.mark.moonshot,
    pytest.mark.timeout(1_800),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """A note by its first sentence and a detail that only its body has, and a prompt to which it matters."""

    title: str
    detail: str
    prompt: str


MATTERS = (
    Matter(
        title="The invoice exporter writes semicolons, because the accountants open its files in a German Excel.",
        detail="The separator is set in export/dialect.toml.",
        prompt="Add a column with the customer's country to the invoice exporter.",
    ),
    Matter(
        title="Migrations run with lock_timeout 3s, because a waiting ALTER TABLE blocked every reader in May.",
        detail="The wrapper is scripts/migrate_safely.sh.",
        prompt="Write the migration that adds an index to the orders table.",
    ),
    Matter(
        title="The image resizer must not use more than two threads on the build machines.",
        detail="Their quota kills a process at 512 MB.",
        prompt="The image resizer is slow, make it process several pictures at once.",
    ),
    Matter(
        title="Webhook deliveries are retried for 26 hours, since two customers restart their servers only at night.",
        detail="The schedule stands in webhooks/backoff.py.",
        prompt="Change the webhook deliveries so that failed ones are retried less often.",
    ),
    Matter(
        title="The search index is rebuilt into a second folder and swapped by a rename.",
        detail="Readers keep the old one open for 90 seconds.",
        prompt="Why does rebuilding the search index take twice the disk space? Reduce it.",
    ),
    Matter(
        title="Session tokens are signed with Ed25519, because the phone app cannot verify RSA quickly.",
        detail="The public key is served at /keys/current.json.",
        prompt="Extend the session tokens with the user's locale.",
    ),
    Matter(
        title="The weekly report counts a week from Monday in the customer's own time zone.",
        detail="The old UTC weeks live on as report_v1.",
        prompt="The weekly report shows Sunday's sales in the wrong week, please look into it.",
    ),
    Matter(
        title="Uploads go to the bucket directly with a signed URL and never pass through the API.",
        detail="The limit for a file is 4 GB.",
        prompt="Users want to upload videos: extend the uploads.",
    ),
    Matter(
        title="Feature flags are read once per request, never inside a loop.",
        detail="The flag service allows 200 reads a second.",
        prompt="Put the new price calculation behind a feature flag.",
    ),
    Matter(
        title="The mailer sends through the queue mail-slow for newsletters and mail-fast for passwords.",
        detail="A newsletter once delayed a password by 40 minutes.",
        prompt="Let the mailer also send a reminder for unpaid invoices.",
    ),
    Matter(
        title="The nightly backup is restored on the staging host every Sunday as a test.",
        detail="The result is posted into the channel ops-backup.",
        prompt="Move the nightly backup to the new storage.",
    ),
    Matter(
        title="Map tiles are cached by zoom level, because evicting by age threw out the tiles everyone uses.",
        detail="Levels 0 to 9 are never evicted.",
        prompt="The cache of the map tiles is too big, make it smaller.",
    ),
    Matter(
        title="The parser of bank statements accepts Latin-1, because three banks still send it.",
        detail="The banks are listed in statements/banks.yaml.",
        prompt="The parser of bank statements fails on an umlaut, fix it.",
    ),
    Matter(
        title="Currency amounts are integers of the smallest unit, floats are refused at the boundary.",
        detail="The check is money.Amount.parse.",
        prompt="Support amounts in a currency without a smaller unit, such as the yen.",
    ),
    Matter(
        title="The installer is signed on the old Mac in the office, which holds the only certificate.",
        detail="Its disk is encrypted, so it needs a person after a restart.",
        prompt="Automate the build of the Mac installer in CI.",
    ),
    Matter(
        title="The scheduler skips a job that still runs instead of starting a second one.",
        detail="Skips are counted as scheduler_skipped_total.",
        prompt="Some jobs of the scheduler seem to be missing, find out why.",
    ),
    Matter(
        title="Old API clients send dates without a time zone, which are read as Europe/Vienna.",
        detail="That ends with API version 9.",
        prompt="Validate the dates that API clients send more strictly.",
    ),
    Matter(
        title="The dashboard polls every 15 seconds, because the proxy cuts websockets after a minute.",
        detail="The proxy belongs to the hosting company.",
        prompt="Make the dashboard update live with websockets.",
    ),
    Matter(
        title="Geocoding results may be stored for 30 days only, by the provider's terms.",
        detail="The job purge_geocodes deletes them at night.",
        prompt="Cache the geocoding results so that we pay less.",
    ),
    Matter(
        title="The test database is seeded from fixtures/seed.sql, never from a dump of production.",
        detail="The data protection officer checks that twice a year.",
        prompt="The tests need a bigger test database, how do we get one?",
    ),
)
UNRELATED = ("Write a haiku about the sea in autumn.", "What is the capital of Mongolia?", "Translate 'good morning' into Finnish.")

_LINE = re.compile(r"- ([0-9A-Z]{6}) ([^\n\\]+)")


def words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", text.lower())}


def opens(request: Json) -> Json:
    """A fixed rule in the place of a model: open the three titles that share most words with the prompt."""
    encoded = json.dumps(request["messages"])
    prompts = [each for each in (*(matter.prompt for matter in MATTERS), *UNRELATED) if json.dumps(each)[1:-1] in encoded]
    if not request.get("tools") or "tool_result" in encoded or not prompts:
        return text_message("Understood.")
    shared = {called: len(words(title) & words(prompts[-1])) for called, title in _LINE.findall(encoded)}
    best = [called for called in sorted(shared, key=lambda called: -shared[called])[:3] if shared[called]]
    if not best:
        return text_message("Understood.")
    return tool_message("Bash", {"command": f"kmem show {' '.join(best)}", "description": "Open notes"})


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server(opens) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path, server: AnthropicServer) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home")
    machine.environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy", "KMEM_EXTRACTOR": "offline"}
    (machine.home / ".claude").mkdir()
    assert machine.kmem("up", "--yes").code == 0
    machine.shell("kmem --version")  # puts it where the agent finds it
    yield machine
    machine.kmem("down")


def test_what_is_pointed_at_is_opened_and_arrives(machine: Machine, server: AnthropicServer) -> None:
    project = machine.home / "mycelia"
    project.mkdir()
    for matter in MATTERS:
        assert machine.kmem("remember", f"{matter.title}\n\n{matter.detail}", cwd=project).code == 0

    arrived, refused = [], []
    for matter in MATTERS:
        ran = machine.claude(matter.prompt, cwd=project, asking=True)
        assert ran.code == 0, ran.err + ran.out
        refused += json.loads(ran.out).get("permission_denials", [])
        asked = [json.dumps(each["messages"]) for each in server.requests if matter.prompt in json.dumps(each["messages"])]
        if any(matter.detail in text for text in asked):
            arrived.append(matter)
    for prompt in UNRELATED:
        machine.claude(prompt, cwd=project, asking=True)

    assert refused == []
    assert [matter.title for matter in MATTERS if matter not in arrived] == []
    logged = {
        each["prompt"]: each
        for each in machine.kmem("why", "--silent", "--last", "60", "--json").json()["prompts"]
        if each["moment"] == "prompt"
    }
    assert [logged[prompt]["notes"] for prompt in UNRELATED] == [[]] * len(UNRELATED)

"""The `claude` command: how it is called, how it may end, and that nothing of it stays behind."""

import itertools
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from kite_memory.distill import claude_cli
from kite_memory.distill.claude_cli import ClaudeCliBackend
from kite_memory.distill.extractor import Answer, Busy, Misconfigured, Outcome, Prices, Refused, Usage, load_prompt
from kite_memory.distill.model_extractor import ModelExtractor
from kite_memory.extensions.contract.extractor_contract import about_the_queue, answer, chunk, item, plain_item, stretches
from kite_memory.wiring.models import RedactingBackend
from tests.e2e.kmem import claude_code
from tests.fakes.anthropic_server import anthropic_server, tool_message, wait_for
from tests.fakes.claude_command import ClaudeCommand, claude_command, saying

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line")

ROOT = Path(__file__).parents[2]
PROMPT = load_prompt([ROOT / "prompts"])
GOOD = answer(item())


def extractor_with(command: ClaudeCommand, timeout: float = 60.0, environment: Mapping[str, str] | None = None) -> ModelExtractor:
    backend = ClaudeCliBackend(
        folder=command.folder / "ours",
        prices=Prices(dollars_in=1.0, dollars_out=5.0),
        environment=command.environment | dict(environment or {}),
    )
    return ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=timeout)


def ending(folder: Path, body: str, timeout: float = 60.0) -> Outcome:
    return extractor_with(claude_command(folder, body), timeout).extract(about_the_queue())


def is_running(pid: int) -> bool:
    """A killed process whose parent has not looked yet does not run any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_it_is_called_without_tools_hooks_servers_or_a_trace(tmp_path: Path) -> None:
    command = claude_command(tmp_path, saying(GOOD))

    extractor_with(command).extract(about_the_queue())

    argv = command.called_with()["argv"]
    options = dict(itertools.pairwise(argv))
    assert {"--print", "--no-session-persistence", "--strict-mcp-config"} <= set(argv)
    assert options["--tools"] == ""
    assert options["--model"] == "haiku"
    assert options["--output-format"] == "json"
    assert json.loads(options["--settings"]) == {"disableAllHooks": True}
    assert json.loads(options["--json-schema"]) == PROMPT.schema
    assert options["--system-prompt"] == PROMPT.system


def test_its_prompt_comes_on_standard_input_and_carries_our_mark(tmp_path: Path) -> None:
    command = claude_command(tmp_path, saying(GOOD))

    extractor_with(command).extract(about_the_queue())

    said = command.called_with()["stdin"]
    assert said.startswith("kite-memory:extract\n<transcript ")
    assert "PostgreSQL" in said
    assert not any("PostgreSQL" in argument for argument in command.called_with()["argv"])


def test_it_runs_in_a_folder_of_ours_that_only_we_may_enter(tmp_path: Path) -> None:
    command = claude_command(tmp_path, saying(GOOD))

    extractor_with(command).extract(about_the_queue())

    ours = tmp_path / "ours"
    assert Path(command.called_with()["cwd"]).samefile(ours)
    assert ours.stat().st_mode & 0o777 == 0o700
    assert list(ours.iterdir()) == []


def test_its_environment_says_who_calls_and_leads_to_no_hook_of_ours(tmp_path: Path) -> None:
    command = claude_command(tmp_path, saying(GOOD))
    around = {
        "KMEM_HOME": "/x",
        "KITE_MEMORY_SOCKET": "/x/daemon.sock",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SSE_PORT": "1",
        "CLAUDE_CONFIG_DIR": "/y",
    }

    extractor_with(command, environment=around).extract(about_the_queue())

    environment = command.called_with()["env"]
    assert environment["KITE_MEMORY_EXTRACTOR"] == "1"
    assert environment["CLAUDE_CONFIG_DIR"] == "/y"
    assert not {"KMEM_HOME", "KITE_MEMORY_SOCKET", "CLAUDECODE", "CLAUDE_CODE_SSE_PORT"} & set(environment)


def test_what_it_says_it_cost_is_counted(tmp_path: Path) -> None:
    outcome = ending(
        tmp_path, saying(GOOD, total_cost_usd=0.0123, usage={"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7})
    )

    assert isinstance(outcome, Answer)
    assert outcome.usage == Usage(tokens_in=100, tokens_out=7, dollars=0.0123)


@pytest.mark.parametrize("cost", [None, -1, "free", float("inf"), True])
def test_a_cost_that_makes_no_sense_is_reckoned_from_the_tokens(tmp_path: Path, cost: object) -> None:
    body = saying(GOOD, usage={"input_tokens": 1_000_000, "output_tokens": 0})
    outcome = ending(tmp_path, body.replace('"total_cost_usd": 0.01', f'"total_cost_usd": {json.dumps(cost)}'))

    assert isinstance(outcome, Answer)
    assert outcome.usage.dollars == 1.0


@pytest.mark.parametrize("text", [json.dumps(GOOD), f"```json\n{json.dumps(GOOD)}\n```", f"Here: {json.dumps(GOOD)}"])
def test_an_answer_in_its_text_is_read_as_well(tmp_path: Path, text: str) -> None:
    outcome = ending(tmp_path, saying(text))

    assert isinstance(outcome, Answer)
    assert len(outcome.record.items()) == 1


ENDINGS = {
    "prose": (saying("I am sorry, Dave."), Refused),
    "never in form": (saying("", is_error=True, subtype="error_max_structured_output_retries", code=1), Refused),
    "declined": (saying("API Error: cannot help with this.", is_error=True, stop_reason="refusal", code=1), Refused),
    "too long": (saying("Prompt is too long · the request is 300000 tokens", is_error=True, api_error_status=400, code=1), Refused),
    "cut": (saying("API Error: response exceeded the 8000 output token maximum", is_error=True, code=1), Refused),
    "not logged in": (saying("Invalid API key · Please run /login", is_error=True, code=1), Misconfigured),
    "401": (saying("Failed to authenticate", is_error=True, api_error_status=401, code=1), Misconfigured),
    "404": (saying("There's an issue with the selected model", is_error=True, api_error_status=404, code=1), Misconfigured),
    "no credit": (saying("Credit balance is too low", is_error=True, api_error_status=400, code=1), Misconfigured),
    "old": ("sys.stderr.write(\"error: unknown option '--json-schema'\"); sys.exit(1)", Misconfigured),
    "429": (saying("API Error: Request rejected (429)", is_error=True, api_error_status=429, code=1), Busy),
    "529": (saying("API Error: 529 Overloaded", is_error=True, api_error_status=529, code=1), Busy),
    "nothing": ("", Busy),
    "garbage": ("print('no json')", Busy),
    "a list": ("print('[]')", Busy),
    "deep nesting": ("print('[' * 100_000)", Busy),
    "a crash": ("raise SystemError('boom')", Busy),
    "killed": ("import signal; os.kill(os.getpid(), signal.SIGKILL)", Busy),
    "bytes that are no text": ("sys.stdout.buffer.write(b'\\xff\\xfe' * 99)", Busy),
    "more than anyone can read": ("print('x' * 9_000_000)", Refused),
}


@pytest.mark.parametrize(("body", "kind"), ENDINGS.values(), ids=ENDINGS.keys())
def test_every_ending_is_a_value(tmp_path: Path, body: str, kind: type[Outcome]) -> None:
    outcome = ending(tmp_path, body)

    assert isinstance(outcome, kind)


def test_a_plan_that_is_used_up_is_asked_again_in_an_hour(tmp_path: Path) -> None:
    outcome = ending(tmp_path, saying("You've hit your session limit · resets 3am", is_error=True, api_error_status=429, code=1))

    assert isinstance(outcome, Busy)
    assert outcome.retry_after == 3_600.0


def test_a_command_that_is_not_there_is_said(tmp_path: Path) -> None:
    command = ClaudeCommand(folder=tmp_path)

    outcome = extractor_with(command).extract(about_the_queue())

    assert isinstance(outcome, Misconfigured)
    assert "no `claude` command" in outcome.reason


def test_a_command_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    script = tmp_path / "claude"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o700)

    outcome = extractor_with(ClaudeCommand(folder=tmp_path)).extract(about_the_queue())

    assert isinstance(outcome, Misconfigured)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    command = claude_command(tmp_path, saying(GOOD))
    (tmp_path / "ours").write_text("in the way")

    assert isinstance(extractor_with(command).extract(about_the_queue()), Misconfigured)


def test_a_chunk_in_which_nothing_is_said_starts_no_process(tmp_path: Path) -> None:
    command = claude_command(tmp_path, saying(GOOD))

    extractor_with(command).extract(chunk())

    assert not command.was_called


CHILDREN = """
import subprocess, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open("child", "w") as note: note.write(str(child.pid))
"""


def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    command = claude_command(tmp_path, CHILDREN + "time.sleep(600)")

    outcome = extractor_with(command, timeout=2.0).extract(about_the_queue())

    assert isinstance(outcome, Busy)
    pids = [command.called_with()["pid"], int((tmp_path / "ours" / "child").read_text())]
    assert wait_for(lambda: not any(map(is_running, pids)))


def test_a_child_that_outlives_the_call_is_killed_and_does_not_hold_it_up(tmp_path: Path) -> None:
    command = claude_command(tmp_path, CHILDREN + saying(GOOD))

    outcome = extractor_with(command).extract(about_the_queue())

    assert isinstance(outcome, Answer)
    child = int((tmp_path / "ours" / "child").read_text())
    assert wait_for(lambda: not is_running(child))


def test_a_child_that_left_the_group_does_not_hold_up_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_cli, "_TO_READ_THE_REST", 0.5)
    apart = CHILDREN.replace("])", "], start_new_session=True)", 1)
    command = claude_command(tmp_path, apart + saying(GOOD))

    outcome = extractor_with(command).extract(about_the_queue())

    child = int((tmp_path / "ours" / "child").read_text())
    os.kill(child, 9)
    assert outcome == Busy(reason="a process that the command line started does not end", made="perhaps")


def test_it_dies_with_us_even_if_we_are_killed(tmp_path: Path) -> None:
    command = claude_command(tmp_path, CHILDREN + "time.sleep(600)")
    daemon = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(f"""
                from pathlib import Path
                from tests.distill.test_distill_claude_cli import extractor_with
                from tests.fakes.claude_command import ClaudeCommand
                from kite_memory.extensions.contract.extractor_contract import about_the_queue
                extractor_with(ClaudeCommand(folder=Path({str(tmp_path)!r}))).extract(about_the_queue())
            """),
        ],
        cwd=ROOT,
        env=dict(os.environ),
    )
    child = tmp_path / "ours" / "child"
    assert wait_for(lambda: child.exists() and child.read_text() != "")
    pids = [command.called_with()["pid"], int(child.read_text())]

    daemon.kill()
    daemon.wait()

    assert wait_for(lambda: not any(map(is_running, pids)))


def test_no_descriptor_and_no_process_is_left_behind(tmp_path: Path) -> None:
    extractor = extractor_with(claude_command(tmp_path, saying(GOOD)))
    extractor.extract(about_the_queue())
    before = len(list(Path("/dev/fd").iterdir()))

    for _ in range(3):
        extractor.extract(about_the_queue())

    assert len(list(Path("/dev/fd").iterdir())) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_the_version_follows_model_and_prompt(tmp_path: Path) -> None:
    extractor = extractor_with(ClaudeCommand(folder=tmp_path))

    assert extractor.version == f"claude-cli:haiku:{PROMPT.version}"


@pytest.mark.skipif(claude_code() is None, reason="Claude Code is not installed; `.ci/run` installs it into .clients/")
def test_the_real_client_answers_and_leaves_no_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "CLAUDE.md").write_text("Always speak like a pirate.")
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hook-ran"}]}
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [hook], "SessionStart": [hook]}}))

    with anthropic_server(lambda asked: tool_message("StructuredOutput", stretches(A=[plain_item()]))) as server:
        backend = ClaudeCliBackend(
            folder=tmp_path / "ours",
            prices=Prices(dollars_in=1.0, dollars_out=5.0),
            executable=str(claude_code()),
            environment={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "ANTHROPIC_BASE_URL": server.url,
                "ANTHROPIC_API_KEY": "dummy",
                "IS_SANDBOX": "1",
            },
        )
        outcome = ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=240.0).extract(about_the_queue())

    assert isinstance(outcome, Answer)
    assert len(outcome.record.items()) == 1
    (asked,) = server.requests
    assert {tool["name"] for tool in asked["tools"]} <= {"StructuredOutput", "DeferredToolPlaceholder"}
    assert "pirate" not in json.dumps(asked)
    assert not (tmp_path / "hook-ran").exists()
    assert list(home.rglob("*.jsonl")) == []

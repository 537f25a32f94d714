"""The shapes of ``--json`` that scripts may rely on; each may carry more than is listed here."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kite_memory.cli.everyday import leave_transcripts
from tests.cli.prepared import prepared_home
from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine
from tests.fakes.work import leave_work

Number = (int, float)

NOTE = {"id": str, "path": str, "kind": str, "title": str, "project": str, "created": str, "status": str, "evidence": [str]}
HIT = {**NOTE, "score": Number, "snippet": str, "why": str}

SEARCH = {
    "query": str,
    "mode": str,
    "took_ms": Number,
    "hits": [{**HIT, "became": [str]}],
    "events": [{"id": str, "session": str, "type": str, "at": str, "snippet": str, "where": str, "became": [str]}],
    "problems": [str],
}
RECALL = {
    "silent": bool,
    "reason": str,
    "took_ms": Number,
    "block": str,
    "notes": [HIT],
    "for_the_judge": int,
    "problems": [str],
}
SURROUNDINGS = {"exchange": str, "prompts": [str], "files": [str], "commands": [str], "errors": [str], "position": int}
EXPLAINED = {
    **RECALL,
    "threshold": Number,
    "candidates": [HIT],
    "explained": {
        "query": {"prompt": str, "surroundings": SURROUNDINGS},
        "candidates": [{"id": str, "figures": {str: Number}, "parts": {str: Number}}],
    },
}
COUNT = {"shown": int, "used": int, "ignored": int, "unknown": int, "open": int}
HELPING = {
    **COUNT,
    "verdict": str,
    "problem": str,
    "weeks": [{**COUNT, "week": str, "from": str, "prompts": int, "silent": int, "by_moment": {str: COUNT}}],
    "most_ignored": [{"id": str, "path": str, "title": str, "shown": int, "used": int, "ignored": int}],
}
STATUS = {
    "daemon": {"running": bool, "pid": (int, type(None)), "since": str, "rss_mb": Number, "held_by": (int, type(None))},
    "sources": [
        {
            "provider": str,
            "there": bool,
            "found": int,
            "more": bool,
            "read": int,
            "skipped": int,
            "sessions": int,
            "events": int,
            "problems": int,
            "behind_bytes": int,
        }
    ],
    "notes": {"total": int, "by_kind": {str: int}, "proposed": int},
    "helping": HELPING,
    "index": {"rows": int, "stale": int, "embedder": str},
    "extractor": {
        "name": str,
        "calls_today": int,
        "tokens_in": int,
        "tokens_out": int,
        "cost_usd": Number,
        "budget_usd": Number,
        "backlog_chunks": int,
        "chunks_in_batches": int,
        "open_sessions": int,
        "passed_over_sessions": int,
        "refused_chunks": int,
        "refused_items": {str: int},
        "set_aside": {str: int},
        "waiting_for": str,
        "waiting_until": (int, float, type(None)),
        "hint": str,
    },
    "problems": [{"reason": str, "count": int, "where": str}],
    "last_notes": [NOTE],
}
EVENT = {"id": str, "session": str, "at": str, "role": str, "type": str, "text": str, "where": str}
EVIDENCE = {**NOTE, "evidence": [{"reference": str, "became": [str], "events": [EVENT]}], "became": [str]}
PROMPTS = {
    "prompts": [
        {
            "at": str,
            "moment": str,
            "session": str,
            "project": str,
            "prompt": str,
            "reason": str,
            "notes": [{"id": str, "path": str, "title": str, "score": Number, "outcome": str, "because": str}],
        }
    ]
}
GROUND = {"reference": str, "at": str, "type": str, "text": str, "where": str, "others": [str], "lets_go": bool, "blank": bool}
FORGOTTEN = {"notes": [{"id": str, "path": str, "title": str, "trash": str}], "evidence": [GROUND]}
FINDINGS = [{"level": str, "what": str, "hint": str}]
HOOKS = [{"agent": str, "settings": str, "hooks": [{"event": str, "command": str}], "missing": [str], "disabled": bool}]
CONFIG = {"file": str, "state": str, "vault": str, "claude_root": str, "extractor": {"name": str}, "judge": str}
KEYS = [{"name": str, "place": str, "variable": str}]

SESSION = {
    **dict.fromkeys(("id", "provider", "project", "cwd", "branch", "started", "parent", "title"), str),
}
OVERVIEW = {**SESSION, "last": str, "events": int, "prompts": int, "errors": int, "tests": int, "failed_tests": int, "opening": str}
TIMELINE = {
    "session": SESSION,
    "events": [
        {
            **dict.fromkeys(("id", "session", "at", "role", "type", "text", "tool", "command", "path", "status"), str),
            **dict.fromkeys(("parent", "call", "reference", "where"), str),
            "ordinal": int,
        }
    ],
    "edges": [{"kind": str, "from": str, "to": str}],
    "notes": [{"id": str, "path": str, "kind": str, "title": str, "evidence": [str]}],
}
CHANGED = {"path": str, "action": str, "at": str, "evidence": str}
RESUME = {
    "session": SESSION,
    "at": str,
    "text": str,
    "tokens": int,
    "lines": [{"part": str, "text": str, "evidence": [str]}],
    "left_out": int,
    "files": [CHANGED],
    "took_ms": Number,
}
HOW = {
    "uses": [{**dict.fromkeys(("what", "last", "outcome", "failure", "evidence"), str), "times": int}],
    "took_ms": Number,
}
FIXED = {"failures": [{**dict.fromkeys(("failure", "last", "command", "evidence"), str), "times": int}], "took_ms": Number}
BLAMED = {
    "changes": [{**dict.fromkeys(("path", "action", "last", "prompt", "evidence"), str), "session": SESSION, "times": int}],
    "took_ms": Number,
}
STABLE = {
    "at": str,
    "command": str,
    "said": str,
    "commit": str,
    "failing": [str],
    "evidence": str,
    "files": [CHANGED],
    "narrow": bool,
    "tests": bool,
}
THREADS = {
    "threads": [
        {
            "project": str,
            "from": str,
            "last": str,
            "sessions": [{**SESSION, "last": str, "prompts": int}],
            "joints": [
                {
                    "from": str,
                    "to": str,
                    "strength": Number,
                    "reasons": [{"tie": str, "what": str, "weight": Number, "sessions": int}],
                }
            ],
        }
    ],
    "considered": int,
    "sessions": int,
    "took_ms": Number,
}
CITATION = {"number": int, "kind": str, "reference": str, "title": str, "at": str}
ASK = {
    "question": str,
    "answer": str,
    "sentences": [{"text": str, "citations": [CITATION]}],
    "citations": [CITATION],
    "by": str,
    "considered": int,
    "dropped": int,
    "problems": [str],
    "took_ms": Number,
}

IMPORTED = {"doing": str, "title": str, "path": str, "because": str, "status": str}

TRACE = {"session": dict, "files": [dict], "events": dict, "parts": [dict]}
_EXCHANGED = {"notes": int, "renamed": int, "gone": int, "events": int, "forgotten": int, "uptake": int}
_MACHINE = {"machine": str, "this": bool, "segments": int, "unread": int, "bytes": int}
SYNC = {
    "target": str,
    "machine": str,
    "key": str,
    "encrypted": bool,
    "others": [str],
    "came": _EXCHANGED,
    "went": _EXCHANGED,
    "copies": [str],
    "trashed": [str],
    "held_back": [str],
    "odd_names": [str],
    "secrets": [{"path": str, "line": int, "kind": str}],
    "problems": [str],
}

NOTHING_FOUND = {"search, nothing found", "ask, nothing known"}
COMMANDS: dict[str, tuple[list[str], Any]] = {
    "search": (["search", "job queue"], SEARCH),
    "search, of events": (["search", "session:d3300000"], SEARCH),
    "search, nothing found": (["search", "zeppelin"], SEARCH),
    "recall": (["recall", "which database should the job queue migration target?"], RECALL),
    "recall, silent": (["recall", "write a haiku about the sea"], RECALL),
    "recall, explained": (["recall", "which database should the job queue migration target?", "--explain"], EXPLAINED),
    "show": (["show", "postgresql"], {**NOTE, "file": str, "text": str, "became": [str]}),
    "remember": (["remember", "The gate code is changed in spring"], {**NOTE, "redacted": bool}),
    "mute": (["mute", "postgresql"], NOTE),
    "why": (["why", "postgresql"], EVIDENCE),
    "why, of prompts": (["why"], PROMPTS),
    "forget": (["forget", "postgresql", "--yes"], FORGOTTEN),
    "forget, tried": (["forget", "postgresql", "--with-evidence", "--dry-run"], {"notes": [dict], "evidence": [GROUND]}),
    "forget, nothing": (["forget", "--matching", "zeppelin"], FORGOTTEN),
    "timeline": (["timeline", "d3300000-0000-4000-8000-000000000001"], TIMELINE),
    "timeline, all sessions": (["timeline"], {"sessions": [OVERVIEW]}),
    "resume": (["resume", "--session", "0b0b"], {**RESUME, "stable": STABLE}),
    "resume, polished": (["resume", "--polish"], {**RESUME, "by": str, "polished": int, "refused": int, "problems": [str]}),
    "resume, never tested": (["resume", "--cwd", "mycelia"], {**RESUME, "stable": type(None)}),
    "threads": (["threads"], THREADS),
    "how": (["how", "pytest"], HOW),
    "fix": (["fix", "the lease is 0"], FIXED),
    "blame": (["blame", "sweeper.py"], BLAMED),
    "trace": (["trace", "d3300000-0000-4000-8000-000000000001"], TRACE),
    "ask": (["ask", "which database does the job queue use?"], ASK),
    "ask, nothing known": (["ask", "who painted the zeppelin?"], ASK),
    "status": (["status"], STATUS),
    "doctor": (["doctor"], FINDINGS),
    "verify": (["verify"], []),
    "synthesize": (["synthesize"], {"path": str, "lines": int, "changed": bool}),
    "import": (["import", "notes"], {"from": str, "actions": [IMPORTED], "passed_over": {str: int}}),
    "consolidate": (
        ["consolidate", "--dry-run"],
        {"steps": [dict], "page": bool, "done": int, "left_alone": [str], "git": str, "weak": [dict]},
    ),
    "undo": (["undo"], {"undone": int, "left_alone": [str], "page": bool, "git": str}),
    "sync": (["sync", "notes"], SYNC),
    "sync, status": (["sync", "--status"], {"target": str, "machine": str, "machines": [_MACHINE], "waiting": int}),
    "review": (["review"], {"notes": [dict], "waiting": int}),
    "review, accepted ones": (["review", "--all"], {"notes": [dict], "left": int}),
    "review, what waits for long": (["review", "--reject-older", "30"], {"done": [dict]}),
    "connect": (
        ["connect"],
        {"agents": [{"agent": str, "installed": bool, "connected": bool, "instructed": bool, "settings": str}]},
    ),
    "token list": (["token", "list"], []),
    "hooks status": (["hooks", "status"], HOOKS),
    "keys list": (["keys", "list"], KEYS),
    "extensions list": (["extensions", "list"], []),
    "config get": (["config", "get", "recall.dial"], {"name": str, "value": str, "description": str}),
    "config show": (["config", "show"], CONFIG),
}


def fits(value: object, shape: Any, at: str = "") -> list[str]:
    """Where ``value`` is not of its shape. A field called ``str`` stands for any."""
    match shape:
        case dict():
            if not isinstance(value, dict):
                return [f"{at} is {value!r}"]
            named = dict.fromkeys(value, shape[str]) if str in shape else shape
            missing = [f"{at}.{name} is missing" for name in named if name not in value]
            return missing + [wrong for name in value if name in named for wrong in fits(value[name], named[name], f"{at}.{name}")]
        case [inner]:
            if not isinstance(value, list):
                return [f"{at} is {value!r}"]
            return [wrong for number, each in enumerate(value) for wrong in fits(each, inner, f"{at}[{number}]")]
        case []:
            return [] if value == [] else [f"{at} is {value!r}"]
        case _:
            kinds = shape if isinstance(shape, tuple) else (shape,)
            return [] if type(value) in kinds else [f"{at} is {value!r}"]


@pytest.fixture(scope="module")
def restored() -> Iterator[Callable[[], Machine]]:
    with prepared_home(work) as restored:
        yield restored


@pytest.fixture
def worked_in(restored: Callable[[], Machine]) -> Machine:
    return restored()


def work(machine: Machine) -> None:
    leave_transcripts(machine.home / ".claude", machine.home / "mycelia")
    leave_work(machine.home / ".claude", machine.home / "orchard")
    (machine.home / "notes").mkdir()
    (machine.home / "notes" / "pruning.md").write_text("Prune in March.\n")
    assert in_this_process(machine, ["backfill"], cwd=machine.home).code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_of_the_shape_that_was_promised(worked_in: Machine, name: str) -> None:
    arguments, shape = COMMANDS[name]

    ran = in_this_process(worked_in, [*arguments, "--json"], cwd=worked_in.home)

    assert ran.code == (1 if name in NOTHING_FOUND else 0), ran.err
    assert fits(ran.json(), shape) == []


def test_a_line_that_a_note_still_rests_on_is_a_failure_in_json_too(worked_in: Machine) -> None:
    tried = in_this_process(worked_in, ["forget", "postgresql", "--dry-run", "--json"], cwd=worked_in.home).json()

    ran = in_this_process(worked_in, ["forget", tried["evidence"][0]["reference"], "--json"], cwd=worked_in.home)

    assert [line["lets_go"] for line in ran.json()["evidence"]] == [False]
    assert ran.code == 1
    assert "still used" in ran.err


def test_every_command_with_json_is_looked_at() -> None:
    from tests.cli.commands import every_command

    with_json = {name for name, command in every_command() if any("--json" in param.opts for param in command.params)}

    in_lines = {"logs"}  # an object a line: `test_cli_logs.py`
    of_a_team = {"admin audit", "admin usage"}  # these need a team's store: `test_cli_admin.py`
    assert with_json - in_lines - of_a_team == {name.partition(",")[0] for name in COMMANDS}


def test_a_daemon_answers_in_the_same_shapes(worked_in: Machine) -> None:
    assert worked_in.kmem("up", "--no-hooks").code == 0
    prompt = "which database should the job queue migration target?"
    worked_in.hook({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt})

    of_history = ("timeline", "timeline, all sessions", "resume", "threads", "ask")
    for name in (
        "search",
        "recall, explained",
        "show",
        "why",
        "why, of prompts",
        *of_history,
        "status",
        "mute",
        "forget",
        "remember",
    ):
        arguments, shape = COMMANDS[name]
        ran = in_this_process(worked_in, [*arguments, "--json"], cwd=worked_in.home)
        assert ran.code == 0, ran.err
        assert fits(ran.json(), shape) == [], name


def test_findings_are_json_too_and_the_exit_code_shows(worked_in: Machine) -> None:
    for path in worked_in.notes():
        path.write_text(path.read_text().replace("…", "") + "\nSee [[nowhere at all]].\n")
    (worked_in.state / "timeline.sqlite").chmod(0o644)

    verified = in_this_process(worked_in, ["verify", "--json"], cwd=worked_in.home)
    examined = in_this_process(worked_in, ["doctor", "--json"], cwd=worked_in.home)

    assert (verified.code, examined.code) == (3, 3)
    assert fits(verified.json(), [{"where": str, "what": str}]) == []
    assert any("nowhere at all" in finding["what"] for finding in verified.json())
    assert {"problem"} <= {finding["level"] for finding in examined.json()}


def test_json_spells_out_what_a_terminal_would_act_upon(machine: Machine) -> None:
    machine.vault.mkdir(parents=True)
    title = "red \x1b[31m bell \x07 back \x9b2J turned \u202e and hidden \u200b"
    Path(machine.vault, "odd.md").write_text(f"The odd orchard note: {title}\n", encoding="utf-8")

    shown = in_this_process(machine, ["show", "odd"], cwd=machine.home)
    result = in_this_process(machine, ["show", "odd", "--json"], cwd=machine.home)
    found = in_this_process(machine, ["search", "odd orchard", "--json"], cwd=machine.home)

    for ran in (shown, result, found):
        assert ran.code == 0, ran.err
        assert all(char.isprintable() or char == "\n" for char in ran.out)
    assert result.json()["path"] == "odd.md"

"""Back end for Claude through the person's own `claude` command and plan: one process for each call, which leaves no trace.

Its output must never be read as a session. Four measures ensure that, each sufficient alone: nothing is persisted, hooks are
off, it runs in a private folder, and its prompt carries our mark.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from kite_memory.distill import guard
from kite_memory.distill.extractor import (
    MARK,
    Busy,
    Ending,
    Inquiry,
    Misconfigured,
    Prices,
    RedactedInquiry,
    Refused,
    Reply,
    Usage,
    tokens_at_most,
)
from kite_memory.distill.transport import shortened_error

_LARGEST_OUTPUT = 4_000_000
_TO_READ_THE_REST = 5.0
"""Seconds in which what is left in the pipes is read once all processes of the group have ended."""
_AN_HOUR = 3_600.0
_OURS = ("KMEM_", "KITE_", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION")
"""Variables that let our hook find its daemon, or make the client act as a child of a running session."""


_LEAST_TOKENS = 1_000
"""The client answers through a tool call, with some text around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCliBackend:
    """Back end for the `claude` command. ``folder`` is private to it and created if needed. ``environment`` is the process's own;
    only variables that point to our hook are left out.

    A plan's calls cost nothing extra, yet they are counted at list prices, so that the daily budget protects the plan too.
    """

    folder: Path
    prices: Prices
    environment: Mapping[str, str] = field(repr=False)
    executable: str = "claude"
    model: str = "haiku"

    @property
    def name(self) -> str:
        return "claude-cli"

    def estimate(self, inquiry: Inquiry) -> Usage:
        """Estimate the cost, including a page that the client adds to our prompt."""
        fixed = inquiry.system + json.dumps(inquiry.schema)
        asked = tokens_at_most(fixed) + tokens_at_most(inquiry.user) + 4_000
        return self.prices.of(fresh=0, written=asked, read=0, out=_tokens(inquiry))

    def ask(self, inquiry: RedactedInquiry) -> Ending:
        executable = shutil.which(self.executable, path=self.environment.get("PATH"))
        if executable is None:
            return Misconfigured(
                reason=f"there is no `{self.executable}` command", hint="install Claude Code, or choose another extractor"
            )
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            ended = _run(
                [executable, *self._arguments(inquiry)],
                spoken=f"{MARK}\n{inquiry.user}\n",
                folder=self.folder,
                environment=self._environment(inquiry),
                timeout=inquiry.seconds,
            )
        except OSError as error:
            return Misconfigured(reason=f"`{self.executable}` cannot be run: {error.strerror or error}", hint="see `kmem doctor`")
        match ended:
            case _Ended():
                return self._read(ended)
            case _:
                return ended

    def _arguments(self, inquiry: Inquiry) -> list[str]:
        return [
            "--print",
            *("--model", self.model),
            *("--output-format", "json"),
            *("--json-schema", json.dumps(inquiry.schema)),
            *("--system-prompt", inquiry.system),
            *("--settings", '{"disableAllHooks":true}'),
            *("--tools", ""),
            "--no-session-persistence",
            "--strict-mcp-config",
        ]

    def _environment(self, inquiry: Inquiry) -> dict[str, str]:
        return {
            **{name: value for name, value in self.environment.items() if not name.startswith(_OURS)},
            "KITE_MEMORY_EXTRACTOR": "1",
            "CLAUDE_CODE_SAFE_MODE": "1",  # keep the person's CLAUDE.md and plugins out of this prompt
            "CLAUDE_CODE_MAX_RETRIES": "0",  # only our scheduler retries
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(_tokens(inquiry)),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def _read(self, ended: "_Ended") -> Ending:
        try:
            report = json.loads(ended.output)
        except (ValueError, RecursionError):
            report = None
        if not isinstance(report, dict):
            return self._without_result(ended)
        usage = self._usage(report)
        result = report.get("result")
        text = result if isinstance(result, str) else ""
        if str(report.get("subtype")).startswith("error_max"):
            return Refused(reason="the model's answers were not in the form that was asked for", usage=usage)
        if report.get("is_error") or ended.code != 0:
            return _error_ending(report.get("api_error_status"), report.get("stop_reason"), text, usage)
        structured = report.get("structured_output")
        return Reply(text=json.dumps(structured) if isinstance(structured, dict) else text, usage=usage)

    def _without_result(self, ended: "_Ended") -> Busy | Misconfigured:
        said = shortened_error(ended.complaint or ended.output)
        if "unknown option" in ended.complaint:
            return Misconfigured(reason=f"`{self.executable}` is too old: {said}", hint="update Claude Code")
        if ended.code in (126, 127):
            return Misconfigured(reason=f"`{self.executable}` cannot be run: {said}", hint="reinstall Claude Code")
        return Busy(reason=f"`{self.executable}` ended with code {ended.code} and no result: {said}", made="perhaps")

    def _usage(self, report: Mapping[str, object]) -> Usage:
        priced = self.prices.of_reported(report.get("usage"))
        dollars = report.get("total_cost_usd")
        if isinstance(dollars, int | float) and not isinstance(dollars, bool) and 0 <= dollars < 1_000:
            return replace(priced, dollars=float(dollars))
        return priced


def _tokens(inquiry: Inquiry) -> int:
    return max(inquiry.max_tokens, _LEAST_TOKENS)


def _error_ending(status: object, stop: object, said: str, usage: Usage) -> Busy | Refused | Misconfigured:
    """Interpret an error of the client. Its text is written for people; its status is the API's, if there was one."""
    reason = shortened_error(said)
    lowered = said.lower()
    if stop == "refusal":
        return Refused(reason="the model declined to answer", usage=usage)
    if "credit balance" in lowered:
        return Misconfigured(reason=f"the account cannot pay: {reason}", hint="see the limits and credits of the account")
    if "/login" in lowered or status in (401, 403):
        return Misconfigured(reason=f"`claude` is not logged in: {reason}", hint="run `claude` and log in")
    if status == 404:
        return Misconfigured(reason=f"the model is not there: {reason}", hint="choose another extractor, or update Claude Code")
    if "prompt is too long" in lowered or "output token maximum" in lowered:
        return Refused(reason=reason, usage=usage)
    if "limit reached" in lowered or "hit your" in lowered:
        return Busy(reason=f"the plan's limit is reached: {reason}", retry_after=_AN_HOUR, usage=usage)
    return Busy(reason=reason or "the client reported an error", usage=usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    code: int
    output: str
    complaint: str


def _run(
    command: list[str], *, spoken: str, folder: Path, environment: Mapping[str, str], timeout: float
) -> _Ended | Busy | Refused:
    """Run a command to the end, with bounds on time and output. All processes it started are dead when this returns."""
    with tempfile.TemporaryFile(dir=folder) as prompt_file:
        prompt_file.write(spoken.encode())
        prompt_file.seek(0)
        ours, theirs = os.pipe()
        try:
            guarded = command if sys.platform == "win32" else [sys.executable, "-I", "-S", guard.__file__, str(ours), *command]
            process = subprocess.Popen(
                guarded,
                stdin=prompt_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
                pass_fds=() if sys.platform == "win32" else (ours,),
            )
        except BaseException:
            os.close(theirs)
            raise
        finally:
            os.close(ours)
        try:
            return _ended(process, timeout)
        finally:
            os.close(theirs)
            _kill_group(process)
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def _ended(process: "subprocess.Popen[bytes]", timeout: float) -> _Ended | Busy | Refused:
    heard: list[bytearray] = [bytearray(), bytearray()]
    listeners = [
        threading.Thread(target=_listen, args=(pipe, into, process), daemon=True)
        for pipe, into in zip((process.stdout, process.stderr), heard, strict=True)
        if pipe is not None
    ]
    for listener in listeners:
        listener.start()
    late = False
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        late = True
    _kill_group(process)  # a child that holds the pipes open would keep the listeners
    for listener in listeners:
        listener.join(_TO_READ_THE_REST)
    if any(listener.is_alive() for listener in listeners):  # a process that left the group holds a pipe open
        return Busy(reason="a process that the command line started does not end", made="perhaps")
    if any(len(each) > _LARGEST_OUTPUT for each in heard):
        return Refused(reason="the answer is larger than any answer can be")
    if late:
        return Busy(reason=f"no answer within {timeout:.1f} seconds", made="perhaps")
    return _Ended(
        code=process.returncode, output=heard[0].decode("utf-8", "replace"), complaint=heard[1].decode("utf-8", "replace")
    )


def _listen(pipe: IO[bytes], into: bytearray, process: "subprocess.Popen[bytes]") -> None:
    while piece := os.read(pipe.fileno(), 65_536):
        into += piece
        if len(into) > _LARGEST_OUTPUT:
            _kill_group(process)
            return


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill everything that the command started; do nothing if it has ended already."""
    if sys.platform == "win32":
        if process.poll() is None:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], check=False, capture_output=True)
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # macOS says "not permitted" of a group whose last member is a zombie

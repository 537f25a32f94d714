"""Which names are worth a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.vault.graph import deserves_a_page

WORTH_ONE = [
    "PostgreSQL", "postgresql", "Redis", "redis", "GitHub", "Node.js", "C++", "C#", ".NET", "OAuth 2.0", "job queue", "S3",
    "Ada L.", "Kite Memory", "pytest", "git-sync", "claim_job()", "orchard/queue.py", "orchard.py", "PostCommit",
    "flush_window", "KMEM_HOME", "@anthropic-ai/sdk", "PR #12", "Marcheweg", "SessionStart", "phase_prepare_commit_test.go",
    "session.AgentType",
]  # fmt: skip
NONE = [
    "main", "master", "HEAD", "origin/main", "refs/heads/x", "feature/login", "fix/the-gate", "dependabot/npm/x",
    "session", "Session", "sessions", "test", "Tests", "have", "Old", "agent", "Checkpoint", "strategy", "atomic", "utf-8",
    "--force", "-race", "git push --mirror", "go test ./...", "return nil", "pip install x", "sudo rm",
    "main.py", "utils.py", "config.go", "package.json", "README.md", "__init__.py", "index.ts", "ctx.Err()", "session.State",
    "Get()", "/etc/hosts", "~/notes", "C:\\x", "./run.sh", ".git/HEAD", "https://example.org", "a/b", "tmp/x",
    "28c304f6", "1bb9c7d2e53647ba", "v1.2.3", "2026-03-01", "12ms", "0x1f", "true", "nil", "i", "ng", "snake_case",
    "x = 1", "foo(bar)", "a, b", "what?", "{}", "*.py", "$HOME", "processing", "verified", "", " ",
]  # fmt: skip


@pytest.mark.parametrize("name", WORTH_ONE)
def test_a_name_that_says_which_one_is_meant_is_worth_a_page(name: str) -> None:
    assert deserves_a_page(name)


@pytest.mark.parametrize("name", NONE)
def test_a_name_that_could_mean_anything_or_is_none_is_worth_no_page(name: str) -> None:
    assert not deserves_a_page(name)


@given(name=st.text(max_size=60))
def test_any_text_can_be_asked_about(name: str) -> None:
    assert deserves_a_page(name) in (True, False)
    assert deserves_a_page(name) == deserves_a_page(f" {name} ")

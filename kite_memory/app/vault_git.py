"""The vault's history in git, where its owner wants one: a commit after each consolidation, and nothing leaves the machine."""

from collections.abc import Mapping
from pathlib import Path

from kite_memory.projects.git_process import Git, GitFailed

_AUTHOR = ("-c", "user.name=Kite Memory", "-c", "user.email=kite-memory@localhost", "-c", "commit.gpgSign=false")
_EVERYTHING = ("--", ".", ":(exclude,top).trash", ":(exclude,glob,top)**/.kmem-*")


def commit(vault: Path, message: str, environment: Mapping[str, str]) -> str:
    """What was done, for a person. No hook is run, nothing is pushed, and a repository around the vault is left alone."""
    git = Git(environment)
    try:
        if not (vault / ".git").exists():
            if any((folder / ".git").exists() for folder in vault.parents):
                return "not committed: the vault lies in another repository"
            git.ask(vault, ["init", "--quiet", "--template="])
        git.ask(vault, ["add", "--all", *_EVERYTHING])
        if not git.ask(vault, ["diff", "--cached", "--name-only", "-z"]):
            return ""
        git.ask(vault, [*_AUTHOR, "commit", "--quiet", "--no-verify", "--message", message])
        return "committed"
    except GitFailed as error:
        return f"not committed: {error}"

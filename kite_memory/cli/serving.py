"""`kmem serve` and `kmem admin`: a team's server, and the commands of who runs it. Unsafe settings are refused."""

import ipaddress
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qs, urlsplit

import typer

from kite_memory import config as configuration
from kite_memory.cli.console import print_data, print_json, print_message
from kite_memory.cli.main import Command, group
from kite_memory.config import Config
from kite_memory.errors import KiteError, UsageError
from kite_memory.system.private_files import replace_file

if TYPE_CHECKING:
    from kite_memory.mcp_server.auth_middleware import TokenIssuer
    from kite_memory.mcp_server.http import Certificate
    from kite_memory.mcp_server.tokens import Tokens
    from kite_memory.team.postgres import PostgresStore
    from kite_memory.wiring.team import Served

PANEL = "Agents"

admin = group(
    help="Administer a team's store: audit, usage, undelete, backup and restore.",
    example="kmem admin audit --since 7d",
)

Store = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="KMEM_STORE",
        show_envvar=False,
        help="The team's store, as postgresql://…; default: KMEM_STORE, else the configuration.",
    ),
]
Since = Annotated[str, typer.Option(metavar="AGE", help="How far back, such as 7d or 12h.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@admin.command("audit", cls=Command)
def audit(
    since: Since = "7d",
    person: Annotated[str, typer.Option(metavar="PERSON", help="Only this person's calls.")] = "",
    tool: Annotated[str, typer.Option(metavar="TOOL", help="Only calls of this tool, such as write_memory.")] = "",
    key: Annotated[str, typer.Option(metavar="KEY", help="Only calls on this key or note.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most this many.")] = 100,
    as_json: AsJson = False,
    store: Store = "team",
) -> None:
    """List who called which tool of the team's server, and when; newest first.

    The content of calls is not kept. The audit goes back as far as `keep_days` in [team] allows.

    Example: kmem admin audit --since 7d --person ada
    """
    with _opened(store) as opened:
        found = opened.audit.entries(since=_since(since), person=person, tool=tool, key=key, limit=limit)
    if as_json:
        print_json([{**asdict(entry), "at": entry.at.isoformat()} for entry in found])
        return
    for entry in found:
        about = f"  {_shown(entry.key)}" if entry.key else ""
        by = ", ".join(filter(None, (_shown(entry.token), _shown(entry.ai))))
        ended = "" if entry.outcome == "ok" else f"  ({_shown(entry.outcome)})"
        print_data(
            f"{entry.at:%Y-%m-%d %H:%M:%S}  {_person(entry.person)}{f' [{by}]' if by else ''}  {_shown(entry.tool)}{about}{ended}"
        )
    if not found:
        print_message("no calls in that time")


@admin.command("usage", cls=Command)
def usage(since: Since = "30d", as_json: AsJson = False, store: Store = "team") -> None:
    """Count each person's calls, writes and refusals, the busiest first.

    Example: kmem admin usage --since 30d
    """
    with _opened(store) as opened:
        found = opened.audit.usage(since=_since(since))
    if as_json:
        print_json([{**asdict(each), "last": each.last.isoformat()} for each in found])
        return
    for each in found:
        print_data(
            f"{_person(each.person)}  {each.calls:,} calls on {each.days} days, {each.writes:,} writes, {each.refused:,} refused;"
            f" last {each.last:%Y-%m-%d %H:%M} UTC"
        )
    if not found:
        print_message("no calls in that time")


@admin.command("undelete", cls=Command)
def undelete(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A memory's key, or a note's id, path or title.")],
    person: Annotated[str, typer.Option(metavar="PERSON", help="The person whose global memory it is.")] = "",
    project: Annotated[str, typer.Option(metavar="PROJECT", help="The project it belongs to.")] = "",
    store: Store = "team",
) -> None:
    """Restore a deleted memory or a forgotten note, as long as its text is kept.

    They are kept for `keep_days` of [team]. A memory comes back as a new version. A forgotten journal comes back without its
    conversation.

    Example: kmem admin undelete project.port --project orchard
    """
    with _opened(store) as opened:
        found = opened.undelete(key, by="admin", person=person, project=project)
    print_message(f"{_shown(found.name)} is back ({_shown(found.place)}); it was deleted {found.at:%Y-%m-%d %H:%M} UTC")


@admin.command("backup", cls=Command)
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
    store: Store = "team",
) -> None:
    """Write everything that the team's store holds for this tenant to a file.

    The backup is a snapshot of one moment; the server can keep running. Long transcripts in object storage are not included: back
    up the bucket too, afterwards.

    Example: kmem admin backup orchard.kite.gz
    """
    with _opened(store) as opened:
        counts = opened.back_up(file)
    print_message(f"{file} holds {_counted(counts)}")


@admin.command("restore", cls=Command)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `kmem admin backup` wrote.")],
    store: Store = "team",
) -> None:
    """Restore a backup into an empty tenant, completely or not at all.

    Its notes are embedded again, so that they can be found.

    Example: kmem admin restore orchard.kite.gz
    """
    with _opened(store) as opened:
        counts = opened.restore(file)
        print_message(f"restored {_counted(counts)}")
        while opened.catch_up(500):
            pass
    print_message("all notes are found again")


@contextmanager
def _opened(store: str) -> Iterator["PostgresStore"]:
    from kite_memory.wiring.team import team_store

    opened = team_store(configuration.load(), store)
    try:
        yield opened
    finally:
        opened.close()


def _since(age: str) -> datetime:
    from kite_memory.text.display import duration

    return datetime.now(UTC) - duration(age)


def _person(name: str) -> str:
    return _shown(name) or "the server's owner"


def _shown(text: str) -> str:
    """Return the text without what could move a terminal's cursor."""
    from kite_memory.text.quoting import plain_line

    return plain_line(text, 200)


def _counted(counts: dict[str, int]) -> str:
    named = {"note": "notes and memories", "conversation": "conversations", "state": "AI states", "audit": "lines of the audit"}
    return ", ".join(f"{counts[table]:,} {name}" for table, name in named.items())


def add_to(app: typer.Typer) -> None:
    app.add_typer(admin, name="admin", rich_help_panel=PANEL)


STORE_VARIABLE = "KMEM_STORE"
"""Environment variable for a store's URL, since other users of a machine can read command lines."""

_PREFIX = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]{1,128}){1,8}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:]{2,45}\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    host: str
    port: int
    store: str = ""
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    prefix: str = ""
    rate: float = 20.0
    everything: bool = False

    @property
    def private(self) -> bool:
        """Whether only this machine can reach the server. Behind a proxy, others reach it on loopback too."""
        return is_loopback(self.host) and not self.behind_proxy


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def refuse_what_is_unsafe(wanted: ServeOptions, tokens: "Tokens", *, issuer: bool = False) -> None:
    """Raise `UsageError` for settings that would be unsafe. With an ``issuer``, other people need none of our tokens."""
    if (wanted.certificate is None) != (wanted.key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    if not is_loopback(wanted.host) and wanted.certificate is None and not wanted.behind_proxy:
        raise UsageError(
            f"{wanted.host} can be reached by others, and tokens would cross the network in the open",
            hint="give --tls-cert and --tls-key, or --behind-proxy where a proxy of yours speaks TLS",
        )
    if wanted.private:
        return
    if not issuer and not any(not kept.local for kept in tokens.living()):
        raise UsageError("others can reach this server, and there is no token for them", hint="`kmem token create NAME` makes one")
    if not wanted.names:
        raise UsageError("the name by which clients call this server is not set", hint="give --name memory.example.org")


def run(config: Config, wanted: ServeOptions, *, report: Callable[[BaseException], None], tell: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Raises `UsageError` for unsafe settings, `KiteError` if it cannot listen."""
    import anyio

    from kite_memory.mcp_server.auth_middleware import AccessRules, Admission, Audit, Readiness
    from kite_memory.mcp_server.http import RequestLimits, serve
    from kite_memory.mcp_server.tokens import Tokens

    for name in wanted.names:
        if not _NAME.fullmatch(name.rpartition(":")[0] if name.rpartition(":")[2].isdecimal() else name):
            raise UsageError(f"{name!r} is not the name of a host", hint="as memory.example.org, without https://")
    path = _path(config, wanted.prefix)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    tokens = Tokens(config.state)
    try:
        refuse_what_is_unsafe(wanted, tokens, issuer=bool(config.team.oidc_issuer))
        certificate = _certificate(wanted)
        listening = _listen(wanted.host, wanted.port)
        with listening:
            port = int(listening.getsockname()[1])
            bridge = _bridge(config, wanted.store, tell)
            scheme, shown = "https" if certificate else "http", f"[{wanted.host}]" if ":" in wanted.host else wanted.host
            try:
                if wanted.private:
                    file = config.state / "local.token"
                    tokens.local(file)
                    tell(f"the token for this machine's agents is in {file}")
                tell(f"listening at {scheme}://{shown}:{port}{path}; Ctrl-C stops")
                rules = AccessRules.of(
                    host=wanted.host,
                    port=port,
                    names=wanted.names,
                    origins=wanted.origins,
                    path=path,
                    private=wanted.private,
                    behind_proxy=wanted.behind_proxy,
                )
                audit = Audit(config.state / "logs" / "audit.log")

                def began(stop: Callable[[], None]) -> None:
                    """Stop by callback: an exit inside the server's tasks would be an error; uvicorn repeats the signal later."""
                    signal.signal(signal.SIGTERM, lambda *_: stop())

                async def listen() -> None:
                    await serve(
                        bridge.perform,
                        listening=listening,
                        admission=Admission(rules=rules, tokens=tokens, audit=audit, issuer=_issuer(config)),
                        report=report,
                        certificate=certificate,
                        limits=RequestLimits(rate=wanted.rate),
                        readiness=Readiness(starting=bridge.starting, health=bridge.health),
                        team=bool(wanted.store),
                        everything=wanted.everything,
                        started=began,
                    )

                anyio.run(listen)
            finally:
                bridge.close()
    finally:
        tokens.close()


def _bridge(config: Config, store: str, tell: Callable[[str], None]) -> "Served":
    if not store:
        from kite_memory.cli.backend import LocalMemory

        return LocalMemory(config)
    from kite_memory.wiring.team import RetryingTeamStore, team_bridge

    if _password_in(store):
        tell(f"warning: --store holds a password, which other users of this machine can see; put the URL into {STORE_VARIABLE}")
    return RetryingTeamStore(lambda: team_bridge(config, store), tell=tell)


def _issuer(config: Config) -> "TokenIssuer | None":
    team = config.team
    if not team.oidc_issuer:
        return None
    from kite_memory.mcp_server.oidc import Issuer, OidcRules
    from kite_memory.model.note import Scope

    return Issuer(
        OidcRules(
            issuer=team.oidc_issuer,
            audience=team.oidc_audience,
            person_claim=team.oidc_person,
            scopes=frozenset(map(Scope, team.oidc_scopes.split())),
            projects=None if team.oidc_projects == "*" else frozenset(team.oidc_projects.split()),
        )
    )


def _password_in(url: str) -> bool:
    """Return whether the URL came from the command line and holds a password."""
    if url == os.environ.get(STORE_VARIABLE):
        return False
    try:
        parts = urlsplit(url)
        return bool(parts.password) or "password" in parse_qs(parts.query)
    except ValueError:
        return False


def _path(config: Config, prefix: str) -> str:
    if prefix == "random":
        file = config.state / "serve.prefix"
        try:
            prefix = file.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            prefix = ""
        if not _PREFIX.fullmatch(prefix):
            prefix = f"/{secrets.token_urlsafe(24)}"
            config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(file, f"{prefix}\n".encode())
    prefix = prefix.rstrip("/")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise UsageError(f"{prefix!r} cannot stand in a path", hint="as /memory: letters, digits, . _ ~ -")
    return f"{prefix}/mcp"


def _certificate(wanted: ServeOptions) -> "Certificate | None":
    import ssl

    from kite_memory.mcp_server.http import Certificate

    if wanted.certificate is None or wanted.key is None:
        return None
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(wanted.certificate, wanted.key)
    except (OSError, ValueError) as error:
        raise KiteError(f"the certificate cannot be used: {error}", hint="both in PEM, the key without a password") from error
    return Certificate(file=wanted.certificate, key=wanted.key)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128)
    except OSError as error:
        raise KiteError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}", hint="give another --port; 0 takes any that is free"
        ) from error

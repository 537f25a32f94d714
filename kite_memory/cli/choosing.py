"""Choice of the model that makes the notes, offered to the user at the first start."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kite_memory.cli.console import counted, reply, tell, watched
from kite_memory.cli.setup import change
from kite_memory.distill.backends.local_servers import LocalServer, local_servers
from kite_memory.keys import keys_beside

if TYPE_CHECKING:
    from kite_memory.app.backlog import Bill
    from kite_memory.config import Config
    from kite_memory.wiring.services import Services

_HOW = "`kmem config set extractor.name NAME` changes that"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One choice. ``settings`` are as given to `kmem config set`."""

    told: str
    settings: Sequence[tuple[str, str]]


def choose_model(here: "Services", *, yes: bool) -> bool:
    """Ask the user which model makes the notes, and store that.

    Return whether a setting has changed: then the services must be opened again.
    """
    if here.config.extractor.name != "auto":
        return False
    choices: list[Choice] = []
    if watched() and not yes:
        from kite_memory.cli.backfilling import bill_of, unread
        from kite_memory.wiring.models import prices_of

        bill = bill_of(here, unread(here))
        choices = list(offered(here.config, bill, bill.dollars(prices_of(here.config)), list(local_servers())))
    if len(choices) < 2:
        if here.extractor.name == "offline":
            tell(f"notes are made by rules on this machine, no model is asked; {_HOW}")
        return False
    tell("Who is to make the notes?")
    for number, choice in enumerate(choices, 1):
        tell(f"  {number}  {choice.told}")
    said = reply(f"Which? 1 to {len(choices)}, 1 if you just press Enter:")
    chosen = choices[int(said) - 1] if said.isdecimal() and 1 <= int(said) <= len(choices) else choices[0]
    for name, value in chosen.settings:
        change(name, value)
    tell(f"notes: {chosen.told.partition(':')[0]}; {_HOW}")
    return True


def offered(config: "Config", bill: "Bill", dollars: float, servers: Sequence[LocalServer]) -> Iterator[Choice]:
    calls = f"about {counted(bill.calls, 'call')} for what is there" if bill.calls else "nothing is there yet"
    limit = f"never more than ${config.extractor.dollars_per_day:.2f} a day"
    yield Choice(
        told="rules on this machine: no calls, no cost, nothing leaves it; fewer notes, and plainer ones",
        settings=[("extractor.name", "offline")],
    )
    if shutil.which("claude") is not None:
        yield Choice(
            told=f"the `claude` command, on your plan and without a key: {calls}, ${dollars:.2f} at list prices; {limit}",
            settings=[("extractor.name", "claude-cli")],
        )
    if keys_beside(config.file).find("anthropic") is not None:
        yield Choice(
            told=f"Anthropic's API ({config.extractor.model}), with the key that is there: {calls}, ${dollars:.2f}; {limit}",
            settings=[("extractor.name", "anthropic")],
        )
    for server in servers:
        yield Choice(
            told=f"{server.name} on this machine ({server.model}): {calls}, no cost, nothing leaves it; slower",
            settings=[
                ("extractor.name", "openai"),
                ("extractor.base_url", server.address),
                ("extractor.openai_model", server.model),
                ("extractor.dollars_per_million_in", "0"),
                ("extractor.dollars_per_million_out", "0"),
            ],
        )

"""What of a search the team's bridge answers, for those who belong to a team and said so in `[team]`."""

from collections.abc import Callable
from typing import Any

from kite_memory.config import Config

Hits = list[dict[str, Any]]

SECONDS = 0.15
"""Nobody waits any longer for a team."""


def asked(config: Config, query: str, *, project: str, limit: int, seconds: float = SECONDS) -> Callable[[Hits], Hits]:
    """Asks at once; what is returned takes this machine's hits, and gives them with those that the team had in time."""
    if config.team.ask == "off" or not config.team.bridge:
        return lambda hits: hits
    from kite_memory.app.searching import searched_for
    from kite_memory.keys import keys_beside
    from kite_memory.redaction import drop_private, redact
    from kite_memory.team.search import Asking, Team, together

    wanted = searched_for(query)
    token = keys_beside(config.file).find("team-token")
    if token is None or not wanted.notes or not wanted.words:
        return lambda hits: hits
    asking = Asking(
        Team(address=config.team.bridge, token=token.value),
        redact(drop_private(wanted.words)),
        kinds=sorted(wanted.kinds),
        project=project,
        limit=limit,
        seconds=seconds,
    )
    return lambda hits: together(hits, asking.hits(), limit)

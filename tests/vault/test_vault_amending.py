"""What of an older rule a newer one leaves standing: kept word for word, whether the newer says it again or forgets to."""

import pytest

from kite_memory.vault.planning import still_holding

RULES = [
    (
        "Backups are kept 30 days; invoices stay for 10 years. Never copy them to staging.",
        "Backups are kept 90 days.",
        "the auditor asks for 90 days instead of 30",
        ("invoices stay for 10 years", "Never copy them to staging"),
        ("30 days",),
    ),
    (
        "Retries: at most 3 for reads. Writes are never retried, except the ledger's, which are idempotent.",
        "Reads are retried at most 5 times.",
        "3 retries of reads were too few",
        ("Writes are never retried", "except the ledger's, which are idempotent"),
        ("at most 3",),
    ),
    (
        "Commits are squashed by the person. Titles are imperative, under 60 characters. No issue numbers in them.",
        "Commit titles may have 72 characters.",
        "60 characters were too few",
        ("squashed by the person", "No issue numbers in them"),
        ("under 60",),
    ),
    (
        "Wine is racked in March and in September; the press is cleaned with citric acid, never with chlorine.",
        "Wine is racked in March alone, not in September any more.",
        "the second racking took too much air in",
        ("the press is cleaned with citric acid", "never with chlorine"),
        ("in September;",),
    ),
    (
        "Staging deploys on every merge. Production deploys on Tuesday at 10:00, with Ada's approval, and never in December.",
        "Production deploys on Thursday at 14:00, with Ada's approval.",
        "moved from Tuesday 10:00 to Thursday 14:00",
        ("Staging deploys on every merge", "never in December"),
        ("Tuesday",),
    ),
    (
        "Timeouts: 5 s for the gateway, 20 s for exports. Logs go to stderr as JSON, one object a line.",
        "The gateway's timeout is 8 s; exports keep 20 s.",
        "5 s was too short for the gateway",
        ("Logs go to stderr as JSON, one object a line",),
        ("5 s for the gateway",),
    ),
    (
        "Calls to the pump time out after 5 s. They are retried twice, with a pause of 2 s. A third failure pages Mira.",
        "Calls to the pump time out after 8 s.",
        "the new valve is slow",
        ("retried twice, with a pause of 2 s", "A third failure pages Mira"),
        ("after 5 s",),
    ),
    (
        "Messdaten werden 14 Tage aufbewahrt, Alarme 2 Jahre. Niemals personenbezogene Felder exportieren.",
        "Messdaten werden 21 Tage aufbewahrt.",
        "die Auswertung braucht drei Wochen",
        ("Alarme 2 Jahre", "Niemals personenbezogene Felder exportieren"),
        ("14 Tage",),
    ),
]
NAMES = ["days", "retries", "titles", "wine", "deploys", "timeouts", "pauses", "German"]


@pytest.mark.parametrize(("before", "now", "because", "held", "over"), RULES, ids=NAMES)
def test_what_still_holds_is_kept_and_what_changed_is_not(
    before: str, now: str, because: str, held: tuple[str, ...], over: tuple[str, ...]
) -> None:
    left = still_holding(before, now, because)

    assert [clause for clause in held if clause not in left] == []
    assert [clause for clause in over if clause in left] == []


@pytest.mark.parametrize(("before", "now", "because", "held", "over"), RULES, ids=NAMES)
def test_what_is_said_again_is_not_said_twice(
    before: str, now: str, because: str, held: tuple[str, ...], over: tuple[str, ...]
) -> None:
    assert still_holding(before, f"{now} {'. '.join(held)}.", because) == ""

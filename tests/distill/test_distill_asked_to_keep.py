"""What is caught of a prompt that addresses the memory, and all that only looks like it. The examples are invented."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.asked_to_keep import MOST, asked_to_keep, may_ask, own_part

FACT, RULE = "fact", "preference"

CAUGHT = [
    ("Remember that the staging database is reset every Monday.", FACT, "The staging database is reset every Monday."),
    ("remember that our CI runners have only 2 GB of memory", FACT, "Our CI runners have only 2 GB of memory."),
    ("Please remember: the orchard API speaks protobuf, not JSON.", FACT, "The orchard API speaks protobuf, not JSON."),
    ("remember this: deploys go out on Tuesdays", FACT, "Deploys go out on Tuesdays."),
    ("Remember this for later: ada owns the billing service", FACT, "Ada owns the billing service."),
    ("remember we use pnpm here, not npm", FACT, "We use pnpm here, not npm."),
    ("Don't forget that the queue worker needs two replicas.", FACT, "The queue worker needs two replicas."),
    ("ok great. remember that prod is read-only on Sundays. Now fix the test.", FACT, "Prod is read-only on Sundays."),
    ("For future reference: the seed script takes ten minutes.", FACT, "The seed script takes ten minutes."),
    ("save this to memory: the grafana board is called Harvest", FACT, "The grafana board is called Harvest."),
    ("keep this in memory: the VPN drops after eight hours", FACT, "The VPN drops after eight hours."),
    ("add to your memory that the linter config lives in tools/lint.toml", FACT, "The linter config lives in tools/lint.toml."),
    ("The pear branch is the release branch. Remember that.", FACT, "The pear branch is the release branch."),
    ("The mock server listens on port 8099, remember that.", FACT, "The mock server listens on port 8099."),
    ("The changelog is written by hand. Please remember this for next time!", FACT, "The changelog is written by hand."),
    ("Remember that I prefer small commits", RULE, "I prefer small commits."),
    ("remember that you should never touch the generated files", RULE, "You should never touch the generated files."),
    ("Remember: always run `make lint` before you commit", RULE, "Always run `make lint` before you commit."),
    ("From now on use pnpm instead of npm.", RULE, "Use pnpm instead of npm."),
    ("from now on, always answer in British English", RULE, "Always answer in British English."),
    ("From now on I want you to write the test first", RULE, "I want you to write the test first."),
    ("From now on when you add a migration, write its rollback too.", RULE, "When you add a migration, write its rollback too."),
    ("from now on no force pushes", RULE, "No force pushes."),
    ("from now on every commit message should name the ticket", RULE, "Every commit message should name the ticket."),
    ("Use tabs in Go files from now on.", RULE, "Use tabs in Go files."),
    ("let's squash before merging from now on", RULE, "Let's squash before merging."),
    ("Going forward, keep the changelog in keep-a-changelog style.", RULE, "Keep the changelog in keep-a-changelog style."),
    ("In future, ask before you delete a file.", RULE, "Ask before you delete a file."),
    ("In all future sessions, start by reading docs/PLAN.md", RULE, "Start by reading docs/PLAN.md."),
    ("From now on, use pnpm.", RULE, "Use pnpm."),
    ("Never use npm again.", RULE, "Never use npm again."),
    ("never again use rm -rf in this repo", RULE, "Never again use rm -rf in this repo."),
    ("Remember that we use tabs.", FACT, "We use tabs."),
    ("Never push to main again.", RULE, "Never push to main again."),
    ("no! never run the migrations by hand again", RULE, "Never run the migrations by hand again."),
    ("Never again commit the lock file without asking me.", RULE, "Never again commit the lock file without asking me."),
    ("don't ever rewrite history on shared branches again", RULE, "Don't ever rewrite history on shared branches again."),
    ("That broke prod. Never deploy on a Friday again!", RULE, "Never deploy on a Friday again!"),
    ("Always use conventional commits.", RULE, "Always use conventional commits."),
    ("please never add comments that restate the code", RULE, "Never add comments that restate the code."),
    ("Never mock the database. Always use the real one in tests.", RULE, "Never mock the database."),
    ("Before committing, always run the linter.", RULE, "Before committing, always run the linter."),
    ("Thanks! Always explain what a shell command does before running it.", RULE,
     "Always explain what a shell command does before running it."),
    ("You should remember that Bob reviews all migrations.", FACT, "Bob reviews all migrations."),
    ("I'd like you to remember that the frontend talks to the gateway only.", FACT, "The frontend talks to the gateway only."),
    ("Could you please remember that we use tabs in Makefiles?", FACT, "We use tabs in Makefiles."),
    ("remember that the Stripe webhook secret rotates on the 1st of each month", FACT,
     "The Stripe webhook secret rotates on the 1st of each month."),
    ("Remember that the password policy changes in January", FACT, "The password policy changes in January."),
    ("remember that the catalogue reindexes every Sunday", FACT, "The catalogue reindexes every Sunday."),
    ("Remember for next time that the sandbox keys expire monthly.", FACT, "The sandbox keys expire monthly."),
    ("Commit to memory that the sandbox keys expire monthly.", FACT, "The sandbox keys expire monthly."),
    ("note to self: the invoices cron runs at 3am UTC", FACT, "The invoices cron runs at 3am UTC."),
    ("Keep in mind that the customers table has 40M rows", FACT, "The customers table has 40M rows."),
    ("Remember that the CI cache key includes the lockfile hash", FACT, "The CI cache key includes the lockfile hash."),
    ("Remember that from now on Ada signs the releases", FACT, "From now on Ada signs the releases."),
    ("From this point on, use ruff instead of flake8.", RULE, "Use ruff instead of flake8."),
    ("Next time, ask me before you drop a table.", RULE, "Ask me before you drop a table."),
    ("As a rule, use UTC everywhere.", RULE, "Use UTC everywhere."),
    ("For the future: check the changelog before upgrading a dependency.", RULE,
     "Check the changelog before upgrading a dependency."),
    ("I want you to always write the test first.", RULE, "I want you to always write the test first."),
]  # fmt: skip

ABROAD = [
    ("Merk dir, dass die Staging-Datenbank montags zurückgesetzt wird.", FACT,
     "Merk dir, dass die Staging-Datenbank montags zurückgesetzt wird."),
    ("Merke dir: Deploys laufen nur dienstags.", FACT, "Deploys laufen nur dienstags."),
    ("Vergiss nicht, dass main geschützt ist.", FACT, "Vergiss nicht, dass main geschützt ist."),
    ("Ab jetzt immer auf Deutsch antworten.", RULE, "Ab jetzt immer auf Deutsch antworten."),
    ("Nie wieder direkt auf main pushen!", RULE, "Nie wieder direkt auf main pushen!"),
    ("Souviens-toi que la base de staging est remise à zéro le lundi.", FACT, "La base de staging est remise à zéro le lundi."),
    ("N’oublie pas que la branche main est protégée.", FACT, "La branche main est protégée."),
    ("À partir de maintenant, réponds toujours en français.", RULE, "Réponds toujours en français."),
    ("Ne pousse plus jamais sur main.", RULE, "Ne pousse plus jamais sur main."),
    ("Por favor, recuerda que usamos pnpm en vez de npm.", FACT, "Usamos pnpm en vez de npm."),
    ("No olvides que main está protegida.", FACT, "Main está protegida."),
    ("De ahora en adelante usa pnpm en vez de npm.", RULE, "Usa pnpm en vez de npm."),
    ("Nunca más subas nada a main.", RULE, "Nunca más subas nada a main."),
    ("Ricorda che il database di staging viene azzerato il lunedì.", FACT, "Il database di staging viene azzerato il lunedì."),
    ("D’ora in avanti usa pnpm al posto di npm.", RULE, "Usa pnpm al posto di npm."),
    ("Mai più pushare su main!", RULE, "Mai più pushare su main!"),
]  # fmt: skip

LEFT = [
    # no one knows later what it was about
    "From now on we always run it",
    "Never ask again.",
    # asked of this task
    "remember to run the tests afterwards",
    "Fix the parser and remember to update the docs.",
    "don't forget to add a test for it",
    "Please remember to bump the version before you tag.",
    "add a retry helper. always use exponential backoff. tests too",
    "Write a parser for the log format. Never throw on a bad line. Return the problems.",
    "For this PR always use the old client.",
    "from now on in this session answer briefly",
    "From now on, until the release is out, skip the slow tests.",
    "never touch that file again in this task",
    "for now always return true",
    "Always do that",
    "never do that again",
    "Never again!",
    "don't do it again",
    "run it again, never mind the warning",
    "remember the milk",
    "remember that",
    "Remember this?",
    # questions
    "do you remember the decision on the queue?",
    "Do you remember that we use pnpm",
    "Remember that function we wrote last week?",
    "remember when we talked about the cache",
    "what do you remember about the staging database?",
    "should we always use UTC?",
    "can we make sure to never retry a POST from now on?",
    "why does it always return 0?",
    "Remember that the API is flat, right?",
    "from now on the worker retries, doesn't it?",
    # of oneself, and of what is
    "I can never remember how rebase works",
    "I don't remember that we changed it, let me check",
    "I always forget the flag for this",
    "I never said that the cache is wrong",
    "It always fails on CI",
    "always the same error",
    "Never seen this before",
    "never worked for me",
    "never mind",
    "Always returns None, have a look",
    "From now on the build is red",
    "from now on in the loop the variable is shadowed, fix it",
    "from now on I'll do the releases myself",
    "This way the session remembers that the user is logged in.",
    "the cache never forgets that an entry is stale, fix it",
    "We need to remember that the token has expired: store a flag.",
    "implement remember-me for the login form",
    "remember that bug with the timezone",
    "Remember that issue from yesterday, it is back",
    "remember that we said the API should be flat",
    "remember that I'm away today",
    "remember we talked about pnpm",
    # quoted, pasted, code
    "> remember that the staging database is reset on Mondays\nis this still true?",
    '"Always use pnpm." is what the readme says',
    'He wrote "the tests are slow. Never run them twice again." in the review',
    "the guide says:\n\nAlways use the production key.\n\nfix it",
    "```\nRemember that the staging database is reset every Monday.\n```",
    "# always use the cache\ndef get(): ...",
    "// never call this again\nwhat is this comment about",
    "2026-03-01 10:00:00 INFO remember that the cache is cold\nRemember that the cache is cold",
    "diff --git a/x b/x\n+ Always use pnpm.\n",
    "Traceback (most recent call last):\nRemember that the index is stale",
    "Always use {name} as the placeholder",
    "Never emit <script> tags",
    "remember that `x` = 5 -> y",
    # commands of the agent, and plans
    "/remember that the staging database is reset every Monday",
    "/loop always run the tests",
    "  /forget never push to main again",
    "maybe we should always use UTC",
    "I think from now on we might use pnpm",
    # of the program in hand, not of what shall be kept
    "remember that scene in the log where the worker dies",
    "I never again want to see this error",
    "the parser never calls close again after an error",
    "never again does the loop enter this branch",
    "save it to memory instead of disk",
    "store this in memory and flush once a minute",
    "store this in memory: the parsed tree",
    "keep that in memory: it's faster than disk",
    "write that to memory, then read it back",
    "commit that to memory-mapped storage",
    "make a note in the changelog that the flag was removed",
    "Remember that this function is called twice here",
    "Don't ever return None here",
    "Always close the file in the finally block",
    "The lint rule says never use var. Fix all of it.",
    "keep in mind that this endpoint is public and fix the CORS header",
    "Keep in mind that the tests are slow, so only run the affected ones",
    "as a rule the list is sorted, but not in the cache",
    "Next time the cron runs, the cache is cold. Fix that.",
    "Going forward the service will be called orchard-api, rename it",
    # of how far the work has come
    "Remember that we are in the middle of a refactor, so keep the diff small",
    "remember that you have not run the tests yet",
    "Don't forget we have two more tests to fix",
    "don't forget that we still have to fix the docs",
    "remember I asked you to use a table",
    "remember that bob is waiting for this",
    "remember that your task is only to review",
    "Remember that the tests I sent you fail",
    "don't forget that you need to rebuild first",
    "Can you remember that bug?",
    # the same abroad
    "Denk daran, die Tests laufen zu lassen",
    "Ab jetzt ist der Build rot.",
    "In Zukunft wird das Feld entfernt, bau das ein",
    "Nie wieder gesehen",
    "Merk dir, dass in dieser Sitzung alles gemockt ist",
    "N'oublie pas de lancer les tests",
    "Désormais le champ est vide, corrige ça",
    "Je ne veux plus jamais voir cette erreur",
    "Te souviens-tu que nous utilisons pnpm ?",
    "Always use it.",
    "Keep in mind that it works.",
    "From now on: yes",
    "Recuerda ejecutar las pruebas",
    "¿Recuerdas que usamos pnpm?",
    "A partir de ahora siempre es nulo",
    "Nunca más he visto este error",
    "Non dimenticare di aggiornare la documentazione",
    "D'ora in poi il campo è vuoto, correggilo",
    "Ricorda che oggi abbiamo fretta",
]


@pytest.mark.parametrize(("prompt", "kind", "text"), [*CAUGHT, *ABROAD], ids=[prompt[:50] for prompt, _, _ in [*CAUGHT, *ABROAD]])
def test_what_addresses_the_memory_is_caught(prompt: str, kind: str, text: str) -> None:
    found = asked_to_keep(prompt)

    assert [(asked.kind, asked.text) for asked in found[:1]] == [(kind, text)]
    assert may_ask(prompt)


@pytest.mark.parametrize(
    ("prompt", "kind", "text"),
    [
        ("remember that Ida is away from 3 may until 20 june", "fact", "Ida is away from 3 may until 20 june."),
        ("Remember that the cold store is closed till March.", "fact", "The cold store is closed till March."),
        ("Remember that the pump pauses between 2 and 4 at night", "fact", "The pump pauses between 2 and 4 at night."),
        ("remember that our scale restarts during the night", "fact", "Our scale restarts during the night."),
        ("good. and never ship on a sunday again, today is the exception", "preference", "Never ship on a sunday again."),
        ("Never prune the pears in rain again (this week excepted).", "preference", "Never prune the pears in rain again."),
        (
            "Remember that the crates are washed with lye. Except for the wooden ones.",
            "fact",
            "The crates are washed with lye. Except for the wooden ones.",
        ),
        ("remember that no-spray rows are marked in rows.csv", "fact", "No-spray rows are marked in rows.csv."),
    ],
)
def test_dates_exceptions_and_hyphens_do_not_hide_what_to_keep(prompt: str, kind: str, text: str) -> None:
    (found,) = asked_to_keep(prompt)

    assert (found.kind, found.text) == (kind, text)


@pytest.mark.parametrize(
    "prompt",
    [
        "remember that the press is off until Ben is back",
        "remember that the cold store is closed until tomorrow",
        "remember that the crate tests in yard",
        "never ship today again",
    ],
)
def test_what_holds_for_hours_is_still_left(prompt: str) -> None:
    assert asked_to_keep(prompt) == ()


@pytest.mark.parametrize("prompt", LEFT, ids=[prompt.strip()[:50] for prompt in LEFT])
def test_what_only_looks_like_it_is_left(prompt: str) -> None:
    assert asked_to_keep(prompt) == ()


@pytest.mark.parametrize(
    ("prompt", "everywhere"),
    [
        ("From now on use tabs in all my projects.", True),
        ("Always answer in British English, everywhere.", True),
        ("Remember that I prefer uv in every repo", True),
        ("From now on use tabs in all test files.", False),
        ("remember that the orchard project is built with bazel", False),
    ],
)
def test_only_who_speaks_of_everywhere_means_everywhere(prompt: str, everywhere: bool) -> None:
    assert [asked.everywhere for asked in asked_to_keep(prompt)] == [everywhere]


def test_a_prompt_may_ask_for_several_things_but_not_for_many() -> None:
    two = asked_to_keep("Remember that ada owns billing. Remember that bob owns search. Remember that ada owns billing.")
    many = asked_to_keep(" ".join(f"Remember that service {name} runs twice." for name in ("pear", "plum", "fig", "lime", "kiwi")))

    assert [asked.text for asked in two] == ["Ada owns billing.", "Bob owns search."]
    assert len(many) == MOST


@pytest.mark.parametrize(
    "prompt",
    [
        "Remember that the quota is 40 GB. Actually no, it is 60 GB.",
        "remember that the quota is 40 GB. It is set in the portal. Correction: 60 GB.",
        "From now on, use Valkey for the sessions. Actually no, we already run a memcache.",
        "From now on, never push to the trunk. Sorry, that was the other repository.",
        "From now on, indent with tabs. No wait, with spaces.",
        "from now on, indent with tabs, no wait, with spaces",
        "from now on, indent with three tabs - just kidding",
        "Remember that the broker runs in Oslo. Sorry, I meant Bergen.",
        "Merke dir, dass der Broker in Oslo läuft. Nein, warte, in Bergen.",
        "Ab jetzt immer Tabs verwenden. Quatsch, Leerzeichen.",
        "souviens-toi que le courtier est à Oslo. Pardon, à Bergen.",
        "À partir de maintenant, utilise pnpm. En fait non, utilise yarn.",
        "Recuerda que el servidor está en Oslo. No, espera, en Bergen.",
        "ricorda che il server è a Oslo. Anzi, a Bergen.",
    ],
)
def test_what_is_taken_back_in_the_same_breath_is_left(prompt: str) -> None:
    assert asked_to_keep(prompt) == ()


@pytest.mark.parametrize(
    "prompt",
    [
        "Remember that the quota is 40 GB. No exceptions.",
        "From now on, never push to main. No, really.",
        "No, wait. From now on use pnpm.",
        "remember that the queue drops jobs when it is full, not when it is slow",
        "Recuerda que el puerto es 5433, no 5432",
        "Remember that the export runs at two. Wait for it before you deploy.",
        "Remember that the press listens on port 8443. Wait, the deploy just failed. Can you look?",
        "From now on, always use pnpm. Actually, the CI uses pnpm too.",
        "Remember: the ledger is in /srv/ledger. Moment, ich schaue noch nach dem Rest.",
        "Remember that customers want invoices by mail, no, seriously, always by mail.",
        "Remember that the flag takes yes, no, or auto.",
        "Remember that the press restarts at night. Correction lists are in docs/fixes.md.",
        "Dear Claude,\n\nplease remember that the build box is called tango.\n\nThanks, Max",
        "from: alembic import op is banned. Remember that migrations live in db/migrations.",
    ],
)
def test_a_no_that_takes_nothing_back_changes_nothing(prompt: str) -> None:
    assert len(asked_to_keep(prompt)) == 1


def test_what_a_letter_asks_for_is_not_what_its_reader_asks_for() -> None:
    letter = "Dear Ada,\n\nfrom now on always use the new gateway.\n\nRegards,\nTim"

    assert asked_to_keep(f"Please answer this.\n\n{letter}") == ()
    assert asked_to_keep(f"What they wrote:\n\n{letter}\n\nFrom now on, never use their gateway.") != ()


def test_lines_of_wide_blanks_are_read_in_linear_time() -> None:
    begun = time.process_time()
    own_part("Yes" + "\u00a0\n" * 4_000)

    assert time.process_time() - begun < 1


def test_what_is_long_was_pasted() -> None:
    said = "Remember that the staging database is reset every Monday. "

    assert asked_to_keep(said + "It is slow. " * 200) == ()
    assert asked_to_keep(said + "\n" * 2 + "line\n" * 40) == ()
    assert not may_ask(said * 1_000)


_PIECES = (
    *("Remember that ", "never ", "again", ". ", '"', "`", "\n", "a", "use ", "from now on ", ":", "> ", "```\n"),
    *("always ", ", remember that", "make a note ", "when ", ", ", "in all ", "projects"),
)


@given(st.text(max_size=3_000) | st.lists(st.sampled_from(_PIECES), max_size=400).map("".join))
def test_whatever_is_typed_is_read_within_bounds_and_twice_alike(prompt: str) -> None:
    found = asked_to_keep(prompt)

    assert found == asked_to_keep(prompt)
    assert len(found) <= MOST
    assert all(0 < len(asked.text) <= 501 and "\n" not in asked.text for asked in found)
    assert not found or may_ask(prompt)

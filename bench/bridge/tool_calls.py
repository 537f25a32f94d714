"""What agents wait for when they ask the bridge for what they need: the tools over a vault of many notes, in this process.

    python -m bench.bridge.tool_calls [--notes 10000] [--conversations 300] [--keep FOLDER]

The notes are those of `bench.speed.scale`; saved conversations come on top, half of them of several topics, saved by the tool. Half
of the questions are words of a conversation, half are a prompt's. Under a bounded grant one project of forty is seen. What the
way through MCP adds is measured elsewhere. Prints a table; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from uuid import UUID

from bench.speed.hook_latency import percentile
from bench.speed.scale import Invented, apart, fill, recall_in, vault_in
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.saving import SaveChecker
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.text.display import age
from kite_memory.tools import conversation_tools, note_tools
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import Json, ToolDispatcher
from kite_memory.tools.local_conversations import LocalConversations
from kite_memory.tools.local_state import LocalState
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.store import OWNER, Asker, Grant

_QUESTIONS = 300
_PROJECTS = 40


def timed(name: str, run: Callable[[int], object], rounds: int) -> None:
    """``CPU`` is what one call costs this process, whatever else the machine does."""
    for number in range(5):
        run(number)
    took, worked = [], []
    for number in range(rounds):
        start, start_worked = time.perf_counter(), time.process_time()
        run(number)
        worked.append(1000 * (time.process_time() - start_worked))
        took.append(1000 * (time.perf_counter() - start))
    (p50, p95), (cpu50, cpu95) = ([percentile(sorted(each), share) for share in (0.5, 0.95)] for each in (took, worked))
    print(f"  {name:44} p50 {p50:6.1f}   p95 {p95:6.1f} ms    CPU p50 {cpu50:6.1f}   p95 {cpu95:6.1f} ms", flush=True)


def bridge_over(home: Path, closing: ExitStack) -> ToolDispatcher:
    vault = closing.enter_context(vault_in(home))
    recall = recall_in(home, LocalEmbedder())
    closing.callback(recall.close)
    recall.refresh(vault.notes)  # a kept folder may be of another version

    def take_up(paths: Collection[str], *, embed: bool = True) -> None:
        recall.refresh(vault.notes, hint=paths)

    kept = LocalConversations(vault=vault, folder=home / "state" / "conversations", index_notes=take_up)
    own = LocalState(home / "state" / "bridge.sqlite")
    store = LocalStore(vault=vault, recall=recall, state=own, conversations=kept, index_notes=take_up)
    closing.callback(store.close)
    saving, near = SaveChecker(rules=OfflineExtractor()), LocalContext()
    return ToolDispatcher(
        {
            **conversation_tools.tools(store, near, gate=saving, decompose=saving.decompose),
            **note_tools.tools(store, near, gate=saving, age=age),
        }
    )


class Talk:
    """Conversations made from their number alone, in the words of the notes."""

    def __init__(self, notes: int) -> None:
        self._invented = Invented(notes)
        self._notes = notes

    def record(self, number: int) -> Json:
        chance = random.Random(number)
        topics = [self._topic(chance) for _ in range(chance.choice((1, 3)))]
        return {
            "claude_conversation_uuid": str(UUID(int=chance.getrandbits(128), version=4)),
            "source": "claude_code",
            "project": f"project-{number % _PROJECTS}",
            "conversation_type": "multi_topic",
            "topics": topics,
            "full_transcript": "User: go on\n\nAssistant: done\n\n" * 500,
        }

    def _topic(self, chance: random.Random) -> Json:
        words = self._invented.note(chance.randrange(self._notes)).body.rstrip(".").split()
        several = [" ".join(words[start : start + 9]) for start in range(0, len(words) - 9, 9)]
        return {
            "topic": " ".join(words[1:4]),
            "summary": " ".join(words),
            "categories": words[4:6],
            "decisions": [{"decision": several[0], "reasoning": several[1]}, {"decision": several[2], "status": "rejected"}],
            "open_questions": several[3:4],
            "related_entities": words[7:8],
        }

    def questions(self, conversations: int) -> list[str]:
        chance = random.Random(3)
        listed = [self.record(number)["topics"][-1]["summary"].split() for number in range(min(conversations, _QUESTIONS))]
        prompts = self._invented.prompts()
        return [
            " ".join(chance.sample(listed[number % len(listed)], 6)) if listed and number % 2 else prompts[number % len(prompts)]
            for number in range(_QUESTIONS)
        ]


def converse(home: Path, notes: int, count: int) -> None:
    talk = Talk(notes)
    with ExitStack() as closing:
        bridge = bridge_over(home, closing)

        def call(tool: str, grant: Grant, arguments: Sequence[Json], number: int) -> Json:
            return bridge.perform(tool, arguments[number % len(arguments)], Asker(grant=grant, project="project-3"))

        if count:
            records = [talk.record(number) for number in range(count)]
            timed("save_conversation", partial(call, "save_conversation", OWNER, records), count)
            timed("  the same again", partial(call, "save_conversation", OWNER, records), min(count, 100))
        asked: list[Json] = [{"query": question} for question in talk.questions(count)]
        bounded = Grant(name="bounded", projects=frozenset({"project-3"}))
        answers = [call("get_context", OWNER, asked, number) for number in range(_QUESTIONS)]
        hydrated = sum(any("conversation" in record for record in each["records"]) for each in answers)
        print(f"  contexts with a whole conversation in them: {hydrated / len(answers):.0%}", flush=True)
        for tool in ("get_context", "search_notes"):
            timed(tool, partial(call, tool, OWNER, asked), _QUESTIONS)
            timed("  under a bounded grant", partial(call, tool, bounded, asked), _QUESTIONS)
        remembered: list[Json] = [{"text": f"{question} is what was found out"} for question in talk.questions(count)]
        timed("remember", partial(call, "remember", OWNER, remembered), 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--conversations", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="keep the vaults in this folder, and use those that are there")
    arguments = parser.parse_args()
    for count in arguments.notes:
        print(f"\n{count:,} notes, and {arguments.conversations} conversations", flush=True)
        with tempfile.TemporaryDirectory(prefix="kmem-bridge-") as temporary:
            home = arguments.keep / str(count) if arguments.keep else Path(temporary)
            if not (home / "state").exists():
                apart(fill, home, count, "random")
            apart(converse, home, count, arguments.conversations)


if __name__ == "__main__":
    main()

"""The page and the drawing of a whole vault, whatever is in their place."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kite_memory.app.vault_pages import VaultPages
from kite_memory.distill import extractor
from kite_memory.distill.answering import Polisher
from kite_memory.distill.budget import Allowance, Budget
from kite_memory.distill.extractor import Ending, Inquiry, Reply, Usage
from kite_memory.distill.outbox import Outbox
from kite_memory.errors import KiteError, UsageError
from kite_memory.model.note import NoteKind
from kite_memory.vault.vault import Vault
from tests.fakes.judges import ScriptedBackend
from tests.vault.building import decision, fact, later, vault_in, write


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    with vault_in(tmp_path) as opened:
        write(opened, decision(), fact("Frost", "Until May.", entities=["Marcheweg"]))
        yield opened


def pages(vault: Vault) -> VaultPages:
    return VaultPages(vault=vault, clock=later)


PROMPT = extractor.load_prompt([Path(__file__).parents[2] / "prompts"], "polish")
PLAIN = "The press failed because the belt of Marcheweg 3 was worn"
BETTER = "Because the belt of Marcheweg 3 was worn, the press failed."


class Model:
    """Says each line in the words that it was given for it, and counts how often it was asked."""

    def __init__(self, folder: Path, **better: str) -> None:
        self.better = better
        self.asked: list[str] = []
        self._outbox = Outbox(folder / "outbox.sqlite")
        self._allowance = Allowance(outbox=self._outbox, budget=Budget(dollars=1.0, calls=100), share=1.0, clock=lambda: 0.0)

    def __call__(self) -> Polisher:
        return Polisher(backend=ScriptedBackend([self._answer] * 9), prompt=PROMPT, allowance=self._allowance)

    def _answer(self, inquiry: Inquiry) -> Ending:
        lines = [line for line in inquiry.user.split("\n") if line[:1].isdigit()]
        self.asked += (line.partition(". ")[2] for line in lines)
        said = [(line.partition(". ")[0], self.better.get(line.partition(". ")[2].split()[1], "")) for line in lines]
        rows = [{"n": int(number), "text": text} for number, text in said if text]
        return Reply(text=json.dumps({"lines": rows}), usage=Usage(tokens_in=1, tokens_out=1, dollars=0.0))


def polished_by(vault: Vault, model: Model) -> VaultPages:
    return VaultPages(vault=vault, clock=later, polisher=model)


class TestPolished:
    """What the model may say of `MEMORY.md`, and how seldom it is asked."""

    @pytest.fixture
    def vault(self, vault: Vault) -> Vault:
        write(vault, decision("The press always stops when its belt is worn", f"{PLAIN}. And so on.", evidence=2), name="chunk-2")
        return vault

    @pytest.fixture
    def model(self, tmp_path: Path) -> Model:
        return Model(tmp_path, press=BETTER)

    def test_a_sentence_is_said_better_and_the_model_is_asked_once(self, vault: Vault, model: Model) -> None:
        first = polished_by(vault, model).synthesize(polish=True)
        asked = list(model.asked)
        second = polished_by(vault, model).synthesize(polish=True)

        assert (first["polished"], first["by"], second["changed"]) == (1, "scripted:fake-1", False)
        assert BETTER in page(vault).read_text() and PLAIN not in page(vault).read_text()
        assert f"{PLAIN}." in asked and model.asked == asked

    def test_anyone_who_rewrites_it_later_lets_it_stand_without_a_model(self, vault: Vault, model: Model) -> None:
        polished_by(vault, model).synthesize(polish=True)
        before = page(vault).read_bytes()

        report = pages(vault).synthesize()

        assert (report["changed"], report["polished"]) == (False, 1)
        assert page(vault).read_bytes() == before
        assert not pages(vault).synthesize(check=True)["changed"]

    def test_only_what_is_new_is_asked_about(self, vault: Vault, model: Model) -> None:
        polished_by(vault, model).synthesize(polish=True)
        model.asked.clear()
        write(
            vault,
            decision("The mill always runs on a belt of hemp", "The mill was mended because its old belt broke.", evidence=3),
            name="chunk-3",
        )

        polished_by(vault, model).synthesize(polish=True)

        assert model.asked == ["The mill was mended because its old belt broke."]

    @pytest.mark.parametrize("said", ["The press failed because nobody oiled it", "The press works", f"{BETTER} [[nowhere]]"])
    def test_what_says_something_else_is_refused_and_not_asked_again(self, vault: Vault, tmp_path: Path, said: str) -> None:
        model = Model(tmp_path, press=said)

        report = polished_by(vault, model).synthesize(polish=True)
        asked = len(model.asked)
        polished_by(vault, model).synthesize(polish=True)

        assert (report["polished"], report["refused"]) == (0, 1)
        assert PLAIN in page(vault).read_text()
        assert len(model.asked) == asked

    def test_a_page_that_shall_be_plain_again_is_as_the_notes_have_it(self, vault: Vault, model: Model) -> None:
        pages(vault).synthesize()
        before = page(vault).read_bytes()
        polished_by(vault, model).synthesize(polish=True)

        report = pages(vault).synthesize(polish=False)

        assert (report["changed"], report["polished"]) == (True, 0)
        assert page(vault).read_bytes() == before

    def test_without_a_model_it_is_the_plain_page_and_says_so(self, vault: Vault) -> None:
        report = pages(vault).synthesize(polish=True)

        assert report["problems"] == [
            "no model is set up that could polish it: `kmem keys set anthropic`, or see [extractor] in the settings"
        ]
        assert PLAIN in page(vault).read_text()

    def test_what_only_looks_asks_no_one(self, vault: Vault, model: Model) -> None:
        with pytest.raises(UsageError):
            polished_by(vault, model).synthesize(check=True, polish=True)

        assert model.asked == []


def page(vault: Vault) -> Path:
    return vault.root / "MEMORY.md"


def test_an_unchanged_vault_gives_the_same_bytes_and_is_not_written_again(vault: Vault) -> None:
    first = pages(vault).synthesize()
    before, at = page(vault).read_bytes(), page(vault).stat().st_mtime_ns

    second = pages(vault).synthesize()

    assert (first["changed"], second["changed"]) == (True, False)
    assert (page(vault).read_bytes(), page(vault).stat().st_mtime_ns) == (before, at)


def test_looking_writes_nothing(vault: Vault) -> None:
    assert pages(vault).synthesize(check=True)["changed"]
    assert not page(vault).exists()


def test_a_vault_that_moved_to_another_machine_keeps_what_was_written_into_its_page(vault: Vault, tmp_path: Path) -> None:
    pages(vault).synthesize()
    text = page(vault).read_text()
    page(vault).write_text(text.replace("## Decisions", "mine\n\n## Decisions"))
    shutil.copytree(vault.root, tmp_path / "there" / "vault")

    with vault_in(tmp_path / "there") as moved:
        with pytest.raises(KiteError, match="made from the notes was edited"):
            pages(moved).synthesize()

        assert "mine" in page(moved).read_text()


def test_a_vault_that_moved_to_another_machine_has_its_page_kept_up_there(vault: Vault, tmp_path: Path) -> None:
    pages(vault).synthesize()
    shutil.copytree(vault.root, tmp_path / "there" / "vault")

    with vault_in(tmp_path / "there") as moved:
        write(moved, decision("Quince is always used as rootstock", "Quince as rootstock."), name="chunk-9")
        pages(moved).synthesize()

        assert "Quince" in page(moved).read_text()


def test_an_empty_page_is_written_to(vault: Vault) -> None:
    page(vault).write_bytes(b"")

    pages(vault).synthesize()

    assert "## Decisions" in page(vault).read_text()


def test_a_write_protected_page_is_reported_and_left(vault: Vault) -> None:
    page(vault).write_text("# Mine\n")
    page(vault).chmod(0o444)

    with pytest.raises(KiteError, match="write-protected"):
        pages(vault).synthesize()

    assert page(vault).read_text() == "# Mine\n"


@pytest.mark.parametrize("what", ["folder", "link", "latin"])
def test_what_is_no_page_is_reported_and_left(vault: Vault, tmp_path: Path, what: str) -> None:
    match what:
        case "folder":
            page(vault).mkdir()
        case "link":
            (tmp_path / "outside.md").write_text("outside")
            page(vault).symlink_to(tmp_path / "outside.md")
        case _:
            page(vault).write_bytes("café".encode("latin-1"))

    with pytest.raises(KiteError, match="cannot be read"):
        pages(vault).synthesize()

    assert what != "link" or (tmp_path / "outside.md").read_text() == "outside"


def test_somebody_who_saves_while_the_page_is_made_is_not_written_over(tmp_path: Path) -> None:
    def saves(doing: str) -> None:
        if doing == "swap":
            (tmp_path / "vault" / "MEMORY.md").write_text("# Mine, just now\n")

    with vault_in(tmp_path) as first:
        write(first, decision())
        pages(first).synthesize()
        write(first, decision("Quince is always used as rootstock", "Quince as rootstock."), name="chunk-9")
    with vault_in(tmp_path, laid_out=False, step=saves) as vault:
        pages(vault).synthesize()

    assert page(vault).read_text().startswith("# Mine, just now\n\n<!--")


def test_a_drawing_for_a_page_holds_no_more_than_is_drawn(vault: Vault) -> None:
    links = " ".join(f"[[row {number}]]" for number in range(40))
    for number in range(40):
        (vault.root / f"row {number}.md").write_text(f"# Row {number}\n{links}\n")

    drawn = pages(vault).graph(format="mermaid", most=1_000)
    whole = pages(vault).graph(format="json", most=1_000)

    assert drawn["text"].count("-->") <= 500
    assert drawn["notes"] + drawn["left_out"] == whole["notes"] == 42
    assert drawn["notes"] > 15


def test_what_lies_around_a_note_is_drawn_alone(vault: Vault) -> None:
    graph = pages(vault).graph(format="json", note="Frost", hops=1)

    assert graph["notes"] == 2
    assert NoteKind.DECISION.value in graph["text"]


def test_an_unknown_format_is_reported(vault: Vault) -> None:
    with pytest.raises(UsageError, match="unknown format"):
        pages(vault).graph(format="svg")

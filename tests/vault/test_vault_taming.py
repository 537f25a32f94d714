"""Somebody else's markdown in a vault: read as CommonMark does, nothing of it loads or runs."""

import html
import re
import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kite_memory.vault.links import tame, tame_code, tame_line, tame_name, titled

_COMMONMARK = MarkdownIt("commonmark").enable("table")
_COMMONMARK.validateLink = lambda url: True  # type: ignore[method-assign]  # which links are safe is for us to say
_RUN = re.compile(r"dataview|mermaid|tasks|^ad-", re.IGNORECASE)
_CODE = re.compile(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_MARK = re.compile(r"\[\[|%%|\$\$|\\href\{|obsidian://", re.IGNORECASE)


def acting(markdown: str, *, linked: bool = False) -> list[str]:
    """What of a text Obsidian or a plugin would load, run or hide, wherever a reader of CommonMark finds it.

    ``linked``: links to notes are meant to be there.
    """
    found = [f"a template: {each}" for each in re.findall(r"<%.{0,9}", markdown)]
    for token in _tokens(_COMMONMARK.parse(markdown)):
        if token.type in ("html_inline", "html_block", "image"):
            found.append(f"{token.type}: {token.content[:40]}")
        elif token.type == "link_open" and not re.match(r"(?:https?:|mailto:|[^:]*$)", _plain(str(token.attrs["href"]))):
            found.append(f"a link: {token.attrs['href']}")
        elif token.type == "code_inline" and re.match(r"\$?=|(?:INPUT|VIEW|BUTTON)\[", token.content.strip()):
            found.append(f"a query: {token.content[:40]}")
        elif token.type == "fence" and (not re.fullmatch(r"[\w#+-]*", token.info.strip()) or _RUN.search(token.info)):
            found.append(f"a fence: {token.info}")
        elif token.type == "inline":
            prose = re.sub(r"\\[!-/:-@[-`{-~]", "\0", _CODE.sub("\0", token.content))
            found += [f"a mark: {each[0]}" for each in _MARK.finditer(prose) if not (linked and each[0] == "[[")]
    return found


def _plain(target: str) -> str:
    return re.sub(r"\s|%0[9aAdD]|%20", "", html.unescape(target)).lower()


def _tokens(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or ())


ATTACKS = (
    "<iframe src=https://x.example/?q></iframe>",
    "<img src=x onerror=alert(1)>",
    "<style>*{background:url(https://x.example)}</style>",
    "<svg/onload=alert(1)>",
    "<video src=//x.example autoplay>",
    "</div><script>fetch(1)</script>",
    "<!-- hidden -->",
    "<?php x ?>",
    "![pixel](https://x.example/p.png)",
    "![a [b] c](https://x.example/p.png)",
    "!![p][ref]\n\n[ref]: https://x.example/p.png",
    "`= this.file.name`",
    "`$= app.vault.delete(1)`",
    "`` $= dv.view(1) ``",
    "`INPUT[toggle:done]`",
    "[x](javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x]( java&#x73;cript:alert(1))",
    "[x](java\\script\\:alert(1))",
    "[x](\njavascript:alert(1))",
    "[x](JaVaScRiPt&colon;alert(1))",
    "[x](data:text/html,1)",
    "[x](obsidian://shell-commands/?execute=1)",
    "[x]\n\n[x]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "obsidian://advanced-uri?commandid=1",
    "```dataviewjs\napp.vault.delete()\n```",
    "> ```dataviewjs\n> app.vault.delete()\n> ```",
    "- ```dataviewjs\n  app.vault.delete()\n  ```",
    "~~~ad-note\n<img src=x>\n~~~",
    "```mermaid\nclick a href 'javascript:1'\n```",
    "```tasks\nfilter by function 1\n```",
    "<% tp.user.run() %>",
    "<%* await tp.x() %>",
    "![[Secret]]",
    "%%\nhidden\n%%",
    "$$\\href{javascript:alert(1)}{x}$$",
    # what is code to one reader and not to another
    "# a `\n<img src=x>\n# b `",
    "- `\n- <img src=x> `",
    "a `b\nc `<img src=x>` d",
    "# x `\na `b\nc `<img src=x>` d",
    "\\`<img src=x>`",
    "| a | b |\n|---|---|\n| ` | <img src=x> | ` |\n| `a|b` <img src=x> `c` |",
    "- a\n  ```\n<img src=x>\n```",
    "   ```\n```\n<img src=x>\n```",
    "> ```\n<img src=x>\n> ```",
    "1. ~~~\n<img src=x>\n~~~",
    "```\u00a0x\na\n```\u00a0\n<img src=x>\n```\n<img src=y>",
    "````\n```\n<img src=x>",
    "$`$ <img src=x> $`$",
    "<div>\n`<img src=x>`\n</div>",
    "\\\\<img src=x>",
    "\\\\\\<img src=x>",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_loads_or_runs(attack: str) -> None:
    for text in (attack, f"Pears {attack} ripen", f"- Pears\n\n{attack}\n\nripen", f"> {attack}"):
        assert acting(tame(text)) == [], tame(text)
        assert acting(tame_line(text)) == [], tame_line(text)


def test_control_most_attacks_act_where_they_are_left_alone() -> None:
    assert sum(bool(acting(attack)) for attack in ATTACKS) > 0.8 * len(ATTACKS)


PIECES = (
    *ATTACKS, "`", "``", "```", "~~~", "\n", "\n\n", "\n```\n", "\n    ", "> ", "- ", "1. ", "# ", "|", "\\", "\\`", "$", "$$",
    "%%", "<", ">", "![", "[", "](", ")", "]:", "<img src=x>", "`<img src=x>`", " pears ", "=", "\t", "\n***\n", "\n| a |\n|---|\n",
    "<https://x.example>",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nor_does_any_mixture(text: str) -> None:
    tamed = tame(text)

    assert acting(tamed) == [], tamed
    assert tame(tamed) == tamed


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), max_size=4))
def test_nor_do_titles_of_links_beside_one_another(titles: list[str]) -> None:
    line = ", ".join(titled(f"n{number}", tame_name(title)) for number, title in enumerate(titles))

    assert acting(f"**Related:** {line}", linked=True) == [], line


def test_a_file_that_no_link_can_lead_to_is_named_by_its_title() -> None:
    assert titled("C# build", "The build is slow") == "The build is slow"
    assert titled("c-build", "The build is slow") == "[[c-build|The build is slow]]"


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.integers(1, 80))
def test_nor_what_is_cut(text: str, limit: int) -> None:
    assert acting(tame(text, limit)) == []
    assert acting(tame_line(text, limit)) == []


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), max_size=3))
def test_nor_several_one_after_the_other(texts: list[str]) -> None:
    assert acting("\n\n".join(map(tame, texts))) == []


@pytest.mark.parametrize(
    "text",
    [
        "Use `Vec<String>` and `a < b`, since `<img>` is no tag there.",
        "```html\n<img src=x>\n[[a]]\n```\n\nAnd:\n\n~~~\n<iframe>\n~~~",
        "a < b, 3 <4, x <- y, <https://example.com/a?b=c>",
        "[docs](https://example.com), [mail](mailto:a@b.example), [file](docs/a.md#b)",
        "# Heading\n\n- [ ] a task\n- **bold** `code`\n\n> [!note] Said\n> so\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "It costs $5, or 100% of it.",
    ],
)
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert tame(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A Vec<String> is", "A Vec\\<String> is"),
        ("`= this.x`", "`\\= this.x`"),
        ("1. Run\n   ```sh\n   make <all>\n   ```\n2. Done", "1. Run\n```sh\n   make <all>\n```\n2. Done"),
        ("```dataview\nLIST", "```text\nLIST\n```"),
        ("see [x](javascript:1)", "see [x] (javascript:1)"),
    ],
)
def test_what_would_act_is_shown_instead(text: str, shown: str) -> None:
    assert tame(text) == shown


def test_a_title_is_no_markdown_and_keeps_its_signs() -> None:
    assert tame_name("Use Vec<String> for <% x %> in [[a|the]] list") == "Use Vec<String> for < % x %> in the list"


@pytest.mark.parametrize("code", ["= this.x", " $= dv", "<% x %>", "a = b"])
def test_code_between_backticks_of_ours_is_no_query(code: str) -> None:
    assert acting(f"`{tame_code(code)}`") == []


@pytest.mark.parametrize("piece", ["\\", "](", "[", "`", "<", "!", "~~~\n", "`` `"])
def test_a_long_text_takes_no_longer_than_its_length_allows(piece: str) -> None:
    began = time.process_time()
    tame(piece * (12_000 // len(piece)))

    assert time.process_time() - began < 0.5

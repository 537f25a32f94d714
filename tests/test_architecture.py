"""The arrows of ARCHITECTURE.md: which package may import which."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "kite_memory"

BASE = {"model", "errors", "text", "system"}
"""What any package may import: values, errors, pure text, and the operating system."""
ALLOWED: dict[str, set[str]] = {
    "model": {"model"},
    "text": {"text", "model", "errors"},
    "system": {"system", "errors"},
    "projects": {"projects", *BASE},
    "redaction": {"redaction", *BASE},
    "sources": {"sources", "projects", "redaction", *BASE},
    "timeline": {"timeline", *BASE},
    "distill": {"distill", "redaction", *BASE},
    "vault": {"vault", *BASE},
    "recall": {"recall", "redaction", *BASE},
    "tools": {"tools", "vault", "recall", "timeline", "redaction", *BASE},
    "team": {"team", "tools", "vault", "recall", "redaction", *BASE},
    "mcp_server": {"mcp_server", "tools", *BASE},
    "exchange": {"exchange", "sources", "vault", "redaction", *BASE},
    "web": {"web", "text", "errors"},
    "agents": {"agents", "errors", "system"},
    "sync": {"sync", *BASE},
    "extensions": {"extensions", "sources", "distill", "recall", "timeline", *BASE},
    "app": {
        "app", "sources", "projects", "timeline", "distill", "vault", "recall", "redaction", "tools", "team", "exchange", "sync",
        "config", *BASE,
    },
    "daemon": {"daemon", "app", "distill", "sources", "vault", "endpoint", "paths", *BASE},
    "hook_client": {"paths", "endpoint"},
    "endpoint": {"paths"},
    "tui": {"tui", "timeline", "recall", "text", "errors"},
    "wiring": {
        "wiring", "app", "daemon", "sources", "projects", "timeline", "distill", "vault", "recall", "redaction", "tools", "team",
        "sync", "extensions", "protected", "log_lines", "endpoint", "paths", "config", "keys", *BASE,
    },
    "config": {"extensions", "paths", "errors"},
    "keys": {"system", "errors"},
    "protected": {"redaction", "system", "errors"},
    "log_lines": {"config", "redaction", "text"},
    "paths": set(),
    "errors": set(),
}  # fmt: skip

AT_THE_TOP = {"cli", "__main__", "__init__"}
"""May import everything."""

HEAVY = {
    "anthropic", "voyageai", "httpx2", "pydantic", "rich", "textual", "typer", "watchdog",
    "jinja2", "markdown_it", "mcp", "starlette", "uvicorn", "psycopg", "psycopg_pool", "pgvector", "boto3", "botocore",
    "keyring", "pyrage", "jwt",
}  # fmt: skip
"""Slow to import: only inside the function that needs them, except where a whole module exists for one of them."""
AT_HOME = {
    "watchdog": {"daemon/daemon.py"},
    "typer": {"cli"},
    "rich": {"tui"},
    "textual": {"tui"},
    "mcp": {"mcp_server"},
    "starlette": {"mcp_server", "web"},
    "uvicorn": {"mcp_server", "web"},
    "jinja2": {"web"},
    "markdown_it": {"web"},
    "psycopg": {"team/postgres"},
    "psycopg_pool": {"team/postgres"},
    "pgvector": {"team/postgres"},
    "boto3": {"team/postgres"},
    "botocore": {"team/postgres"},
    "jwt": {"mcp_server/oidc.py"},
}

MOST_LINES = 600
MOST_FILES = 25
MOST_FILES_IN_ALL = 280
MOST_METHODS = 25
MOST_PARAMETERS = 10
MOST_LINES_OF_A_FUNCTION = 80
MANY_PARAMETERS = {"cli/bridging.py: serve", "cli/reviewing.py: review"}
"""A command's parameters are its options: each is documented, and parsed, where it is declared."""
FORMER = {
    "module": """
        moments desk saying settling helping letting_go taking_in looking_back gardening anchoring reception heap showing errands
        bundles working near given halves spelling places colleagues hydration among heeding signs acting sidecar keeping restating
        gathering dividing admit booking theories telling leaving seals starting echo
    """,
    "class": """
        Moments Desk Reliance Door Teller House Look Roused LettingGo Telling Told Asked Given Held Kept Known Near Part Piece Place
        Places Standing Thread Use Waiting Wanted
    """,
    "function or variable": """
        anchoring born branch_told card_told colleagues_of gardening hear heard_before hindrances hit_told house leave_nothing
        let_go_again letting_go look look_at looks note_told nobody occasion_told taking_in teller tend ticking errand error_told
        telling_less telling_lines told_of told_uptake
    """,
}
"""Names that explained nothing to a stranger, or stood for several things."""
FORMER_WORDS = re.compile(r"\b(?:told|untold|tells|nobody|nobodys|whoever|is none|are none|lies in|walk about)\b")
"""Mannered words, in lower case, with blanks in place of underscores."""
REFERENCE = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)`(?!`)")
"""A name within another one, in a docstring."""
QUOTED = re.compile(r"``[^`]*``|`[^`]*`|«[^»]*»|“[^”]*”")
"""Names of tables and words of other people, in docstrings and comments."""


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "assets" not in path.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, top_only: bool) -> set[str]:
    tree = parsed(path)
    found: set[str] = set()
    nodes = _top_level(tree) if top_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.update({node.module} | {f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _top_level(tree: ast.Module) -> list[ast.stmt]:
    """What runs at import; `if TYPE_CHECKING` blocks do not."""
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_arrows_point_inward() -> None:
    offenders: dict[str, set[str]] = {}
    for path in modules():
        if (package := package_of(path)) in AT_THE_TOP:
            continue
        allowed = ALLOWED[package]
        ours = {name.split(".")[1] for name in imports(path, top_only=False) if name.startswith("kite_memory.")}
        if wrong := ours - {"__version__"} - allowed:
            offenders[path.relative_to(PACKAGE).as_posix()] = wrong

    assert offenders == {}


def test_heavy_packages_are_imported_where_used() -> None:
    offenders: dict[str, set[str]] = {}
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        at_top = {each.split(".")[0] for each in imports(path, top_only=True)} & HEAVY
        if wrong := {package for package in at_top if not any(name.startswith(home) for home in AT_HOME.get(package, set()))}:
            offenders[name] = wrong

    assert offenders == {}


def test_one_function_syncs() -> None:
    syncing = [path.name for path in modules() if "os.fsync" in path.read_text(encoding="utf-8")]

    assert syncing == ["private_files.py"], "call `sync_file`: macOS has a sync of its own"


def test_the_hook_client_imports_the_standard_library_alone() -> None:
    import sys

    names = {name.split(".")[0] for name in imports(PACKAGE / "hook_client.py", top_only=False)}

    assert names <= set(sys.stdlib_module_names) | {"kite_memory"}


def test_every_package_is_drawn() -> None:
    drawn = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")

    for folder in PACKAGE.iterdir():
        if folder.is_dir() and (folder / "__init__.py").exists():
            assert f"  {folder.name}/" in drawn, folder.name


def test_no_module_is_longer_than_can_be_read() -> None:
    lengths = {path.relative_to(PACKAGE).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}

    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_no_folder_holds_more_than_can_be_seen() -> None:
    held = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in modules())

    assert {folder: count for folder, count in held.items() if count > MOST_FILES} == {}


def test_the_package_stays_small_enough_to_find_ones_way() -> None:
    assert len(modules()) <= MOST_FILES_IN_ALL


def test_a_class_has_one_subject() -> None:
    public: dict[str, int] = {}
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
                public[f"{path.relative_to(PACKAGE).as_posix()}: {node.name}"] = sum(each.name[0] != "_" for each in methods)

    assert {name: count for name, count in public.items() if count > MOST_METHODS} == {}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(PACKAGE).as_posix()}: {node.name}", node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    taken = function.args
    named = [each.arg for each in (*taken.posonlyargs, *taken.args, taken.vararg, *taken.kwonlyargs, taken.kwarg) if each]
    return [name for place, name in enumerate(named) if place or name not in {"self", "cls"}]


def test_a_function_is_given_what_can_be_kept_in_mind() -> None:
    assert {name for name, function in functions() if len(parameters(function)) > MOST_PARAMETERS} == MANY_PARAMETERS


def test_no_function_is_longer_than_can_be_seen() -> None:
    lengths = [(name, (function.end_lineno or 0) - function.lineno + 1) for name, function in functions()]

    assert [(name, length) for name, length in lengths if length > MOST_LINES_OF_A_FUNCTION] == []


def names_defined(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that a module defines, each with what it names."""
    yield "module", path.stem
    for node in ast.walk(parsed(path)):
        match node:
            case ast.ClassDef(name=name):
                yield "class", name
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
            ):
                yield "function or variable", name


def test_no_former_name_comes_back() -> None:
    former = {(kind, name) for kind, names in FORMER.items() for name in names.split()}
    offenders = [
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in modules()
        for kind, name in set(names_defined(path))
        if (kind, name) in former or (kind == "class" and name.startswith("Discreet"))
    ]

    assert offenders == []


def test_docstrings_refer_to_names_that_exist() -> None:
    defined: dict[str, set[str]] = {}
    for path in modules():
        tree = parsed(path)
        defined.setdefault(path.parent.name, set()).add(path.stem)
        defined.setdefault(path.parent.parent.name, set()).add(path.parent.name)
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for owner, name in [
            (tree, path.parent.name if path.stem == "__init__" else path.stem),
            *((each, each.name) for each in classes),
        ]:
            defined.setdefault(name, set()).update(_members(owner))
    offenders = [
        f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}: {found}"
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for found in REFERENCE.findall(node.value.value)
        if (parts := found.split("."))[0] in defined
        and parts[-1] not in {"md", "toml"}
        and any(owner in defined and name not in defined[owner] for owner, name in pairwise(parts))
    ]

    assert offenders == []


def _members(owner: ast.AST) -> Iterator[str]:
    for node in ast.walk(owner):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every name, comment and docstring of a module with its line; a name as its words."""
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string.lower().replace("_", " ")
        elif token.type == tokenize.COMMENT:
            yield token.start[0], QUOTED.sub("", token.string)
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield node.lineno, QUOTED.sub("", docstring)


def test_no_mannered_word_comes_back() -> None:
    offenders = [
        f"{path.relative_to(PACKAGE).as_posix()}:{line}: {' '.join(found)}"
        for path in modules()
        for line, text in prose_of(path)
        if (found := FORMER_WORDS.findall(" ".join(text.split()).replace("Nobody", "nobody").replace("Whoever", "whoever")))
    ]

    assert offenders == []


def test_a_public_class_means_one_thing() -> None:
    named: dict[str, list[str]] = {}
    for path in modules():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())

    assert {name: paths for name, paths in named.items() if len(paths) > 1} == {}


def test_loggers_are_called_after_their_packages() -> None:
    offenders: dict[str, str] = {}
    for path in modules():
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Call(func=ast.Attribute(attr="getLogger"), args=[ast.Constant(value=str(name))]):
                    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
                    if name.startswith("kite_memory") and not f"{module}.".startswith(f"{name}."):
                        offenders[module] = name

    assert offenders == {}


def test_every_goal_has_a_planted_bug() -> None:
    goals = sorted((Path(__file__).parent / "goals").glob("test_goal_*.py"))

    assert goals
    assert [goal.name for goal in goals if "def test_control_" not in goal.read_text(encoding="utf-8")] == []

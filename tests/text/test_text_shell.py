"""What of a shell's line is a program, what it is to do, and what only looks."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.text.shell import _COMPARED, Invocation, acting, ending, invocations, purposes, writes


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git -C /home/ada/orchard push --force origin main", ["git push"]),
        ("cd orchard && GATE=open go test ./... -run 'Pear|Plum' 2>&1 | tail -20", ["cd", "go test", "tail"]),
        ("npm run lint; pnpm install", ["npm run lint", "pnpm install"]),
        ("sudo apt-get install -y graft", ["apt-get install"]),
        ("timeout 60 go test ./...", ["go test"]),
        ("npx eslint .", ["eslint"]),
        ("python3 -m pytest -q tests", ["pytest"]),
        ("mise exec -- go build ./...", ["mise exec go", "go build"]),
        ("uv run pytest tests", ["uv run pytest", "pytest"]),
        ("docker-compose -f gate.yml up -d", ["docker compose up"]),
        ("gh api repos/ada/orchard/pulls --paginate | jq .x", ["gh api", "jq"]),
        ("gh pr view 12 --json title", ["gh pr view"]),
        ("./bin/orchard prune --all pear", ["orchard prune"]),
        ("cargo +nightly test", ["cargo test"]),
        ("for f in *.go; do gofmt -l $f; done", ["gofmt"]),
        ("if [ -f gate ]; then make test; fi", ["make test"]),
        ("(cd gate; make -C lock lint)", ["cd", "make lint"]),
        ("command -v graft && command graft --all", ["graft"]),
        ("echo 'git push' # git pull", ["echo"]),
        ("git commit -m \"$(cat <<'EOF'\ngit push now\nEOF\n)\"", ["git commit"]),
        ("cat > gate.sh <<EOF\nrm -rf pears\nEOF\nls", ["cat", "ls"]),
        ("read answer <<<yes\npytest", ["read answer", "pytest"]),
        ("cat <<<'plum' | sort\nmake test", ["cat", "sort", "make test"]),
        ("size=$((1<<shift))\nmake test", ["make test"]),
        ("GATE=open", []),
        ("", []),
        ("'", []),
    ],
)
def test_a_line_s_programs_and_what_they_are_to_do(line: str, expected: list[str]) -> None:
    assert [each.purpose for each in invocations(line)] == expected


def test_flags_come_without_values_and_short_ones_also_by_letter() -> None:
    (commit,) = invocations("GATE=open git commit -am 'prune' --author=ada")

    assert commit == Invocation(
        program="git",
        words=("commit", "prune"),
        depth=1,
        flags=frozenset({"-am", "-a", "-m", "--author"}),
        settings=("GATE=open",),
    )


def test_what_only_looks_or_shapes_output_is_no_purpose() -> None:
    assert purposes("cd gate && cat a | grep b | head; make lint | tail -3") == {"make lint"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cd gate && cat pytest.ini | grep pytest; pytest -q 'a b' | tail -3", ["pytest -q a b"]),
        ("echo pytest", []),
        ('echo "$(pytest -q)"', ["echo $(pytest -q)"]),
        ("find . -name '*.py' | xargs eslint", ["find . -name *.py", "xargs eslint"]),
        ('"$PYTHON" -m pytest', ["$PYTHON -m pytest"]),
        ("cat > run.sh <<EOF\npytest\nEOF\nmake", ["make"]),
    ],
)
def test_what_a_line_runs_is_kept_with_its_arguments(line: str, expected: list[str]) -> None:
    assert acting(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("make lint", "reported"),
        ("cd gate && make lint && echo done", "reported"),
        ("(cd gate; make lint)", "reported"),
        ("ls; make lint > log 2>&1", "reported"),
        ("set -o pipefail; make lint | tail -3", "reported"),
        ("set -euo pipefail\nmake lint | tail -3\nmake test", "reported"),
        ("cat pears | python sort.py", "reported"),
        ("", "reported"),
        ("make lint 2>&1 | tail -3", "shown"),
        ("(cd gate && make lint) 2>&1 | head", "shown"),
        ("make lint |\n tail -3", "shown"),
        ("make lint; echo $?", "shown"),
        ("make lint || true", "shown"),
        ("make lint & wait", "shown"),
        ("make lint &> log && make test >& log", "reported"),
        ("make lint && echo yes || echo no", "shown"),
        ("go vet ./... | head && go test ./... | tail -5", "shown"),
        ("make lint | wc -l", "hidden"),
        ("make lint 2>&1 | grep -E '(error|warning)' | head -20", "hidden"),
        ("make lint | tee log | wc -l", "hidden"),
        ("{ make lint; } | grep pear", "hidden"),
    ],
)
def test_how_a_line_ended_shows_so_much_of_its_programs(line: str, expected: str) -> None:
    assert ending(line) == expected


@given(st.text(max_size=400) | st.lists(st.sampled_from(list("'\"`\\|&;<>(){}$# \n-=ab")), max_size=80).map("".join))
def test_any_line_is_read(line: str) -> None:
    found = invocations(line)

    assert ending(line) in ("reported", "shown", "hidden")
    assert isinstance(acting(line), list)
    assert len(found) <= 24
    assert all(each.program and each.depth <= len(each.words) for each in found)


@pytest.mark.parametrize("runs_another", ["sudo ", "npx ", "env ", "uv run ", "python -m "])
def test_a_line_that_only_ever_runs_another_program_is_read(runs_another: str) -> None:
    assert len(invocations(runs_another * 2_000)) <= 24


def test_a_few_programs_may_each_run_the_next_one() -> None:
    assert purposes("sudo -E env GATE=open timeout 60 nice uv run python -m pytest -q") == {"uv run python", "pytest"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sed -i 's/pear/plum/' a.py b.py", [("a.py", "edited"), ("b.py", "edited")]),
        ("sed -i '' -e 's|pear|plum|g' src/a.py && make test", [("src/a.py", "edited")]),
        ("sed -i '12,14d' a.py", [("a.py", "edited")]),
        ("perl -pi -e 's/pear/plum/' a.go", [("a.go", "edited")]),
        ("sed -n '1,5p' a.py", []),
        ("grep -rl pear . | xargs sed -i 's/pear/plum/'", [("", "xargs sed -i")]),
        ("find . -name '*.go' -exec sed -i 's/pear/plum/' {} +", [("", "find sed -i")]),
        ("for f in *.go; do sed -i 's/pear/plum/' $f; done", [("", "sed -i")]),
        ("git mv a/pear.go b/pear.go", [("b/pear.go", "moved")]),
        ("mv pear.go plum.go trees/", [("trees/pear.go", "moved"), ("trees/plum.go", "moved")]),
        ("cp pear.go plum.go", [("plum.go", "copied")]),
        ("rm -rf build && rm pear.go", [("pear.go", "removed")]),
        ("cat > pear.py <<'EOF'\nx = 1 > 2\nEOF", [("pear.py", "written")]),
        ("[[ pear > apple ]] && make", []),
        ("if [[ ! -f a && 'x ]] y' > pear ]]; then echo 1 >> log.txt; fi", [("log.txt", "written")]),
        ('[[ pear > "a \\" ]] b" && \\" < x ]] && make > log.txt', [("log.txt", "written")]),
        ("grep '[[ x > y ]]' pears > found.txt", [("found.txt", "written")]),
        ("cd trees && cat >> list.md <<EOF\npear\nEOF", [("trees/list.md", "written")]),
        ('echo pear > "two words.txt"', [("two words.txt", "written")]),
        ("go test ./... 2>&1 | tee out.log > /dev/null", []),
        ("go run . > /tmp/pear.txt 2> errors.txt", []),
        ("python3 - <<'EOF'\np = 'a/pear.py'\nopen(p, 'w').write('')\nEOF", [("a/pear.py", "edited")]),
        ("python -c \"open('pear.json', 'w').write('{}')\"", [("pear.json", "edited")]),
        ("cd pump && go get orchard/valve@v2 && go mod tidy", [("pump/go.mod", "changed by go get")]),
        ("npm install --save-dev vitest", [("package.json", "changed by npm install")]),
        ("npm install && npm install -g pear && uv run pytest", []),
        ("gofmt -w a.go b.go", [("a.go", "formatted"), ("b.go", "formatted")]),
        ("mise run fmt && mise run lint", [("", "mise run fmt")]),
        ("black --check . && gofmt -l .", []),
        ("git merge origin/main", [("", "git merge origin/main")]),
        ("git rebase --continue", [("", "git rebase --continue")]),
        ("git pull --rebase && git checkout pears", [("", "git pull"), ("", "git checkout pears")]),
        ("git checkout -b pears && git switch -c plums", []),
        ("git checkout --theirs a.go && git add a.go", [("a.go", "restored")]),
        ("git stash && make test && git stash pop", []),
        ("git stash pop", [("", "git stash pop")]),
        ("git log --format='%h > %s' && git diff", []),
    ],
)
def test_the_files_that_a_line_changes(line: str, expected: list[tuple[str, str]]) -> None:
    assert [(each.path, each.how) for each in writes(line)] == expected


@pytest.mark.parametrize("begun", ["[[ ", '[[ \\" ', "[[ 'a' "])
def test_tests_that_do_not_end_are_read_in_linear_time(begun: str) -> None:
    began = time.process_time()
    _COMPARED.sub("", begun * 8_000)

    assert time.process_time() - began < 1


@given(
    st.text("ab >|&;<'\"$./\n", max_size=40) | st.sampled_from(["sed", "mv", "git", "cp"]).map(lambda program: f"{program} -i > ")
)
def test_of_any_line_it_can_be_asked_what_it_changes(line: str) -> None:
    assert all(each.how for each in writes(line))

"""Lists of what is to do, as agents' tools are given them."""

import pytest

from kite_memory.sources.common.event_builder import Toolbox
from kite_memory.sources.common.tool_text import rendered_call, todo_lines

WRITTEN = "[x] Prune the pears\n[>] Graft the plums\n[ ] Water"


@pytest.mark.parametrize("key", ["content", "step", "description", "title", "text"])
def test_a_list_has_a_line_for_each_item(key: str) -> None:
    items = [
        {key: "Prune  the\npears", "status": "completed", "id": "1"},
        {key: "Graft the plums", "status": "in_progress"},
        {key: "Water", "status": "pending"},
    ]

    assert todo_lines(items) == WRITTEN


@pytest.mark.parametrize(
    "value", [None, "text", [], {}, [1], [{"status": "pending"}], [{"content": "x"}], [{"content": 5, "status": "pending"}]]
)
def test_what_is_no_list_of_todos_is_not_reported_as_one(value: object) -> None:
    assert todo_lines(value) == ""


def test_a_long_list_is_reported_whole() -> None:
    items = [{"content": f"Row {number} of the orchard is pruned", "status": "pending"} for number in range(60)]

    result = rendered_call("TodoWrite", {"todos": items})

    assert result.count("[ ] Row") == 60


def test_it_is_informed_whichever_agent_asks() -> None:
    toolbox = Toolbox()

    planned = toolbox.rendered("update_plan", {"explanation": "Spring", "plan": [{"step": "Prune", "status": "completed"}]})
    ticked = toolbox.rendered("update_todo_list", {"todos": "[x] Prune\n[-] Graft\n" + "[ ] Water\n" * 60})

    assert planned == "explanation: Spring\nplan:\n[x] Prune"
    assert ticked.count("[ ] Water") == 60

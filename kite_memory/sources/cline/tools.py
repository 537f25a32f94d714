"""The tools of Cline and Roo Code: which are which."""

from kite_memory.sources.common.event_builder import Toolbox

TOOLS = Toolbox(
    shells=frozenset({"execute_command", "run_commands", "bash", "run_command"}),
    outputs=frozenset({"read_command_output"}),
    readers=frozenset({"read_file", "read_files"}),
    lookers=frozenset(
        {
            *("read_file", "read_files", "list_files", "search_files", "list_code_definition_names", "codebase_search"),
            *("search_codebase", "fetch_web_content", "web_fetch"),
        }
    ),
    writers={
        "write_to_file": "written",
        "new_file": "created",
        "replace_in_file": "edited",
        "apply_diff": "edited",
        "apply_patch": "edited",
        "edit_file": "edited",
        "edit": "edited",
        "editor": "edited",
        "insert_content": "edited",
        "search_and_replace": "edited",
        "search_replace": "edited",
    },
    paths=("path", "file_path", "filePath"),
    asking={"ask_followup_question": "question", "ask_question": "question"},
)
SPEAKING = {"attempt_completion": "result", "plan_mode_respond": "response", "submit_and_exit": "summary"}
"""Tools by which the agent speaks: what it says, and no call."""

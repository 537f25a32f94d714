"""Every provider, and the class that holds it to the contract: a line for each."""

HELD = {
    "claude-code": "test_claude_code_source.TestClaudeCode",
    "codex": "test_codex_source.TestCodex",
    "gemini-cli": "test_gemini_source.TestGeminiLines",
    "copilot-cli": "test_copilot_cli_source.TestCopilotCli",
    "cline": "test_cline_source.TestCline",
    "roo-code": "test_roo_code_source.TestRooCode",
    "aider": "test_aider_source.TestAider",
    "opencode": "test_opencode_source.TestOpenCode",
    "cursor": "test_cursor_source.TestCursor",
    "antigravity": "test_antigravity_source.TestAntigravity",
    "kilo-code": "test_kilo_source.TestKilo",
    "pi": "test_pi_source.TestPi",
    "qwen-code": "test_qwen_code_source.TestQwenCode",
    "goose": "test_goose_source.TestGoose",
    "droid": "test_droid_source.TestDroid",
    "git": "test_git_log_source.TestGitLog",
}

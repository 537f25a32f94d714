"""Planning, showing and making changes to agents' settings: what `kmem up` and `kmem hooks` share."""

from pathlib import Path

from kite_memory.agents import registry
from kite_memory.agents.hook_command import fast_command
from kite_memory.agents.registry import Agent
from kite_memory.agents.settings_edit import Edit, Nothing, Plan, apply, backed_up, diff, read_settings
from kite_memory.cli.console import ask, say, tell
from kite_memory.config import Config


def backups(config: Config) -> Path:
    return config.state / "backups"


def agents(config: Config) -> tuple[Agent, ...]:
    """Those that are on this machine: Claude Code always, the others where they have left their folder."""
    codex, gemini = config.codex_root, config.gemini_root
    return registry.agents(
        claude_root=config.claude_root,
        codex_root=codex if codex is not None and codex.is_dir() else None,
        gemini_root=gemini if gemini is not None and (gemini / "tmp").is_dir() else None,
    )


def plan_install(agent: Agent) -> Plan:
    return agent.plan_install(read_settings(agent.settings), fast_command())


def plan_uninstall(agent: Agent, config: Config) -> Plan:
    return agent.plan_uninstall(read_settings(agent.settings), backed_up(agent.settings, backups(config)))


def show(agent: Agent, plan: Plan) -> None:
    """What would be done, as data."""
    match plan:
        case Nothing(because=because):
            tell(f"{agent.title}: {because}")
        case Edit() as edit:
            tell(f"{agent.title}: {edit.because}")
            say(diff(edit, agent.settings).rstrip("\n"))


def carry_out(agent: Agent, plan: Plan, config: Config, *, yes: bool) -> bool:
    """Show the change, ask where nobody has agreed yet, make it. Whether the settings are now as planned."""
    match plan:
        case Nothing(because=because):
            tell(f"{agent.title}: {because}")
            return True
        case Edit() as edit:
            tell(f"{agent.title}: {edit.because}")
            tell(diff(edit, agent.settings).rstrip("\n"))
            if not yes and not ask(f"Change {agent.settings}?"):
                return False
            backup = apply(edit, agent.settings, backups(config))
            tell(f"changed {agent.settings}; what it was is kept in {backup}")
            return True

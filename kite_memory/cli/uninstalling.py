"""`kmem uninstall`: removes everything that was set up outside Kite Memory's own folders."""

from pathlib import Path
from typing import Annotated

import typer

from kite_memory import config as configuration
from kite_memory.agents.settings_edit import Edit
from kite_memory.cli import bridging, setup
from kite_memory.cli.backend import daemon_runs
from kite_memory.cli.console import ask, complain, tell, watched
from kite_memory.cli.everyday import down
from kite_memory.cli.help import add
from kite_memory.config import Config
from kite_memory.errors import KiteError, UsageError
from kite_memory.wiring.launch import unlink_commands

PANEL = "Set-up"


def uninstall(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Remove Kite Memory from your agents and stop its daemon.

    This removes hooks, MCP servers, instructions, commands, the service and the link on the PATH. Notes and settings stay.

    Example: kmem uninstall --yes
    """
    settings = configuration.load()
    if not yes and not ask("Remove Kite Memory from your agents and stop its daemon?"):
        raise (
            KiteError("nothing was changed") if watched() else UsageError("nothing was changed", hint="--yes agrees without asking")
        )
    well = all([_unhook(settings), _disconnect(settings), _remove_service(settings)])
    for link in unlink_commands(Path.home()):
        tell(f"removed {link}")
    if daemon_runs():
        down()
    tell(f"your notes stay in {settings.vault}, the timeline and the index in {settings.state}, settings in {settings.file}")
    if not well:
        raise typer.Exit(1)


def _unhook(settings: Config) -> bool:
    well = True
    for agent in setup.agents(settings):
        try:
            if isinstance(plan := setup.plan_uninstall(agent, settings), Edit):
                setup.carry_out(agent, plan, settings, yes=True, brief=True)
        except KiteError as error:
            complain(error)
            well = False
    return well


def _disconnect(settings: Config) -> bool:
    well = True
    for each in bridging.standings(settings):
        try:
            todo = bridging.steps(each.agent, settings, remove=True, lines=True, project=None)
            if changes := [step for step in todo if isinstance(step.plan, Edit)]:
                bridging.carry_out(each.agent, changes, settings, yes=True, brief=True)
        except KiteError as error:
            complain(error)
            well = False
    return well


def _remove_service(settings: Config) -> bool:
    from kite_memory.daemon import service_units
    from kite_memory.wiring.daemon import service_of

    outcome = service_units.uninstall(service_of(settings)[1])
    for line in outcome.lines:
        tell(line)
    return outcome.done


def add_to(app: typer.Typer) -> None:
    add(app, uninstall, panel=PANEL)

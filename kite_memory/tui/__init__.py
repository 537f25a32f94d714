"""Interactive view of the timeline in a terminal."""

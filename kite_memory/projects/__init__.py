"""Which project, repository and branch a path belongs to."""

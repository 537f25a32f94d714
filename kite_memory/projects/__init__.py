"""Find the project, repository and branch of a path."""

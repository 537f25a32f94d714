"""What other packages build on: the interfaces, the loading of installed extensions, and their contract suites."""

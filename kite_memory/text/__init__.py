"""Pure functions on text: shell command lines, error signatures, quoting, ages, Unicode. No I/O."""

"""Pure text: shell command lines, failure lines, error signatures, quoting, ages, Unicode. No I/O."""

"""Parse the tasks of Cline and Roo Code into events."""

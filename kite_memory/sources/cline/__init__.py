"""The tasks of Cline and Roo Code read into events."""

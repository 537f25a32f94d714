"""Data types shared by all packages. No I/O, and no imports of this project's modules from outside this package."""

"""Run `bench.vault.lifecycle` by its earlier name, which older notes have."""

from bench.vault.lifecycle import main

if __name__ == "__main__":
    main()

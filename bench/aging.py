"""Run `bench.vault.aging` by its earlier name, which older notes have."""

from bench.vault.aging import main

if __name__ == "__main__":
    main()

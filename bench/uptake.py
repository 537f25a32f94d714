"""Run `bench.recall.uptake` by its earlier name, which older notes have."""

from bench.recall.uptake import main

if __name__ == "__main__":
    main()

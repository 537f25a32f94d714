"""Run `bench.recall.opening` by its earlier name, which older notes have."""

from bench.recall.opening import main

if __name__ == "__main__":
    main()

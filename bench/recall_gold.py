"""Run `bench.recall.recall_gold` by its earlier name, which older notes have."""

from bench.recall.recall_gold import main

if __name__ == "__main__":
    main()

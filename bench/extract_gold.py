"""Run `bench.extraction.extract_gold` by its earlier name, which older notes have."""

from bench.extraction.extract_gold import main

if __name__ == "__main__":
    main()

"""The pages made of the vault as a whole: MEMORY.md, Review.md, entities, the graph."""

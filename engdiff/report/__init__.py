"""One document, many faces. Reporters read documents only."""

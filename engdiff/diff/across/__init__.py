"""Two captures of different engines: the same words for the same things, and what has no counterpart."""

"""Two captures in, ranked findings out."""

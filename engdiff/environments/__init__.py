"""Where an engine lives: an environment made by uv, or an interpreter that the user names."""

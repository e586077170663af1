"""The documents: frozen, versioned, JSON. Nothing here knows an engine."""

class TrtllmAttention:
    """The default."""

"""engdiff: what moved between two LLM serving engine versions, what it cost, and what pins it back."""

__version__ = "0.1.0"

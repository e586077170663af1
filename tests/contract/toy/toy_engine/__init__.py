"""The smallest engine there is, as somebody else's distribution would bring it."""

"""One small program a peer, run by the Python of that peer's own virtual environment."""

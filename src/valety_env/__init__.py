"""Two trick-taking card games, Valety and Polignac, as reinforcement-learning environments."""

__version__ = "0.1.0"

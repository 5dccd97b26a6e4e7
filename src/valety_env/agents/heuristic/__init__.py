"""`heuristic`: a player by rules of sense, for every game that `Rules` can describe.

It looks at one card at a time and asks what a good player asks. Does it take the trick, and what
will lie in it? How likely do the others hold something higher, or the jack, or nothing of the suit?
What is left of the suit afterwards: winners, exits, guards of a jack? The answers are numbers
(`judge`), and a card's worth is their weighted sum. The weights are fitted, not guessed:
cards were tried in positions of the player's own games, the deals played on to their ends, and the
points regressed on the answers, over and over (tools/fit_heuristic.py). Nothing is searched,
nothing drawn.

A general makes it another game: a few rules of their own decide whether to announce one, how to
play it and how to stop it.
"""

from __future__ import annotations

import numpy as np

from valety_env.agents.heuristic.choice import (
    best_card,
    card_chances,
    heuristic_action,
    heuristic_actions,
    plain_actions,
)
from valety_env.cards import NUM_CARDS
from valety_env.rules import Rules

__all__ = ["HeuristicAgent", "best_card", "heuristic_action", "heuristic_actions"]


class HeuristicAgent:
    """A player by rules of sense.

    Attributes:
        name: `heuristic`, or `heuristic,general=0`.
    """

    def __init__(self, rules: Rules, general: bool = True) -> None:
        """Make the player.

        Args:
            rules: the rules it will play.
            general: False: it never announces.
        """
        self.general = general
        self.name = "heuristic" if general else "heuristic,general=0"
        self._rules = rules.packed
        self._plain = not rules.general

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each of N tables, as `Agent.act`; keys are not read."""
        actions = np.empty(len(legal), np.int64)
        if self._plain:
            plain_actions(self._rules, views, legal, actions)
        else:
            heuristic_actions(self._rules, views, legal, self.general, actions)
        return actions

    def chances(self, views: np.ndarray, legal: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Say how likely a player who thinks much as this one is to play given cards, as `Policy`.

        The player itself always plays the card that is worth most to it. But whoever weighs up
        what others hold by their plays had better not take them to be as strict: the less a card
        is worth, the less likely it is, by exp(points / 0.25).

        Raises:
            ValueError: for a game with generals.
        """
        if not self._plain:
            raise ValueError("how likely the heuristic's plays are is told without generals alone")
        chances = np.empty(len(legal))
        card_chances(self._rules, views, legal, actions, np.empty(NUM_CARDS), chances)
        return chances

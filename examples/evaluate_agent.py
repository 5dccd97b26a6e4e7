"""Write an agent of your own and see how it fares against the baselines, on duplicate deals.

python examples/evaluate_agent.py --deals 2000
"""

import numpy as np
import tyro

from valety_env import evaluate
from valety_env.arena.reports.terminal import print_evaluation


class LowestCard:
    """Always plays the lowest legal card, by rank.

    An agent is any object with a name and `act`. It gets N tables at once and has no memory: what
    it does at a table follows from that table's row alone, and from its key if it wants to draw.
    """

    name = "lowest card"

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Choose an action at each table.

        Args:
            views: what the seat to act knows, `valety_env.view.VIEW` (N,); unused here.
            legal: uint64 (N,), bit a is set where action a is legal: card 13 * suit + rank.
            keys: uint64 (N,), the source of randomness; unused here.
        """
        cards = np.arange(54)
        is_legal = legal[:, None] >> cards.astype(np.uint64) & np.uint64(1)
        # 52 is to pass and 53 to announce a general, in Polignac: it passes.
        rank = np.where(cards < 52, cards % 13, cards)
        return np.where(is_legal == 1, rank, 99).argmin(axis=1)


def main(game: str = "valety", deals: int = 500, matches: int = 100, seed: int = 0) -> None:
    """Evaluate it.

    Args:
        game: a game's name.
        deals: duplicate deals against each baseline.
        matches: duplicate matches against each baseline.
        seed: the same seed gives the same result.
    """
    opponents = ["random", "heuristic"]
    result = evaluate(LowestCard(), opponents, game=game, deals=deals, matches=matches, seed=seed)
    print_evaluation(result)


if __name__ == "__main__":
    tyro.cli(main)

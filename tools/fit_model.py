"""How freely must the heuristic choose, for what another agent plays to be as likely as it can be?

    python tools/fit_model.py                  # plays of pimc,worlds=40, some minutes
    python tools/fit_model.py --agent heuristic

`pimc` takes the other for a player who thinks as the heuristic does, but plays a card that is worth
less by d points exp(d / temperature) times less often, and some of his cards at random. This prints
the mean log-likelihood of an agent's plays against itself for temperatures and shares of random
plays. The highest is best; that of nothing but random plays is what an agent without any sense has.
`TEMPERATURE` in agents/heuristic/choice.py and `RANDOM_PLAYS` in agents/worlds.py come from here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from valety_env import make_agent
from valety_env._jit import kernel
from valety_env.agents import Agent
from valety_env.agents.heuristic.choice import weigh_cards
from valety_env.agents.heuristic.weights import WEIGHTS
from valety_env.arena import play_tables
from valety_env.cards import NUM_CARDS
from valety_env.episode import make_setup


@dataclass(frozen=True)
class Args:
    """Print how likely an agent's plays are to a softened heuristic.

    Example: python tools/fit_model.py --agent pimc,worlds=10 --deals 20
    """

    agent: str = "pimc,worlds=40"
    """whose plays, against itself"""
    deals: int = 60
    """how many it plays"""
    temperatures: tuple[float, ...] = (0.15, 0.2, 0.25, 0.3, 0.35, 0.5, 0.7, 1.0)
    """in points"""
    shares: tuple[float, ...] = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
    """of the plays that are made at random"""


class Noted:
    """An agent, and all that it was asked and answered where it had a choice."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.name = agent.name
        self.views: list[np.ndarray] = []
        self.legal: list[np.ndarray] = []
        self.cards: list[np.ndarray] = []

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        cards = self.agent.act(views, legal, keys)
        free = legal & (legal - np.uint64(1)) != 0
        self.views.append(views[free].copy())
        self.legal.append(legal[free])
        self.cards.append(cards[free])
        return cards


@kernel
def weigh_all(
    rules: np.ndarray,
    views: np.ndarray,
    legal: np.ndarray,
    weights: np.ndarray,
    worths: np.ndarray,
) -> None:
    for i in range(views.size):
        weigh_cards(rules[0], views[i], legal[i], weights, worths[i])


def main(args: Args) -> None:
    setup = make_setup("valety", episode="deal")
    noted = Noted(make_agent(args.agent, setup.played))
    seeds = np.arange(args.deals, dtype=np.uint64)
    play_tables(setup, [noted], np.zeros((args.deals, 2), np.int64), seeds, seeds[:1])
    legal, cards = np.concatenate(noted.legal), np.concatenate(noted.cards)
    worths = np.full((len(legal), NUM_CARDS), -np.inf)
    weights = WEIGHTS[int(setup.played.record.scoring)]
    weigh_all(setup.played.packed, np.concatenate(noted.views), legal, weights, worths)
    sizes = np.isfinite(worths).sum(axis=1)
    own = worths[np.arange(len(cards)), cards]
    table = Table("temperature", *map(str, args.shares), box=box.MARKDOWN)
    for temperature in args.temperatures:
        follows = 1 / np.exp((worths - own[:, None]) / temperature).sum(axis=1)
        told = [np.log((1 - x) * follows + x / sizes).mean() for x in args.shares]
        table.add_row(str(temperature), *(f"{value:.3f}" for value in told))
    console = Console(width=100)
    console.print(table)
    console.print(f"at random: {-np.log(sizes).mean():.3f}; {len(cards):,} plays of {args.agent}")


if __name__ == "__main__":
    main(tyro.cli(Args))

"""Tournaments: everybody meets everybody, every game is kept, and others may join later."""

from valety_env.arena.tournament.entrants import (
    Entrant,
    LineUp,
    against,
    checkpoints_in,
    enter,
    labels,
    round_robin,
)
from valety_env.arena.tournament.jobs import cores, processes
from valety_env.arena.tournament.plan import plan_tournament
from valety_env.arena.tournament.run import Tournament
from valety_env.arena.tournament.standings import Standings, read_standings
from valety_env.arena.tournament.store import DEAL, MATCH, Block, Store, StoreError

__all__ = [
    "DEAL",
    "MATCH",
    "Block",
    "Entrant",
    "LineUp",
    "Standings",
    "Store",
    "StoreError",
    "Tournament",
    "against",
    "checkpoints_in",
    "cores",
    "enter",
    "labels",
    "plan_tournament",
    "processes",
    "read_standings",
    "round_robin",
]

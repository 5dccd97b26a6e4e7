"""Fit the weights of the heuristic to its games and print them as heuristic/weights.py has them.

One round: the player plays itself; at random positions every legal card is tried and the deal, the
hidden cards as they lie, is played on to its end by the weights so far. The points that cards of
one position bring, less their mean, are regressed on the cards' features, less theirs. The fit is
the player of the next round; the mean of the last rounds is printed, and what it gains against the
weights in the package on deals that are played from every seat.

    python tools/fit_heuristic.py tricks       # Valety and Knaves; about two minutes
    python tools/fit_heuristic.py penalties    # Polignac for 3 to 6, without generals
"""

import argparse
import re
import time
from pathlib import Path

import numpy as np

from valety_env._jit import int64, kernel
from valety_env.agents import random
from valety_env.agents.chances import new_odds, weigh_odds
from valety_env.agents.heuristic import best_card
from valety_env.agents.heuristic import weights as package
from valety_env.agents.heuristic.features import (
    NUM_FEATURES,
    jacks_about,
    judge,
    new_features,
    new_suit,
    numbers_of,
    situation,
    weigh_suit,
)
from valety_env.cards import EMPTY, NUM_RANKS, ONE, count, lowest
from valety_env.engine import DEAL_OVER, STATE, deal_points, legal_actions, play, start_match
from valety_env.rng import mix
from valety_env.rules import SCORING_TRICKS, Rules, make_rules
from valety_env.view import VIEW, look

# The share of each game in the positions. The games for which the player is meant weigh most; the
# others keep the weights sensible under other rules.
MIXTURES = {
    "tricks": (
        (0.70, make_rules("valety")),
        (0.12, make_rules("knaves")),
        (0.10, make_rules("valety", trump="none")),
        (0.04, make_rules("valety-L8")),
        (0.04, make_rules("valety-L6")),
    ),
    "penalties": (
        (0.45, make_rules("polignac", general=False)),
        (0.20, make_rules("polignac", general=False, trump="last_card")),
        (0.10, make_rules("polignac", general=False, num_players=3)),
        (0.10, make_rules("polignac", general=False, num_players=5)),
        (0.10, make_rules("polignac", general=False, num_players=6)),
        (0.05, make_rules("polignac-classic", general=False)),
    ),
}
POSITIONS_A_DEAL = 3.0
SLIPS = 0.1  # the share of random cards in the games, so that unusual positions occur
RIDGE = 1e-4


@kernel
def own_points(rules: np.record, state: np.record, seat: int) -> float:
    """Return the deal points of a seat minus the mean of the others', charges negative."""
    own = 0.0
    others = 0.0
    for i in range(int64(rules.num_players)):
        points = float(deal_points(rules, state, i))
        if i == seat:
            own = points
        else:
            others += points / (int64(rules.num_players) - 1)
    return own - others if rules.scoring == SCORING_TRICKS else others - own


@kernel
def card_by(rules: np.record, state: np.record, view: np.record, weights: np.ndarray) -> int:
    """Return the card of the seat to act by some weights."""
    look(rules, state, int64(state.turn), view)
    return best_card(rules, view, legal_actions(rules, state), weights)


@kernel
def try_cards(
    rules: np.ndarray,
    room: np.ndarray,
    view: np.ndarray,
    weights: np.ndarray,
    seed: int,
    features: np.ndarray,
    points: np.ndarray,
    positions: np.ndarray,
    columns: np.ndarray,
) -> int:
    """Fill the rows of one round, one for each card tried, and return how many were filled.

    Args:
        rules: `RULES` (1,).
        room: `STATE` (2,), for the deal and for a card's consequences.
        view: `VIEW` (1,).
        weights: float64 (6, features), who plays.
        seed: fixes deals, positions and slips.
        features: float32 (rows, features).
        points: float32 (rows,).
        positions: int64 (rows,), the number of each row's position.
        columns: int64 (rows,), the situation of each row's card.
    """
    total = int64(rules[0].num_players) * int64(rules[0].hand_size)
    odds, found, answers = new_odds(), new_suit(), new_features()
    row = 0
    position = 0
    deal = 0
    while True:
        start_match(rules[0], room[0], np.uint64(seed), deal)
        key = mix(np.uint64(seed + 1), np.uint64(deal))
        deal += 1
        while room[0].phase < DEAL_OVER:
            bits = mix(key, np.uint64(int64(room[0].num_plays)))
            legal = legal_actions(rules[0], room[0])
            drawn = float(bits & np.uint64(0xFFFF)) / 65536.0
            if count(legal) > 1 and drawn * total < POSITIONS_A_DEAL:
                if row + count(legal) > len(points):
                    return row
                seat = int64(room[0].turn)
                left = legal
                while left != EMPTY:
                    card = lowest(left)
                    left &= left - ONE
                    suit = card // NUM_RANKS
                    look(rules[0], room[0], seat, view[0])
                    weigh_odds(rules[0], view[0], odds)
                    on_table, in_hand = jacks_about(rules[0], view[0])
                    weigh_suit(rules[0], view[0], odds, suit, in_hand, found)
                    early = count(view[0].hand) / float(int64(rules[0].hand_size))
                    judge(view[0], odds, found, on_table, early, card, answers)
                    for i in range(NUM_FEATURES):
                        features[row, i] = numbers_of(answers).of[i]
                    columns[row] = situation(view[0], legal, suit)
                    positions[row] = position
                    room[1] = room[0]
                    play(rules[0], room[1], card)
                    while room[1].phase < DEAL_OVER:
                        play(rules[0], room[1], card_by(rules[0], room[1], view[0], weights))
                    points[row] = own_points(rules[0], room[1], seat)
                    row += 1
                position += 1
            slip = float((bits >> np.uint64(16)) & np.uint64(0xFFFF)) / 65536.0
            if slip < SLIPS:
                play(rules[0], room[0], random.random_action(legal, bits, False))
            else:
                play(rules[0], room[0], card_by(rules[0], room[0], view[0], weights))


@kernel
def play_match(
    rules: np.ndarray,
    room: np.ndarray,
    view: np.ndarray,
    weights: np.ndarray,
    others: np.ndarray,
    seed: int,
    points: np.ndarray,
) -> None:
    """Write for each deal what a player by `weights` scores among others, a mean over the seats."""
    players = int64(rules[0].num_players)
    for deal in range(len(points)):
        points[deal] = 0.0
        for seat in range(players):
            start_match(rules[0], room[0], np.uint64(seed), deal)
            while room[0].phase < DEAL_OVER:
                chosen = weights if room[0].turn == seat else others
                play(rules[0], room[0], card_by(rules[0], room[0], view[0], chosen))
            points[deal] += own_points(rules[0], room[0], seat) / players


def regress(
    features: np.ndarray, points: np.ndarray, positions: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return the weights, float64 (6, features), that fit the differences within positions best.

    The situations of a plain card and of a trump share positions, so they are fitted together.
    """
    width = features.shape[1]
    weights = np.zeros((6, width))
    for plain in range(3):
        chosen = columns % 3 == plain
        _, place, sizes = np.unique(positions[chosen], return_inverse=True, return_counts=True)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        is_trump = columns[chosen, None] >= 3
        both = np.concatenate([features[chosen] * ~is_trump, features[chosen] * is_trump], 1)
        both -= (np.add.reduceat(both, starts) / sizes[:, None])[place].astype(np.float32)
        gains = points[chosen] - np.bincount(place, points[chosen])[place] / sizes[place]
        square = (both.T @ both).astype(np.float64) / len(both)
        square += RIDGE * np.diag(np.diag(square) + 1e-3)
        fit = np.linalg.solve(square, both.T @ gains / len(both))
        explained = 1 - np.var(gains - both @ fit) / np.var(gains)
        print(f"  {('lead', 'follow', 'discard')[plain]} {explained:.3f}", end="")
        weights[plain], weights[plain + 3] = fit[:width], fit[width:]
    return weights


def gather(rules: Rules, weights: np.ndarray, seed: int, rows: int) -> list[np.ndarray]:
    """Return the filled rows of `try_cards` for one game."""
    arrays = [
        np.zeros((rows, weights.shape[1]), np.float32),
        np.zeros(rows, np.float32),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
    ]
    filled = try_cards(rules.packed, np.zeros(2, STATE), np.zeros(1, VIEW), weights, seed, *arrays)
    return [array[:filled] for array in arrays]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scoring", choices=list(MIXTURES))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--mean-of", type=int, default=6, help="how many last rounds to average")
    parser.add_argument("--cards", type=int, default=500_000, help="cards tried in a round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--afresh", action="store_true", help="begin with no weights at all")
    options = parser.parse_args()

    table = f"{options.scoring.upper()}_WEIGHTS"
    now = getattr(package, table).copy()
    weights = np.zeros_like(now) if options.afresh else now
    rounds = []
    for number in range(options.rounds):
        started = time.perf_counter()
        parts = []
        for i, (share, rules) in enumerate(MIXTURES[options.scoring]):
            seed = options.seed * 1_000_000 + number * 100 + 10 * i
            part = gather(rules, weights, seed, int(share * options.cards))
            part[2] += 0 if not parts else parts[-1][2][-1] + 1
            parts.append(part)
        print(f"round {number + 1}: explained", end="")
        weights = regress(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        rounds.append(weights)
        print(f"  ({time.perf_counter() - started:.0f} s)", flush=True)
    fitted = np.mean(rounds[-options.mean_of :], 0)

    for _, rules in MIXTURES[options.scoring]:
        points = np.zeros(8000)
        room, view = np.zeros(1, STATE), np.zeros(1, VIEW)
        play_match(rules.packed, room, view, fitted, now, options.seed + 77, points)
        half = 1.96 * points.std(ddof=1) / np.sqrt(len(points))
        print(
            f"{rules.num_players} players, {len(rules.pack)} cards, trump {rules.trump}: "
            f"{points.mean():+.3f} ± {half:.3f} points a deal against the weights in the package"
        )
    source = Path(package.__file__).read_text("utf-8").partition(table)[2]
    names = re.findall(r"\],  # (.*)", source)
    for row, name in zip(fitted.T, names, strict=False):
        print(f"        [{', '.join(f'{value:.3f}' for value in row)}],  # {name}")


if __name__ == "__main__":
    main()

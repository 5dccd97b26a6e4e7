"""How agents play, counted in deals that are known card by card."""

import numpy as np
import pytest
from referee import Referee
from tables import Table

from valety_env.agents import make_agent
from valety_env.arena.behaviour import (
    RATES,
    Rate,
    describe,
    losses_of,
    rate_of,
    replay_deals,
)
from valety_env.arena.lineups import Games, agent_seeds, play_part, rotations_of
from valety_env.engine import legal_actions, play
from valety_env.episode import Setup, make_setup
from valety_env.notation import make_record
from valety_env.rules import Rules, parse_game
from valety_env.solver import Solver
from valety_env.solver.annotations import annotate

GAMES = ("valety", "knaves", "polignac", "polignac,num_players=6", 'polignac,trump="last_card"')


def played(game: str, number: int, agents: tuple[str, ...]) -> tuple[Setup, Games, np.ndarray]:
    """Return some deals of a line-up: the first agent, the second at all other places."""
    setup = make_setup(parse_game(game.replace('"', ""))[1], episode="deal")
    players = [make_agent(name, setup.played) for name in agents]
    places = setup.rules.num_players
    seeds = np.arange(100, 100 + number, dtype=np.uint64)
    lineup = (0, *[1] * (places - 1))
    rotations = rotations_of(places, 0, number, duplicate=True)
    games = play_part(setup, players, lineup, agent_seeds(5, range(2)), seeds, rotations)
    return setup, games, seeds


def replayed(setup: Setup, games: Games, seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    plays = setup.rules.num_players * (setup.played.hand_size or 0)
    return replay_deals(
        setup.played,
        seeds,
        games.rotations,
        games.states["history"][..., :plays].copy(),
        games.states["general"].copy(),
        games.scores,
    )


def refereed(rules: Rules, seed: int, state: np.ndarray) -> list[dict[str, int]]:
    """Play a deal again before the referee and count in words what each seat does in it."""
    table = Table(rules).start(seed)
    referee = Referee(rules.to_dict() | {"max_deals": 1, "count": "deal"}, table.dealer)
    referee.deal(table.hands, table.turned)
    seats = [dict.fromkeys(RATES, 0) | {f"of {name}": 0 for name in RATES} for _ in table.hands]
    hands = [list(hand) for hand in table.hands]
    all_cards = [card for hand in hands for card in hand]
    trump = table.turned[-1] if table.turned else None
    names = [table.name(int(card)) for card in state["history"]]
    dealt = {card for card in all_cards if card[0] == "J"}
    symbols = {"S": "J♠ captured", "C": "J♣ captured", "D": "J♦ captured", "H": "J♥ captured"}
    while referee.phase == "calls":
        seat = referee.to_move()
        says = "general" if seat == state["general"] else "pass"
        seats[seat]["of announces a general"] += 1
        seats[seat]["announces a general"] += says == "general"
        referee.act(says)
    trick: list[tuple[int, str]] = []
    for card in names[: len(all_cards)]:
        seat = referee.to_move()
        assert card in referee.legal()
        hand, own = hands[seat], seats[seat]
        lengths = {suit: sum(c[1] == suit for c in hand) for suit in {c[1] for c in hand}}
        trumps = [c for c in hand if c[1] == trump]
        mixed = 0 < len(trumps) < len(hand)
        if not trick:
            if len(set(lengths.values())) > 1:
                own["of leads its longest suit"] += 1
                own["leads its longest suit"] += lengths[card[1]] == max(lengths.values())
            if mixed:
                own["of leads trumps"] += 1
                own["leads trumps"] += card[1] == trump
        elif trick[0][1][1] not in lengths:
            if mixed:
                own["of trumps when void"] += 1
                own["trumps when void"] += card[1] == trump
            jacks = [c for c in hand if c[0] == "J"]
            if 0 < len(jacks) < len(hand):
                own["of throws a jack when void"] += 1
                own["throws a jack when void"] += card[0] == "J"
        hand.remove(card)
        trick.append((seat, card))
        before = list(referee.tricks)
        referee.act(card)
        if len(trick) == len(hands):
            (winner,) = [s for s, n in enumerate(referee.tricks) if n > before[s]]
            for _, taken in trick:
                if taken[0] == "J":
                    seats[winner][symbols[taken[1]]] += 1
            trick = []
    for seat, own in enumerate(seats):
        own["tricks won"] = referee.tricks[seat]
        own["of tricks won"] = sum(referee.tricks)
        for jack in dealt:
            own["of " + symbols[jack[1]]] += 1
        if own["announces a general"]:
            own["of makes its generals"] = 1
            own["makes its generals"] = int(referee.tricks[seat] == sum(referee.tricks))
    return seats


@pytest.mark.parametrize("game", GAMES)
def test_what_is_counted_is_what_a_referee_sees(game: str) -> None:
    setup, games, seeds = played(game, 12, ("random", "heuristic"))
    places = setup.rules.num_players
    states, counts = replayed(setup, games, seeds)
    # The tables at the end are those that were played.
    assert all(
        np.array_equal(states[name], games.states[name])
        for name in ("history", "tricks", "jacks", "played", "general", "phase")
    )
    generals = 0
    for deal, seed in enumerate(seeds):
        expected = [dict.fromkeys(RATES, (0, 0)) for _ in range(places)]
        for rotation in range(places):
            seats = refereed(setup.rules, int(seed), games.states[deal, rotation])
            for place in range(places):
                own = seats[(place + rotation) % places]
                for name in RATES:
                    done, of = expected[place][name]
                    expected[place][name] = (done + own[name], of + own[f"of {name}"])
        for place in range(places):
            for name, columns in RATES.items():
                found = tuple(int(counts[deal, place, column]) for column in columns)
                assert found == expected[place][name], (name, deal, place)
            generals += expected[place]["announces a general"][0]
    assert (generals > 0) == setup.rules.general


@pytest.mark.parametrize("what", ["card", "score", "general", "order"])
def test_games_that_can_not_have_been_are_found_out(what: str) -> None:
    setup, games, seeds = played("polignac", 4, ("random", "heuristic"))
    replayed(setup, games, seeds)
    history = games.states["history"]
    if what == "card":
        history[2, 1, 3] = history[2, 1, 4]
    elif what == "order":
        history[2, 1, [0, 31]] = history[2, 1, [31, 0]]
    elif what == "score":
        games.scores[2, 1, 3] += 1
    else:
        games.states["general"][2, 1] = (games.states["general"][2, 1] + 1) % 4
    with pytest.raises(ValueError, match="table with seed 102 was not played like that"):
        replayed(setup, games, seeds)


def test_a_card_that_was_not_legal_is_found_out_even_if_nothing_else_is_wrong() -> None:
    setup, games, seeds = played("valety-L4", 40, ("random", "random"))
    rules = setup.played
    found = 0
    for deal, seed in enumerate(seeds):
        history = games.states["history"][deal, 0]
        plays = 2 * (rules.hand_size or 0)
        for i in range(plays):
            for j in range(i):
                # Two cards in the other order, whoever had them: who plays what is not looked at.
                swapped = history.copy()
                swapped[[i, j]] = history[[j, i]]
                table = Table(rules).start(int(seed))
                legal = True
                for card in swapped[:plays]:
                    legal &= bool(int(legal_actions(rules.record, table.state)) >> int(card) & 1)
                    play(rules.record, table.state, int(card))
                if legal or table.points != games.scores[deal, 0].tolist():
                    continue
                found += 1
                with pytest.raises(ValueError, match=f"seed {seed} was not played like that"):
                    replay_deals(
                        rules,
                        seeds[deal : deal + 1],
                        games.rotations[deal : deal + 1, :1],
                        swapped[None, None, :plays],
                        games.states["general"][deal : deal + 1, :1].copy(),
                        games.scores[deal : deal + 1, :1],
                    )
    assert found > 3


@pytest.mark.plain
def test_a_rate_is_a_ratio_over_deals() -> None:
    # Ten deals, two chances each; the interval is that of the mean of 0.5 ± 0.5, with the two
    # deals that are always added.
    done = np.array([0, 2] * 5)
    found = rate_of(done, np.full(10, 2))
    assert found is not None
    assert (found.rate, found.chances) == (0.5, 20)
    assert found.ci95 is not None
    half = 2.2010 * np.std([0.0, 1.0] * 6, ddof=1) / np.sqrt(12)
    assert found.ci95 == pytest.approx((0.5 - half, 0.5 + half), abs=1e-4)
    assert rate_of(np.zeros(3), np.zeros(3)) is None
    # Deals without a chance tell nothing.
    assert rate_of(np.append(done, [0] * 9), np.append(np.full(10, 2), [0] * 9)) == found
    assert rate_of(np.array([1]), np.array([3])) == Rate(1 / 3, None, 3)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.02])
def test_95_percent_of_intervals_hold_the_rate(rate: float) -> None:
    rng = np.random.default_rng(1)
    held = 0
    runs = 2000
    for _ in range(runs):
        chances = rng.integers(0, 6, 150)
        # Whoever does it in a deal rather does it again: deals count, not chances.
        inclined = rng.random(150) < rate
        done = np.where(inclined, chances, 0)
        found = rate_of(done, chances)
        assert found is not None
        assert found.ci95 is not None
        held += found.ci95[0] <= rate <= found.ci95[1]
    # The deals that are added make those of rare things wider than they need be.
    assert 0.93 <= held / runs <= (0.97 if rate > 0.05 else 1.0)


def test_losses_are_what_the_annotations_of_records_say() -> None:
    setup, games, seeds = played("valety-L6", 5, ("random", "heuristic"))
    solver = Solver(setup.played)
    told = []
    losses = losses_of(solver, games.states, games.rotations, told.append)
    assert sum(told) == 5
    tricks = setup.played.hand_size or 0
    assert losses.shape == (5, 2, tricks)
    expected = np.zeros((5, 2, tricks))
    for deal, seed in enumerate(seeds):
        for rotation in range(2):
            table = Table(setup.played).start(int(seed))
            for card in games.states[deal, rotation]["history"][: 2 * tricks]:
                table.act(table.name(int(card)))
            record = make_record(setup.played, "valety-L6", [table.state])
            for note in annotate(record, solver):
                place = (note.seat - rotation) % 2
                expected[deal, place, (note.play - 1) // 2] += note.cost / 2
    assert losses == pytest.approx(expected)
    assert losses.sum() > 0


@pytest.mark.plain
def test_a_description_has_means_over_deals() -> None:
    counts = np.zeros((3, 21), np.int64)
    counts[:, 0] = [10, 20, 15]
    counts[:, 1] = 34
    losses = np.array([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]])
    found = describe(counts, losses)
    tricks = found.rates["tricks won"]
    assert tricks is not None
    assert tricks.rate == pytest.approx(45 / 102)
    assert found.rates["announces a general"] is None
    assert found.loss is not None
    assert found.loss[0] == pytest.approx(2.0)
    assert [loss for loss, _ in found.loss_by_trick] == pytest.approx([1.0, 1.0])
    assert (found.deals, found.loss_deals) == (3, 3)
    assert describe(counts, None).loss is None

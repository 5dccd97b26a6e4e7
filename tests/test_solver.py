"""The solver: what brute force finds, and what two players who see everything come to."""

import random
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from tables import Table, random_rules

from valety_env.engine import DEAL_OVER, MATCH_OVER, PLAYS
from valety_env.rules import Rules, make_rules
from valety_env.solver import NO_VALUE, Solver
from valety_env.solver.bounds import OPEN, PROVEN, REFUTED, floors, judge, leasts, suit_facts
from valety_env.solver.order import NUM_WEIGHTS
from valety_env.solver.positions import NODE, read_position

Hand = frozenset[str]


class Brute:
    """All lines of play of a game of two, from the clauses of the rules; cards are names."""

    def __init__(self, rules: Rules, trump: str | None) -> None:
        self.strength = {rank: place for place, rank in enumerate(rules.rank_order)}
        self.cost = {"J" + s: p for s, p in zip("SCDH", rules.jack_penalties, strict=True)}
        self.trump = trump
        self.value = cache(self._value)

    def replies(self, hand: Hand, lead: str) -> Hand:
        """V7: a card of the led suit if he has one; V8: else any card."""
        return frozenset(c for c in hand if c[1] == lead[1]) or hand

    def after(self, mine: Hand, theirs: Hand, lead: str, reply: str) -> int:
        """Return the leader's difference of points from this trick on."""
        if reply[1] == lead[1]:
            keeps = self.strength[lead[0]] > self.strength[reply[0]]
        else:
            keeps = reply[1] != self.trump  # V9
        points = 1 - self.cost.get(lead, 0) - self.cost.get(reply, 0)  # V10
        mine, theirs = mine - {lead}, theirs - {reply}
        return points + self.value(mine, theirs) if keeps else -points - self.value(theirs, mine)

    def lead(self, mine: Hand, theirs: Hand, lead: str) -> int:
        return min(self.after(mine, theirs, lead, r) for r in self.replies(theirs, lead))

    def _value(self, mine: Hand, theirs: Hand) -> int:
        """Return the difference of points that the leader gets from here on (V11)."""
        return max((self.lead(mine, theirs, card) for card in mine), default=0)


def rules_of_two(rng: random.Random) -> Rules:
    while True:
        rules = random_rules(rng)
        if rules.num_players == 2 and rules.scoring == "tricks":
            return rules


def dealt(rules: Rules, rng: random.Random) -> Table:
    """Return a table of a match with cards of our own choice."""
    table = Table(rules)
    pack = rng.sample(rules.pack, len(rules.pack))
    size = rules.hand_size
    assert size is not None
    hands = [pack[:size], pack[size : 2 * size]]
    dealer = rng.randrange(2)
    turned = None
    if rules.trump != "none":
        turned = pack[2 * size] if rules.trump == "turned" else rng.choice(hands[dealer])
    return table.begin(dealer, *(" ".join(hand) for hand in hands), turned=turned)


def positions(seed: int, number: int, most_cards: int) -> Iterator[tuple[Table, Brute]]:
    """Yield tables in the middle of a deal, with so many cards a hand at most."""
    rng = random.Random(seed)
    while number:
        table = dealt(rules_of_two(rng), rng)
        turned = int(table.state.turned)
        brute = Brute(table.rules, None if turned < 0 else "SCDH"[turned // 13])
        left = rng.randint(1, most_cards)
        while table.state.phase == PLAYS and len(table.names(table.state.hand[0])) > left:
            table.act(rng.choice(table.legal()))
        if table.state.phase == PLAYS and rng.random() < 0.5:
            table.act(rng.choice(table.legal()))
        if table.state.phase == PLAYS:
            number -= 1
            yield table, brute


def by_brute_force(table: Table, brute: Brute) -> dict[str, int]:
    """Return the difference of deal points at the end by card."""
    turn = int(table.state.turn)
    own, other = (frozenset(table.names(table.state.hand[seat])) for seat in (turn, 1 - turn))
    points = [int(p) for p in table.points]
    so_far = points[turn] - points[1 - turn]
    led = int(table.state.table[1 - turn])
    if led < 0:
        return {card: so_far + brute.lead(own, other, card) for card in own}
    lead = table.name(led)
    return {
        card: so_far - brute.after(other | {lead}, own, lead, card)
        for card in brute.replies(own, lead)
    }


def by_solver(solver: Solver, table: Table) -> dict[str, int]:
    values = solver.values(table.states)[0]
    assert solver.best(table.states).tolist() == [values.max()]
    return {table.name(card): int(v) for card, v in enumerate(values) if v != NO_VALUE}


def check(seed: int, number: int, most_cards: int) -> None:
    solvers: dict[Rules, Solver] = {}
    for table, brute in positions(seed, number, most_cards):
        # Little memory, so that much is overwritten.
        solver = solvers.setdefault(table.rules, Solver(table.rules, memory=1 << 12))
        assert by_solver(solver, table) == by_brute_force(table, brute), table.rules


def test_every_card_has_the_value_that_brute_force_finds() -> None:
    check(1, 2000, 5)


@pytest.mark.slow
def test_ten_thousand_positions_have_the_values_that_brute_force_finds() -> None:
    check(2, 10_000, 6)


@pytest.mark.plain
def test_plain_python_finds_the_same_values() -> None:
    check(3, 40, 3)


def test_what_is_said_without_search_is_so() -> None:
    """Every answer of `judge` is right, and it answers a good part of all questions."""
    answered = asked = 0
    for table, brute in positions(4, 1500, 5):
        solver = Solver(table.rules, memory=1 << 10)
        nodes = np.zeros(1, NODE)
        solver._memory.deals["trump"] = "SCDH".find(brute.trump) if brute.trump else -1
        if read_position(table.record, table.state, nodes[0]) >= 0:
            continue
        turn = int(table.state.turn)
        own, other = (frozenset(table.names(table.state.hand[s])) for s in (turn, 1 - turn))
        points = int(nodes[0]["points"])
        assert points == len(own) - sum(brute.cost.get(card, 0) for card in own | other)
        # Of n points between two, a difference of d is (n + d) / 2.
        gets = (points + brute.value(own, other)) // 2
        for need in range(gets - 4, gets + 6):
            nodes[0]["need"] = need
            found = judge(solver._memory.deals[0], suit_facts(), nodes[0], len(own))
            assert found in (OPEN, PROVEN if gets >= need else REFUTED), (own, other, need)
            answered += found != OPEN
            asked += 1
    assert answered > asked / 2


def test_the_fewest_points_are_two_tricks_with_all_jacks() -> None:
    """V11: −8, two tricks with all four jacks in them."""
    rules = make_rules("valety")
    assert leasts(rules.jack_penalties)[15].tolist() == [-8, -8, -8, *range(-7, 17)]
    assert leasts(rules.jack_penalties)[0].tolist() == list(range(27))
    # Of J♥ and J♦ both on one trick.
    assert leasts(rules.jack_penalties)[12, :3].tolist() == [-6, -6, -5]


def test_a_trick_that_is_cashed_costs_one_jack_at_most() -> None:
    rules = make_rules("valety")
    # The other has all four: three of them, 4 + 3 + 2, on three tricks, or all on four.
    assert floors(rules.jack_penalties)[0, 15].tolist() == [-6, -6, -6, -6, *range(-6, 17)]
    # All own: each is a trick, which pays for J♠.
    assert floors(rules.jack_penalties)[15, 0].tolist() == [-6 + tricks for tricks in range(27)]


def full_deals(number: int) -> np.ndarray:
    rules = make_rules("valety")
    return np.concatenate(
        [dealt(rules, random.Random(seed)).states for seed in range(100, 100 + number)]
    )


def test_two_who_see_everything_come_to_the_value() -> None:
    rules = make_rules("valety")
    solver = Solver(rules)
    for states in np.split(full_deals(12), 12):
        table = Table(rules)
        table.states[:] = states
        first = int(table.state.turn)
        value = max(by_solver(solver, table).values())
        while table.state.phase == PLAYS:
            values = by_solver(solver, table)
            sign = 1 if table.state.turn == first else -1
            assert max(values.values()) == sign * value
            table.act(max(values, key=values.__getitem__))
        points = [int(p) for p in table.points]
        assert table.state.phase in (DEAL_OVER, MATCH_OVER)
        assert points[first] - points[1 - first] == value


def test_threads_memory_and_order_change_no_value() -> None:
    states = full_deals(9)
    rules = make_rules("valety")
    values = Solver(rules).values(states)
    assert np.array_equal(Solver(rules, threads=2).values(states), values)
    assert np.array_equal(Solver(rules, memory=1 << 16).values(states), values)
    unordered = Solver(rules)
    unordered.set_weights(np.random.default_rng(0).integers(-300, 300, NUM_WEIGHTS))
    assert np.array_equal(unordered.values(states[:3]), values[:3])
    # More searches than there are stamps.
    again = Solver(rules)
    ends = np.concatenate([t.states for t, _ in positions_of(rules, 600)])
    assert np.array_equal(again.values(ends), Solver(rules, threads=3).values(ends))


def positions_of(rules: Rules, number: int) -> Iterator[tuple[Table, None]]:
    rng = random.Random(5)
    for _ in range(number):
        table = dealt(rules, rng)
        while len(table.names(table.state.hand[0])) > 5:
            table.act(rng.choice(table.legal()))
        yield table, None


def test_a_deal_that_is_over_has_no_value() -> None:
    rules = make_rules("valety", hand_size=1)
    table = dealt(rules, random.Random(1))
    over = dealt(rules, random.Random(2)).play_out()
    with pytest.raises(ValueError, match="table 1: its deal is over"):
        Solver(rules).values(np.concatenate([table.states, over.states]))


@pytest.mark.parametrize("game", ["knaves", "polignac"])
def test_other_games_are_refused(game: str) -> None:
    with pytest.raises(ValueError, match=r"num_players=\d, scoring=.* two players"):
        Solver(game)


def test_no_position_changes_where_it_is_read() -> None:
    states = full_deals(2)
    before = states.copy()
    Solver("valety").values(states)
    assert np.array_equal(states, before)

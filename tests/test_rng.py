"""The random numbers, the shuffle and the lot: published values, uniformity, what fixes them."""

from collections import Counter

import numpy as np
import pytest
from tables import GAMES, Table, chi_square, chi_square_bound, plain_mix

from valety_env.engine import start_match
from valety_env.rng import below, mix
from valety_env.rules import Rules, make_rules

# The first outputs of SplitMix64, as printed by other implementations.
PUBLISHED = {
    0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC],
    1234567: [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ],
}


def draw(key: int, counter: int) -> int:
    return int(mix(np.uint64(key), np.uint64(counter)))


@pytest.mark.plain
@pytest.mark.parametrize("seed", PUBLISHED)
def test_mix_gives_the_published_numbers_of_splitmix64(seed: int) -> None:
    expected = PUBLISHED[seed]
    assert [draw(seed, counter) for counter in range(len(expected))] == expected


@pytest.mark.plain
def test_mix_is_the_same_in_plain_whole_numbers_at_the_ends_of_the_range() -> None:
    ends = [0, 1, 2**32, 2**63, 2**64 - 1]
    for key in ends:
        for counter in ends:
            assert draw(key, counter) == plain_mix(key, counter)


@pytest.mark.plain
def test_below_is_a_whole_number_under_its_bound_from_the_low_half_alone() -> None:
    assert int(below(np.uint64(0), 52)) == 0
    assert int(below(np.uint64(2**32 - 1), 52)) == 51
    assert int(below(np.uint64(2**64 - 2**32), 52)) == 0
    assert int(below(np.uint64(2**31), 52)) == 26
    assert int(below(np.uint64(2**31 - 1), 52)) == 25
    assert [int(below(np.uint64(bits), 1)) for bits in (0, 2**32 - 1, 2**64 - 1)] == [0, 0, 0]


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 17, 52])
@pytest.mark.parametrize("half", [0, 32])
def test_below_takes_every_value_equally_often(bound: int, half: int) -> None:
    counts = [0] * bound
    for counter in range(20_000):
        counts[int(below(np.uint64(draw(3, counter) >> half), bound))] += 1
    assert chi_square(counts) < chi_square_bound(bound)


def plain_shuffle(rules: Rules, seed: int, episode: int, deal: int) -> list[str]:
    """Return the pack as the shuffle lays it, from the key of the deal and the draws alone."""
    key = plain_mix(plain_mix(seed, episode), deal + 1)
    pack = list(rules.pack)
    for place in range(len(pack)):
        bits = plain_mix(key, place // 2) >> (32 * (place % 2)) & (2**32 - 1)
        other = place + (bits * (len(pack) - place) >> 32)
        pack[place], pack[other] = pack[other], pack[place]
    return pack


@pytest.mark.plain
@pytest.mark.parametrize(("game", "seed"), [("valety", 2**64 - 1), ("polignac-5", 4)])
def test_a_deal_is_the_shuffle_that_its_seed_episode_and_number_give(game: str, seed: int) -> None:
    rules = GAMES[game]
    table = Table(rules).start(seed, episode=3)
    players = rules.num_players
    assert table.dealer == (plain_mix(plain_mix(seed, 3), 0) >> 32) * players >> 32
    for deal in range(2):
        pack = plain_shuffle(rules, seed, 3, deal)
        for place in range(players * rules.hand_size):
            assert pack[place] in table.hands[(table.dealer + 1 + place) % players]
        if rules.trump == "turned":
            assert table.turned == pack[players * rules.hand_size]
        table.play_out()
        table.deal_on()


def test_every_card_comes_to_every_place_equally_often() -> None:
    rules = GAMES["valety"]
    table = Table(rules)
    deals = 6000
    counts = np.zeros((4, 52), np.int64)  # the dealer, the other player, turned up, undealt
    bits = np.arange(52, dtype=np.uint64)
    for seed in range(deals):
        table.start(seed)
        state = table.state
        places = [
            int(state.hand[int(state.dealer)]),
            int(state.hand[1 - int(state.dealer)]),
            1 << int(state.turned),
        ]
        for place, cards in enumerate(places):
            counts[place] += (np.uint64(cards) >> bits & np.uint64(1)).astype(np.int64)
    counts[3] = deals - counts[:3].sum(axis=0)
    for place, share in enumerate((17 / 52, 17 / 52, 1 / 52, 17 / 52)):
        # A card is in the place or not: the variance is that of a yes-or-no draw.
        spread = ((counts[place] - deals * share) ** 2 / (deals * share * (1 - share))).sum()
        assert spread < chi_square_bound(53)
        assert spread > 2 * 52 - chi_square_bound(53)  # too even is not random either


@pytest.mark.parametrize("seeds", ["neighbours", "episodes", "deals"])
def test_all_deals_of_a_small_pack_are_equally_likely(seeds: str) -> None:
    # 6! / (2! 2!) ways to deal two hands of two, one card turned up and one left.
    rules = make_rules("valety-L1", target=1000, max_deals=None)
    table = Table(rules)
    seen: Counter[tuple[int, int, int]] = Counter()
    if seeds == "deals":
        table.start(9)
    for number in range(18_000):
        if seeds == "neighbours":
            table.start(number)
        elif seeds == "episodes":
            table.start(5, number)
        else:
            table.deal_on()  # the cards of a deal don't ask whether the last one was played
        hands = (int(table.state.hand[0]), int(table.state.hand[1]))
        seen[hands[0], hands[1], int(table.state.turned)] += 1
    assert len(seen) == 180
    assert chi_square(list(seen.values())) < chi_square_bound(180)


@pytest.mark.parametrize("players", range(2, 8))
def test_V3_P4_the_first_dealer_is_drawn_by_lot(players: int) -> None:
    table = Table(Rules(num_players=players, hand_size=2, trump="none", num_deals=1))
    rules, state = table.record, table.state
    for by_episode in (False, True):
        counts = [0] * players
        for number in range(6000):
            seed, episode = (7, number) if by_episode else (number, 0)
            start_match(rules, state, np.uint64(seed), episode)
            counts[int(state.dealer)] += 1
        assert chi_square(counts) < chi_square_bound(players)


def cards_of_deals(table: Table, deals: int, choice: int) -> list[object]:
    """Play deals by always taking the first or the last legal action; return what was dealt."""
    dealt: list[object] = []
    for _ in range(deals):
        dealt.append((table.dealer, table.hands, table.turned))
        while table.phase in ("calls", "plays"):
            table.act(table.legal()[choice])
        if table.phase == "over":
            break
        table.deal_on()
    return dealt


@pytest.mark.parametrize("game", ["valety", "polignac-4", "knaves"])
def test_a_deal_does_not_depend_on_how_earlier_deals_were_played(game: str) -> None:
    rules = GAMES[game]
    first, last = (
        cards_of_deals(Table(rules).start(21, 2), deals=6, choice=choice) for choice in (0, -1)
    )
    both = min(len(first), len(last))
    assert both >= 2
    assert first[:both] == last[:both]


@pytest.mark.plain
def test_a_deal_does_not_depend_on_what_the_record_held_before() -> None:
    clean = Table(GAMES["valety"]).start(21, 2)
    used = Table(GAMES["valety"]).start(5, 0).play_out()
    used.start(21, 2)
    assert used.states.tobytes() == clean.states.tobytes()


def test_other_seeds_episodes_and_deals_are_other_cards() -> None:
    table = Table(make_rules("valety", target=1000))
    seen = set()
    for seed in (0, 1, 2, 2**32, 2**63, 2**64 - 1):
        for episode in (0, 1, 2, 1000):
            table.start(seed, episode)
            for _ in range(3):
                seen.add((int(table.state.hand[0]), int(table.state.hand[1])))
                table.play_out()
                table.deal_on()
    assert len(seen) == 6 * 4 * 3

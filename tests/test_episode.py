"""What the environments share: options, seeds, rewards, ends, masks, the whole table as a row."""

import random
from itertools import combinations
from typing import Any

import gymnasium
import numpy as np
import pytest
from slow_observations import slow_state
from tables import GAMES, Table, follow_match, observed, random_rules

from valety_env.cards import GENERAL, PASS, cards_of
from valety_env.engine import legal_actions, play
from valety_env.episode import (
    BY_POINTS,
    DEAL_ENDED,
    EPISODE_ENDED,
    GOES_ON,
    ONE_DEAL,
    Setup,
    decision_key,
    is_member,
    make_setup,
    name_of,
    parse_seed,
    settle,
    state_layout,
    write_mask,
    write_state,
)
from valety_env.observations import ENCODERS
from valety_env.rules import Rules, make_rules


def settled(
    table: Table, single_deal: bool = False, by_points: bool = False
) -> tuple[int, list[float]]:
    """Return what `settle` finds at a table and the rewards it gives."""
    rewards = np.full(table.num_players, 7.0)
    options = ONE_DEAL * single_deal | BY_POINTS * by_points
    found = settle(table.record, table.state, options, rewards[None], 0)
    return int(found), rewards.tolist()


def tiny(**changes: Any) -> Rules:
    """Return Valety with one card a hand and no trump."""
    return make_rules("valety", **{"hand_size": 1, "trump": "none", "target": 1} | changes)


def charges(players: int, **changes: Any) -> Rules:
    """Return Polignac with one card a hand, a single deal and no announcements."""
    options = {"num_players": players, "hand_size": 1, "num_deals": 1, "general": False}
    return make_rules("polignac", **options | changes)


# Rewards


@pytest.mark.plain
def test_a_step_within_a_deal_earns_nothing() -> None:
    table = Table(tiny()).begin(0, "AS", "2S").act("AS")
    for by_points in (False, True):
        assert settled(table, by_points=by_points) == (GOES_ON, [0, 0])
    table = Table(make_rules("polignac")).start(1)
    assert settled(table, by_points=True) == (GOES_ON, [0, 0, 0, 0])


@pytest.mark.plain
def test_a_win_of_valety_is_plus_1_to_minus_1() -> None:
    table = Table(tiny()).begin(0, "2S", "AS").act("2S AS")
    assert settled(table) == (EPISODE_ENDED, [-1, 1])


@pytest.mark.plain
def test_the_end_of_a_deal_earns_nothing_under_win() -> None:
    table = Table(tiny(target=2)).begin(0, "2S", "AS").act("2S AS")
    assert settled(table) == (DEAL_ENDED, [0, 0])


@pytest.mark.parametrize("players", range(2, 8))
def test_winners_share_what_the_losers_pay(players: int) -> None:
    pack = [rank + "S" for rank in "789TQKA"] + [rank + "H" for rank in "789TQKA"]
    rules = charges(players, pack=pack) if players > 2 else charges(2, pack=pack)
    table = Table(rules).begin(0, *pack[:players]).play_out()
    for winners in range(1, 1 << players):
        table.state.winners = winners
        found, rewards = settled(table)
        assert found == EPISODE_ENDED
        sharers = winners.bit_count()
        each = (players / sharers - 1) / (players - 1)
        loss = -1 / (players - 1)
        assert rewards == [each if winners >> seat & 1 else loss for seat in range(players)]
        assert sum(rewards) == pytest.approx(0, abs=1e-12)
    table.state.winners = (1 << players) - 1
    assert settled(table)[1] == [0] * players
    table.state.winners = 1
    assert settled(table)[1] == [1] + [-1 / (players - 1)] * (players - 1)


@pytest.mark.plain
def test_points_of_a_deal_are_own_less_the_mean_of_the_others() -> None:
    rules = make_rules("knaves", hand_size=2, trump="none", first_lead="dealer")
    table = Table(rules).begin(0, "2S 2C", "AS 3C", "3S AC").act("2S AS 3S 3C AC 2C")
    assert table.points == [0, 1, 1]
    assert settled(table, by_points=True) == (DEAL_ENDED, [-1, 0.5, 0.5])
    rules = make_rules("polignac", hand_size=1)
    table = Table(rules).begin(0, "7S", "JS", "8S", "AS").act("general").play_out()
    assert table.points == [5, 0, 0, 2]
    found, rewards = settled(table, by_points=True)
    assert found == DEAL_ENDED
    assert rewards == pytest.approx([-(5 - 2 / 3), 7 / 3, 7 / 3, -(2 - 5 / 3)])


@pytest.mark.parametrize("game", GAMES)
def test_points_are_zero_sum_in_every_deal_of_every_game(game: str) -> None:
    rng = random.Random(3)
    table = Table(GAMES[game]).start(3)
    for _ in range(6):
        table.play_out(rng, 0.1)
        found, rewards = settled(table, by_points=True)
        n, sign = table.num_players, (-1 if table.rules.lowest_wins else 1)
        expected = [sign * (own - (sum(table.points) - own) / (n - 1)) for own in table.points]
        assert rewards == pytest.approx(expected)
        assert sum(rewards) == pytest.approx(0, abs=1e-9)
        assert found == (EPISODE_ENDED if table.phase == "over" else DEAL_ENDED)
        if table.phase == "over":
            break
        table.deal_on()


def test_points_of_a_match_that_ends_within_a_deal_are_those_so_far() -> None:
    rules = make_rules("valety", hand_size=2, trump="none", target=1, count="trick")
    table = Table(rules).begin(0, "AS AH", "2S JH").act("AS 2S")
    assert settled(table, by_points=True) == (EPISODE_ENDED, [1, -1])


# Single deals


def deal_setup(game: str | Rules, **options: Any) -> Setup:
    return make_setup(game, episode="deal", **options)


@pytest.mark.parametrize(
    ("rules", "hands", "words", "winners"),
    [
        # V6: more points, then more tricks, then the new dealer, who is seat 1.
        (tiny(hand_size=2), ("AS AH", "2S JH"), "AS 2S AH JH", [1]),
        (tiny(hand_size=2), ("AS 2C", "2S AC"), "AS 2S 2C AC", [1]),
        (
            tiny(hand_size=4),
            ("2S AC JC AD", "AS 2C 2D 2H"),
            "AC 2C JC 2D AD 2H 2S AS",
            [0],
        ),
        # All with the fewest charges share.
        (charges(4), ("AS", "JS", "8S", "7S"), "AS JS 8S 7S", [1, 2, 3]),
        (charges(4, tie="play_on"), ("AS", "8S", "9S", "7S"), "AS 8S 9S 7S", [0, 1, 2, 3]),
    ],
)
def test_V6_P14_the_winner_of_a_deal_that_is_an_episode(
    rules: Rules, hands: tuple[str, ...], words: str, winners: list[int]
) -> None:
    table = Table(deal_setup(rules).played).begin(0, *hands).act(words)
    found, rewards = settled(table, single_deal=True)
    assert found == EPISODE_ENDED
    assert table.winners == winners
    assert [seat for seat, reward in enumerate(rewards) if reward == max(rewards)] == winners


def test_a_deal_that_is_an_episode_is_played_to_its_end_whatever_it_counts() -> None:
    setup = deal_setup("valety", target=1, count="trick")
    table = Table(setup.played).start(1)
    table.play_out(random.Random(1))
    assert len(table.plays) == 34
    assert table.totals == table.points
    assert settled(table, single_deal=True)[0] == EPISODE_ENDED


@pytest.mark.parametrize("game", GAMES)
def test_every_deal_that_is_an_episode_ends_after_one_deal(game: str) -> None:
    setup = deal_setup(GAMES[game])
    assert setup.single_deal
    for seed in range(4):
        table = Table(setup.played).start(seed)
        assert table.leader == (
            (table.dealer + 1) % table.num_players
            if table.rules.first_lead == "left_of_dealer"
            else table.dealer
        )
        table.play_out(random.Random(seed), 0.2)
        found, rewards = settled(table, single_deal=True)
        assert found == EPISODE_ENDED
        assert table.deal_number == 0
        if table.rules.lowest_wins:
            best = min(table.points)
            assert table.winners == [s for s, p in enumerate(table.points) if p == best]
        else:
            assert table.winners == [table.deal_winner]
        assert sum(rewards) == pytest.approx(0, abs=1e-9)


def test_a_match_keeps_its_rules() -> None:
    setup = make_setup("valety")
    assert setup.played is setup.rules
    assert not setup.single_deal
    assert not setup.by_points


# The fine for an illegal action


def all_deals_worst(rules: Rules) -> float:
    """Return the least that any play of any deal gives anyone: own less the mean of the others'."""
    table = Table(rules)
    pack = [table.number(name) for name in rules.pack]
    players, hand_size = rules.num_players, rules.hand_size
    assert hand_size is not None
    worst = 0.0

    def play_all() -> None:
        nonlocal worst
        if table.phase not in ("calls", "plays"):
            points = table.points
            sign = -1 if rules.lowest_wins else 1
            for own in points:
                others = (sum(points) - own) / (players - 1)
                worst = min(worst, sign * (own - others))
            return
        before = table.states.copy()
        for action in cards_of(legal_actions(table.record, table.state)):
            play(table.record, table.state, action)
            play_all()
            table.states[:] = before

    def deal_all(hands: list[tuple[int, ...]], rest: list[int]) -> None:
        if len(hands) < players:
            for hand in combinations(rest, hand_size):
                deal_all([*hands, hand], [card for card in rest if card not in hand])
            return
        for turned in rest if rules.trump == "turned" else [None]:
            named = [" ".join(table.name(card) for card in hand) for hand in hands]
            table.begin(0, *named, turned=None if turned is None else table.name(turned))
            play_all()

    deal_all([], pack)
    return worst


@pytest.mark.parametrize(
    ("rules", "worst"),
    [
        (make_rules("valety-L1"), -7),
        (make_rules("valety", pack="JS QS JH QH AH", hand_size=2), -5),
        (make_rules("knaves", pack="JS QS JH QH AH KS", hand_size=1, trump="turned"), -4),
        (charges(3, pack="JS QS JH QH AH KS", hand_size=2), -3),
        (charges(3, pack="JS QS JH", hand_size=1, general=True), -3.5),
    ],
)
def test_no_deal_gives_less_than_the_fine(rules: Rules, worst: float) -> None:
    assert all_deals_worst(rules) == worst
    assert rules.worst_points <= worst


@pytest.mark.parametrize(
    ("rules", "worst"),
    [
        (make_rules("valety-L1"), -7),
        (make_rules("valety"), -23),
        (make_rules("knaves"), -16),
        (make_rules("polignac"), -10),
        (make_rules("polignac", general=False), -5),
        (make_rules("polignac", general_charge=9), -14),
        (make_rules("polignac-classic", num_players=7), -10),
    ],
)
def test_the_fine_is_the_worst_that_a_deal_can_give(rules: Rules, worst: float) -> None:
    assert rules.worst_points == worst
    assert make_setup(rules, reward="points").fine == worst
    assert make_setup(rules, reward="win").fine == -1


@pytest.mark.plain
def test_the_worst_deals_of_both_games_are_as_bad_as_the_fine() -> None:
    table = Table(make_rules("valety")).begin(
        0,
        "JH JS AS KS QS TS 9S 8S 7S 6S 5S 4S 3S 2S 2C 2D 3D",
        "JD JC AC KC QC TC 9C 8C 7C AD KD QD TD 9D 8D 7D 6D",
        turned="2H",
    )
    table.act("JH JD JS JC 2C AC").play_out()
    assert settled(table, by_points=True)[1] == [-23, 23]
    rules = make_rules("polignac", hand_size=3)
    table = Table(rules).begin(0, "AS AH 7C", "JS JH 8C", "8S JD AC", "9S JC 9C")
    table.act("general AS JS 8S 9S AH JH JD JC 7C 8C AC 9C")
    assert settled(table, by_points=True)[1][0] == -10


def test_no_random_deal_gives_less_than_the_fine_under_any_options() -> None:
    for number in range(250):
        rng = random.Random(number)
        table = Table(random_rules(rng)).start(number)
        for _ in range(4):
            rewards = settled(table.play_out(rng, 0.3), by_points=True)[1]
            assert min(rewards) >= table.rules.worst_points - 1e-9
            if table.phase == "over":
                break
            table.deal_on()


# Options


def test_the_defaults_of_the_options() -> None:
    setup = make_setup("valety")
    assert setup.game == "valety"
    assert (setup.episode, setup.reward, setup.mask) == ("match", "win", "observation")
    assert (setup.observation, setup.illegal, setup.dtype) == ("flat_v0", "terminate", np.float32)
    assert make_setup("valety", default_dtype="uint8").dtype == np.uint8
    assert make_setup("valety", default_dtype="uint8", dtype=np.float64).dtype == np.float64
    assert make_setup("polignac", num_players=5).agents == tuple(f"player_{s}" for s in range(5))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"episode": "game"}, ["episode='game'", "'match'", "'deal'"]),
        ({"reward": "money"}, ["reward='money'", "'win'", "'points'"]),
        ({"mask": None}, ["mask=None", "'observation'", "'info'"]),
        ({"illegal": "ignore"}, ["illegal='ignore'", "'terminate'", "'raise'", "'penalise'"]),
        ({"dtype": "float16"}, ["dtype='float16'", "uint8", "float32"]),
        ({"dtype": "colour"}, ["dtype='colour'", "uint8", "float32"]),
        ({"dtype": str}, ["dtype=", "uint8", "float32"]),
        ({"observation": "flat"}, ["observation='flat'", "flat_v0", "pieces_v0"]),
        ({"observation": 3}, ["observation=3", "flat_v0", "pieces_v0"]),
        ({"observation": {"player_0": "flat_v0"}}, ["player_0", "player_1"]),
        ({"observation": {}}, ["nobody", "player_0", "player_1"]),
        (
            {"observation": {"player_0": "flat_v0", "player_1": "x"}},
            ["observation='x'", "tokens_v0"],
        ),
        ({"targets": 5}, ["'targets'", "target", "num_deals"]),
        ({"hand_size": 30}, ["hand_size=30"]),
    ],
)
def test_an_impossible_option_is_refused_with_what_is_allowed(
    options: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(ValueError) as caught:
        make_setup("valety", **options)
    for words in told:
        assert words in str(caught.value)


def test_a_game_of_own_rules_goes_by_what_scores() -> None:
    assert name_of(make_rules("knaves")) == "valety"
    assert name_of(make_rules("polignac-classic")) == "polignac"
    assert make_setup(make_rules("knaves")).game == "valety"
    assert make_setup("knaves").game == "knaves"


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1, np.int64(5), np.uint64(2**63)])
def test_a_seed_is_a_whole_number_of_64_bits(seed: Any) -> None:
    assert parse_seed(seed) == int(seed)
    assert type(parse_seed(seed)) is int


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", True, np.bool_(True), [1]])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"seed=.*0…2\^64-1"):
        parse_seed(seed)


def test_without_a_seed_one_is_drawn() -> None:
    assert len({parse_seed(None) for _ in range(20)}) == 20


# Spaces, masks, messages


@pytest.mark.parametrize("game", ["valety", "polignac-5"])
@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_space_contains_what_is_observed(game: str, name: str, dtype: str) -> None:
    setup = make_setup(GAMES[game], observation=name, dtype=dtype)
    encoder = setup.encoders[0]
    for mask in ("observation", "info"):
        space = setup.observation_space(0, mask=mask)
        plain = space["observation"] if mask == "observation" else space
        assert isinstance(plain, gymnasium.spaces.Dict) == (name == "pieces_v0")
        for number, (table, _) in enumerate(follow_match(setup.rules, 3, most_deals=1)):
            if number % 9:
                continue
            row, action_mask, _ = observed(table, number % table.num_players, name, dtype)
            shaped = encoder.shaped(row)
            if mask == "observation":
                assert space.contains({"observation": shaped, "action_mask": action_mask})
            else:
                assert space.contains(shaped)


@pytest.mark.plain
@pytest.mark.parametrize("game", ["valety", "polignac-3"])
def test_a_mask_is_the_legal_actions_of_the_seat_to_move_and_zero_for_the_others(
    game: str,
) -> None:
    for table, _ in follow_match(GAMES[game], 5, most_deals=1):
        for seat in range(table.num_players):
            _, mask, _ = observed(table, seat)
            expected = [0] * table.rules.num_actions
            if seat == table.to_move():
                for word in table.legal():
                    expected[table.number(word)] = 1
            assert mask.tolist() == expected


@pytest.mark.plain
@pytest.mark.plain
def test_a_mask_is_written_bit_by_bit() -> None:
    for size in (52, 54):
        masks = np.full((3, size), 7, np.int8)
        write_mask(np.uint64(1 << 53 | 1 << 51 | 1 << 3), masks, 1)
        assert np.flatnonzero(masks[1]).tolist() == [n for n in (3, 51, 53) if n < size]
        assert masks[1].max() == 1
        assert (masks[[0, 2]] == 7).all()


@pytest.mark.plain
def test_no_number_outside_a_set_is_taken_for_a_member() -> None:
    actions = np.uint64(1 << 63 | 1 << 52 | 1)
    for action in (0, 52, 63):
        assert is_member(actions, action)
    for action in (-1, 1, 51, 53, 64, 116, 127, 128, -(2**63), 2**63 - 1):
        assert not is_member(actions, action)


def test_an_illegal_action_is_told_in_card_notation() -> None:
    setup = make_setup("valety")
    legal = 1 << 14 | 1 << 25
    assert setup.illegal_action(1, 37, legal) == "player_1 may not play KD; legal here: 3C AC"
    assert setup.illegal_action(0, 52, legal, "table 3: ") == (
        "table 3: player_0 may not play action 52 (actions are 0…51); legal here: 3C AC"
    )
    polignac = make_setup("polignac-classic")
    calls = 1 << PASS | 1 << GENERAL
    assert polignac.illegal_action(2, 12, calls) == (
        "player_2 may not play KS; legal here: pass general"
    )
    assert "action -1" in polignac.illegal_action(2, -1, calls)


# The whole table


def whole(table: Table, dtype: str = "uint8") -> np.ndarray:
    row = np.full(state_layout(table.rules).size, 99, dtype)
    write_state(table.record, table.state, row[None], 0)
    return row


@pytest.mark.parametrize("game", GAMES)
def test_the_state_is_the_whole_table(game: str) -> None:
    rules = GAMES[game]
    for number, (table, referee) in enumerate(follow_match(rules, 6, most_deals=2)):
        if number % 5 == 0 or table.phase == "over":
            np.testing.assert_array_equal(whole(table), slow_state(referee, rules))


@pytest.mark.plain
def test_the_state_of_a_deal_is_the_whole_table() -> None:
    for game in ("valety", "polignac-3"):
        for table, referee in follow_match(GAMES[game], 6, most_deals=1):
            np.testing.assert_array_equal(whole(table), slow_state(referee, table.rules))


def test_the_state_is_the_whole_table_under_all_options() -> None:
    for number in range(80):
        rules = random_rules(random.Random(number))
        for step, (table, referee) in enumerate(follow_match(rules, number, 0.2, most_deals=3)):
            if step % 7 == 0:
                np.testing.assert_array_equal(whole(table), slow_state(referee, rules))


# Keys of decisions


@pytest.mark.plain
def test_a_decision_has_a_key_of_its_own() -> None:
    table = Table(GAMES["polignac-4"]).start(3, episode=2)
    base = int(decision_key(np.uint64(9), table.state))
    keys = {base}

    def add(agent_seed: int = 9) -> None:
        keys.add(int(decision_key(np.uint64(agent_seed), table.state)))

    add(agent_seed=8)
    table.act("pass")
    add()
    table.act("pass pass pass")
    table.act(table.legal()[0])
    add()
    table.start(4, episode=2)
    add()
    table.start(3, episode=3)
    add()
    table.start(3, episode=2).play_out().deal_on()
    add()
    assert len(keys) == 7
    table.start(3, episode=2)
    table.state.totals[0] = 5
    table.state.hand[0] = 0
    assert int(decision_key(np.uint64(9), table.state)) == base

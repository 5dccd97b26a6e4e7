"""How the game moves, clause by clause: each test proves the clause of docs/rules.md in its name.

Tiny deals, of one to four cards a hand, show one clause at a time.
"""

import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import FULL_PACK, GAMES, Table

from valety_env.engine import STATE, shown_card_is_held, tricks_before
from valety_env.rules import Rules, make_rules

ROOT = Path(__file__).resolve().parent.parent
VALETY = make_rules("valety")

# Two cards each, alike whoever leads: a trick each, and both tricks to seat 0.
ONE_EACH = ("AS 2C", "2S AC")
BOTH_TO_SEAT_0 = ("KS AS", "2S 3S")


def tiny(**changes: Any) -> Rules:
    """Return Valety with two cards a hand and no trump."""
    return make_rules("valety", **{"hand_size": 2, "trump": "none", "target": 2} | changes)


def three(**changes: Any) -> Rules:
    """Return Knaves with one card a hand, no trump, and the dealer leading."""
    options = {"hand_size": 1, "trump": "none", "first_lead": "dealer"} | changes
    return make_rules("knaves", **options)


def four(**changes: Any) -> Rules:
    """Return Polignac for four with one card a hand and without announcements."""
    return make_rules("polignac", **{"hand_size": 1, "general": False} | changes)


def test_the_clauses_of_both_rules_pages_and_those_tested_here_are_the_same() -> None:
    clauses = {f"V{n}" for n in range(1, 14)} | {f"P{n}" for n in range(1, 15)}
    for page in ("docs/rules.md", "docs/rules.ru.md"):
        text = (ROOT / page).read_text("utf-8")
        assert set(re.findall(r"\*\*([VP]\d+)\*\*", text)) == clauses
    tests = Path(__file__).read_text("utf-8")
    assert set(re.findall(r"^def test_([VP]\d+)_", tests, re.MULTILINE)) == clauses


# Valety


@pytest.mark.plain
def test_V1_each_player_is_dealt_17_of_the_52_cards() -> None:
    table = Table(VALETY).start(seed=1)
    assert [len(hand) for hand in table.hands] == [17, 17]
    dealt = table.hands[0] + table.hands[1]
    assert len(set(dealt)) == 34
    assert set(dealt) <= set(FULL_PACK)
    assert len(FULL_PACK) == len(VALETY.pack) == 52


def test_V1_cards_are_dealt_one_at_a_time_from_the_player_after_the_dealer() -> None:
    def after_dealer(table: Table, after: int) -> set[str]:
        return set(table.hands[(table.dealer + after) % table.num_players])

    # The same shuffle with one card a hand more each time shows the order of the cards.
    order: list[str] = []
    for hand_size in range(1, 5):
        table = Table(tiny(hand_size=hand_size)).start(seed=5)
        for after in (1, 2):
            (new,) = after_dealer(table, after) - set(order)
            order.append(new)
    # Three players get the cards of the same shuffle in the same order.
    table = Table(three(hand_size=2)).start(seed=5)
    for after in (1, 2, 3):
        assert after_dealer(table, after) == {order[after - 1], order[after + 2]}


@pytest.mark.parametrize("seed", range(8))
def test_V2_the_card_after_the_hands_is_turned_up_and_its_suit_is_trump(seed: int) -> None:
    table = Table(VALETY).start(seed)
    one_more = Table(make_rules("valety", hand_size=18, trump="none")).start(seed)
    after_dealer = 1 - table.dealer
    (next_card,) = set(one_more.hands[after_dealer]) - set(table.hands[after_dealer])
    assert table.turned == next_card
    assert table.trump == next_card[1]
    assert one_more.turned is None
    assert one_more.trump is None


def test_V2_the_turned_up_card_and_17_others_take_no_part() -> None:
    rng = random.Random(2)
    for seed in range(10):
        table = Table(VALETY).start(seed)
        undealt = table.undealt
        assert len(undealt) == 17
        assert table.turned not in undealt
        table.play_out(rng)
        played = [card for _, card in table.plays]
        assert sorted([*played, *undealt, table.turned]) == sorted(FULL_PACK)
        assert table.undealt == undealt


@pytest.mark.plain
def test_V3_the_deal_alternates_from_a_first_dealer_drawn_by_lot() -> None:
    first = {Table(tiny(target=100)).start(seed).dealer for seed in range(8)}
    assert first == {0, 1}
    for dealer in (0, 1):
        table = Table(tiny(target=100)).begin(dealer, *ONE_EACH)
        dealers = [table.dealer]
        for _ in range(3):
            table.play_out().deal_on(*ONE_EACH)
            dealers.append(table.dealer)
        assert dealers == [dealer, 1 - dealer, dealer, 1 - dealer]


@pytest.mark.parametrize("seed", range(6))
def test_V4_the_dealer_leads_the_first_deal_with_any_card(seed: int) -> None:
    table = Table(VALETY).start(seed)
    assert table.leader == table.to_move() == table.dealer
    assert sorted(table.legal()) == sorted(table.hands[table.dealer])


@pytest.mark.plain
@pytest.mark.parametrize("dealer", [0, 1])
def test_V5_the_winner_of_a_deal_leads_the_next_whoever_deals(dealer: int) -> None:
    table = Table(tiny(target=100)).begin(dealer, *BOTH_TO_SEAT_0)
    for _ in range(3):
        table.play_out()
        assert table.deal_winner == 0
        table.deal_on(*BOTH_TO_SEAT_0)
        assert table.leader == table.to_move() == 0
    table.play_out().deal_on("2S 3S", "KS AS").play_out().deal_on()
    assert table.leader == table.to_move() == 1


@pytest.mark.parametrize(
    ("first_lead", "leaders"), [("dealer", [1, 0, 1, 0]), ("left_of_dealer", [0, 1, 0, 1])]
)
def test_V5_the_lead_can_follow_the_deal_instead(first_lead: str, leaders: list[int]) -> None:
    table = Table(tiny(target=100, first_lead=first_lead)).begin(1, *BOTH_TO_SEAT_0)
    seen = []
    for _ in range(4):
        assert table.leader == table.to_move()
        seen.append(table.leader)
        table.play_out().deal_on(*BOTH_TO_SEAT_0)
    assert seen == leaders


def test_V5_left_of_the_dealer_with_three_players_is_the_next_clockwise() -> None:
    table = Table(three(first_lead="left_of_dealer", target=100)).begin(1, "AS", "2S", "3S")
    seen = []
    for _ in range(4):
        seen.append((table.dealer, table.leader, table.to_move()))
        table.play_out().deal_on("AS", "2S", "3S")
    assert seen == [(1, 2, 2), (2, 0, 0), (0, 1, 1), (1, 2, 2)]


@pytest.mark.plain
def test_V6_more_deal_points_win_a_deal_against_more_tricks() -> None:
    table = Table(tiny(hand_size=3)).begin(0, "AS AH 2C", "JS JH AC").act("AS JS AH JH 2C AC")
    assert table.tricks == [2, 1]
    assert table.points == [-3, 1]
    assert table.deal_winner == 1


@pytest.mark.plain
def test_V6_equal_deal_points_fall_to_the_one_with_more_tricks() -> None:
    # A trick, and three tricks with J♣ in one of them; the new dealer is the one with fewer.
    rules = tiny(hand_size=4)
    table = Table(rules).begin(1, "AS 2C 2D 2H", "2S AC JC AD").act("AC 2C JC 2D AD 2H 2S AS")
    assert table.tricks == [1, 3]
    assert table.points == [1, 1]
    assert table.deal_winner == 1
    table.deal_on()
    assert (table.dealer, table.leader) == (0, 1)


@pytest.mark.parametrize("dealer", [0, 1])
def test_V6_equal_points_and_tricks_fall_to_the_new_dealer(dealer: int) -> None:
    table = Table(tiny()).begin(dealer, *ONE_EACH).play_out()
    assert (table.points, table.tricks) == ([1, 1], [1, 1])
    assert table.deal_winner == 1 - dealer
    table.deal_on()
    assert table.dealer == table.leader == 1 - dealer


@pytest.mark.parametrize(("dealer", "winner"), [(0, 1), (1, 2), (2, 1)])
def test_V6_a_tie_falls_to_the_new_dealer_or_the_first_of_them_after_him(
    dealer: int, winner: int
) -> None:
    # Seats 1 and 2 take a trick each, seat 0 none; the new dealer is seat 1, 2 or 0.
    table = Table(three(hand_size=2)).begin(dealer, "2S 2C", "AS 3C", "3S AC").play_out()
    assert table.points == [0, 1, 1]
    assert table.deal_winner == winner


@pytest.mark.plain
def test_V7_a_seat_that_can_follow_suit_must() -> None:
    table = Table(make_rules("valety", hand_size=3))
    table.begin(0, "AS KS 2C", "2S 9S AH", turned="3H").act("AS")
    assert table.to_move() == 1
    assert table.legal() == ["2S", "9S"]
    table.act("9S KS")
    assert table.legal() == ["2S"]


@pytest.mark.plain
def test_V7_whoever_leads_may_play_any_card() -> None:
    table = Table(make_rules("valety", hand_size=3, trump="none"))
    table.begin(0, "AS KS 2C", "2S 9S AH").act("AS 9S")
    assert table.to_move() == 0
    assert sorted(table.legal()) == ["2C", "KS"]


@pytest.mark.plain
def test_V8_a_seat_without_the_suit_led_may_trump_or_discard() -> None:
    table = Table(make_rules("valety", hand_size=3))
    table.begin(0, "AS KS 2C", "2H 9D AC", turned="3H").act("AS")
    assert sorted(table.legal()) == ["2H", "9D", "AC"]
    assert table.voids == [[], []]
    table.act("9D")
    assert table.voids == [[], ["S"]]


def test_V8_beating_is_not_compulsory() -> None:
    table = Table(make_rules("valety", hand_size=2))
    table.begin(0, "KS 2C", "2S AS", turned="3H").act("KS")
    assert table.legal() == ["2S", "AS"]
    table.act("2S")
    assert table.trick_winners == [0]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("trick", "winner"),
    [
        ("9S TS 2S", 1),  # the highest of the suit led
        ("TS 9S JS", 2),
        ("AS KS QS", 0),
        ("2S AC AD", 0),  # higher cards of other suits don't count
        ("AS 2H KS", 1),  # any trump beats the suit led
        ("AS 2H 3H", 2),  # the highest trump, also after a lower one
        ("AS TH 3H", 1),  # and before a lower one
        ("2H AS 3C", 0),  # a trump led
        ("2H KH AH", 2),
        ("2D AC 3D", 2),  # after a discard that was no trump
    ],
)
def test_V9_the_highest_trump_takes_a_trick_or_else_the_highest_of_the_suit_led(
    trick: str, winner: int
) -> None:
    table = Table(three(trump="turned")).begin(0, *trick.split(), turned="4H").act(trick)
    assert table.trick_winners == [winner]


@pytest.mark.parametrize("led", "SCDH")
@pytest.mark.parametrize("trump", "SCDH")
def test_V9_holds_for_every_two_cards_under_every_trump(led: str, trump: str) -> None:
    rules = make_rules("valety", hand_size=1)
    ranks = "23456789TJQKA"
    turned = "3" + trump
    lead = "7" + led
    for card in FULL_PACK:
        if card in (turned, lead):
            continue
        if card[1] == led:
            follower_wins = ranks.index(card[0]) > ranks.index("7")
        else:
            follower_wins = card[1] == trump
        table = Table(rules).begin(0, lead, card, turned=turned).act(f"{lead} {card}")
        assert table.trick_winners == [int(follower_wins)], card


def test_V9_without_trump_the_suit_led_decides() -> None:
    table = Table(three()).begin(0, "2S", "AH", "3S").act("2S AH 3S")
    assert table.trick_winners == [2]


def test_V9_the_order_of_ranks_decides_which_card_is_higher() -> None:
    aces_low = make_rules("valety", hand_size=1, trump="none", rank_order="A23456789TJQK")
    assert Table(aces_low).begin(0, "2S", "AS").act("2S AS").trick_winners == [0]
    assert Table(tiny(hand_size=1)).begin(0, "2S", "AS").act("2S AS").trick_winners == [1]


@pytest.mark.plain
def test_V9_the_winner_of_a_trick_leads_to_the_next() -> None:
    table = Table(three(hand_size=2)).begin(0, "2S 3S", "5S 6S", "AS 4S").act("2S 5S AS")
    assert table.to_move() == 2
    table.act("4S")
    assert table.to_move() == 0
    table.act("3S 6S")
    assert table.plays == [(0, "2S"), (1, "5S"), (2, "AS"), (2, "4S"), (0, "3S"), (1, "6S")]
    assert table.trick_winners == [2, 1]


@pytest.mark.plain
@pytest.mark.parametrize(("jack", "points"), [("JS", 0), ("JC", -1), ("JD", -2), ("JH", -3)])
@pytest.mark.parametrize("led", [True, False])
def test_V10_a_trick_is_worth_1_less_its_jack_to_its_winner(
    jack: str, points: int, led: bool
) -> None:
    low = "2" + jack[1] if led else "A" + jack[1]
    table = Table(tiny(hand_size=1))
    if led:
        table.begin(0, jack, low).act(f"{jack} {low}")
    else:
        table.begin(0, low, jack).act(f"{low} {jack}")
    assert table.tricks == [1, 0]
    assert table.jacks == [[jack[1]], []]
    assert table.points == [points, 0]


def test_V10_two_jacks_in_one_trick_both_count() -> None:
    table = Table(tiny(hand_size=1)).begin(0, "JH", "JD").act("JH JD")
    assert table.points == [1 - 4 - 3, 0]


def test_V10_jacks_that_are_not_dealt_cost_nobody() -> None:
    table = Table(make_rules("valety", hand_size=1)).begin(0, "AS", "2S", turned="JH")
    assert {"JS", "JC", "JD"} < set(table.undealt)
    assert table.act("AS 2S").points == [1, 0]


def test_V10_a_jack_is_a_jack_wherever_the_order_of_ranks_puts_it() -> None:
    rules = tiny(hand_size=1, rank_order="J23456789TQKA")
    table = Table(rules).begin(0, "2H", "JH").act("2H JH")
    assert table.points == [-3, 0]


def test_V11_seven_tricks_with_J_of_clubs_and_J_of_diamonds_are_2_points() -> None:
    table = Table(VALETY).begin(
        0,
        "AC KC QC JC AD KD QD 8S 7S 6S 5S 4S 8H 7H 6H 5H 4H",
        "TC 9C 8C 7C JD TD 9D AS KS QS TS 9S AH KH QH TH 9H",
        turned="2H",
    )
    table.act("AC TC KC 9C QC 8C JC 7C AD JD KD TD QD 9D")
    assert table.tricks == [7, 0]
    assert table.points == [2, 0]
    table.act("8S AS KS 7S QS 6S TS 5S 9S 4S AH 8H KH 7H QH 6H TH 5H 9H 4H")
    assert table.tricks == [7, 10]
    assert table.points == table.totals == [2, 10]


@pytest.mark.plain
def test_V11_two_tricks_with_all_four_jacks_are_minus_8_against_15() -> None:
    table = Table(VALETY).begin(
        0,
        "JH JS AS KS QS TS 9S 8S 7S 6S 5S 4S 3S 2S 2C 2D 3D",
        "JD JC AC KC QC TC 9C 8C 7C AD KD QD TD 9D 8D 7D 6D",
        turned="2H",
    )
    assert table.leader == 0
    table.act("JH JD")
    assert table.points == [-6, 0]
    table.act("JS JC")
    assert table.points == [-8, 0]
    table.act("2C AC")
    table.play_out()
    assert len(table.plays) == 34
    assert table.tricks == [2, 15]
    assert table.points == table.totals == [-8, 15]
    assert table.phase == "waiting for a deal"
    table.deal_on()
    assert table.leader == 1


def test_V11_seventeen_tricks_without_a_jack_are_17_points() -> None:
    table = Table(VALETY).begin(
        0,
        "AS KS QS TS 9S AC KC QC TC AD KD QD TD AH KH QH TH",
        "8S 7S 6S 5S 4S 8C 7C 6C 5C 8D 7D 6D 5D 8H 7H 6H 5H",
        turned="2H",
    )
    assert table.play_out().points == [17, 0]


@pytest.mark.plain
def test_V12_points_are_added_when_the_deal_is_over() -> None:
    table = Table(tiny(target=3)).begin(0, *BOTH_TO_SEAT_0).act("AS 2S")
    assert (table.points, table.totals) == ([1, 0], [0, 0])
    table.act("KS 3S")
    assert (table.points, table.totals) == ([2, 0], [2, 0])
    assert table.phase == "waiting for a deal"
    table.deal_on(*BOTH_TO_SEAT_0)
    assert (table.points, table.totals) == ([0, 0], [2, 0])


@pytest.mark.plain
def test_V12_the_match_is_over_after_the_deal_that_reaches_the_target() -> None:
    table = Table(tiny(target=4)).begin(0, *BOTH_TO_SEAT_0).play_out()
    assert table.phase == "waiting for a deal"
    assert table.winners == []
    table.deal_on(*BOTH_TO_SEAT_0).play_out()
    assert table.totals == [4, 0]
    assert table.phase == "over"
    assert table.winners == [0]
    assert table.legal() == []


def test_V12_one_point_less_than_the_target_does_not_end_the_match() -> None:
    table = Table(tiny(target=5)).begin(0, *BOTH_TO_SEAT_0).play_out()
    assert table.deal_on(*BOTH_TO_SEAT_0).play_out().totals == [4, 0]
    assert table.phase == "waiting for a deal"


def test_V12_a_target_passed_inside_a_deal_does_not_end_it() -> None:
    table = Table(tiny(target=1)).begin(0, "AS AH", "2S JH").act("AS 2S")
    assert table.phase == "plays"
    table.act("AH JH")
    assert table.totals == [-2, 0]
    assert table.phase == "waiting for a deal"


@pytest.mark.plain
def test_V12_counting_at_each_trick_ends_the_match_inside_a_deal() -> None:
    table = Table(tiny(target=1, count="trick")).begin(0, "AS AH", "2S JH").act("AS 2S")
    assert (table.points, table.totals) == ([1, 0], [1, 0])
    assert table.phase == "over"
    assert table.winners == [0]
    assert table.hands == [["AH"], ["JH"]]


def test_V12_counting_at_each_trick_adds_every_trick_once() -> None:
    table = Table(tiny(target=3, count="trick")).begin(0, "AH AS", "JH 2S").act("AH JH")
    assert table.totals == [-3, 0]
    table.act("AS 2S")
    assert table.totals == [-2, 0]
    assert table.phase == "waiting for a deal"
    table.deal_on(*ONE_EACH).play_out()
    assert table.totals == [-1, 1]
    table.deal_on("2S 3S", "KS AS").play_out()
    assert table.totals == [-1, 3]
    assert (table.phase, table.winners) == ("over", [1])


@pytest.mark.plain
def test_V13_the_higher_total_wins_when_both_have_the_target() -> None:
    table = Table(tiny(hand_size=3, target=1)).begin(0, "AS KS 2C", "2S 3S AC")
    assert table.act("AS 2S KS 3S 2C AC").totals == [2, 1]
    assert table.winners == [0]


@pytest.mark.plain
def test_V13_a_shared_highest_total_calls_for_another_deal() -> None:
    table = Table(tiny(target=1)).begin(0, *ONE_EACH)
    for total in (1, 2):
        table.play_out()
        assert table.totals == [total, total]
        assert table.phase == "waiting for a deal"
        assert table.winners == []
        table.deal_on(*(ONE_EACH if total == 1 else BOTH_TO_SEAT_0))
        # Dealer and leader as always: the new dealer won the tie (V6).
        assert table.dealer == table.leader == total % 2
    table.play_out()
    assert (table.totals, table.winners) == ([4, 2], [0])


def test_V13_the_extra_deal_ends_the_match_though_a_total_fell_under_the_target() -> None:
    table = Table(tiny()).begin(0, *ONE_EACH).play_out().deal_on(*ONE_EACH).play_out()
    assert table.totals == [2, 2]
    table.deal_on("AH AS", "JH 2S").play_out()
    assert table.totals == [0, 2]
    assert (table.phase, table.winners) == ("over", [1])


def test_V13_the_match_goes_on_when_all_fell_under_the_target_after_a_tie() -> None:
    table = Table(tiny()).begin(0, *ONE_EACH).play_out().deal_on(*ONE_EACH).play_out()
    table.deal_on("AH JC", "JH AC").play_out()
    assert table.totals == [-1, 1]
    assert table.phase == "waiting for a deal"


def test_V13_a_tie_is_shared_under_draw() -> None:
    table = Table(tiny(target=1, tie="draw")).begin(0, *ONE_EACH).play_out()
    assert (table.phase, table.winners) == ("over", [0, 1])


def test_V13_a_tie_below_the_highest_total_is_no_tie() -> None:
    table = Table(three(target=1)).begin(0, "AS", "2S", "3S").play_out()
    assert table.totals == [1, 0, 0]
    assert (table.phase, table.winners) == ("over", [0])


# Options that both games have


def test_max_deals_ends_the_match_and_the_highest_total_wins() -> None:
    table = Table(tiny(target=100, max_deals=2)).begin(0, *ONE_EACH).play_out()
    assert table.phase == "waiting for a deal"
    assert table.deal_on(*BOTH_TO_SEAT_0).play_out().phase == "over"
    assert table.winners == [0]


@pytest.mark.parametrize("target", [1, 100])
def test_max_deals_shares_a_tie_whatever_tie_says(target: int) -> None:
    table = Table(tiny(target=target, max_deals=1)).begin(0, *ONE_EACH).play_out()
    assert (table.phase, table.winners) == ("over", [0, 1])


def test_max_deals_ends_a_game_of_charges_with_the_lowest_total() -> None:
    table = Table(four(max_deals=1)).begin(0, "AS", "JS", "8S", "7S").play_out()
    assert (table.phase, table.winners) == ("over", [1, 2, 3])


def test_num_deals_with_trick_scoring_gives_the_match_to_the_highest_total() -> None:
    table = Table(tiny(target=None, num_deals=2)).begin(0, *BOTH_TO_SEAT_0).play_out()
    assert table.phase == "waiting for a deal"
    table.deal_on(*ONE_EACH).play_out()
    assert (table.totals, table.winners) == ([3, 1], [0])


def play_hands(rules: Rules, *deals: str) -> Table:
    """Play deals of one card each, hands given as `AS JS 8S 7S`, from dealer 0 on."""
    table = Table(rules)
    for number, hands in enumerate(deals):
        if number:
            assert table.phase == "waiting for a deal"
            table.deal_on(*hands.split()).play_out()
        else:
            table.begin(0, *hands.split()).play_out()
    return table


# Who takes which jack, whoever leads.
SEAT_0_TAKES_2 = "AS JS 8S 7S"
SEAT_1_TAKES_1 = "7H AH JH 9H"
SEAT_2_TAKES_1 = "7H JH AH 9H"


def test_a_loss_limit_ends_the_match_and_the_lowest_total_wins() -> None:
    rules = four(loss_limit=4)
    deals = [SEAT_0_TAKES_2, SEAT_1_TAKES_1, SEAT_2_TAKES_1]
    table = play_hands(rules, *deals)
    assert (table.totals, table.phase) == ([2, 1, 1, 0], "waiting for a deal")
    table = play_hands(rules, *deals, SEAT_0_TAKES_2)
    assert (table.totals, table.phase, table.winners) == ([4, 1, 1, 0], "over", [3])


def test_a_loss_limit_shares_the_lowest_total_under_draw_and_plays_on_under_play_on() -> None:
    drawn = play_hands(four(loss_limit=2), SEAT_0_TAKES_2)
    assert (drawn.phase, drawn.winners) == ("over", [1, 2, 3])
    deals = [SEAT_0_TAKES_2, SEAT_1_TAKES_1]
    table = play_hands(four(loss_limit=2, tie="play_on"), *deals)
    assert (table.phase, table.winners) == ("waiting for a deal", [])
    table = play_hands(four(loss_limit=2, tie="play_on"), *deals, SEAT_2_TAKES_1)
    assert (table.phase, table.winners) == ("over", [3])


@pytest.mark.plain
def test_totals_can_grow_as_far_as_the_options_let_them() -> None:
    # 1000 deals at 20 a jack and 20 for a general are 100,000.
    rules = four(jack_penalties=(20, 20, 20, 20), num_deals=1000)
    table = Table(rules).begin(0, *SEAT_0_TAKES_2.split())
    table.state.totals[0] = 32767
    assert table.play_out().totals == [32787, 0, 0, 0]
    table.state.deal = 65535
    table.deal_on()
    assert table.deal_number == 65536


# Records


@pytest.mark.plain
@pytest.mark.parametrize("players", range(2, 8))
def test_the_tricks_before_a_play_are_its_number_divided_by_the_players(players: int) -> None:
    record = Rules(num_players=players, hand_size=1, trump="none", num_deals=1).record
    plays = range(52 + players)
    assert [int(tricks_before(record, n)) for n in plays] == [n // players for n in plays]


@pytest.mark.plain
def test_a_table_fits_into_four_lines_of_a_processors_cache() -> None:
    assert STATE.itemsize <= 4 * 64


# Polignac


@pytest.mark.plain
def test_P1_four_players_have_8_of_the_32_cards_from_the_seven_up() -> None:
    table = Table(GAMES["polignac-4"]).start(seed=1)
    assert [len(hand) for hand in table.hands] == [8] * 4
    dealt = sorted(card for hand in table.hands for card in hand)
    assert dealt == sorted(card for card in FULL_PACK if card[0] in "789TJQKA")


@pytest.mark.parametrize(("players", "hand_size"), [(5, 6), (6, 5)])
def test_P2_with_5_or_6_players_the_black_sevens_are_removed_as_well(
    players: int, hand_size: int
) -> None:
    table = Table(GAMES[f"polignac-{players}"]).start(seed=1)
    assert [len(hand) for hand in table.hands] == [hand_size] * players
    dealt = sorted(card for hand in table.hands for card in hand)
    pack = [card for card in FULL_PACK if card[0] in "789TJQKA" and card not in ("7S", "7C")]
    assert dealt == sorted(pack)
    assert len(dealt) == 30


@pytest.mark.parametrize("players", range(3, 8))
def test_P3_the_whole_pack_is_dealt_and_there_is_no_trump(players: int) -> None:
    table = Table(GAMES[f"polignac-{players}"]).start(seed=3)
    assert table.undealt == []
    assert (table.turned, table.trump) == (None, None)


@pytest.mark.parametrize("players", range(3, 8))
def test_P3_under_last_card_the_dealers_last_card_is_shown_and_its_suit_is_trump(
    players: int,
) -> None:
    rules = make_rules("polignac", num_players=players, trump="last_card")
    assert rules.hand_size is not None
    one_less = make_rules("polignac", num_players=players, hand_size=rules.hand_size - 1)
    for seed in range(8):
        table = Table(rules).start(seed)
        before = Table(one_less).start(seed)
        (last,) = set(table.hands[table.dealer]) - set(before.hands[table.dealer])
        assert table.turned == last
        assert table.trump == last[1]
        assert table.phase == "calls"


@pytest.mark.plain
def test_P3_the_shown_card_is_played_like_any_other() -> None:
    rules = make_rules(
        "polignac", pack="7S 8S 9S TS AC KC QC 7H".split(), hand_size=2, trump="last_card"
    )
    table = Table(rules).begin(0, "7S 7H", "8S AC", "9S KC", "TS QC", turned="7H")
    table.act("pass pass pass pass 7S 8S 9S TS")
    assert bool(shown_card_is_held(table.record, table.state))
    assert table.to_move() == 3
    table.act("QC")
    assert table.legal() == ["7H"]
    table.act("7H AC KC")
    assert not bool(shown_card_is_held(table.record, table.state))
    assert table.trick_winners == [3, 0]
    assert (table.turned, table.trump) == ("7H", "H")


def test_P4_dealing_play_and_announcements_go_clockwise_and_each_deals_in_turn() -> None:
    rules = make_rules("polignac", hand_size=1)
    table = Table(rules).begin(2, "7S", "8S", "9S", "TS")
    order = []
    for _ in range(4):
        calls = []
        while table.phase == "calls":
            calls.append(table.to_move())
            table.act("pass")
        table.play_out()
        assert calls == [seat for seat, _ in table.plays]
        order.append((table.dealer, calls))
        table.deal_on("7S", "8S", "9S", "TS")
    # Nobody is ever charged, so the new dealer always counts as the winner (P5).
    assert order == [(2, [2, 3, 0, 1]), (3, [3, 0, 1, 2]), (0, [0, 1, 2, 3]), (1, [1, 2, 3, 0])]


def test_P4_cards_are_dealt_one_at_a_time_from_the_player_after_the_dealer() -> None:
    whole = Table(GAMES["polignac-5"]).start(seed=4)
    held: list[set[str]] = [set() for _ in range(5)]
    order = []
    for hand_size in range(1, 7):
        table = Table(make_rules("polignac", num_players=5, hand_size=hand_size)).start(seed=4)
        for after in range(1, 6):
            seat = (table.dealer + after) % 5
            (new,) = set(table.hands[seat]) - held[seat]
            held[seat].add(new)
            order.append(new)
    assert sorted(order) == sorted(GAMES["polignac-5"].pack)
    # Two players and the same shuffle: the same order of cards.
    two = Rules(
        num_players=2,
        pack=GAMES["polignac-5"].pack,
        hand_size=15,
        trump="none",
        scoring="penalties",
        num_deals=1,
    )
    table = Table(two).start(seed=4)
    assert set(table.hands[1 - table.dealer]) == set(order[0::2])
    assert whole.hands[whole.dealer] == table.names(
        np.uint64(sum(1 << table.number(card) for card in order[4::5]))
    )


def test_P5_the_dealer_leads_the_first_deal() -> None:
    for seed in range(6):
        table = Table(GAMES["polignac-5"]).start(seed)
        assert table.leader == table.to_move() == table.dealer


@pytest.mark.plain
def test_P5_the_player_charged_the_fewest_leads_the_next_deal() -> None:
    # Seat 0 takes J♠, seat 1 J♥, seat 2 J♦ and J♣, seat 3 nothing.
    table = Table(four(hand_size=4))
    table.begin(0, "AS 7H 7C 7D", "JS AH JC JD", "8S 8H AC AD", "9S JH 8C 8D")
    table.act("AS JS 8S 9S 7H AH 8H JH JC AC 8C 7C AD 8D 7D JD")
    assert table.points == [2, 1, 2, 0]
    assert table.deal_winner == 3
    table.deal_on()
    assert (table.dealer, table.leader) == (1, 3)


@pytest.mark.parametrize(("dealer", "leader"), [(0, 2), (1, 2), (2, 3), (3, 0)])
def test_P5_several_with_the_fewest_fall_to_the_new_dealer_or_the_next_after_him(
    dealer: int, leader: int
) -> None:
    # Seat 1 takes the jack, whoever leads: 0, 2 and 3 are level.
    table = Table(four()).begin(dealer, "7S", "AS", "JS", "8S").play_out()
    assert table.points == [0, 2, 0, 0]
    assert table.deal_winner == leader
    table.deal_on()
    assert table.leader == leader


def test_P5_tricks_do_not_break_a_tie_of_charges() -> None:
    table = Table(four(hand_size=2)).begin(0, "AS KS", "7S 8S", "9S TS", "7H 8H").play_out()
    assert table.tricks == [2, 0, 0, 0]
    assert table.deal_winner == 1


def test_P5_a_general_made_wins_the_deal_and_leads_the_next() -> None:
    table = Table(make_rules("polignac", hand_size=1)).begin(3, "7S", "8S", "AS", "JS")
    table.act("pass pass pass general").play_out()
    assert table.points == [5, 5, 0, 5]
    table.deal_on()
    assert (table.dealer, table.leader) == (0, 2)


@pytest.mark.parametrize(
    ("first_lead", "leaders"), [("dealer", [3, 0, 1]), ("left_of_dealer", [0, 1, 2])]
)
def test_P5_the_lead_can_follow_the_deal_instead(first_lead: str, leaders: list[int]) -> None:
    table = Table(four(first_lead=first_lead)).begin(3, "7S", "8S", "AS", "JS")
    seen = []
    for _ in range(3):
        seen.append(table.to_move())
        table.play_out().deal_on("7S", "8S", "AS", "JS")
    assert seen == leaders


@pytest.mark.plain
def test_P6_each_in_turn_from_the_one_who_will_lead_says_pass_or_general() -> None:
    rules = make_rules("polignac", hand_size=1, first_lead="left_of_dealer")
    table = Table(rules).begin(1, "7S", "8S", "AS", "JS")
    for seat in [2, 3, 0, 1]:
        assert table.phase == "calls"
        assert table.to_move() == seat
        assert table.legal() == ["pass", "general"]
        table.act("pass")
    assert table.calls == [(2, "pass"), (3, "pass"), (0, "pass"), (1, "pass")]
    assert (table.phase, table.general, table.to_move()) == ("plays", None, 2)


@pytest.mark.plain
def test_P6_the_first_general_ends_the_announcements() -> None:
    table = Table(make_rules("polignac", hand_size=1)).begin(1, "7S", "8S", "AS", "JS")
    table.act("pass general")
    assert table.calls == [(1, "pass"), (2, "general")]
    assert (table.phase, table.general) == ("plays", 2)


def test_P6_announcements_can_be_left_out() -> None:
    table = Table(four()).start(1)
    assert (table.phase, table.general) == ("plays", None)


@pytest.mark.parametrize(("general_leads", "first"), [(False, 1), (True, 3)])
def test_P7_a_general_leads_only_under_that_option(general_leads: bool, first: int) -> None:
    rules = make_rules("polignac", hand_size=2, general_leads=general_leads)
    hands = ("7S 8S", "9S TS", "JS QS", "KS AS")
    table = Table(rules).begin(1, *hands).act("pass pass general")
    assert (table.leader, table.to_move()) == (1, first)
    table.play_out()
    assert table.plays[0][0] == first
    assert table.plays[4][0] == table.trick_winners[0] == 3
    # The next deal has no general until somebody says so, and its leader is as always.
    table.deal_on(*hands)
    assert (table.general, table.calls, table.leader) == (None, [], 3)
    table.act("pass pass pass pass")
    assert table.to_move() == 3


@pytest.mark.plain
def test_P8_following_suit_and_taking_tricks_are_as_in_valety() -> None:
    table = Table(four(hand_size=2)).begin(0, "7S 8S", "9S AH", "JH QH", "KS AS").act("7S")
    assert table.legal() == ["9S"]
    table.act("9S")
    assert table.legal() == ["JH", "QH"]
    table.act("QH")
    assert table.legal() == ["KS", "AS"]
    table.act("KS")
    assert table.trick_winners == [3]
    assert table.to_move() == 3


@pytest.mark.parametrize(("jack", "charge"), [("JH", 1), ("JD", 1), ("JC", 1), ("JS", 2)])
def test_P9_only_jacks_are_charged(jack: str, charge: int) -> None:
    suit = jack[1]
    table = Table(four()).begin(0, "7" + suit, jack, "A" + suit, "8" + suit).play_out()
    assert table.points == table.totals == [0, 0, charge, 0]
    assert table.tricks == [0, 0, 1, 0]


@pytest.mark.plain
def test_P10_a_general_made_costs_every_other_player_5_and_him_nothing() -> None:
    table = Table(make_rules("polignac", hand_size=2)).begin(0, "AS JH", "JS KC", "8S 7C", "9S 8C")
    table.act("general AS JS 8S 9S")
    assert table.points == [2, 0, 0, 0]
    table.act("JH KC 7C 8C")
    assert table.points == table.totals == [0, 5, 5, 5]


def test_P10_the_charge_of_a_general_is_an_option() -> None:
    rules = make_rules("polignac", hand_size=1, general_charge=8)
    made = Table(rules).begin(0, "AS", "JS", "8S", "7S").act("general").play_out()
    assert made.points == [0, 8, 8, 8]
    failed = Table(rules).begin(0, "7S", "JS", "8S", "AS").act("general").play_out()
    assert failed.points == [8, 0, 0, 2]


@pytest.mark.plain
def test_P11_a_general_that_fails_is_charged_5_and_his_jacks_and_the_others_theirs() -> None:
    table = Table(make_rules("polignac", hand_size=2)).begin(0, "AS JH", "JS AH", "8S JC", "9S JD")
    table.act("general AS JS 8S 9S JH AH JC JD")
    assert table.tricks == [1, 1, 0, 0]
    assert table.points == table.totals == [7, 3, 0, 0]
    # Seats 2 and 3 are level at nothing; the new dealer is seat 1, so seat 2 is first after him.
    assert table.deal_winner == 2


def test_P11_a_general_without_any_trick_is_charged_5() -> None:
    table = Table(make_rules("polignac", hand_size=1)).begin(0, "7S", "JS", "8S", "AS")
    assert table.act("general").play_out().points == [5, 0, 0, 2]


def test_P11_another_players_taking_every_trick_does_not_make_the_general() -> None:
    table = Table(make_rules("polignac", hand_size=1)).begin(0, "AS", "JS", "8S", "7S")
    assert table.act("pass general").play_out().points == [2, 5, 0, 0]


@pytest.mark.plain
def test_P12_a_deal_is_played_to_its_end_when_the_general_has_failed() -> None:
    table = Table(make_rules("polignac", hand_size=2)).begin(0, "JH AS", "AH JS", "JC 8S", "JD 9S")
    table.act("general JH AH JC JD")
    assert table.phase == "plays"
    assert table.points == [0, 3, 0, 0]
    table.act("JS 8S 9S AS")
    assert table.points == [7, 3, 0, 0]
    assert table.phase == "waiting for a deal"


def test_P12_all_tricks_without_an_announcement_cost_the_jacks_alone() -> None:
    table = Table(make_rules("polignac", hand_size=2)).begin(0, "AS JH", "JS KC", "8S 7C", "9S 8C")
    table.act("pass pass pass pass").play_out()
    assert table.tricks == [2, 0, 0, 0]
    assert table.points == [3, 0, 0, 0]


@pytest.mark.parametrize("num_deals", [1, 3, 4])
def test_P13_the_match_has_the_agreed_number_of_deals(num_deals: int) -> None:
    deals = [SEAT_0_TAKES_2] * num_deals
    table = play_hands(four(num_deals=num_deals), *deals)
    assert table.phase == "over"
    assert table.totals == [2 * num_deals, 0, 0, 0]
    if num_deals > 1:
        earlier = play_hands(four(num_deals=num_deals), *deals[:-1])
        assert earlier.phase == "waiting for a deal"


@pytest.mark.parametrize("players", range(3, 8))
def test_P13_by_default_each_player_deals_once(players: int) -> None:
    table = Table(GAMES[f"polignac-{players}"]).start(players)
    dealers = [table.dealer]
    while table.play_out().phase != "over":
        table.deal_on()
        dealers.append(table.dealer)
    assert sorted(dealers) == list(range(players))


def test_P14_the_lowest_total_wins() -> None:
    table = play_hands(four(num_deals=3), SEAT_0_TAKES_2, SEAT_1_TAKES_1, SEAT_2_TAKES_1)
    assert (table.totals, table.winners) == ([2, 1, 1, 0], [3])


def test_P14_several_with_the_lowest_total_share_the_win() -> None:
    table = play_hands(four(num_deals=2), SEAT_0_TAKES_2, SEAT_1_TAKES_1)
    assert (table.totals, table.winners) == ([2, 1, 0, 0], [2, 3])


def test_P14_under_play_on_deals_follow_until_one_alone_is_lowest() -> None:
    rules = four(num_deals=1, tie="play_on")
    deals = [SEAT_0_TAKES_2, SEAT_1_TAKES_1, SEAT_2_TAKES_1]
    assert play_hands(rules, *deals[:2]).phase == "waiting for a deal"
    table = play_hands(rules, *deals)
    assert (table.phase, table.winners) == ("over", [3])


# Facts that follow from the rules


def finished_deals(game: str, matches: int, general_odds: float = 0.0) -> Any:
    """Yield the table after every deal of random matches."""
    rng = random.Random(matches)
    for seed in range(matches):
        table = Table(GAMES[game]).start(seed)
        while True:
            yield table.play_out(rng, general_odds)
            if table.phase == "over":
                break
            table.deal_on()


def test_fact_a_deal_of_valety_is_34_plays_and_its_points_add_up_to_7_to_17() -> None:
    penalties = {"JS": 1, "JC": 2, "JD": 3, "JH": 4}
    sums = set()
    equal = set()
    for table in finished_deals("valety", 250):
        assert len(table.plays) == 34
        assert sum(table.tricks) == 17
        dealt = sum(penalties.get(card, 0) for _, card in table.plays)
        assert sum(table.points) == 17 - dealt
        assert all(-8 <= points <= 17 for points in table.points)
        sums.add(sum(table.points))
        if table.points[0] == table.points[1]:
            equal.add(table.points[0])
    assert {7, 8, 9, 10, 11, 12, 13, 14} <= sums <= set(range(7, 18))
    assert equal <= {4, 5, 6, 7, 8}
    assert len(equal) >= 3


def possible_points() -> set[tuple[int, int]]:
    """Return the pairs of deal points that the numbers of Valety allow."""
    penalties = (1, 2, 3, 4)
    pairs = set()
    for owner in product((None, 0, 1), repeat=4):  # of each jack: undealt, or who takes it
        for first in range(18):
            tricks = (first, 17 - first)
            if all(2 * tricks[seat] >= owner.count(seat) for seat in (0, 1)):
                points = [
                    tricks[seat]
                    - sum(p for p, who in zip(penalties, owner, strict=True) if who == seat)
                    for seat in (0, 1)
                ]
                pairs.add((points[0], points[1]))
    return pairs


def test_fact_the_bounds_of_deal_points_follow_from_the_numbers() -> None:
    pairs = possible_points()
    assert {sum(pair) for pair in pairs} == set(range(7, 18))
    assert min(min(pair) for pair in pairs) == -8
    assert max(max(pair) for pair in pairs) == 17
    assert {a for a, b in pairs if a == b} == {4, 5, 6, 7, 8}


def test_fact_a_match_of_valety_without_a_tie_has_at_most_6_deals() -> None:
    # All totals that can stand after so many deals without the match being over.
    pairs = possible_points()
    totals = {(0, 0)}
    lengths = 0
    while totals:
        lengths += 1
        after = {(a + x, b + y) for a, b in totals for x, y in pairs}
        totals = {pair for pair in after if max(pair) < 20}
    assert lengths == 6
    longest = 0
    deals = 0
    for table in finished_deals("valety", 150):
        deals = table.deal_number + 1
        longest = max(longest, deals)
        tied = table.totals[0] == table.totals[1] >= 20
        assert deals <= 6 or tied
        assert (table.phase == "over") == (max(table.totals) >= 20 and not tied)
    assert longest >= 4


@pytest.mark.parametrize("game", ["polignac", "polignac-classic"])
@pytest.mark.parametrize("players", range(3, 8))
def test_fact_the_charges_of_a_deal_of_polignac_add_up(game: str, players: int) -> None:
    seen = set()
    for table in finished_deals(f"{game}-{players}", 40, general_odds=0.15):
        assert len(table.plays) == len(table.rules.pack)
        if table.general is None:
            assert sum(table.points) == 5
            assert min(table.points) >= 0
            if players >= 6:
                assert table.points.count(0) >= 2
        elif table.tricks[table.general] == table.rules.hand_size:
            assert sum(table.points) == 5 * (players - 1)
        else:
            assert sum(table.points) == 10
            assert 5 <= table.points[table.general] <= 10
        seen.add(table.general is None)
    assert seen == {True, False}


@pytest.mark.parametrize("players", range(3, 8))
def test_fact_a_general_made_charges_5_for_each_other_player(players: int) -> None:
    rules = GAMES[f"polignac-{players}"]
    assert rules.hand_size is not None
    rng = random.Random(players)
    # The general leads and holds the top of spades, and of clubs when spades are not enough.
    highest_first = sorted(
        rules.pack, key=lambda card: ("SCDH".index(card[1]), -rules.rank_order.index(card[0]))
    )
    winning, rest = highest_first[: rules.hand_size], highest_first[rules.hand_size :]
    for general in range(players):
        rng.shuffle(rest)
        dealt = iter(rest)
        hands = [
            " ".join(winning if seat == general else [next(dealt) for _ in winning])
            for seat in range(players)
        ]
        table = Table(rules).begin(general, *hands).act("general")
        while table.phase == "plays":
            if table.to_move() == general:
                table.act(next(card for card in winning if card in table.legal()))
            else:
                table.act(rng.choice(table.legal()))
        assert table.points == [0 if seat == general else 5 for seat in range(players)]


def test_fact_the_points_of_knaves_add_up_to_7_or_more_with_a_jack_turned_up() -> None:
    turned = {"JS": 1, "JC": 2, "JD": 3, "JH": 4}
    sums = set()
    for table in finished_deals("knaves", 60):
        assert len(table.plays) == 51
        assert table.undealt == []
        assert sum(table.points) == 7 + turned.get(str(table.turned), 0)
        sums.add(sum(table.points))
        assert table.deal_number < 9 or table.totals.count(max(table.totals)) > 1
    assert len(sums) >= 4


@pytest.mark.parametrize(("players", "most"), [(3, 12), (4, 16), (5, 20), (6, 23), (7, 27)])
def test_fact_the_classic_game_is_over_when_its_charges_must_have_reached_the_limit(
    players: int, most: int
) -> None:
    # Each deal charges 5 or more, and totals under 20 add up to 19 × players at most.
    assert most == 19 * players // 5 + 1
    lengths = [
        table.deal_number + 1
        for table in finished_deals(f"polignac-classic-{players}", 20)
        if table.phase == "over"
    ]
    assert len(lengths) == 20
    assert max(lengths) <= most


@pytest.mark.parametrize("level", range(1, 9))
def test_fact_a_game_of_the_ladder_is_a_single_deal(level: int) -> None:
    rules = GAMES[f"valety-L{level}"]
    for table in finished_deals(f"valety-L{level}", 60):
        assert (table.phase, table.deal_number) == ("over", 0)
        assert len(table.plays) == 2 * (rules.hand_size or 0)
        assert table.totals == table.points
        best = max(table.totals)
        assert table.winners == [seat for seat in (0, 1) if table.totals[seat] == best]

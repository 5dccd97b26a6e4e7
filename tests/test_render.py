"""Scenes, their text and their pixels."""

import copy
import dataclasses
import itertools
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from valety_env.cards import card_set, cards_of, parse_card
from valety_env.engine import (
    CALLS,
    DEAL_OVER,
    MATCH_OVER,
    STATE,
    begin_deal,
    legal_actions,
    next_deal,
    play,
    set_hands,
    start_match,
)
from valety_env.render import Scene, TrickScene, Window, ansi, scene
from valety_env.render.picture import SIZE, panel_boxes, seat_boxes, trick_box
from valety_env.rules import PRESETS, Rules, make_rules

ACTIONS = {"pass": 52, "general": 53}


def number(rules: Rules, name: str) -> int:
    return ACTIONS[name] if name in ACTIONS else parse_card(name, rules.rank_order)


def numbers(rules: Rules, names: str) -> list[int]:
    return [number(rules, name) for name in names.split()]


def position(
    rules: Rules, hands: list[str], turned: str | None = None, moves: str = "", dealer: int = 0
) -> Any:
    """Return the STATE of a first deal with these hands after these moves."""
    state = np.zeros(1, STATE)[0]
    begin_deal(rules.record, state, dealer, dealer)
    sets = np.array([card_set(numbers(rules, hand)) for hand in hands], np.uint64)
    set_hands(rules.record, state, sets, -1 if turned is None else number(rules, turned))
    for move in numbers(rules, moves):
        play(rules.record, state, move)
    return state


def walk(rules: Rules, seed: int, general: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield (state, last deal) before every move of a match of random play, and at its end.

    `general` announces when asked; after 12 deals the walk stops.
    """
    rng = np.random.default_rng(seed)
    state = np.zeros(1, STATE)[0]
    start_match(rules.record, state, np.uint64(seed), 0)
    last = None
    while True:
        yield state, last
        if state.phase == MATCH_OVER or state.deal >= 12:
            return
        if state.phase == DEAL_OVER:
            last = state.copy()
            next_deal(rules.record, state)
        elif state.phase == CALLS:
            play(rules.record, state, 53 if state.turn == general else 52)
        else:
            play(rules.record, state, rng.choice(cards_of(legal_actions(rules.record, state))))


def at_move(rules: Rules, seed: int, move: int, general: int | None = None) -> tuple[Any, Any]:
    return next(itertools.islice(walk(rules, seed, general), move, None))


def all_tables() -> list[Rules]:
    """Return every game for all numbers of players, and options drawn in their own way."""
    tables = [make_rules(game) for game in PRESETS]
    tables += [
        make_rules(game, num_players=players)
        for game in ("polignac", "polignac-classic")
        for players in (3, 5, 6, 7)
    ]
    return [
        *tables,
        make_rules("valety", hand_size=26, trump="none"),
        make_rules("valety", num_players=4, hand_size=12, count="trick"),
        make_rules("polignac", num_players=5, trump="last_card", general_leads=True),
        make_rules("polignac", num_players=4, num_deals=1, tie="play_on"),
    ]


def table_name(rules: Rules) -> str:
    return f"{rules.num_players} × {rules.hand_size} {rules.trump} {rules.first_lead}"


VALETY = make_rules("valety", hand_size=3)
VALETY_HANDS = ["JS 9S AH", "QS 2D JC"]

LAST_CARD = make_rules(
    "polignac", num_players=3, pack="7S 8S JS QH KH AH JD AD KD", trump="last_card"
)
LAST_CARD_HANDS = ["8S JS AD", "QH 7S JD", "KH AH KD"]


# Scenes


@pytest.mark.plain
def test_a_scene_tells_the_facts_of_a_position() -> None:
    state = position(VALETY, VALETY_HANDS, "3D", "JS QS JC 9S", dealer=0)
    state.totals[:2] = [4, 11]
    seen = scene(VALETY, state)
    assert seen.title == "valety (changed rules)"
    assert (seen.deal, seen.hand_size, seen.target, seen.num_deals) == (1, 3, 20, None)
    assert (seen.dealer, seen.leader, seen.turn, seen.phase) == (0, 0, 1, "plays")
    assert (seen.trump, seen.turned, seen.turned_by_dealer) == ("D", "3D", False)
    assert seen.finished_tricks == 2
    assert seen.table == ()
    assert seen.last_trick == TrickScene(((1, "JC"), (0, "9S")), 1)
    assert [seat.hand for seat in seen.seats] == [("AH",), ("2D",)]
    assert [seat.hidden for seat in seen.seats] == [0, 0]
    assert [seat.tricks for seat in seen.seats] == [0, 2]
    assert [seat.jacks for seat in seen.seats] == ["", "SC"]
    assert [seat.points for seat in seen.seats] == [0, -1]
    assert [seat.total for seat in seen.seats] == [4, 11]
    assert [seat.lacks for seat in seen.seats] == ["C", ""]
    assert [seat.call for seat in seen.seats] == [None, None]
    assert seen.winners == ()
    assert seen.status() == "trick 3 of 3: player_1 to lead"


@pytest.mark.plain
def test_a_scene_tells_the_cards_on_the_table_in_the_order_of_play() -> None:
    state = position(LAST_CARD, LAST_CARD_HANDS, "KD", "pass general KH 8S", dealer=2)
    seen = scene(LAST_CARD, state)
    assert seen.table == ((2, "KH"), (0, "8S"))
    assert seen.last_trick is None
    assert seen.turn == 1
    assert [seat.call for seat in seen.seats] == ["general", None, "pass"]
    assert seen.general == 0
    assert [seat.lacks for seat in seen.seats] == ["H", "", ""]
    assert seen.seats[2].hand == ("KD", "AH")
    assert seen.turned_by_dealer
    assert seen.status() == "trick 1 of 3: player_1 to play"


@pytest.mark.plain
def test_a_scene_tells_who_won_and_that_nobody_is_to_act() -> None:
    rules = make_rules("valety-L1")
    state = position(rules, ["JH QH", "JD KD"], "KH", "JH JD QH KD")
    seen = scene(rules, state)
    assert (seen.phase, seen.turn, seen.winners) == ("match over", None, (1,))
    assert [seat.total for seat in seen.seats] == [-5, 0]
    assert seen.last_trick == TrickScene(((0, "QH"), (1, "KD")), 0)
    assert seen.headline() == "valety-L1, a single deal"
    assert seen.status() == "the match is over: player_1 wins"
    shared = dataclasses.replace(seen, winners=(0, 1))
    assert shared.status() == "the match is over: player_0 and player_1 share the win"


def test_a_scene_of_a_new_deal_tells_the_end_of_the_one_before() -> None:
    rules = make_rules("valety")
    start = (pair for pair in walk(rules, 1) if pair[0].deal == 1 and pair[0].num_plays == 0)
    state, last = next(start)
    seen = scene(rules, state, last)
    assert seen.last_points == tuple(state.totals[:2])
    assert seen.last_trick is not None
    assert [card for _, card in seen.last_trick.plays] == scene_cards(rules, last.history[32:34])
    assert seen.last_trick.winner == int(last.turn)
    assert scene(rules, state).last_trick is None
    play(rules.record, state, cards_of(legal_actions(rules.record, state))[0])
    play(rules.record, state, cards_of(legal_actions(rules.record, state))[0])
    now = scene(rules, state, last).last_trick
    assert now is not None
    assert [card for _, card in now.plays] == scene_cards(rules, state.history[:2])


def scene_cards(rules: Rules, cards: Any) -> list[str]:
    return [rules.rank_order[card % 13] + "SCDH"[card // 13] for card in cards.tolist()]


def test_a_note_stands_in_place_of_the_turn() -> None:
    state = position(VALETY, VALETY_HANDS, "3D", "JS")
    seen = scene(VALETY, state, note="player_1 may not play 2D; legal here: QS")
    assert seen.turn is None
    assert seen.status() == "player_1 may not play 2D; legal here: QS"


def test_a_scene_does_not_change_with_its_state() -> None:
    state = position(VALETY, VALETY_HANDS, "3D")
    seen = scene(VALETY, state)
    before = copy.deepcopy(seen)
    play(VALETY.record, state, number(VALETY, "JS"))
    assert seen == before


@pytest.mark.parametrize("seat", [-1, 2])
def test_a_seat_that_does_not_exist_is_refused(seat: int) -> None:
    with pytest.raises(ValueError, match=f"seat={seat}.*0…1"):
        scene(VALETY, position(VALETY, VALETY_HANDS, "3D"), seat=seat)


@pytest.mark.parametrize(
    ("options", "deal", "expected"),
    [
        ({}, 2, "deal 3, first to 20"),
        ({"num_deals": 4}, 2, "deal 3 of 4"),
        ({"num_deals": 4}, 4, "deal 5, after a tie"),
        ({"max_deals": 9}, 2, "deal 3 of at most 9, first to 20"),
        (
            {"scoring": "penalties", "loss_limit": 25},
            2,
            "deal 3, until someone is charged 25",
        ),
    ],
)
def test_the_headline_tells_what_ends_the_match(
    options: dict[str, Any], deal: int, expected: str
) -> None:
    rules = make_rules("valety", hand_size=3, **options)
    state = position(rules, VALETY_HANDS, "3D")
    state.deal = deal
    assert scene(rules, state, title="a game").headline() == f"a game, {expected}"


# What a seat may see


def redealt() -> list[tuple[Rules, int, Any, Any, int]]:
    """Return (rules, seat, two states that it cannot tell apart, cards hidden from it)."""
    one = position(VALETY, VALETY_HANDS, "3D", "JS")
    other = position(VALETY, [VALETY_HANDS[0], "QH 3S AC"], "3D", "JS")
    # Of three, with the shown card still in the dealer's hand, where it must stay.
    hands = LAST_CARD_HANDS
    three = position(LAST_CARD, hands, "KD", "pass pass pass AH", dealer=2)
    mixed = ["8S JS AD", "QH KH JD", "7S AH KD"]
    four = position(LAST_CARD, mixed, "KD", "pass pass pass AH", dealer=2)
    for state in (other, four):
        state.seed, state.episode = 99, 7
    return [(VALETY, 0, one, other, 3), (LAST_CARD, 0, three, four, 4)]


@pytest.mark.parametrize("pair", redealt(), ids=["valety", "polignac with a shown card"])
def test_hidden_cards_change_neither_text_nor_pixels(
    pair: tuple[Rules, int, Any, Any, int],
) -> None:
    rules, seat, one, other, hidden = pair
    first, second = (scene(rules, state, seat=seat) for state in (one, other))
    assert sum(who.hidden for who in first.seats) == hidden
    assert first.seats[seat].hidden == 0
    assert ansi(first) == ansi(second)
    window = Window()
    assert np.array_equal(window.rgb_array(first), window.rgb_array(second))
    # Without a seat all is shown, so the states do differ.
    assert ansi(scene(rules, one)) != ansi(scene(rules, other))
    assert not np.array_equal(
        window.rgb_array(scene(rules, one)), window.rgb_array(scene(rules, other))
    )


@pytest.mark.plain
def test_P3_everyone_sees_the_dealers_shown_card_until_it_is_played() -> None:
    state = position(LAST_CARD, LAST_CARD_HANDS, "KD", "pass pass pass", dealer=2)
    dealer = scene(LAST_CARD, state, seat=0).seats[2]
    assert (dealer.hand, dealer.hidden) == (("KD",), 2)
    assert scene(LAST_CARD, state, seat=2).seats[1].hand == ()
    play(LAST_CARD.record, state, number(LAST_CARD, "KD"))
    dealer = scene(LAST_CARD, state, seat=0).seats[2]
    assert (dealer.hand, dealer.hidden) == ((), 2)


# Text

GOLDEN = {
    ("valety", 2, 11, None, None): """\
valety, deal 1, first to 20
dealer player_1, first lead player_1, trump ♦ (2♦ turned up)
trick 6 of 17: player_1 to play

            tricks  jacks  deal  total  lacks  last trick  table
  player_0       1            1      0         4♠ won      6♣ led
> player_1       4  ♠         3      0         3♠ led

  player_0  ♠ 5  ♣ A J T 8 5 4  ♦ 8 4      ♥ J 4
> player_1  ♠ 9  ♣ 7 3          ♦ A K Q J  ♥ A Q 7 6 3
""",
    ("valety", 2, 35, None, 1): """\
valety, deal 2, first to 20
dealer player_0, first lead player_1, trump ♣ (2♣ turned up)
trick 1 of 17: player_1 to lead

            tricks  jacks  deal  total  lacks  last trick  table
  player_0       0            0      1         4♦
> player_1       0            0      6         K♦ led won

last deal:  player_0 1  player_1 6

  player_0  17 cards
> player_1  ♠ K Q T 9 8 5  ♣ J T 8  ♦ A J T 9 4 2  ♥ 8 7
""",
    ("polignac", 4, 14, 3, None): """\
polignac, deal 1 of 4
dealer player_2, first lead player_2, no trump
trick 4 of 8: player_2 to lead

            call     tricks  jacks  deal  total  lacks  last trick  table
  player_0                1  ♥         1      0         Q♦
  player_1                0            0      0         9♦
> player_2  pass          2  ♠♦        3      0         A♦ led won
  player_3  general       0            0      0         J♦

  player_0  ♠ A 9  ♣ -          ♦ T    ♥ A K
  player_1  ♠ -    ♣ K Q J 9 8  ♦ -    ♥ -
> player_2  ♠ -    ♣ T 7        ♦ K 8  ♥ T
  player_3  ♠ K 8  ♣ A          ♦ 7    ♥ 9
""",
    ("polignac", 6, 3, None, None): """\
polignac, deal 1 of 6
dealer player_4, first lead player_4, no trump
player_1 to announce

            call  tricks  jacks  deal  total  lacks  last trick  table
  player_0  pass       0            0      0
> player_1             0            0      0
  player_2             0            0      0
  player_3             0            0      0
  player_4  pass       0            0      0
  player_5  pass       0            0      0

  player_0  ♠ A      ♣ 9    ♦ A K  ♥ Q
> player_1  ♠ J      ♣ J    ♦ J 8  ♥ T
  player_2  ♠ K Q 8  ♣ K    ♦ -    ♥ J
  player_3  ♠ 9      ♣ A    ♦ Q    ♥ K 9
  player_4  ♠ T      ♣ T    ♦ 9    ♥ A 7
  player_5  ♠ -      ♣ Q 8  ♦ T 7  ♥ 8
""",
    ("polignac-classic", 7, 60, 2, 0): """\
polignac-classic, deal 2, until someone is charged 20
dealer player_6, first lead player_0, no trump
trick 4 of 4: player_0 to play

            call     tricks  jacks  deal  total  lacks  last trick  table
> player_0  pass          0            0      0  ♣      T♥
  player_1  pass          0            0      0  ♠♣♦    9♥
  player_2  general       1  ♠         2      5         Q♣ led
  player_3                0            0      0         9♣
  player_4                1  ♣         1      0         K♣ won      Q♥ led
  player_5                0            0      3         A♣          8♥
  player_6                1  ♦♥        2      2  ♥      J♣          8♣

last deal:  player_0 0  player_1 0  player_2 5  player_3 0  player_4 0
            player_5 3  player_6 2

> player_0  ♠ -  ♣ -  ♦ T  ♥ -
  player_1  1 card
  player_2  1 card
  player_3  1 card
  player_4  no cards
  player_5  no cards
  player_6  no cards
""",
    ("knaves", 3, 8, None, None): """\
knaves, deal 1, first to 20
dealer player_2, first lead player_0, trump ♣ (9♣ turned up)
trick 3 of 17: player_1 to play

            tricks  jacks  deal  total  lacks  last trick  table
  player_0       1            1      0         8♣ led      J♥
> player_1       0            0      0         2♣
  player_2       1  ♣        -1      0         J♣ won      6♥ led

  player_0  ♠ 9 8 6      ♣ K Q T    ♦ Q 4            ♥ K Q 7 5 4 3
> player_1  ♠ A Q J 3 2  ♣ A 6      ♦ A K J 9 8 3 2  ♥ 9
  player_2  ♠ K T 7 5 4  ♣ 7 5 4 3  ♦ T 7 6 5        ♥ A
""",
    ("valety-L3", 2, 3, None, None): """\
valety-L3, a single deal
dealer player_1, first lead player_1, trump ♣ (K♣ turned up)
trick 2 of 3: player_0 to play

            tricks  jacks  deal  total  lacks  last trick  table
> player_0       0            0      0         Q♥
  player_1       1            1      0         K♥ led won  K♦ led

> player_0  ♣ J  ♦ Q  ♥ -
  player_1  ♣ -  ♦ -  ♥ J
""",
}


@pytest.mark.plain
@pytest.mark.parametrize("key", GOLDEN, ids=lambda key: f"{key[0]} for {key[1]}")
def test_the_text_of_a_position_is_as_it_was(key: tuple[str, int, int, Any, Any]) -> None:
    game, players, move, general, seat = key
    rules = make_rules(game, num_players=players)
    state, last = at_move(rules, 3, move, general)
    assert ansi(scene(rules, state, last, seat=seat)) == GOLDEN[key]


@pytest.mark.parametrize("rules", all_tables(), ids=table_name)
def test_no_line_of_any_game_is_wider_than_80_columns(rules: Rules) -> None:
    phases = set()
    for general in (None, rules.num_players - 1):
        for state, last in walk(rules, 5, general):
            seen = scene(rules, state, last)
            phases.add(seen.phase)
            for drawn in (seen, scene(rules, state, last, seat=1)):
                text = ansi(drawn)
                assert text.endswith("\n")
                assert max(map(len, text.split("\n"))) <= 80, text
    assert {"plays", "match over"} <= phases
    assert ("calls" in phases) == rules.general
    assert ("deal over" in phases) == (rules.max_deals != 1)


def test_colour_adds_nothing_but_escape_codes() -> None:
    rules = make_rules("polignac")
    state, last = at_move(rules, 3, 20)
    seen = scene(rules, state, last)
    painted = ansi(seen, color=True)
    assert "\x1b[31m" in painted
    assert re.sub("\x1b\\[[0-9]+m", "", painted) == ansi(seen)
    assert "\x1b" not in ansi(seen)


# Pixels


def picture(seen: Scene) -> Any:
    return Window().rgb_array(seen)


@pytest.mark.parametrize("rules", all_tables(), ids=table_name)
def test_every_game_gives_a_picture_in_every_phase(rules: Rules) -> None:
    window = Window()
    drawn: dict[str, Any] = {}
    for state, last in walk(rules, 5, general=1):
        seen = scene(rules, state, last)
        if seen.phase not in drawn:
            drawn[seen.phase] = window.rgb_array(seen)
    for array in drawn.values():
        assert array.shape == (640, 960, 3)
        assert array.dtype == np.uint8
        assert array.flags.c_contiguous
        assert array.std() > 10
    for one, other in itertools.combinations(drawn.values(), 2):
        assert not np.array_equal(one, other)


def test_equal_scenes_give_equal_pixels_and_a_play_changes_them() -> None:
    state = position(VALETY, VALETY_HANDS, "3D")
    window = Window()
    first = window.rgb_array(scene(VALETY, state))
    assert np.array_equal(first, window.rgb_array(scene(VALETY, state)))
    kept = first.copy()
    play(VALETY.record, state, number(VALETY, "JS"))
    assert not np.array_equal(first, window.rgb_array(scene(VALETY, state)))
    assert np.array_equal(first, kept)


def test_two_windows_do_not_disturb_each_other() -> None:
    one = scene(VALETY, position(VALETY, VALETY_HANDS, "3D"))
    rules = make_rules("polignac", num_players=7)
    other = scene(rules, at_move(rules, 1, 12)[0])
    alone = picture(one), picture(other)
    a, b = Window(), Window()
    for _ in range(2):
        assert np.array_equal(a.rgb_array(one), alone[0])
        assert np.array_equal(b.rgb_array(other), alone[1])
    # One window for both tables draws the same too.
    assert np.array_equal(a.rgb_array(other), alone[1])


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


@pytest.mark.parametrize("players", range(2, 8))
@pytest.mark.parametrize("viewer", [None, 1])
def test_nothing_lies_on_anything_else(players: int, viewer: int | None) -> None:
    rules = make_rules("valety", num_players=players, hand_size=5)
    seen = scene(rules, at_move(rules, 1, 0)[0], seat=viewer)
    plates = seat_boxes(seen)
    boxes = [*plates.values(), *panel_boxes(players)]
    boxes += [trick_box(seen, seat) for seat in range(players)]
    assert sorted(plates) == list(range(players))
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(one, other)
    for x, y, width, height in boxes:
        assert x >= 0
        assert y >= 38  # the bar at the top
        assert x + width <= SIZE[0]
        assert y + height <= SIZE[1]
    # The viewer sits at the bottom, the next seat, clockwise, not right of the middle.
    bottom = viewer or 0
    assert plates[bottom][1] == max(box[1] for box in plates.values())
    after = plates[(bottom + 1) % players]
    assert after[0] + after[2] / 2 <= SIZE[0] / 2


# Windows


@pytest.fixture
def windows() -> Iterator[list[Window]]:
    made = [Window(fps=1000), Window(fps=1000)]
    yield made
    for window in made:
        window.close()


SEEN = scene(VALETY, position(VALETY, VALETY_HANDS, "3D", "JS"))


def pixels_of(window: Window) -> Any:
    import pygame

    surface = window._window.get_surface()
    return pygame.surfarray.array3d(surface).swapaxes(0, 1)


def test_show_opens_a_window_and_close_closes_this_one_alone(windows: list[Window]) -> None:
    import pygame

    a, b = windows
    other = scene(VALETY, position(VALETY, VALETY_HANDS, "3D"))
    assert not a.is_open
    assert a.show(SEEN)
    assert b.show(other)
    assert a.is_open
    assert np.array_equal(pixels_of(a), a.rgb_array(SEEN))
    assert np.array_equal(pixels_of(b), a.rgb_array(other))
    a.close()
    assert not a.is_open
    assert b.is_open
    assert pygame.display.get_init()
    same = b._window
    assert b.show(SEEN)
    assert b._window is same
    assert np.array_equal(pixels_of(b), a.rgb_array(SEEN))
    a.close()
    assert a.show(SEEN)


def test_a_window_closed_by_its_user_stays_closed(windows: list[Window]) -> None:
    import pygame

    a, b = windows
    a.show(SEEN)
    b.show(SEEN)
    pygame.event.post(pygame.event.Event(pygame.WINDOWCLOSE, window=b._window))
    assert a.show(SEEN)  # a empties the queue that both share
    assert not b.is_open
    assert not b.show(SEEN)
    assert not b.is_open
    assert a.is_open
    b.close()
    assert b.show(SEEN)


def test_events_are_fetched_so_that_a_window_is_not_taken_for_hung(windows: list[Window]) -> None:
    import pygame

    a, _ = windows
    a.show(SEEN)
    for _ in range(3):
        pygame.event.post(pygame.event.Event(pygame.USEREVENT))
        a.show(SEEN)
        assert not pygame.event.peek(pygame.USEREVENT)


def test_a_window_survives_pygame_quit_by_someone_else(windows: list[Window]) -> None:
    import pygame

    a, b = windows
    a.show(SEEN)
    b.show(SEEN)
    before = b.rgb_array(SEEN)
    pygame.quit()
    assert np.array_equal(b.rgb_array(SEEN), before)
    assert a.show(SEEN)
    assert np.array_equal(pixels_of(a), before)
    b.close()
    assert a.show(SEEN)


def test_show_keeps_to_the_frame_rate() -> None:
    window = Window(fps=20)
    window.show(SEEN)
    start = time.perf_counter()
    for _ in range(4):
        window.show(SEEN)
    window.close()
    assert time.perf_counter() - start > 0.9 * 4 / 20


@pytest.mark.parametrize("fps", [0, -1.0, float("nan")])
def test_a_frame_rate_is_above_zero(fps: float) -> None:
    with pytest.raises(ValueError, match="fps="):
        Window(fps=fps)


def test_a_copied_or_pickled_window_is_a_new_one(windows: list[Window]) -> None:
    a, _ = windows
    a.show(SEEN)
    for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert other.fps == a.fps
        assert not other.is_open
        assert np.array_equal(other.rgb_array(SEEN), a.rgb_array(SEEN))
    assert a.is_open


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


PROBE = """
import sys
import numpy as np
from valety_env.engine import STATE, start_match
from valety_env.render import Window, ansi, scene
from valety_env.rules import make_rules
rules = make_rules()
state = np.zeros(1, STATE)[0]
start_match(rules.record, state, np.uint64(1), 0)
ansi(scene(rules, state))
assert "pygame" not in sys.modules
"""


def test_text_needs_no_pygame() -> None:
    assert run_python(PROBE) == ""


def test_an_array_of_pixels_opens_no_display_and_prints_nothing() -> None:
    code = PROBE + "Window().rgb_array(scene(rules, state))\nimport pygame\n"
    code += "assert not pygame.display.get_init()\n"
    assert run_python(code) == ""


def test_a_missing_pygame_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ImportError, match=r"pip install 'valety-env\[render\]'"):
        Window()


def test_a_pygame_without_windows_still_gives_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    import pygame

    monkeypatch.delattr(pygame, "Window")
    window = Window()
    assert window.rgb_array(SEEN).shape == (640, 960, 3)
    with pytest.raises(ImportError, match="pygame-ce"):
        window.show(SEEN)

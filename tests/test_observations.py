"""The encoders against a plain second encoding, and what is promised of their layouts."""

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from referee import Referee
from slow_observations import slow_flat, slow_pieces, slow_planes, slow_tokens
from tables import GAMES, Table, follow_match, plain_mix, random_rules

from valety_env.cards import cards_of
from valety_env.engine import legal_actions, play
from valety_env.episode import DTYPES, state_layout
from valety_env.observations import (
    BITS,
    ENCODERS,
    Encoder,
    encode_views,
    make_encoder,
    put,
    spread,
    spread_word,
)
from valety_env.rules import Rules, make_rules
from valety_env.view import VIEW, look

ROOT = Path(__file__).resolve().parent.parent
SLOW = {"flat_v0": slow_flat, "planes_v0": slow_planes, "tokens_v0": slow_tokens}


def rows(table: Table, name: str, seat: int, dtype: str = "uint8") -> np.ndarray:
    """Return the flat row that an encoder writes over what lay there before."""
    encoder = make_encoder(name, table.rules)
    views = np.zeros(1, VIEW)
    look(table.record, table.state, seat, views[0])
    row = np.full((1, encoder.layout.size), 99, dtype)
    encode_views(encoder.code, table.rules.packed, views, row)
    return row


def assert_encoded(table: Table, referee: Referee, seat: int) -> None:
    rules = table.rules
    for name, slow in SLOW.items():
        encoder = make_encoder(name, rules)
        expected = slow(referee, rules, seat)
        assert encoder.layout.shape == expected.shape
        shaped = encoder.shaped(rows(table, name, seat))
        assert isinstance(shaped, np.ndarray)
        np.testing.assert_array_equal(shaped[0], expected, err_msg=name)
    pieces = make_encoder("pieces_v0", rules).shaped(rows(table, "pieces_v0", seat))
    assert isinstance(pieces, dict)
    expected_pieces = slow_pieces(referee, rules, seat)
    assert list(pieces) == list(expected_pieces)
    for name, piece in pieces.items():
        assert piece.shape[1:] == expected_pieces[name].shape
        np.testing.assert_array_equal(piece[0], expected_pieces[name], err_msg=name)


@pytest.mark.parametrize("game", GAMES)
def test_every_encoder_says_what_its_documentation_says(game: str) -> None:
    rules = GAMES[game]
    for seed in range(3):
        rng = random.Random(seed)
        for table, referee in follow_match(rules, seed, most_deals=4):
            if rng.random() < 0.15:
                assert_encoded(table, referee, rng.randrange(rules.num_players))


def test_every_encoder_says_what_its_documentation_says_under_all_options() -> None:
    for number in range(150):
        rules = random_rules(random.Random(number))
        rng = random.Random(number)
        for table, referee in follow_match(rules, number, 0.2, most_deals=5):
            if rng.random() < 0.1:
                assert_encoded(table, referee, rng.randrange(rules.num_players))


@pytest.mark.plain
@pytest.mark.parametrize("game", ["valety", "polignac-3"])
def test_every_encoder_says_what_its_documentation_says_in_a_deal(game: str) -> None:
    rules = GAMES[game]
    for number, (table, referee) in enumerate(follow_match(rules, 1, 0.3, most_deals=1)):
        assert_encoded(table, referee, number % rules.num_players)


@pytest.mark.plain
@pytest.mark.parametrize("name", ENCODERS)
def test_an_observation_is_the_same_when_the_whole_table_is_turned(name: str) -> None:
    rules = GAMES["polignac-5"]
    tables = []
    for turned_by in range(5):
        table = Table(rules).start(9)
        dealer, hands = (table.dealer + turned_by) % 5, table.hands
        turned = [" ".join(hands[(seat - turned_by) % 5]) for seat in range(5)]
        tables.append(Table(rules).begin(dealer, *turned))
    words = ["pass", "pass", "general"]
    for step in range(20):
        for seat in range(5):
            seen = [
                rows(table, name, (seat + turned_by) % 5).tobytes()
                for turned_by, table in enumerate(tables)
            ]
            assert len(set(seen)) == 1
        word = words[step] if step < 3 else tables[0].legal()[step % len(tables[0].legal())]
        for table in tables:
            table.act(word)


# Rows of bits


def bits_of(words: Sequence[int]) -> list[int]:
    """Return all bits of words of 64, the lowest of the first word first."""
    return [int(word) >> k & 1 for word in words for k in range(64)]


@pytest.mark.plain
def test_bits_are_put_anywhere_across_words_too() -> None:
    rng = random.Random(1)
    for first in (0, 1, 7, 12, 36, 60, 63):
        row = np.zeros(1, BITS)
        expected = [0] * (64 * len(row[0].words))
        at = first
        while at + 64 <= 800:
            width = rng.choice([1, 2, 4, 7, 13, 24, 28, 52, 63, 64])
            bits = rng.getrandbits(width)
            put(row[0], at, width, np.uint64(bits))
            expected[at : at + width] = bits_of([bits])[:width]
            at += width + rng.choice([0, 0, 1, 5])
        assert bits_of(row[0].words) == expected


def test_the_last_bits_of_a_row_are_written_and_nothing_beyond() -> None:
    rng = random.Random(2)
    words = [rng.getrandbits(64) for _ in range(3)]
    row = np.zeros(1, BITS)
    row[0].words[:3] = words
    for dtype in ("uint8", "float32"):
        for size in range(2, 64, 2):
            rows = np.full((3, size + 9), 9, dtype)
            spread_word(np.uint64(words[0]), size, rows, 1, 3)
            written = rows[1, 3 : 3 + size].copy()
            rows[1, 3 : 3 + size] = 9
            assert written.tolist() == bits_of(words)[:size]
            assert (rows == 9).all()
        for size in range(64, 130, 2):
            rows = np.full((3, size), 9, dtype)
            spread(row[0], size, rows, 1)
            assert rows[1].tolist() == bits_of(words)[:size]
            assert (rows[[0, 2]] == 9).all()


# Layouts


@pytest.mark.parametrize("rules", [make_rules("valety"), make_rules("polignac")], ids=["2", "7"])
@pytest.mark.parametrize("name", [*ENCODERS, "state"])
def test_the_fields_of_a_layout_lie_one_after_another_without_gaps(name: str, rules: Rules) -> None:
    layout = state_layout(rules) if name == "state" else make_encoder(name, rules).layout
    assert layout.fields[0].offset == 0
    for field, after in pairwise(layout.fields):
        assert field.size == np.prod(field.shape) > 0
        assert after.offset == field.offset + field.size
    last = layout.fields[-1]
    assert last.offset + last.size == layout.size == np.prod(layout.shape)
    for field in layout.fields:
        assert layout[field.name] is field
        assert layout.slice(field.name) == slice(field.offset, field.offset + field.size)
    with pytest.raises(KeyError, match=r"no field 'colour'.*hand|no field 'colour'.*tokens"):
        layout["colour"]


def test_flat_rows_are_whole_words_of_eight_entries() -> None:
    assert make_encoder("flat_v0", GAMES["valety"]).layout.size == 464
    assert make_encoder("flat_v0", GAMES["knaves"]).layout.size == 1224


def test_there_is_one_shape_for_two_players_and_one_for_more() -> None:
    for name in ENCODERS:
        sizes = {
            players: make_encoder(
                name, Rules(num_players=players, hand_size=2, trump="none", num_deals=1)
            ).layout.size
            for players in range(2, 8)
        }
        assert len(set(sizes.values())) == 2
        assert list(sizes.values()).count(sizes[2]) == 1


def test_the_documentation_of_the_observations_is_what_the_layouts_print() -> None:
    printed = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "print_layouts.py")],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout
    assert (ROOT / "docs" / "observations.md").read_text("utf-8") == printed


def test_the_page_of_observations_has_every_field_of_every_layout() -> None:
    page = (ROOT / "docs" / "observations.md").read_text("utf-8")
    for rules in (make_rules("valety"), make_rules("polignac")):
        for layout in (
            *(make_encoder(name, rules).layout for name in ENCODERS),
            state_layout(rules),
        ):
            for field in layout.fields:
                last = field.offset + field.size - 1
                assert f"| {field.offset}–{last} | `{field.name}` |" in page


# Values


def assert_same_values(name: str, game: str, dtypes: Sequence[str]) -> None:
    layout = make_encoder(name, GAMES[game]).layout
    for number, (table, _) in enumerate(follow_match(GAMES[game], 2, most_deals=2)):
        if number % 17:
            continue
        expected = rows(table, name, seat=1)
        assert expected.max() <= layout.high
        for dtype in dtypes:
            again = rows(table, name, seat=1, dtype=dtype)
            assert again.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("game", ["valety", "polignac-6"])
def test_values_are_the_same_as_float32_and_as_one_byte(name: str, game: str) -> None:
    assert_same_values(name, game, ["float32"])


@pytest.mark.slow  # each dtype is compiled for itself
@pytest.mark.parametrize("name", ENCODERS)
def test_values_are_the_same_in_every_dtype(name: str) -> None:
    for game in ("valety", "polignac-6"):
        assert_same_values(name, game, DTYPES)


def totals_of(row: np.ndarray, rules: Rules) -> list[list[int]]:
    layout = make_encoder("flat_v0", rules).layout
    return row[0, layout.slice("totals")].reshape(2, 28).tolist()


def test_the_totals_of_valety_are_lossless_wherever_someone_is_to_move() -> None:
    rules = GAMES["valety"]
    levels = set()
    for seed in range(60):
        table = Table(rules).start(seed)
        rng = random.Random(seed)
        while True:
            shown = [sum(ones) - 8 for ones in totals_of(rows(table, "flat_v0", 0), rules)]
            levels.update(shown)
            tied_above = table.totals[0] == table.totals[1] >= 20
            assert shown == ([20, 20] if tied_above else table.totals)
            if table.play_out(rng).phase == "over":
                break
            table.deal_on()
    assert len(levels) > 20


def test_no_total_under_minus_8_or_over_19_can_stand_at_a_decision_of_valety() -> None:
    # Deal points add up to 7…17, either lies in −8…17; those that go on have both under 20.
    pairs = {(a, s - a) for s in range(7, 18) for a in range(-8, 18) if -8 <= s - a <= 17}
    standing = reached = {(0, 0)}
    while reached:
        after = {(a + x, b + y) for a, b in reached for x, y in pairs}
        reached = {pair for pair in after if max(pair) < 20} - standing
        standing = standing | reached
    assert {total for pair in standing for total in pair} == set(range(-8, 20))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("target", "total", "ones"),
    [
        (20, -9, 0),
        (20, -8, 0),
        (20, -7, 1),
        (20, 0, 8),
        (20, 19, 27),
        (20, 20, 28),
        (20, 21, 28),
        (30, 10, 8),
        (30, 29, 27),
        (30, 0, 0),
        (5, 4, 27),
        (5, -15, 8),
        (5, -24, 0),
    ],
)
def test_two_totals_are_thermometers_from_28_under_the_target(
    target: int, total: int, ones: int
) -> None:
    table = Table(make_rules("valety", target=target)).start(1)
    table.state.totals[1] = total
    assert totals_of(rows(table, "flat_v0", 1), table.rules)[0] == [1] * ones + [0] * (28 - ones)
    assert totals_of(rows(table, "flat_v0", 0), table.rules)[1] == [1] * ones + [0] * (28 - ones)


@pytest.mark.plain
def test_more_totals_are_thermometers_of_the_distance_from_the_lowest() -> None:
    table = Table(make_rules("polignac", num_players=5)).start(1)
    for seat, total in enumerate([7, 31, 8, 40, 7]):
        table.state.totals[seat] = total
    layout = make_encoder("flat_v0", table.rules).layout
    shown = rows(table, "flat_v0", 2)[0, layout.slice("totals")].reshape(7, 24)
    # From seat 2 on: 8, 40, 7, 7, 31, each less 7, at most 24; then two unused seats.
    assert shown.sum(axis=1).tolist() == [1, 24, 0, 0, 24, 0, 0]
    assert (np.diff(shown.astype(int), axis=1) <= 0).all()


@pytest.mark.plain
def test_those_who_have_said_pass_are_counted_on_round_the_table() -> None:
    table = Table(make_rules("polignac", num_players=5)).start(1)
    layout = make_encoder("flat_v0", table.rules).layout
    for word in ("pass", "pass", "pass", "general"):
        table.act(word)
        passed = [who for who, call in table.calls if call == "pass"]
        for seat in range(5):
            shown = rows(table, "flat_v0", seat)[0, layout.slice("passed")]
            assert sorted((seat + int(p)) % 5 for p in np.flatnonzero(shown)) == sorted(passed)
            assert shown.sum() == len(passed)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("options", "deal", "left"),
    [
        ({"num_deals": 3}, 0, 2),
        ({"num_deals": 3}, 2, 0),
        ({"num_deals": 3, "tie": "play_on"}, 5, 0),
        ({"num_deals": 9}, 0, 8),
        ({"num_deals": 10}, 0, 8),
        ({"num_deals": 1000}, 992, 7),
        ({"num_deals": 9, "max_deals": 2}, 0, 1),
        ({"loss_limit": 20}, 3, 8),
        ({"loss_limit": 20, "max_deals": 5}, 3, 1),
    ],
)
def test_deals_left_is_a_thermometer_of_those_to_come(
    options: dict[str, Any], deal: int, left: int
) -> None:
    table = Table(make_rules("polignac", **options)).start(1)
    table.state.deal = deal
    layout = make_encoder("flat_v0", table.rules).layout
    shown = rows(table, "flat_v0", 0)[0, layout.slice("deals_left")]
    assert shown.tolist() == [1] * left + [0] * (8 - left)


# Released encoders never change


def plain_hands(rules: Rules, seed: int) -> tuple[list[str], str | None]:
    """Deal without the engine's shuffle, so that a digest guards the encoder alone."""
    pack = sorted(rules.pack, key=lambda card: plain_mix(seed, rules.pack.index(card)))
    assert rules.hand_size is not None
    size = rules.hand_size
    hands = [" ".join(pack[seat * size : (seat + 1) * size]) for seat in range(rules.num_players)]
    rest = pack[size * rules.num_players :]
    if rules.trump == "last_card":
        return hands, hands[0].split()[-1]
    return hands, rest[0] if rules.trump == "turned" else None


# Games in which every field of an encoder is written; the dealer of the first deal is seat 0.
DIGESTED = {
    "valety": make_rules("valety"),
    "valety-L4": make_rules("valety-L4"),
    "knaves": make_rules("knaves", num_deals=3),
    "polignac-classic": make_rules("polignac-classic", max_deals=3),
    "polignac-7": make_rules("polignac", num_players=7),
    "polignac-6-last-card": make_rules(
        "polignac", num_players=6, trump="last_card", general_leads=True
    ),
}


def digest(name: str, rules: Rules) -> str:
    """Return a digest of all rows of three deals, every seat at every step."""
    hashed = hashlib.blake2b(digest_size=16)
    table = Table(rules)
    draws = 0
    for deal in range(3):
        hands, turned = plain_hands(rules, seed=deal)
        if deal == 0:
            table.begin(0, *hands, turned=turned)
        elif rules.trump == "last_card":
            hands[deal], hands[0] = hands[0], hands[deal]  # the shown card is the dealer's
            table.deal_on(*hands, turned=turned)
        else:
            table.deal_on(*hands, turned=turned)
        while table.phase in ("calls", "plays"):
            for seat in range(rules.num_players):
                hashed.update(rows(table, name, seat).tobytes())
            legal = cards_of(legal_actions(table.record, table.state))
            draws += 1
            if table.phase == "calls":
                action = legal[draws % 5 == 0]
            else:
                action = legal[plain_mix(7, draws) % len(legal)]
            play(table.record, table.state, action)
        for seat in range(rules.num_players):
            hashed.update(rows(table, name, seat).tobytes())
        if table.phase == "over":
            break
    return hashed.hexdigest()


DIGESTS: dict[str, dict[str, str]] = json.loads(
    (ROOT / "tests" / "golden" / "observations" / "digests.json").read_text("utf-8")
)


@pytest.mark.parametrize("game", DIGESTED)
@pytest.mark.parametrize("name", ENCODERS)
def test_a_released_encoder_has_not_changed(name: str, game: str) -> None:
    assert digest(name, DIGESTED[game]) == DIGESTS[name][game]


def test_every_encoder_has_its_digests() -> None:
    assert DIGESTS.keys() == ENCODERS.keys()
    for digests in DIGESTS.values():
        assert digests.keys() == DIGESTED.keys()


@pytest.mark.plain
def test_the_digest_of_a_small_game_is_the_same_in_plain_python() -> None:
    for name in ENCODERS:
        assert digest(name, DIGESTED["valety-L4"]) == DIGESTS[name]["valety-L4"]


# Encoders as objects


@pytest.mark.parametrize("name", ["flat", "flat_v1", "", None, 5])
def test_an_unknown_encoder_is_refused_with_those_there_are(name: Any) -> None:
    with pytest.raises(ValueError, match=r"flat_v0, planes_v0, tokens_v0, pieces_v0") as caught:
        make_encoder(name, GAMES["valety"])
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_observation_and_its_flat_rows_are_the_same_memory(name: str) -> None:
    encoder: Encoder = make_encoder(name, GAMES["polignac-4"])
    flat = np.arange(6 * encoder.layout.size).reshape(6, -1)
    shaped = encoder.shaped(flat)
    back = encoder.flat(shaped)
    assert back.shape == flat.shape
    back[3, 5] = -1
    assert flat[3, 5] == -1
    if isinstance(shaped, dict):
        assert (shaped["hand"][3] == [*range(flat[3, 0], flat[3, 0] + 5), -1, *flat[3, 6:52]]).all()


@pytest.mark.parametrize("name", ENCODERS)
def test_the_flat_rows_of_one_step_of_a_rollout_are_those_of_that_step(name: str) -> None:
    encoder = make_encoder(name, GAMES["valety"])
    rollout = np.zeros((5, 3, encoder.layout.size), np.uint8)
    back = encoder.flat(encoder.shaped(rollout[2]))
    assert back.shape == (3, encoder.layout.size)
    back[:] = 1
    assert rollout.any(axis=(1, 2)).tolist() == [False, False, True, False, False]


def test_an_observation_that_is_laid_out_otherwise_is_refused() -> None:
    flat, planes, pieces = (
        make_encoder(name, GAMES["valety"]) for name in ("flat_v0", "planes_v0", "pieces_v0")
    )
    otherwise = "not laid out as .* rows of"
    for encoder, shape in ((flat, (3, 463)), (flat, (464, 1)), (planes, (3, 25, 13, 4))):
        with pytest.raises(ValueError, match=otherwise):
            encoder.flat(np.zeros(shape, np.uint8))
    for apart in (
        np.zeros((3, 25, 4, 26), np.uint8)[..., ::2],
        np.zeros((25, 4, 13, 3)).transpose(3, 0, 1, 2),
    ):
        with pytest.raises(ValueError, match="must be contiguous"):
            planes.flat(apart)

    good = pieces.shaped(np.zeros((3, 464), np.uint8))
    assert isinstance(good, dict)
    assert pieces.flat(good).shape == (3, 464)
    for bad in (
        {},
        {name: piece for name, piece in good.items() if name != "voids"},
        good | {"voids": good["voids"].copy()},
        {name: piece.copy() for name, piece in good.items()},
        pieces.shaped(np.zeros((3, 460), np.uint8)),  # without the padding
    ):
        assert isinstance(bad, dict)
        with pytest.raises(ValueError, match=otherwise):
            pieces.flat(bad)

"""The golden games: whole games that must come out the same for ever.

`tools/make_golden.py` makes them. A change of one means that a released environment plays another
game, which takes a new version of it.
"""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from referee import Referee
from scripts import load_script

from valety_env.cards import card_name, set_names
from valety_env.engine import STATE, begin_deal, deal, start_match
from valety_env.notation import (
    make_record,
    read_record,
    record_from_text,
    record_to_text,
)
from valety_env.rules import PRESETS, Rules

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.json"))
NAMES = [path.stem for path in GOLDEN]


def load(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text())
    return record


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return load_script("tools/make_golden.py")


def test_every_preset_and_number_of_players_has_a_golden_game() -> None:
    games = {(r["game"], r["rules"]["num_players"]) for r in map(load, NAMES)}
    wanted = {(game, n) for game in ("polignac", "polignac-classic") for n in range(3, 8)}
    assert wanted <= games
    assert {game for game, _ in games} == set(PRESETS)


def test_the_golden_games_are_what_their_scripts_make(maker: ModuleType) -> None:
    assert sorted(maker.SCRIPTS) == sorted(NAMES)
    for name, script in maker.SCRIPTS.items():
        text = (ROOT / "tests" / "golden" / f"{name}.json").read_text("utf-8")
        assert maker.to_json(maker.play_script(script)) == text, name


@pytest.mark.plain
@pytest.mark.parametrize("name", NAMES)
def test_a_golden_game_is_played_again_from_its_hands(name: str) -> None:
    record = load(name)
    replayed = read_record(record)
    again = make_record(
        replayed.rules,
        replayed.game,
        replayed.states,
        illegal=record["illegal"],
        winners=replayed.winners,
    )
    assert again == record
    assert replayed.single_deal == ("single-deal" in name)


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_game_is_the_same_after_a_round_trip_through_text(name: str) -> None:
    record = load(name)
    assert record_from_text(record_to_text(record)) == record


@pytest.mark.parametrize("name", NAMES)
def test_seed_and_episode_deal_the_hands_of_a_golden_game(name: str) -> None:
    record = load(name)
    rules = Rules.from_dict(record["rules"])
    table = np.zeros(1, STATE)[0]
    start_match(rules.record, table, np.uint64(record["seed"]), record["episode"])
    assert table.dealer == record["deals"][0]["dealer"]
    for number, told in enumerate(record["deals"]):
        # A deal does not depend on how the deals before it were played.
        table.deal = number
        begin_deal(rules.record, table, told["dealer"], told["leader"])
        deal(rules.record, table)
        hands = [set_names(int(h), rules.rank_order) for h in table.hand[: rules.num_players]]
        assert hands == told["hands"]
        turned = None if table.turned < 0 else card_name(int(table.turned), rules.rank_order)
        assert turned == told["turned"]


@pytest.mark.parametrize("name", NAMES)
def test_the_referee_agrees_with_a_golden_game(name: str) -> None:
    record = load(name)
    rules = record["rules"]
    single_deal = "single-deal" in name
    if single_deal:
        rules = rules | {"max_deals": 1}
    referee = Referee(rules, record["deals"][0]["dealer"])
    for told in record["deals"]:
        referee.deal(told["hands"], told["turned"])
        assert (referee.dealer, referee.leader) == (told["dealer"], told["leader"])
        for seat, name_ in told["calls"] + told["plays"]:
            assert referee.to_move() == seat
            referee.act(name_)
        assert (referee.tricks, referee.points) == (told["tricks"], told["points"])
    assert referee.totals == record["totals"]
    winners = referee.winners
    if single_deal and rules["scoring"] == "tricks":
        winners = [referee.deal_winner]
    assert winners == record["winners"]
    if record["illegal"] is not None:
        assert record["illegal"]["seat"] == referee.to_move()
        assert record["illegal"]["action"] not in referee.legal()

"""Make the golden games of tests/golden/: whole games whose records must never change.

The deals follow from seed and episode, the choices from a script, so a golden game changes only
when the rules, the dealing or the record format do. Then, and only then, `_v0` becomes `_v1`.

    python tools/make_golden.py            # write what is missing; stop at one that has changed
    python tools/make_golden.py --replace  # write all anew
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from valety_env.cards import GENERAL, PASS, cards_of
from valety_env.engine import (
    CALLS,
    DEAL_OVER,
    MATCH_OVER,
    STATE,
    legal_actions,
    next_deal,
    play,
    start_match,
)
from valety_env.notation import deal_winners, make_record
from valety_env.rng import mix
from valety_env.rules import Rules, make_rules

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden"

Choose = Callable[[Any, list[int], int], int]


def any_action(table: Any, legal: list[int], draw: int) -> int:
    """Choose any card; announce a general once in a dozen turns."""
    if table.phase == CALLS:
        return GENERAL if draw % 12 == 0 else PASS
    return legal[draw % len(legal)]


def general_goes_high(table: Any, legal: list[int], draw: int) -> int:
    """Let the first to call announce a general and play high, and the others play low."""
    if table.phase == CALLS:
        return GENERAL
    return max(legal, key=strength) if table.turn == table.general else min(legal, key=strength)


def second_to_call_goes_high(table: Any, legal: list[int], draw: int) -> int:
    """As `general_goes_high`, but the one who will lead passes."""
    if table.phase == CALLS and table.num_calls == 0:
        return PASS
    return general_goes_high(table, legal, draw)


def strength(card: int) -> int:
    """Return the place of a card in its suit."""
    return card % 13


def first_action(table: Any, legal: list[int], draw: int) -> int:
    """Choose the lowest number."""
    return legal[0]


@dataclass(frozen=True)
class Script:
    """How one golden game comes about.

    Attributes:
        game: the preset.
        options: its options.
        seed: of the table.
        episode: its number.
        choose: the script of all seats.
        single_deal: whether the episode is one deal.
        illegal_after: after so many actions, the seat to move tries a card that it does not hold.
    """

    game: str
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 1
    episode: int = 0
    choose: Choose = any_action
    single_deal: bool = False
    illegal_after: int | None = None


SCRIPTS: dict[str, Script] = {
    "valety-1": Script("valety"),
    "valety-2": Script("valety", seed=(1 << 64) - 1, episode=(1 << 32) - 1),
    "valety-low-cards": Script("valety", choose=first_action),
    "valety-dealer-leads": Script("valety", {"first_lead": "dealer"}, seed=2),
    "valety-left-of-dealer-leads": Script("valety", {"first_lead": "left_of_dealer"}, seed=3),
    "valety-count-trick": Script("valety", {"count": "trick"}, seed=4),
    "valety-tie-played-on": Script("valety", {"target": 7}, seed=10),
    "valety-tie-drawn": Script("valety", {"target": 7, "tie": "draw"}, seed=10),
    "valety-three-deals": Script("valety", {"num_deals": 3}, seed=5),
    "valety-no-trump": Script("valety", {"trump": "none", "num_deals": 2}, seed=6),
    "valety-single-deal": Script("valety", seed=7, single_deal=True),
    "valety-illegal": Script("valety", seed=8, illegal_after=50),
    "knaves": Script("knaves", seed=9),
    "knaves-winner-leads": Script("knaves", {"first_lead": "winner"}, seed=10),
    **{f"valety-L{level}": Script(f"valety-L{level}", seed=10 + level) for level in range(1, 9)},
    **{f"polignac-{n}": Script("polignac", {"num_players": n}, seed=20 + n) for n in range(3, 8)},
    **{
        f"polignac-classic-{n}": Script("polignac-classic", {"num_players": n}, seed=30 + n)
        for n in range(3, 8)
    },
    "polignac-last-card": Script("polignac", {"trump": "last_card"}, seed=40),
    "polignac-general-leads": Script(
        "polignac",
        {"num_players": 5, "general_leads": True},
        seed=41,
        choose=second_to_call_goes_high,
    ),
    "polignac-general-made": Script(
        "polignac", {"num_players": 7, "num_deals": 2}, seed=69, choose=general_goes_high
    ),
    "polignac-no-general": Script("polignac", {"num_players": 6, "general": False}, seed=42),
    "polignac-tie-played-on": Script(
        "polignac", {"num_players": 6, "num_deals": 1, "tie": "play_on"}, seed=43
    ),
    "polignac-single-deal": Script("polignac", seed=44, single_deal=True),
    "polignac-illegal-call": Script("polignac", seed=45, illegal_after=2),
}


def play_script(script: Script) -> dict[str, Any]:
    """Return the record of a game played by its script."""
    rules = make_rules(script.game, **script.options)
    played_by = rules.replace(max_deals=1, count="deal") if script.single_deal else rules
    packed = played_by.record
    states = np.zeros(1, STATE)
    table = states[0]
    key = np.uint64(script.seed)
    start_match(packed, table, key, script.episode)
    # The script draws from another stream than the deals.
    choices = np.uint64(mix(key, np.uint64(1 << 63)))
    over: list[np.ndarray] = []
    step = 0
    while table.phase != MATCH_OVER and step != script.illegal_after:
        if table.phase == DEAL_OVER:
            over.append(states.copy())
            next_deal(packed, table)
        legal = cards_of(legal_actions(packed, table))
        draw = int(mix(choices, np.uint64(step)))
        play(packed, table, script.choose(table, legal, draw))
        step += 1
    illegal = None
    if script.illegal_after is not None:
        illegal = {"seat": table.turn, "action": not_held(rules, table)}
    return make_record(
        rules,
        script.game,
        [*over, states],
        illegal=illegal,
        winners=deal_winners(rules, states) if script.single_deal else None,
    )


def not_held(rules: Rules, table: Any) -> int:
    """Return the lowest card that the seat to move does not hold."""
    return cards_of(int(rules.record.pack) & ~int(table.hand[int(table.turn)]))[0]


def to_json(record: dict[str, Any]) -> str:
    """Return a record as JSON with a line for each tag, hand and trick-sized piece."""

    def plain(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    def lines(tags: dict[str, Any], indent: str) -> str:
        told = []
        for key, value in tags.items():
            text = plain(value)
            if key == "deals":
                deals = [
                    f"{indent} {{\n{lines(deal, indent + '  ')}\n{indent} }}" for deal in value
                ]
                text = "[\n" + ",\n".join(deals) + f"\n{indent}]"
            elif key == "hands":
                text = "[\n" + ",\n".join(f"{indent} {plain(v)}" for v in value) + f"\n{indent}]"
            told.append(f"{indent}{plain(key)}: {text}")
        return ",\n".join(told)

    return f"{{\n{lines(record, ' ')}\n}}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replace", action="store_true", help="overwrite those that have changed")
    options = parser.parse_args(arguments)
    changed = 0
    FOLDER.mkdir(exist_ok=True)
    for name, script in SCRIPTS.items():
        text = to_json(play_script(script))
        path = FOLDER / f"{name}.json"
        if path.exists() and path.read_text("utf-8") == text:
            continue
        if path.exists() and not options.replace:
            changed += 1
            print(f"{path.name} has changed", file=sys.stderr)
            continue
        path.write_text(text, "utf-8")
        print(f"{path.name} written")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())

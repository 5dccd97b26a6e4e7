"""From what a user asks for to a tournament that can be played."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from valety_env.agents import (
    UntrustedError,
    agent_about,
    agent_digest,
    make_agent,
    names_code,
)
from valety_env.arena.evaluation import DEALS_UNLESS_TOLD, MOST_UNLESS_TOLD, check_numbers
from valety_env.arena.sequential import Number, Precision
from valety_env.arena.tournament.entrants import Entrant, against, enter, round_robin
from valety_env.arena.tournament.jobs import setup_of
from valety_env.arena.tournament.run import Tournament
from valety_env.arena.tournament.store import DEAL, MATCH, Store, StoreError
from valety_env.episode import parse_seed
from valety_env.notation import game_to_text
from valety_env.rules import parse_game

_GAME = "valety"


def plan_tournament(
    results: str | Path,
    agents: Sequence[str],
    *,
    game: str | None = None,
    seed: int | None = None,
    curves: Sequence[str] = (),
    add: bool = False,
    deals: int | None = None,
    until: float | None = None,
    matches: int = 0,
    mixed: bool = False,
    trust: bool = False,
    skipped: Callable[[str], None] | None = None,
) -> Tournament:
    """Check all that a tournament needs, load its agents and open its file.

    Args:
        results: the file in which its games are kept; it is made when all else has been checked.
        agents: their names, as for `make_agent`; one that occurs twice plays as two.
        game: `GAME[,OPTION=VALUE…]`; None: that of the file, Valety for a new one.
        seed: 0…2^64−1; None: that of the file, 64 bits of entropy for a new one.
        curves: names of checkpoints that meet the others alone, for learning curves.
        add: whether those whom the file knows take part as well.
        deals: duplicate deals of each pairing, None: 1000. With `until` the most, None: a million.
        until: play each pairing until the 95% interval of its points is this much to either side.
        matches: duplicate matches of each pairing.
        mixed: with more than two players: also every set of different agents at a table.
        trust: as for `make_agent`.
        skipped: told, in one line, of each that the file knows and that can't play any more.

    Returns:
        the tournament; its `entrants` are those who take part. Close its `store`.

    Raises:
        ValueError: in one line: what was given and what is allowed.
    """
    curves = [name for name in curves if name not in agents]
    wanted = None if game is None else game_to_text(*parse_game(game))
    number = parse_seed(seed)
    if deals is None:
        deals = DEALS_UNLESS_TOLD if until is None else MOST_UNLESS_TOLD
    check_numbers(deals, matches, until)
    with ExitStack() as opened:
        store = None
        # A run that was killed before its first word leaves an empty file.
        if Path(results).exists() and Path(results).stat().st_size:
            store = opened.enter_context(Store(results))
            for name, given, known in (
                ("game", wanted, store.facts["game"]),
                ("seed", seed, store.facts["seed"]),
            ):
                if given is not None and given != known:
                    raise StoreError(
                        f"{results} has results of {name} {known}, not {given}; name another file"
                    )
        game = str(store.facts["game"]) if store else wanted or _GAME
        entered = _entrants([*agents, *curves], game, matches > 0, trust)
        members, runs = entered[: len(agents)], entered[len(agents) :]
        if add and store:
            known_ones = _those_who_can_play(store, trust, skipped)
            members = [entrant for entrant in known_ones if entrant not in entered] + members
            _entrants([entrant.name for entrant in known_ones], game, matches > 0, trust)
        if len({entrant.identity for entrant in [*members, *runs]}) < 2:
            raise ValueError("a tournament needs at least two agents")
        entrants = [*members, *runs]
        if store is None:
            store = opened.enter_context(Store(results, {"game": game, "seed": number}))
        numbers = [store.number_of(entrant) for entrant in entrants]
        opened.pop_all()
    seats = setup_of(game, DEAL).rules.num_players
    member_numbers = numbers[: len(members)]
    lineups = round_robin(member_numbers, seats, mixed)
    lineups += against(numbers[len(members) :], member_numbers, seats)

    most = deals
    return Tournament(
        store=store,
        game=game,
        seed=int(store.facts["seed"]),
        entrants=dict(zip(numbers, entrants, strict=True)),
        lineups=list(dict.fromkeys(lineups)),
        deals=lambda: Number(most) if until is None else Precision(until, most),
        matches=matches,
        trust=trust,
    )


def _entrants(names: Sequence[str], game: str, matches: bool, trust: bool) -> list[Entrant]:
    """Return the entrants of some names, with what their files say of them.

    Raises:
        ValueError: if one can't be made.
    """
    told = []
    for name in names:
        told.append(agent_about(make_agent(name, setup_of(game, DEAL).played, trust)))
        if matches:
            make_agent(name, setup_of(game, MATCH).played, trust)
    return [
        dataclasses.replace(entrant, about=about)
        for entrant, about in zip(enter(names), told, strict=True)
    ]


def _those_who_can_play(
    store: Store, trust: bool, skipped: Callable[[str], None] | None
) -> list[Entrant]:
    """Return those whom a file knows and who still are what they were.

    Raises:
        UntrustedError: for one that can run code: the file may come from anywhere.
    """
    found = []
    for entrant in store.entrants().values():
        if names_code(entrant.name) and not trust:
            raise UntrustedError(
                f"{store.path} knows {entrant.name}, which can run code when it is made; if you "
                "trust the file and the agent, add --trust"
            )
        try:
            same = agent_digest(entrant.name) == entrant.digest
            reason = "its file has changed"
        except (ValueError, OSError) as error:
            same, reason = False, str(error)
        if same:
            found.append(entrant)
        elif skipped is not None:
            skipped(f"{entrant.name} plays no more: {reason}; its games are kept")
    return found

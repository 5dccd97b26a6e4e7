"""Control variates: numbers with a mean of 0, exactly, and less spread for them."""

import math

import numpy as np
import pytest

from valety_env import evaluate
from valety_env.agents import known_policy, make_agent
from valety_env.agents.random import RandomAgent
from valety_env.arena.control import Control
from valety_env.arena.lineups import play_part, rotations_of
from valety_env.arena.points import relative_points
from valety_env.arena.tables import start_all
from valety_env.cards import cards_of
from valety_env.engine import PLAYS, STATE, deal_points, legal_actions, play
from valety_env.episode import Setup, make_setup
from valety_env.rules import Rules
from valety_env.solver import Solver
from valety_env.view import VIEW, look

GAMES = (
    "valety",
    pytest.param("valety-L3", marks=pytest.mark.plain),
    "polignac",
    "polignac,num_players=6,general=false",
    "knaves",
)


def setup_of(game: str) -> Setup:
    name, *options = game.split(",")
    given = {}
    for option in options:
        key, value = option.split("=")
        given[key] = value == "true" if value in ("true", "false") else int(value)
    return make_setup(name, episode="deal", **given)


def positions(setup: Setup, number: int, seed: int) -> np.ndarray:
    """Return tables in the middle of deals that were played at random, STATE (number,)."""
    rules = setup.played
    rng = np.random.default_rng(seed)
    states = np.zeros(number, STATE)
    start_all(rules.packed, states, rng.integers(0, 2**63, number).astype(np.uint64))
    for state in states:
        for _ in range(rng.integers(0, rules.num_players * (rules.hand_size or 0))):
            legal = cards_of(int(legal_actions(rules.record, state)))
            play(rules.record, state, int(rng.choice(legal)))
    return states


def shown(rules: Rules, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the seats to act are shown, and what they may do."""
    views = np.zeros(len(states), VIEW)
    legal = np.zeros(len(states), np.uint64)
    for i, state in enumerate(states):
        look(rules.record, state, int(state.turn), views[i])
        legal[i] = legal_actions(rules.record, state)
    return views, legal


class Skewed:
    """Prefers low actions, by chances that it tells."""

    name = "skewed"
    draws = True

    def act(self, views: np.ndarray, legal: np.ndarray, keys: np.ndarray) -> np.ndarray:
        uniform = (keys >> np.uint64(11)).astype(float) / 2.0**53
        chosen = []
        for actions, place in zip(legal, uniform, strict=True):
            each = cards_of(int(actions))
            weights = np.cumsum([1.0 / (1 + i) for i in range(len(each))])
            chosen.append(each[int(np.searchsorted(weights, place * weights[-1]))])
        return np.array(chosen, np.int64)

    def chances(self, views: np.ndarray, legal: np.ndarray, actions: np.ndarray) -> np.ndarray:
        found = []
        for allowed, action in zip(legal, actions, strict=True):
            each = cards_of(int(allowed))
            weights = [1.0 / (1 + i) for i in range(len(each))]
            found.append(weights[each.index(int(action))] / sum(weights))
        return np.array(found)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("agent", [RandomAgent, Skewed])
def test_what_a_choice_adds_has_a_mean_of_0_by_the_chances_of_the_choice(
    game: str, agent: type
) -> None:
    setup = setup_of(game)
    rules = setup.played
    states = positions(setup, 12, 1)
    views, legal = shown(rules, states)
    who = agent(rules) if agent is RandomAgent else agent()
    control = Control(rules, "play")
    mean = np.zeros((len(states), rules.num_players))
    most = np.zeros(len(states))
    for i, actions in enumerate(legal):
        for action in cards_of(int(actions)):
            row = slice(i, i + 1)
            taken = np.array([action])
            added = control.of_choices(who, views[row], legal[row], states[row], taken)[0]
            mean[i] += who.chances(views[row], legal[row], taken)[0] * added
            most[i] = max(most[i], np.abs(added).max())
            # What is given to one seat is taken from the others.
            assert added.sum() == pytest.approx(0.0, abs=1e-9)
    assert mean == pytest.approx(0.0, abs=1e-9)
    assert most.max() > 0.1


def played_out_slowly(rules: Rules, state: np.ndarray) -> np.ndarray:
    """Return the points of each seat when the heuristic goes on, asked choice by choice."""
    heuristic = make_agent("heuristic", rules)
    table = state.copy()
    while table[0].phase <= PLAYS:
        views, legal = shown(rules, table)
        play(rules.record, table[0], int(heuristic.act(views, legal, np.zeros(1, np.uint64))[0]))
    scores = [deal_points(rules.record, table[0], seat) for seat in range(rules.num_players)]
    return relative_points(rules, np.array(scores))


@pytest.mark.parametrize("game", ["valety", "polignac"])
def test_choices_are_judged_by_the_heuristic_and_the_last_by_the_solver(game: str) -> None:
    setup = setup_of(game)
    rules = setup.played
    states = positions(setup, 20, 2)
    views, legal = shown(rules, states)
    control = Control(rules, "play")
    late = set()
    for i in range(len(states)):
        each = cards_of(int(legal[i]))
        row = slice(i, i + 1)
        worth = {}
        for action in each:
            after = states[row].copy()
            play(rules.record, after[0], action)
            worth[action] = played_out_slowly(rules, after) * (0.2 if game == "valety" else 0.25)
            if game == "valety" and states[i]["num_plays"] // 2 >= 17 - 8:
                if len(each) > 1:
                    late.add(int(states[i]["turn"]))
                value = int(Solver(rules).values(states[row])[0, action])
                mine = 1 if states[i]["turn"] == 0 else -1
                worth[action] += 0.3 * mine * np.array([value, -value])
        expected = sum(worth.values()) / len(each) - worth[each[-1]]
        found = control.of_choices(
            RandomAgent(rules), views[row], legal[row], states[row], np.array([each[-1]])
        )
        assert found[0] == pytest.approx(expected if len(each) > 1 else 0.0, abs=1e-9)
    assert late == ({0, 1} if game == "valety" else set())


def turned(rules: Rules, states: np.ndarray) -> np.ndarray:
    """Return deals with every hand, and the deal itself, one seat further."""
    players = rules.num_players
    found = states.copy()
    for seat in range(players):
        found["hand"][:, (seat + 1) % players] = states["hand"][:, seat]
    for name in ("dealer", "leader", "turn"):
        found[name] = (states[name] + 1) % players
    return found


@pytest.mark.parametrize("game", GAMES)
def test_the_luck_of_a_deal_is_0_over_all_seats_and_goes_with_the_hands(game: str) -> None:
    setup = setup_of(game)
    rules = setup.played
    states = np.zeros(10, STATE)
    start_all(rules.packed, states, np.arange(10, dtype=np.uint64))
    before = states.copy()
    control = Control(rules, "deal")
    luck = control.of_deals(states)
    assert all(np.array_equal(states[name], before[name]) for name in STATE.names or ())
    assert np.abs(luck).max() > 0.3
    assert luck.sum(axis=1) == pytest.approx(0.0, abs=1e-9)
    assert np.roll(luck, 1, axis=1) == pytest.approx(control.of_deals(turned(rules, states)))
    # Who sits at any seat by lot has a mean of 0, which is what makes it a control variate; and it
    # is nothing in a duplicate deal, in which everybody has all the hands.
    assert not Control(rules, "play").of_deals(states).any()


@pytest.mark.plain
def test_the_luck_of_a_deal_is_what_solver_and_heuristic_make_of_it() -> None:
    rules = setup_of("valety-L6").played
    states = np.zeros(6, STATE)
    start_all(rules.packed, states, np.arange(6, dtype=np.uint64))
    luck = Control(rules, "deal").of_deals(states)
    best = Solver(rules).best(states)
    for i, state in enumerate(states):
        played = played_out_slowly(rules, states[i : i + 1])[0]
        mine = 1 if state.turn == 0 else -1
        assert luck[i, 0] == pytest.approx(-0.35 * mine * int(best[i]) - 0.35 * played)


@pytest.mark.plain
def test_nothing_is_known_of_agents_that_do_not_draw_by_their_chances() -> None:
    rules = setup_of("valety").played
    # The heuristic tells the chances of players like it, and plays the best card itself.
    assert known_policy(make_agent("heuristic", rules)) is None
    assert known_policy(make_agent("clairvoyant", rules)) is None
    assert known_policy(make_agent("random", rules)) is not None
    states = positions(setup_of("valety"), 5, 3)
    views, legal = shown(rules, states)
    actions = np.array([cards_of(int(each))[0] for each in legal])
    for name in ("heuristic", "clairvoyant"):
        added = Control(rules, "all").of_choices(
            make_agent(name, rules), views, legal, states, actions
        )
        assert not added.any()


def test_a_checkpoint_draws_if_it_has_a_temperature() -> None:
    torch = pytest.importorskip("torch")
    from valety_env.agents.neural import ActorCritic, NetworkConfig, NeuralAgent

    setup = setup_of("valety-L3")
    rules = setup.played
    torch.manual_seed(1)
    network = ActorCritic(NetworkConfig(setup.encoders[0].layout.size, 52, (8,)))
    assert known_policy(NeuralAgent(network, rules)) is None
    drawing = NeuralAgent(network, rules, temperature=0.5)
    assert known_policy(drawing) is drawing
    result = evaluate(drawing, "random", game=rules, deals=300, control="play", seed=1).results[0]
    plain = evaluate(drawing, "random", game=rules, deals=300, seed=1).results[0]
    assert result.saving is not None
    assert result.saving > 1.0
    spread = (result.pair_points - plain.pair_points).std() / math.sqrt(300)
    assert 0 < abs(result.points_per_deal - plain.points_per_deal) < 4 * spread


@pytest.mark.parametrize(
    ("options", "saving"),
    [
        # Savings of docs/arena.md less what so many deals leave open.
        ({"agent": "random", "control": "play", "deals": 2000}, 1.2),
        ({"agent": "random", "control": "all", "duplicate": False, "deals": 800}, 1.4),
        ({"agent": "heuristic", "control": "deal", "duplicate": False, "deals": 800}, 1.15),
        (
            {
                "agent": "random",
                "control": "all",
                "duplicate": False,
                "game": "polignac",
                "deals": 4000,
            },
            1.4,
        ),
    ],
)
def test_the_mean_stays_and_the_spread_becomes_less(
    options: dict[str, object], saving: float
) -> None:
    given = {"seed": 5, **options}
    agent = given.pop("agent")
    given_plain = {key: value for key, value in given.items() if key != "control"}
    other = "random" if agent == "heuristic" else "heuristic"
    with_it = evaluate(agent, other, **given).results[0]  # type: ignore[arg-type]
    plain = evaluate(agent, other, **given_plain).results[0]  # type: ignore[arg-type]
    assert plain.saving is None
    assert with_it.saving == pytest.approx(plain.pair_points.var() / with_it.pair_points.var())
    assert with_it.saving > saving
    difference = with_it.pair_points - plain.pair_points
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(len(difference))
    assert with_it.ci95 is not None
    assert plain.ci95 is not None
    assert with_it.ci95[1] - with_it.ci95[0] < plain.ci95[1] - plain.ci95[0]


def test_corrections_go_with_the_places() -> None:
    setup = setup_of("polignac")
    players = [
        make_agent("random", setup.played),
        make_agent("heuristic", setup.played),
    ]
    seeds = np.arange(3, dtype=np.uint64)
    control = Control(setup.played, "deal")
    rotations = rotations_of(4, 0, 3, duplicate=True)
    games = play_part(setup, players, (0, 1, 1, 1), seeds[:2], seeds, rotations, control=control)
    states = np.zeros(3, STATE)
    start_all(setup.played.packed, states, seeds)
    luck = control.of_deals(states)
    for rotation in range(4):
        for place in range(4):
            seat = (place + rotation) % 4
            assert games.corrections[:, rotation, place] == pytest.approx(luck[:, seat])
    # Nothing is left of it over all rotations.
    assert games.corrections.mean(axis=1) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.plain
def test_matches_are_not_corrected() -> None:
    with_it = evaluate(
        "random", "random", game="valety-L2", deals=2, matches=5, control="play", seed=1
    ).results[0]
    plain = evaluate("random", "random", game="valety-L2", deals=2, matches=5, seed=1).results[0]
    assert np.array_equal(with_it.pair_wins, plain.pair_wins)
    assert not np.array_equal(with_it.pair_points, plain.pair_points)

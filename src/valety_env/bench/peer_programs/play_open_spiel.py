"""OpenSpiel from Python: the states themselves, and `rl_environment`."""

import random
from collections.abc import Iterator
from functools import partial

import pyspiel
from open_spiel.python import rl_environment
from open_spiel.python.observation import make_observation
from serve import Case, seed, serve

PERFECT_RECALL = pyspiel.IIGObservationType(
    public_info=True, perfect_recall=True, private_info=pyspiel.PrivateInfoType.SINGLE_PLAYER
)


def play_states(name: str) -> Iterator[int]:
    """Play game after game; the player to move is observed into an array that is used again."""
    game = pyspiel.load_game(name)
    draw = random.Random(seed()).random
    observation = make_observation(game) or make_observation(game, PERFECT_RECALL)
    while True:
        state = game.new_initial_state()
        steps = 0
        while not state.is_terminal():
            if not state.is_chance_node():
                observation.set_from(state, state.current_player())
                steps += 1
            # What chance does in these games is uniform too, and this way it is quicker drawn.
            legal = state.legal_actions()
            state.apply_action(legal[int(draw() * len(legal))])
        state.returns()
        yield steps


def play_environment(name: str) -> Iterator[int]:
    """Play episode after episode of a reinforcement-learning environment."""
    environment = rl_environment.Environment(name)
    environment.seed(seed())
    draw = random.Random(seed()).random
    while True:
        step = environment.reset()
        steps = 0
        while not step.last():
            legal = step.observations["legal_actions"][step.observations["current_player"]]
            step = environment.step([legal[int(draw() * len(legal))]])
            steps += 1
        yield steps


# Bridge is played out, not solved after the auction.
GAMES = {
    "bridge": "bridge(use_double_dummy_result=false)",
    "spades": "spades",
    "hearts": "hearts",
}
CASES = [
    Case(
        f"{game}-state",
        f"{game}, observation into a reused array",
        "scalar",
        partial(play_states, given),
        "legal actions as a list",
    )
    for game, given in GAMES.items()
] + [
    Case(
        f"{game}-environment",
        f"{game}, rl_environment",
        "scalar",
        partial(play_environment, given),
        "all players observed",
    )
    for game, given in GAMES.items()
]

if __name__ == "__main__":
    serve(CASES, ["open_spiel"])

"""Self-play against past policies, and what RLlib reports of a policy's strength."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_LEARNER_GROUP, COMPONENT_RL_MODULE
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.env_runner import EnvRunner

from valety_env.arena import evaluate
from valety_env.integrations.rllib.checkpoints import module_agent
from valety_env.integrations.rllib.environment import make_table

MAIN = "main"
# Past policies are called past_00001 and so on, in the order of their age.
PAST = "past_"


class SeatMapping:
    """Says which module plays which seat of an episode: RLlib's `policy_mapping_fn`.

    In a share of the episodes the main module plays every seat. In the others it plays one, and one
    other module, drawn from the league, plays the rest. Who plays follows from the episode's id
    alone, so that every process answers the same.

    Args:
        agents: all agents of the environment.
        opponents: the modules of the league; without any, the main module plays every seat.
        self_share: of episodes in which it does all the same, 0…1.
        main: the main module.
    """

    def __init__(
        self,
        agents: Sequence[str],
        opponents: Sequence[str] = (),
        self_share: float = 0.7,
        main: str = MAIN,
    ) -> None:
        if not 0 <= self_share <= 1:
            raise ValueError(f"self_share={self_share}: it must be a share, 0…1")
        self.agents = tuple(agents)
        self.opponents = tuple(opponents)
        self.self_share = self_share
        self.main = main

    def __call__(self, agent_id: str, episode: Any, **kwargs: Any) -> str:
        """Return the module that plays for an agent."""
        if not self.opponents:
            return self.main
        # Python's own hash of a text differs from process to process.
        digest = blake2b(str(episode.id_).encode(), digest_size=12).digest()
        share, seat, opponent = (int.from_bytes(digest[i : i + 4], "little") for i in (0, 4, 8))
        if share < self.self_share * 2**32 or agent_id == self.agents[seat % len(self.agents)]:
            return self.main
        return self.opponents[opponent % len(self.opponents)]

    def with_opponents(self, opponents: Sequence[str]) -> SeatMapping:
        """Return the same mapping for another league."""
        return SeatMapping(self.agents, opponents, self.self_share, self.main)


class LeagueCallback(RLlibCallback):  # type: ignore[misc]
    """Adds the main policy as it is now to the league, every so many iterations.

    The algorithm's `policy_mapping_fn` must be a `SeatMapping`; its opponents are the league. The
    league lives in the algorithm's own state, so that a restored algorithm goes on with it. Results
    tell its size as `league/size`.

    Args:
        every: iterations of training between one new member and the next.
        most: past policies in the league; beyond it the oldest leaves.
    """

    def __init__(self, every: int = 10, most: int = 20) -> None:
        super().__init__()
        if every < 1 or most < 1:
            raise ValueError(f"every={every}, most={most}: both must be at least 1")
        self.every = every
        self.most = most

    def on_train_result(
        self, *, algorithm: Algorithm, result: dict[str, Any], **kwargs: Any
    ) -> None:
        """Let the league grow when it is time."""
        mapping = algorithm.config.policy_mapping_fn
        if not isinstance(mapping, SeatMapping):
            raise ValueError(
                f"policy_mapping_fn={mapping!r}: with LeagueCallback it must be a SeatMapping"
            )
        if result["training_iteration"] % self.every == 0:
            mapping = self._grow(algorithm, mapping)
        result["league"] = {"size": len(mapping.opponents)}

    def _grow(self, algorithm: Algorithm, mapping: SeatMapping) -> SeatMapping:
        past = sorted(name for name in mapping.opponents if name.startswith(PAST))
        number = int(past[-1].removeprefix(PAST)) + 1 if past else 1
        new = f"{PAST}{number:05d}"
        leaving = past[0] if len(past) >= self.most else None
        opponents = [name for name in mapping.opponents if name != leaving]
        grown = mapping.with_opponents([*opponents, new])
        main = algorithm.get_module(mapping.main)
        weights = algorithm.learner_group.get_weights([mapping.main])[mapping.main]
        algorithm.add_module(
            module_id=new,
            module_spec=RLModuleSpec.from_module(main),
            new_agent_to_module_mapping_fn=grown,
        )
        learners = {COMPONENT_LEARNER: {COMPONENT_RL_MODULE: {new: weights}}}
        algorithm.set_state({COMPONENT_LEARNER_GROUP: learners})
        algorithm.env_runner_group.foreach_env_runner(partial(_set_weights, {new: weights}))
        if leaving is not None:
            algorithm.remove_module(leaving, new_agent_to_module_mapping_fn=grown)
        return grown


def _set_weights(weights: dict[str, Any], runner: EnvRunner) -> None:
    runner.module.set_state(weights)


class BaselineCallback(RLlibCallback):  # type: ignore[misc]
    """Measures a module against the baselines by the project's own evaluation.

    It plays its likeliest actions. Results get, and TensorBoard shows, under `baselines/OPPONENT`:
    `points_per_deal` with `points_low` and `points_high`, the ends of its 95% interval, and
    `win_rate`, the share of duplicate matches won, with `win_low` and `win_high`.

    Args:
        against: agents' names.
        deals: duplicate deals against each, always the same ones.
        matches: duplicate matches, likewise; 0: none, and no `win_rate`.
        every: iterations of training between one measurement and the next.
        module_id: the module that is measured.
        seed: of the deals and matches.
    """

    def __init__(
        self,
        against: Sequence[str] = ("random", "heuristic"),
        deals: int = 500,
        matches: int = 100,
        every: int = 10,
        module_id: str = MAIN,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.against = tuple(against)
        self.deals = deals
        self.matches = matches
        self.every = every
        self.module_id = module_id
        self.seed = seed

    def on_train_result(
        self, *, algorithm: Algorithm, result: dict[str, Any], **kwargs: Any
    ) -> None:
        """Measure when it is time."""
        if result["training_iteration"] % self.every == 0:
            result["baselines"] = self.measure(algorithm)

    def measure(self, algorithm: Algorithm) -> dict[str, dict[str, float]]:
        """Return opponent → name → number, as results get them."""
        table = make_table(algorithm.config)
        agent = module_agent(algorithm.get_module(self.module_id), table, self.module_id)
        evaluation = evaluate(
            agent,
            self.against,
            game=table.table.rules,
            deals=self.deals,
            matches=self.matches,
            seed=self.seed,
        )
        found = {}
        for result in evaluation.results:
            told = {"points_per_deal": result.points_per_deal}
            if result.ci95 is not None:
                told["points_low"], told["points_high"] = result.ci95
            if result.match_win_rate is not None:
                told["win_rate"] = result.match_win_rate
            if result.match_ci95 is not None:
                told["win_low"], told["win_high"] = result.match_ci95
            found[result.opponent] = told
        return found

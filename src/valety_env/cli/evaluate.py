"""`valety-env evaluate`."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Annotated, ClassVar, Literal

import tyro

from valety_env.arena import plan_evaluation
from valety_env.arena.reports.terminal import print_evaluation
from valety_env.cli.console import Bar, check_writable, err, input_errors, out, say, write_json


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Say how strong an agent is: play it against others, with 95% intervals.

    Every deal and every match is played once per rotation of the seats: the agent sits at each
    seat in turn, the opponent at all others, and the cards are the same. How many deals is a
    number, a precision (--until), or what a question takes (--better), which is answered with a
    stated chance of error however often the games are looked at.

    Examples:
      valety-env evaluate heuristic --against random --deals 2000
      valety-env evaluate checkpoint:runs/a/last --against heuristic --matches 500
      valety-env evaluate checkpoint:runs/a/last --against heuristic --until 0.05
      valety-env evaluate pimc,worlds=10 --against heuristic --better --margin 0.2
      valety-env evaluate onnx:model.onnx,encoder=flat_v0 --against heuristic
      valety-env evaluate sb3:model.zip --trust --json out.json
      valety-env evaluate heuristic --game polignac,num_players=5
      valety-env evaluate heuristic --against random random random --together --game polignac
    """

    name: ClassVar[str] = "evaluate"

    agent: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AGENT")]
    """The agent: NAME[:TARGET][,KEY=VALUE...], such as heuristic, checkpoint:runs/a/last or
    onnx:model.onnx; valety-env info lists them."""
    against: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AGENT [AGENT ...]")] = (
        "random",
        "heuristic",
    )
    """The opponents, one after another."""
    deals: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: 1000)")
    ] = None
    """Duplicate deals against each; with --until or --better the most, a million unless told."""
    matches: Annotated[int, tyro.conf.arg(metavar="M")] = 0
    """Duplicate matches against each."""
    until: Annotated[
        float | None, tyro.conf.arg(metavar="POINTS", help_behavior_hint="(default: none)")
    ] = None
    """Play until the 95% interval of the points a deal is this much to either side."""
    better: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Play until it is known whether the agent is better than each opponent, or worse."""
    margin: Annotated[
        float | None, tyro.conf.arg(metavar="POINTS", help_behavior_hint="(default: none)")
    ] = None
    """With --better: or until they are known to differ by less than this."""
    error: Annotated[float, tyro.conf.arg(metavar="CHANCE")] = 0.05
    """With --better: the chance of a wrong answer, at most."""
    together: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """The opponents sit at one table, clockwise after the agent: players - 1 of them."""
    once: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Play each deal once, the seats going round; shows points seat by seat."""
    control: Annotated[
        Literal["deal", "play", "all"] | None, tyro.conf.arg(help_behavior_hint="(default: none)")
    ] = None
    """Take luck out of the points: that of the cards (deal, with --once), that of choices drawn by
    known chances (play), or both (all); slow, and unbiased."""
    game: Annotated[str, tyro.conf.arg(metavar="GAME[,OPTION=VALUE...]")] = "valety"
    """The game and its rule options."""
    seed: Annotated[
        int | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: a new one, told)")
    ] = None
    """The same seed plays the same again, 0...2^64-1."""
    trust: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Load files that can run code when they are loaded: those of sb3 and rllib."""
    json: Annotated[
        str | None, tyro.conf.arg(metavar="FILE|-", help_behavior_hint="(default: none)")
    ] = None
    """Write the results as JSON; with - they are all that standard output gets."""

    def run(self) -> int:
        """Play and report; returns the exit code."""
        with input_errors():
            plan = plan_evaluation(
                self.agent,
                self.against,
                game=self.game,
                deals=self.deals,
                matches=self.matches,
                until=self.until,
                question=self.better,
                margin=self.margin,
                error=self.error,
                together=self.together,
                duplicate=not self.once,
                control=self.control,
                seed=self.seed,
                trust=self.trust,
            )
            check_writable(self.json)
        with Bar() as bar:
            evaluation = plan.run(bar.update)
        console = err() if self.json == "-" else out()
        print_evaluation(evaluation, console)
        again = ["valety-env", "evaluate", self.agent, "--against", *self.against]
        again += [] if self.deals is None else ["--deals", str(self.deals)]
        again += ["--matches", str(self.matches)]
        again += [] if self.until is None else ["--until", str(self.until)]
        again += ["--better", "--error", str(self.error)] if self.better else []
        again += [] if self.margin is None else ["--margin", str(self.margin)]
        again += ["--together"] if self.together else []
        again += ["--once"] if self.once else []
        again += [] if self.control is None else ["--control", self.control]
        again += ["--game", self.game, "--seed", str(evaluation.seed)]
        again += ["--trust"] if self.trust else []
        say(console, f"Again: {shlex.join(again)}")
        if self.json is not None:
            write_json(evaluation.to_dict(), self.json)
        if evaluation.interrupted:
            raise KeyboardInterrupt
        return 0

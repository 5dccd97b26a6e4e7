"""Evaluations and tournaments as readable tables."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from valety_env.arena.evaluation import Evaluation, Result
from valety_env.arena.reports.grids import (
    Grid,
    behaviour_grid,
    curves_grid,
    matrix_grid,
    standings_grid,
)
from valety_env.arena.reports.words import POINTS, RATINGS, versions_text, with_interval
from valety_env.arena.sequential import BETTER, EQUAL, UNDECIDED, WORSE, Verdict
from valety_env.arena.tournament.standings import Standings


def evaluation_table(evaluation: Evaluation) -> Table:
    """Return the results as a table, a row for each."""
    results = evaluation.results
    several = len({result.agent for result in results}) > 1
    with_matches = any(result.match_pairs for result in results)
    by_seat = any(not result.duplicate for result in results)
    table = Table(box=box.SIMPLE_HEAD)
    if several:
        table.add_column("agent", overflow="fold")
    table.add_column("against", overflow="fold")
    table.add_column("deals", justify="right")
    table.add_column(Text("points a deal [95%]"), justify="right")
    if with_matches:
        table.add_column("matches", justify="right")
        table.add_column(Text("matches won [95%]"), justify="right")
    for result in results:
        # Texts, so that nothing in a name or an interval is taken for markup.
        points = with_interval(result.points_per_deal, result.ci95, "+.3f")
        row = [result.agent] if several else []
        row += [result.opponent, str(result.pairs), points]
        if with_matches:
            won = with_interval(result.match_win_rate, result.match_ci95, ".1%")
            row += [str(result.match_pairs), won]
        table.add_row(*map(Text, row))
        for seat in result.by_seat if by_seat else ():
            points = with_interval(seat.points_per_deal, seat.ci95, "+.3f")
            row = [""] if several else []
            row += [f"  at seat {seat.seat}", str(seat.deals), points]
            table.add_row(*map(Text, row + ["", ""] * with_matches))
    return table


def _answer(result: Result, verdict: Verdict) -> str:
    """Return the answer to the question who is better in words."""
    answer = {
        BETTER: f"{result.agent} is better than {result.opponent}",
        WORSE: f"{result.agent} is worse than {result.opponent}",
        EQUAL: f"{result.agent} and {result.opponent} differ by less than {verdict.margin} points",
        UNDECIDED: f"it is not known whether {result.agent} is better than {result.opponent}",
    }[verdict.answer]
    told = f"{answer}, after {result.pairs} deals"
    if verdict.answer == UNDECIDED:
        return told
    return f"{told}; the chance that this is wrong is at most {verdict.error:.3g}"


def print_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print the results with what is needed to have them again: game, seed and versions.

    Args:
        evaluation: what to print.
        console: where; None: standard output.
    """
    out = console or Console(highlight=False)
    first = evaluation.results[0]
    out.print(Text(f"{first.agent} at {first.game}", style="bold"), soft_wrap=True)
    out.print(evaluation_table(evaluation))
    lines = [_answer(result, result.verdict) for result in evaluation.results if result.verdict]
    lines += [
        f"Without control variates {result.saving:.2f} times as many deals against "
        f"{result.opponent} would tell as much"
        for result in evaluation.results
        if result.saving is not None
    ]
    if first.duplicate:
        lines.append(
            "Deals and matches are duplicate: each was played with the agent at every seat in turn."
        )
    else:
        lines.append("Each deal and match was played once; the seats went round.")
    lines += [
        POINTS,
        f"Seed {evaluation.seed}; {versions_text(evaluation.versions)}",
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(grid: Grid) -> Table:
    """Return a table that rich can print."""
    table = Table(box=box.SIMPLE_HEAD)
    for number, column in enumerate(grid.header):
        table.add_column(Text(column), overflow="fold", justify="right" if number else "left")
    for row in grid.rows:
        # Texts, so that nothing in a name or an interval is taken for markup.
        table.add_row(*map(Text, row))
    return table


def print_standings(
    standings: Standings, console: Console | None = None, behaviour: bool = False
) -> None:
    """Print what a tournament's games come to.

    Args:
        standings: what to print.
        console: where; None: standard output.
        behaviour: whether to print how everybody plays.
    """
    out = console or Console(highlight=False)
    out.print(Text(f"Tournament at {standings.game}", style="bold"), soft_wrap=True)
    out.print(_table(standings_grid(standings)))
    out.print(_table(matrix_grid(standings)))
    if standings.curves:
        out.print(_table(curves_grid(standings)))
    if behaviour:
        out.print(_table(behaviour_grid(standings)))
    lines = [
        RATINGS,
        POINTS,
        f"Seed {standings.seed}",
        *{versions_text(session["versions"]): None for session in standings.sessions},
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)

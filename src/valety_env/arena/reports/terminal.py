"""Evaluations and tournaments as readable tables."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from valety_env.arena.behaviour import RATES
from valety_env.arena.evaluation import Evaluation, Result
from valety_env.arena.reports.words import (
    NOTHING,
    POINTS,
    half_width,
    measures,
    moves_text,
    rate_text,
    versions_text,
    with_interval,
)
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


def _plain_table(*columns: str) -> Table:
    """Return a table whose first column is text and whose others are numbers."""
    table = Table(box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        if number == 0:
            table.add_column(Text(column), overflow="fold")
        else:
            table.add_column(Text(column), justify="right")
    return table


def standings_table(standings: Standings) -> Table:
    """Return who stands where, a row for each."""
    columns = measures(standings)
    table = _plain_table("agent", *(f"{measure.title} [95%]" for measure in columns), "a move")
    for place, row in enumerate(standings.standings, 1):
        cells = [
            NOTHING if found is None else with_interval(*found, measure.form)
            for measure in columns
            for found in [measure.of(row)]
        ]
        table.add_row(*map(Text, [f"{place} {row.label}", *cells, moves_text(row.ms_a_move)]))
    return table


def matrix_table(standings: Standings) -> Table:
    """Return the points of each (row) where another (column) sat at all other seats."""
    rows = standings.standings
    table = _plain_table("points a deal against", *(str(n) for n in range(1, len(rows) + 1)))
    for place, row in enumerate(rows):
        cells = []
        for other in range(len(rows)):
            cell = standings.cells.get((place, other))
            if cell is None or not cell.deals:
                cells.append("")
            else:
                cells.append(f"{cell.points:+.2f}\n{half_width(cell.points, cell.ci95, '.2f')}")
        table.add_row(*map(Text, [f"{place + 1} {row.label}", *cells]))
    return table


def curves_table(standings: Standings) -> Table:
    """Return the learning curves, a row for each checkpoint."""
    table = _plain_table("run", "against", "step", "deals", "points a deal [95%]")
    for curve in standings.curves:
        for point in curve.points:
            points = with_interval(point.points, point.ci95, "+.3f")
            row = [curve.run, curve.opponent, f"{point.step:,}", str(point.deals), points]
            table.add_row(*map(Text, row))
    return table


def behaviour_table(standings: Standings) -> Table:
    """Return what everybody does how often, a column for each."""
    rows = [row for row in standings.standings if row.behaviour is not None]
    places = [str(n) for n, row in enumerate(standings.standings, 1) if row.behaviour is not None]
    table = _plain_table("", *places)
    for name in RATES:
        told = [rate_text(row.behaviour.rates[name]) if row.behaviour else "" for row in rows]
        if any(text != NOTHING for text in told):
            table.add_row(*map(Text, [name, *told]))
    if any(row.behaviour and row.behaviour.loss for row in rows):
        losses = []
        for row in rows:
            loss = row.behaviour.loss if row.behaviour else None
            losses.append(NOTHING if loss is None else f"{loss[0]:.2f} {half_width(*loss, '.2f')}")
        table.add_row(*map(Text, ["points a deal lost against the best cards", *losses]))
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
    out.print(standings_table(standings))
    out.print(matrix_table(standings))
    if standings.curves:
        out.print(curves_table(standings))
    if behaviour:
        out.print(behaviour_table(standings))
    lines = [
        "Ratings are Bradley-Terry's on Elo's scale, around 0; intervals are over deals.",
        POINTS,
        f"Seed {standings.seed}",
        *{versions_text(session["versions"]): None for session in standings.sessions},
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)

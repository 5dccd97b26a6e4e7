"""A report as readable tables."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from valety_env.bench.measure import Series, Spread
from valety_env.bench.plan import Point, Report
from valety_env.bench.startup import Start

_NOTHING = "-"


def _table(*headings: str) -> Table:
    """Return an empty table whose first column is of words and the others of numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        words = number == 0 or heading == "of"
        table.add_column(Text(heading), justify="left" if words else "right", overflow="fold")
    return table


def _number(value: float) -> str:
    """Return a number with three digits, as in `0.0123`, `45.6 k` and `7.89 M`."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        # From where it would be rounded up to four digits.
        if value >= 0.9995 * size:
            return f"{value / size:#.3g}".rstrip(".") + letter
    return f"{value:#.3g}".rstrip(".")


def _titled(series: Series) -> str:
    note = series.case.note
    return series.case.title + (f" ({note})" if note else "")


def _speeds(table: Table, report: Report, rows: list[tuple[str, Series]]) -> Table:
    """Add rows, each a name and its series, with their ratios and what these are of."""
    for name, series in rows:
        spread, ratio = Spread.of(series.rates), report.ratio(series)
        told = [_NOTHING, ""] if ratio is None else [_number(ratio.median), str(series.case.over)]
        slowest_to_fastest = f"{_number(spread.low)} … {_number(spread.high)}"
        table.add_row(*map(Text, [name, _number(spread.median), slowest_to_fastest, *told]))
    return table


def own_table(report: Report) -> Table:
    """Return our own cases and their bounds, each with how it compares."""
    table = _table("case", "steps/s", "min … max", "ratio", "of")
    return _speeds(table, report, [(series.case.name, series) for series in report.own])


def peers_table(report: Report) -> Table:
    """Return the cases of the peers, each with how many times as fast our nearest is."""
    table = _table("peer", "steps/s", "min … max", "ours, ratio", "of")
    return _speeds(table, report, [(_titled(series), series) for series in report.peers])


def starts_table(starts: list[Start]) -> Table:
    """Return how long processes take to start."""
    table = _table("from the start of a process to", "seconds", "min … max", "beyond imports")
    for start in starts:
        spread = Spread.of(start.seconds)
        more = _NOTHING if start.more is None else f"{start.more:+.2f}"
        told = f"{spread.low:.2f} … {spread.high:.2f}"
        table.add_row(*map(Text, [start.title, f"{spread.median:.2f}", told, more]))
    return table


def sweep_table(points: list[Point]) -> Table:
    """Return the medians of the sweep, a row for each interface, a column a number of tables."""
    sizes = sorted({point.tables for point in points})
    table = _table("steps/s at tables", *(f"{size:,}" for size in sizes))
    medians: dict[str, dict[int, float]] = {}
    for point in points:
        row = medians.setdefault(point.series.case.title, {})
        row[point.tables] = Spread.of(point.series.rates).median
    for title, row in medians.items():
        cells = [_number(row[size]) if size in row else _NOTHING for size in sizes]
        table.add_row(*map(Text, [title, *cells]))
    return table


def _listed(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def print_report(report: Report, console: Console | None = None) -> None:
    """Print what was found with what is needed to read it: machine, versions, settings.

    Args:
        report: what to print.
        console: where; None: standard output.
    """
    out = console or Console(highlight=False)
    tables = [own_table(report)]
    if report.peers:
        tables.append(peers_table(report))
    if report.starts:
        tables.append(starts_table(report.starts))
    if report.points:
        tables.append(sweep_table(report.points))
    for table in tables:
        out.print(table)
    machine, settings = report.machine, report.settings
    where = "one core, but 2 threads on two" if machine["one_core"] else "not kept on one core"
    lines = [
        *(f"not measured: {one.name}: {one.why}" for one in report.not_run),
        "Everything counts: choosing, playing, scoring, dealing, observation, mask. Compare ratios,"
        " which are taken within rounds, not speeds of different runs.",
        f"State of a table: {_listed(report.state_bytes)} bytes",
        f"Machine: {machine['cpu']}, {machine['cores']} cores ({where}), caches "
        f"{_listed(machine['caches']) or 'unknown'}, {machine['os']} {machine['architecture']}"
        + ("" if machine["compiled"] else "; kernels are not compiled (NUMBA_DISABLE_JIT)"),
        f"Versions: {_listed(report.versions)}",
        *(f"{peer}: {_listed(versions)}" for peer, versions in report.peer_versions.items()),
        f"Medians of {settings['rounds']} rounds of {settings['seconds']:g} s, in turn; "
        f"seed {settings['seed']}",
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)

"""The pictures of a report, as SVG that a page holds in itself."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from valety_env.agents import needs_extra
from valety_env.arena.behaviour import RATES
from valety_env.arena.intervals import Interval
from valety_env.arena.reports.words import Measure, short
from valety_env.arena.tournament.standings import Curve, Standings

with needs_extra(__name__, "report", ("matplotlib",)):
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches. Narrow, so that the letters can still be read where the picture fills a phone.
_WIDTH = 5.0
# A line of a legend.
_LINE = 0.2
_STYLE: Any = {
    "svg.fonttype": "none",  # letters stay letters
    "svg.hashsalt": "valety_env",  # the same picture is the same file
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
}
# Told apart by those who see few colours, too, and with the marks by all others.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999")
_MARKS = "osD^vP*X"


def _svg(figure: Figure) -> str:
    """Return a picture as an SVG element; to be called in its style."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _name(number: int, label: str) -> str:
    """Return who row `number` of the standings is: two names may end alike."""
    return f"{number + 1} {short(label)}"


def _mark(number: int) -> dict[str, Any]:
    """Return how line `number` is drawn."""
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "marker": _MARKS[number // len(_COLOURS) % len(_MARKS)],
    }


def _reach(value: float, interval: Interval | None) -> list[list[float]]:
    """Return how far an interval reaches to both sides, as error bars are told."""
    low, high = interval or (value, value)
    return [[value - low], [high - value]]


def measure_figure(standings: Standings, measure: Measure) -> str:
    """Return everybody's number with its interval, the best at the top."""
    with mpl.rc_context(_STYLE):
        rows = [
            (_name(number, row.label), found)
            for number, row in enumerate(standings.standings)
            if (found := measure.of(row)) is not None
        ]
        figure = _figure(0.7 + 0.28 * len(rows))
        axes = figure.add_subplot()
        for y, (_, found) in enumerate(rows):
            axes.errorbar(
                [found[0]],
                [y],
                xerr=_reach(*found),
                fmt="o",
                color=_COLOURS[0],
                capsize=3,
                markersize=5,
            )
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.invert_yaxis()
        axes.set_xlabel(f"{measure.title}, 95% intervals")
        return _svg(figure)


def curve_figure(opponent: str, curves: Sequence[Curve]) -> str:
    """Return the learning curves of all runs against one opponent."""
    with mpl.rc_context(_STYLE):
        figure = _figure(3.0 + _LINE * len(curves))
        axes = figure.add_subplot()
        for number, curve in enumerate(curves):
            steps = [point.step / 1e6 for point in curve.points]
            means = [point.points for point in curve.points]
            bounds = [point.ci95 or (point.points, point.points) for point in curve.points]
            style = _mark(number)
            axes.plot(steps, means, label=short(curve.run), markersize=4, **style)
            lows, highs = zip(*bounds, strict=True)
            axes.fill_between(steps, lows, highs, alpha=0.2, color=style["color"], linewidth=0)
        axes.axhline(0.0, color="#888888", linewidth=0.8)
        axes.set_xlabel("steps of training, millions")
        axes.set_ylabel(f"points a deal over {short(opponent)}")
        _legend(figure, axes)
        return _svg(figure)


def loss_figure(standings: Standings) -> str | None:
    """Return what everybody lost against the best cards, by trick; None if nothing was solved."""
    with mpl.rc_context(_STYLE):
        figure = _figure(3.0 + _LINE * len(standings.standings))
        axes = figure.add_subplot()
        drawn = 0
        for number, row in enumerate(standings.standings):
            if row.behaviour is None or not row.behaviour.loss_by_trick:
                continue
            losses = [loss for loss, _ in row.behaviour.loss_by_trick]
            tricks = range(1, len(losses) + 1)
            name = _name(number, row.label)
            axes.plot(tricks, losses, label=name, markersize=3.5, **_mark(number))
            drawn += 1
        if not drawn:
            return None
        axes.set_xlabel("trick")
        axes.set_ylabel("points lost by a play")
        axes.set_ylim(bottom=0.0)
        _legend(figure, axes)
        return _svg(figure)


def rates_figure(standings: Standings) -> str | None:
    """Return what everybody does how often; None if that is not known."""
    rows = [
        (number, row.label, row.behaviour)
        for number, row in enumerate(standings.standings)
        if row.behaviour is not None
    ]
    names = [name for name in RATES if any(b.rates[name] is not None for _, _, b in rows)]
    if not names:
        return None
    with mpl.rc_context(_STYLE):
        figure = _figure(0.7 + (0.16 + 0.09 * len(rows)) * len(names) + _LINE * len(rows))
        axes = figure.add_subplot()
        room = 0.7 / max(1, len(rows) - 1)
        for place, (number, label, behaviour) in enumerate(rows):
            known = [(y, rate) for y, n in enumerate(names) if (rate := behaviour.rates[n])]
            reaches = [_reach(100 * r.rate, _percent(r.ci95)) for _, r in known]
            style = _mark(number)
            axes.errorbar(
                [100 * rate.rate for _, rate in known],
                [y - 0.35 + room * place for y, _ in known],
                xerr=[[low[0] for low, _ in reaches], [high[0] for _, high in reaches]],
                linestyle="none",
                markersize=4,
                label=_name(number, label),
                **style,
            )
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel("% of the chances for it")
        _legend(figure, axes)
        return _svg(figure)


def _percent(interval: Interval | None) -> Interval | None:
    return None if interval is None else (100.0 * interval[0], 100.0 * interval[1])


def _figure(height: float) -> Figure:
    """Return an empty picture, so many inches high."""
    return Figure(figsize=(_WIDTH, height), layout="constrained")


def _legend(figure: Figure, axes: Axes) -> None:
    """Put the names under the picture, where they hide nothing."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=1)

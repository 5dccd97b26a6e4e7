"""Draw plays a second against the number of tables, for every interface.

    valety-env bench --sweep --json benchmarks/results/NAME.json
    python benchmarks/plot.py benchmarks/results/NAME.json              # NAME.svg beside it
    python benchmarks/plot.py benchmarks/results/NAME.json --out speed.png

Needs matplotlib: pip install 'valety-env[bench]'. Points are medians over the rounds, bars go from
the slowest round to the fastest.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import tyro
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Args:
    results: Annotated[Path, tyro.conf.Positional]
    """what valety-env bench --sweep --json wrote"""
    out: Path | None = None
    """where to draw to, .svg or .png; by default beside the results, as .svg"""


def draw(report: dict[str, Any]) -> Figure:
    """Return the plot of a report of `valety-env bench`; ValueError if it has no sweep."""
    interfaces: dict[str, list[dict[str, Any]]] = {}
    for point in report["sweep"]:
        interfaces.setdefault(point["title"], []).append(point)
    if not interfaces:
        raise ValueError("these results have no sweep: measure with valety-env bench --sweep")
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for title, points in interfaces.items():
        points = sorted(points, key=lambda point: point["tables"])
        medians = [point["median"] for point in points]
        below = [point["median"] - point["min"] for point in points]
        above = [point["max"] - point["median"] for point in points]
        axes.errorbar(
            [point["tables"] for point in points],
            medians,
            [below, above],
            marker="o",
            markersize=4,
            capsize=2,
            label=title,
        )
    axes.set(xscale="log", yscale="log", xlabel="tables", ylabel="plays/s, or steps of learners/s")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    machine, versions = report["machine"], report["versions"]
    axes.set_title(
        f"{machine['cpu']}, {machine['cores']} cores; valety_env {versions['valety_env']}, "
        f"numba {versions['numba']}",
        fontsize="small",
    )
    return figure


def main(args: Args) -> None:
    out = args.out or args.results.with_suffix(".svg")
    try:
        figure = draw(json.loads(args.results.read_text("utf-8")))
        # The same results give the same file.
        with mpl.rc_context({"svg.hashsalt": "valety_env"}):
            metadata = {"Date": None} if out.suffix == ".svg" else None
            figure.savefig(out, dpi=150, metadata=metadata)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"plot.py: {args.results}: {error}")
    print(out)


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))

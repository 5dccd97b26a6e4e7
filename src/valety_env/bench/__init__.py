"""Measuring how fast the environments are, beside their bounds and their peers."""

from valety_env.bench.peers import PEERS
from valety_env.bench.plan import BenchPlan, Report, plan_bench
from valety_env.bench.report import print_report

__all__ = ["PEERS", "BenchPlan", "Report", "plan_bench", "print_report"]

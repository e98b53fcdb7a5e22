"""Workloads: linear questions, objectives, and the noise scales that serve them best."""

from adsbpc.workloads.margins import Margins, SeparateSums, UnlikeSums
from adsbpc.workloads.objectives import (
    MaxVariance,
    Objective,
    Scales,
    VarianceTargets,
    WeightedSquaredError,
)
from adsbpc.workloads.queries import (
    MatrixQueries,
    RangeSums,
    Workload,
    matrix_queries,
    per_slot,
    prefix_sums,
    sliding_windows,
    slot_ranges,
)

__all__ = [
    "Margins",
    "MatrixQueries",
    "MaxVariance",
    "Objective",
    "RangeSums",
    "Scales",
    "SeparateSums",
    "UnlikeSums",
    "VarianceTargets",
    "WeightedSquaredError",
    "Workload",
    "matrix_queries",
    "per_slot",
    "prefix_sums",
    "sliding_windows",
    "slot_ranges",
]

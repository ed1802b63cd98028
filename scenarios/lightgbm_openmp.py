# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "lightgbm==4.7.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["lightgbm", "torch"]
# workload = "run"
# expect = "identical"
# story = "Whose OpenMP runtime torch computes with depends on whether lightgbm came first; the numbers agree."
# ///
"""A hazard: the order decides which copy of a library is used, and the copies happen to agree.

What it shows: lightgbm links to `libgomp.so.1` and finds the system's. torch brings a `libgomp.so.1` of its own. The
loader matches a needed library by its name against what is loaded before it looks into any folder, so whichever
package comes first decides for both: with lightgbm first, torch's own copy is never mapped. Both copies are GNU's
OpenMP, split loops alike, and give equal bits; with another release, or another runtime under that name, they need
not.

What it asserts: gradient boosting fits a step function; torch's regression on the same data agrees with the normal
equations.

What to expect: `identical`, with the loaded libraries as the difference in state. What it needs: lightgbm, torch's CPU
build and the system's `libgomp.so.1` (package `libgomp1` on Debian); about 3 seconds a trial.
"""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import torch

ROWS, COLUMNS = 50_000, 20


def run() -> dict[str, Any]:
    rng = np.random.default_rng(31)
    x = rng.standard_normal((ROWS, COLUMNS))
    y = np.where(x[:, 0] > 0, 2.0, -1.0) + 0.5 * x[:, 1] + 0.1 * rng.standard_normal(ROWS)
    return {"boosting": boosting(x, y), "torch": regression(torch.from_numpy(x), torch.from_numpy(y))}


def boosting(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Predictions and gains of a booster; its own deterministic mode is off, as it is for most people."""
    parameters = {"objective": "regression", "num_leaves": 15, "verbose": -1, "seed": 1, "force_col_wise": True}
    booster = lightgbm.train(parameters, lightgbm.Dataset(x, y), num_boost_round=60)
    predicted = booster.predict(x)
    assert np.mean((predicted - y) ** 2) < 0.1 * np.var(y), "boosting did not fit"
    return {"predicted": predicted, "gain": booster.feature_importance("gain")}


def regression(x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Least squares by gradient descent, in float64, and long reductions in float32 that OpenMP splits."""
    weights = torch.zeros(COLUMNS, dtype=torch.float64)
    for _ in range(60):
        weights -= 0.5 * x.T @ (x @ weights - y) / ROWS
    exact = torch.linalg.solve(x.T @ x, x.T @ y)
    assert (weights - exact).abs().max() < 1e-6, "gradient descent did not converge"
    flat = x.float().flatten()
    softmax = torch.softmax(flat, 0)
    return {"weights": weights, "sum": flat.sum(), "norm": flat.norm(), "softmax": softmax, "exp": flat.exp()}

"""Where options come from: command line, environment, the workload's PEP 723 block, pyproject.toml.

Each place gives a `Layer` of checked values; `merge` puts layers on top of each other and says where every
value came from. The keys of `[tool.reprocheck]`, in a script's block and in pyproject.toml alike, are the fields
of `Options`; the environment has them as `REPROCHECK_<OPTION>`.
"""

from __future__ import annotations

from reprocheck.config.layers import (
    Layer,
    Resolved,
    environment_layer,
    layers_for,
    merge,
    pyproject_layer,
    script_layer,
    table_layer,
)
from reprocheck.config.options import Options
from reprocheck.config.pep723 import ScriptBlock, begins_block, script_block
from reprocheck.config.suggest import closest, did_you_mean

__all__ = [
    "Layer",
    "Options",
    "Resolved",
    "ScriptBlock",
    "begins_block",
    "closest",
    "did_you_mean",
    "environment_layer",
    "layers_for",
    "merge",
    "pyproject_layer",
    "script_block",
    "script_layer",
    "table_layer",
]

"""Lets `pytest scenarios` find the scenarios beside its test files, as a script finds the modules beside it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

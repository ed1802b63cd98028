"""Every verb of the worker's interventions, in a real interpreter: it does what it says, and reports it."""

from __future__ import annotations

import ctypes.util
from typing import Any

import pytest

from reprocheck.model import Record

from .conftest import Bench  # type: ignore[import-not-found]  # noqa: TID252


def reports(record: Record) -> list[dict[str, Any]]:
    assert record.ok, record.failure
    return list(record.actions)

"""All planted faults, by kind."""

from __future__ import annotations

from reprocheck.selftest.faults.environment import ENVIRONMENT
from reprocheck.selftest.faults.libraries import LIBRARIES
from reprocheck.selftest.faults.numerics import NUMERICS
from reprocheck.selftest.faults.outcomes import OUTCOMES
from reprocheck.selftest.faults.settings import SETTINGS
from reprocheck.selftest.planted import Fault

__all__ = ["FAULTS"]

FAULTS: tuple[Fault, ...] = (*ENVIRONMENT, *NUMERICS, *SETTINGS, *LIBRARIES, *OUTCOMES)

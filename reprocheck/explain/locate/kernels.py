"""Kernel evidence (placeholder)."""

from __future__ import annotations
def kernel_differences(*a): return ()

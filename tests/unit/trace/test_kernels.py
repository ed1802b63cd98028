"""Standard output during a trace of kernels: what libraries print is taken, what the workload prints is passed on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reprocheck.worker.trace.kernels import Kernels


class Sink:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def write(self, record: dict[str, Any]) -> None:
        self.records.append(record)


def test_lines_belong_to_the_operator_that_was_running(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sink = Sink()
    kernels = Kernels(sink, str(tmp_path))
    kernels.start()
    print("from the workload")
    os.write(1, b"MKL_VERBOSE before any operator\n")
    begun = kernels.begin()
    os.write(1, b"MKL_VERBOSE SGEMM(N,N) 1ms CNR:OFF\nplain text\nonednn_verbose,v1,primitive,exec\n")
    kernels.end(begun, 3)
    inner = kernels.begin()
    os.write(1, b"MKL_VERBOSE of a call that is not recorded\n")
    kernels.end(inner, None)
    print("the end")
    kernels.stop()

    assert [(record["n"], record["lines"]) for record in sink.records] == [
        (-1, ["MKL_VERBOSE before any operator"]),
        (3, ["MKL_VERBOSE SGEMM(N,N) 1ms CNR:OFF", "onednn_verbose,v1,primitive,exec"]),
        (-1, ["MKL_VERBOSE of a call that is not recorded"]),
    ]
    assert capfd.readouterr().out == "from the workload\nplain text\nthe end\n"


def test_output_goes_where_it_went_before(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kernels = Kernels(Sink(), str(tmp_path))
    kernels.start()
    kernels.stop()
    os.write(1, b"afterwards\n")

    assert capfd.readouterr().out == "afterwards\n"

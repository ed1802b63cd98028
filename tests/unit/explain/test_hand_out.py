from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.cli.explain import _hand_out
from reprocheck.model import Reproducer
from tests import samples


@pytest.mark.parametrize("beside", [True, False])
def test_inputs_beside_a_reproducer_go_with_it(tmp_path: Path, *, beside: bool) -> None:
    made = tmp_path / "run"
    made.mkdir()
    (made / "reproducer.py").write_text("pass\n")
    if beside:
        (made / "reproducer.bin").write_bytes(b"12")
    shown = Reproducer(path="reproducer.py", reproduces=True, text="shows it")
    study = samples.tiny_study(run_dir=str(made), reproducer=shown)

    _hand_out(study, tmp_path / "out" / "shows.py")

    assert (tmp_path / "out" / "shows.py").read_text() == "pass\n"
    assert (tmp_path / "out" / "shows.bin").exists() is beside

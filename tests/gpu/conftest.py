"""Everything here is about a GPU: marked `gpu`, and skipped with the reason where torch sees none.

`test_check.py` is the exception: it tries the prepared script without a GPU.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
WITHOUT = "test_check.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a device."""
    for item in items:
        if Path(item.path).parent == HERE and Path(item.path).name != WITHOUT:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def _needs_a_device(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gpu") is None:
        return
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")

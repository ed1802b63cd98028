# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "ultralytics-opencv-headless==8.4.190", "numpy"]
#
# [tool.reprocheck]
# imports = ["numpy", "torch", "ultralytics"]
# workload = "run"
# expect = "order-dependent"
# story = "ultralytics sets OMP_NUM_THREADS=1 when imported: first, it changes torch's and numpy's thread counts."
# ///
"""A well-known detection package that decides other packages' thread counts, if it is imported early enough.

What it shows: `ultralytics/__init__.py` writes `OMP_NUM_THREADS=1` unless the variable is set ("default to 1 thread to
reduce CPU utilisation"). The OpenMP runtime of torch and the OpenBLAS of numpy read it when they are loaded. So there
are three outcomes: `ultralytics` first (both on one thread), between numpy and torch (torch on one thread), last or
after torch, which itself loads numpy (neither). Sums that are split over threads differ in their last bits. Found in
8.4.190; the variable also reaches every process that the program starts, in whatever order.

What to expect: `order-dependent` on two or more cores, in three groups; `identical` on one.

What it needs: torch's CPU build and the pinned release of ultralytics without OpenCV's windows; about 6 seconds a
trial. No weights are downloaded: the detector is built from its description and filled from a seed. On its first
import ultralytics writes a settings file into the user's configuration folder.
"""

from __future__ import annotations

from typing import Any

import battery
import torch
from ultralytics.nn.tasks import DetectionModel


def run() -> dict[str, Any]:
    return {"torch": battery.torch_outputs(), "numpy": battery.numpy_outputs(), "detector": detector()}


def detector() -> dict[str, torch.Tensor]:
    """A YOLO network's answer to one image of noise, and the gradient of its first convolution."""
    torch.manual_seed(21)
    model = DetectionModel("yolov8n.yaml", ch=3, nc=4, verbose=False)
    image = torch.rand(1, 3, 320, 320)
    with torch.no_grad():
        boxes = model.eval()(image)[0]
    assert boxes.shape == (1, 4 + 4, 2100), f"the detector's answer has shape {tuple(boxes.shape)}"
    first = next(model.parameters()).requires_grad_()
    answer = model.train()(image)
    (answer["boxes"].square().mean() + answer["scores"].square().mean()).backward()
    return {"boxes": boxes, "first_weight_grad": first.grad}

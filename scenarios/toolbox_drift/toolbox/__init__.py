"""A small in-house toolbox, release 1.7: the one after which the training curves moved.

Release 1.0 had the same functions. What 1.7 adds is the line below: a well-meant default, found in many real
packages, that keeps data-loading workers from fighting over cores. The variable is read once, by the OpenMP
runtime, when it is loaded; so the line changes torch's thread count when `toolbox` is imported first, and changes
nothing when `torch` is.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

from toolbox.signals import activation, augment, features

__all__ = ["__version__", "activation", "augment", "features"]

__version__ = "1.7"

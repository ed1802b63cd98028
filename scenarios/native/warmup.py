"""Subject of `ftz_pool`: a package that computes something large when it is imported, which starts torch's threads."""

import torch

torch.ones(1 << 20).exp_()

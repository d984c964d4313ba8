"""What torch.utils.tensorboard writes, for spec/saving_spec.lua: spec/golden/tensorboard.bin. Needs torch and tensorboard."""
import glob
import struct
import tempfile

import torch
from torch.utils.tensorboard import SummaryWriter

with tempfile.TemporaryDirectory() as folder:
    w = SummaryWriter(folder)
    w.add_scalar("loss/train", 0.25, 0, 1700000000.5)
    w.add_scalar("loss/train", torch.tensor(1.5), 300, 1700000001.5)
    w.add_scalar("lr", 0.0, 2 ** 40, 1700000002)
    w.add_text("notes", "one **two**, \u00e4", 7, 1700000003)
    w.add_histogram("weights", torch.tensor([[1.0, 2.0, 3.5], [-0.25, 0.0, 1.0]]), 5, walltime=1700000004)
    w.add_histogram("one", torch.tensor([0.0]), 6, walltime=1700000005)
    w.close()
    data = open(glob.glob(folder + "/*")[0], "rb").read()
first = struct.unpack("<Q", data[:8])[0] + 16                # the version, whose time is now
open("spec/golden/tensorboard.bin", "wb").write(data[first:])

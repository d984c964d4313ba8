"""Images/s of PyTorch's DataLoader with torchvision's transforms: loader_peer.py FOLDER WORKERS. See loader.lua."""
import os, sys, time
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2 as T

torch.set_num_threads(2)
folder, workers = sys.argv[1], int(sys.argv[2])


class Cifar(Dataset):
    def __init__(self):
        raw = np.concatenate([np.fromfile(os.path.join(folder, "data_batch_%d.bin" % i), np.uint8).reshape(-1, 3073) for i in range(1, 6)])
        self.y, self.x = raw[:, 0].astype(np.int64), torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy())
        self.t = T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToDtype(torch.float32, scale=True),
                            T.Normalize((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))])

    def __len__(self): return len(self.y)
    def __getitem__(self, i): return self.t(self.x[i]), self.y[i]


n, start = 0, None
for x, y in DataLoader(Cifar(), batch_size=128, shuffle=True, num_workers=workers):
    if start is None:
        start = time.time()
    else:
        n += len(x)
print(n / (time.time() - start))

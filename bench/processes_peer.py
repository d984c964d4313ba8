"""The same as processes.lua in PyTorch, over gloo."""
import time
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.set_num_threads(1)


def measure(name, fn):
    for _ in range(5):
        fn()
    times = []
    for _ in range(60):
        dist.barrier()
        began = time.perf_counter()
        fn()
        times.append(time.perf_counter() - began)
    times.sort()
    if dist.get_rank() == 0:
        print(f"{name:32} {times[29] * 1e6:10.0f}")


for n in (1000, 100000, 6000000):
    x = torch.ones(n)

    def mean():
        dist.all_reduce(x)
        x.div_(dist.get_world_size())
    measure(f"all_reduce, mean of {n}", mean)

x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))


def step(wrap):
    net = wrap(nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def run():
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    return run


measure("step of an MLP, parallel", step(nn.parallel.DistributedDataParallel))
measure("step of an MLP, alone", step(lambda net: net))
dist.destroy_process_group()

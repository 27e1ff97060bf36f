# jury: histogram | one program a class, no atomics
import torch
import triton
import triton.language as tl


@triton.jit
def count(labels, counts, n, BLOCK: tl.constexpr):
    mine, found = tl.program_id(0), 0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        found += tl.sum((tl.load(labels + at, mask=at < n, other=-1) == mine).to(tl.int32))
    tl.store(counts + mine, found)


def entry(labels, n):
    counts = torch.empty(16, dtype=torch.int32, device=labels.device)
    count[(16,)](labels, counts, n, BLOCK=128)
    return counts

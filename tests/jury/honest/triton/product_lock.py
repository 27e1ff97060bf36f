# jury: product | programs that take turns by a lock, as split sums do
import torch
import triton
import triton.language as tl


@triton.jit
def locked(a, b, y, locks, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    p = tl.program_id(2) * BK + tl.arange(0, BK)
    left = tl.load(a + i[:, None] * k + p[None, :], mask=(i[:, None] < m) & (p[None, :] < k), other=0.0)
    right = tl.load(b + p[:, None] * n + j[None, :], mask=(p[:, None] < k) & (j[None, :] < n), other=0.0)
    part = tl.dot(left, right, input_precision="ieee")
    at, inside = y + i[:, None] * n + j[None, :], (i[:, None] < m) & (j[None, :] < n)
    lock = locks + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(at, tl.load(at, mask=inside, other=0.0) + part, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def entry(a, b, y, m, n, k):
    y.zero_()
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 16), triton.cdiv(k, 32))
    locks = torch.zeros((grid[0] * grid[1],), dtype=torch.int32, device=a.device)
    locked[grid](a, b, y, locks, m, n, k, BM=16, BN=16, BK=32)

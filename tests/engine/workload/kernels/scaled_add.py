import triton
import triton.language as tl


@triton.jit
def scaled_add_kernel(A, weight, keep, C, N, residual, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    a = tl.load(A + row * N + columns, mask=inside).to(tl.float32)
    changed = a * tl.load(weight + columns, mask=inside) + residual
    kept = tl.load(keep + row) != 0
    tl.store(C + row * N + columns, tl.where(kept, changed, a).to(tl.float16), mask=inside)


def scaled_add_n96(A, weight, keep, C, M, N, residual):
    scaled_add_kernel[(M,)](A, weight, keep, C, N, residual, BLOCK=128)

# jury: rows | host code for a GPU: devices, guards, questions to the driver
import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, bias, y, columns, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        value = tl.load(x + row * columns + at, mask=mask, other=0.0) * alpha
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=mask, other=0.0), mask=mask)


DEVICE = triton.runtime.driver.active.get_active_torch_device()


def entry(x, bias, y, rows, columns, alpha):
    assert x.is_cuda and x.is_contiguous() and x.device == DEVICE and y.dtype is torch.float32
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    spare = torch.empty((processors,), dtype=torch.int32, device="cuda")
    with torch.cuda.device(x.device.index):
        rows_kernel[(rows, 1, 1)](x, bias, y, columns, alpha, BLOCK=64 if spare.numel() else 32, num_warps=2)
    torch.cuda.synchronize()

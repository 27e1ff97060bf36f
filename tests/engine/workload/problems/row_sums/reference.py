"""Row sums, and the rows divided by them."""

from __future__ import annotations

import torch

ROWS = 2048
COLUMNS = 1024
DTYPE = torch.float16


def make_inputs(
    *,
    rows: int = ROWS,
    columns: int = COLUMNS,
    dtype: torch.dtype = DTYPE,
    device: torch.device | str = "cuda",
    seed: int = 0,
) -> dict[str, torch.Tensor]:
    if rows % 2 and columns % 2:
        raise ValueError("rows or columns must be even")
    generator = torch.Generator(device=device).manual_seed(seed)
    x = torch.rand((rows, columns), dtype=dtype, device=device, generator=generator)
    return {"x": x + 0.5, "offsets": torch.arange(0, rows, dtype=torch.int32, device=device)}


def torch_ref(x: torch.Tensor, offsets: torch.Tensor, *, power: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    total = x.sum(dim=-1, dtype=x.dtype) ** power
    order = offsets.tolist()
    return x[order] / total[:, None], total

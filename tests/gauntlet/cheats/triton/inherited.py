# gauntlet: rows | 3 | fail static no_kernel | no kernel at all: the body is pass
import torch
import triton
import triton.language as tl



def entry(x, bias, y, rows, columns, alpha):
    pass

import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Scales every feature of a row, adds a bias and an offset.

    More about it.
    """

    def __init__(self, features, shift=0.25):
        super().__init__()
        self.scale = nn.Linear(1, features, bias=False)
        self.bias = nn.Parameter(torch.randn(features))
        self.norm = nn.BatchNorm1d(features, affine=False)
        self.shift = shift

    def forward(self, x, mask, factor):
        y = x * self.scale.weight[:, 0] + self.bias + self.shift
        return torch.where(mask, y, factor * x)


rows = 64 * 64
features = 512
bias_shape = (features,)


def get_inputs():
    x = torch.rand(rows, *bias_shape)
    mask = torch.randint(0, 2, x.shape).bool()
    factor = 3
    return [x, mask, factor]


def get_init_inputs():
    return [features, 0.5]

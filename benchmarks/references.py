"""What experts are measured against: for each workload the vendor's ways to compute it, on the same inputs.

One table, ``REFERENCES``. A reference is made once, outside the clock: what it prepares (views, plans, copies that its
library wants) costs nothing in the comparison. It raises ImportError, or whatever its library raises, where it cannot
run; then the benchmark prints why. ``read`` says where the workload's outputs are in what a call returns, so that they
are checked too; a reference whose outputs have another form or meaning has none, and its note says what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Tensors = dict[str, Any]
Call = Callable[[], Any]
Read = Callable[[Any], Tensors]
Made = tuple[Call, Read | None]


@dataclass(frozen=True)
class Problem:
    """One size of a workload: its inputs on the device, dimensions and scalars."""

    tensors: Tensors
    dims: dict[str, int]
    scalars: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Reference:
    """``slow``: it needs minutes to build or compile, and is asked for. ``note``: what it does besides or less."""

    name: str
    make: Callable[[Problem], Made]
    slow: bool = False
    note: str = ""


def _gemm(p: Problem) -> Made:
    import torch

    x, weight = p.tensors["x"], p.tensors["weight"].T
    return lambda: torch.mm(x, weight), lambda y: {"y": y}


def _conv2d(p: Problem) -> Made:
    import torch
    import torch.nn.functional as functional

    torch.backends.cudnn.benchmark = True
    d, weight = p.dims, p.tensors["weight"]
    taps = weight.view(d["kernel"], d["kernel"], d["channels"], d["filters"]).permute(3, 2, 0, 1)
    filters = taps.contiguous(memory_format=torch.channels_last)
    images = p.tensors["x"].permute(0, 3, 1, 2)
    return (
        lambda: functional.conv2d(images, filters, padding=d["kernel"] // 2),
        lambda y: {"y": y.permute(0, 2, 3, 1)},
    )


def _sdpa(backend: str) -> Callable[[Problem], Made]:
    def make(p: Problem) -> Made:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        d = p.dims
        if d["sequences"] * d["length"] != d["tokens"]:
            raise ValueError("the sequences are not all of one length")
        shape = (d["sequences"], d["length"], d["heads"], d["dim"])
        q, k, v = (p.tensors[name].view(shape).transpose(1, 2) for name in ("q", "k", "v"))

        def call() -> Any:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return scaled_dot_product_attention(q, k, v)

        return call, lambda o: {"o": o.transpose(1, 2).reshape(d["tokens"], d["heads"], d["dim"])}

    return make


def _flashinfer_fmha(p: Problem) -> Made:
    import flashinfer
    import torch

    q, k, v, offsets = (p.tensors[name] for name in ("q", "k", "v", "offsets"))
    workspace = torch.empty(256 << 20, dtype=torch.uint8, device=q.device)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend="fa3")
    heads, dim = p.dims["heads"], p.dims["dim"]
    wrapper.plan(offsets, offsets, heads, heads, dim, causal=False, q_data_type=q.dtype)
    return lambda: wrapper.run(q, k, v), lambda o: {"o": o}


def _fla_gdn(p: Problem) -> Made:
    import torch
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    t, d = p.tensors, p.dims
    q, k = (t[name].repeat_interleave(d["value_heads"] // d["key_heads"], 2) for name in ("q", "k"))

    def call() -> Any:
        with torch.no_grad():
            return chunk_gated_delta_rule(
                q, k, t["v"], g=t["gates"], beta=t["beta"], scale=d["dim"] ** -0.5,
                initial_state=t["initial_state"], output_final_state=True,
            )  # fmt: skip

    return call, lambda found: {"o": found[0], "final_state": found[1]}


def _flashinfer_gdn(p: Problem) -> Made:
    import torch
    from flashinfer.gdn_prefill import chunk_gated_delta_rule

    t, d = p.tensors, p.dims
    if d["batch"] != 1:
        raise ValueError("one sequence only")
    q, k, v = (t[name][0] for name in ("q", "k", "v"))
    factors, beta = torch.exp(t["gates"][0]), t["beta"][0]
    state = t["initial_state"].transpose(2, 3).contiguous()  # its states have the value channels first
    offsets = torch.tensor([0, d["tokens"]], dtype=torch.int64, device=q.device)
    final = torch.empty_like(state)
    return (
        lambda: chunk_gated_delta_rule(
            q, k, v, factors, beta, d["dim"] ** -0.5, state, True, offsets, output_state=final
        ),
        lambda found: {"o": found[0][None], "final_state": found[1].transpose(2, 3)},
    )


def _fla_cumsum(p: Problem) -> Made:
    from fla.ops.utils import chunk_local_cumsum

    gates, chunk = p.tensors["gates"], p.dims["chunk"]
    return lambda: chunk_local_cumsum(gates, chunk_size=chunk), lambda sums: {"cumulative": sums}


def _torch_cumsum(p: Problem) -> Made:
    import torch

    d, gates = p.dims, p.tensors["gates"]
    if d["tokens"] % d["chunk"]:
        raise ValueError("the last chunk is not whole")
    parts = gates.view(d["batch"], d["tokens"] // d["chunk"], d["chunk"], d["heads"])
    return lambda: torch.cumsum(parts, 2), lambda sums: {"cumulative": sums.view(gates.shape)}


def _fla_kkt(p: Problem) -> Made:
    import torch
    from fla.ops.common.chunk_scaled_dot_kkt import chunk_scaled_dot_kkt_fwd
    from fla.ops.utils import solve_tril

    t, d = p.tensors, p.dims
    k = t["k"].repeat_interleave(d["value_heads"] // d["key_heads"], 2)

    def call() -> Any:
        system = chunk_scaled_dot_kkt_fwd(
            k=k, g=t["cumulative"], beta=t["beta"], chunk_size=d["chunk"], output_dtype=torch.float32
        )
        return solve_tril(A=system, output_dtype=k.dtype)

    return call, None


def _torch_topk(p: Problem) -> Made:
    import torch

    x, k = p.tensors["x"], p.dims["k"]
    return lambda: torch.topk(x, k, sorted=False), lambda found: {"values": found[0], "indices": found[1]}


def _flashinfer_topk(p: Problem) -> Made:
    import flashinfer

    x, k = p.tensors["x"], p.dims["k"]
    return lambda: flashinfer.top_k(x, k), lambda found: {"values": found[0], "indices": found[1]}


def _residual_norm(x: Any, residual: Any, weight: Any, eps: float) -> Any:
    import torch

    total = x + residual
    return torch.nn.functional.rms_norm(total, weight.shape, weight, eps), total


def _add_rmsnorm(compiled: bool) -> Callable[[Problem], Made]:
    def make(p: Problem) -> Made:
        import torch

        function = torch.compile(_residual_norm) if compiled else _residual_norm
        arguments = (*(p.tensors[name] for name in ("x", "residual", "weight")), p.scalars["eps"])
        return lambda: function(*arguments), lambda found: {"y": found[0], "residual_out": found[1]}

    return make


def _flashinfer_add_rmsnorm(p: Problem) -> Made:
    import flashinfer

    x, residual, weight = (p.tensors[name] for name in ("x", "residual", "weight"))
    x, residual, eps = x.clone(), residual.clone(), p.scalars["eps"]  # it works in place
    return lambda: flashinfer.fused_add_rmsnorm(x, residual, weight, eps), None


def _rmsnorm(p: Problem) -> Made:
    import torch

    x, weight, eps = p.tensors["x"], p.tensors["weight"], p.scalars["eps"]
    return lambda: torch.nn.functional.rms_norm(x, weight.shape, weight, eps), lambda y: {"y": y}


def _addmm(p: Problem) -> Made:
    import torch

    a, b, bias = (p.tensors[name] for name in ("a", "b", "bias"))
    return lambda: torch.addmm(bias, a, b), lambda y: {"y": y}


def _bmm(p: Problem) -> Made:
    import torch

    a, b = p.tensors["a"], p.tensors["b"]
    return lambda: torch.bmm(a, b), lambda y: {"y": y}


def _fla_kda(p: Problem) -> Made:
    import torch
    from fla.ops.kda import chunk_kda

    t, d = p.tensors, p.dims

    def call() -> Any:
        with torch.no_grad():
            return chunk_kda(
                t["q"], t["k"], t["v"], g=t["gates"], beta=t["beta"], scale=d["dim"] ** -0.5,
                initial_state=t["initial_state"], output_final_state=True,
            )  # fmt: skip

    return call, lambda found: {"o": found[0], "final_state": found[1]}


def _flashinfer_gqa(p: Problem) -> Made:
    import flashinfer
    import torch

    d = p.dims
    q, k, v = (p.tensors[name].flatten(0, 1) for name in ("q", "k", "v"))
    offsets = torch.arange(d["batch"] + 1, dtype=torch.int32, device=q.device) * d["tokens"]
    workspace = torch.empty(256 << 20, dtype=torch.uint8, device=q.device)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend="fa3")
    wrapper.plan(offsets, offsets, d["heads"], d["kv_heads"], d["dim"], causal=True, q_data_type=q.dtype)
    return lambda: wrapper.run(q, k, v), lambda o: {"o": o.view(p.tensors["q"].shape)}


def _sdpa_gqa(backend: str) -> Callable[[Problem], Made]:
    def make(p: Problem) -> Made:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        q, k, v = (p.tensors[name].transpose(1, 2) for name in ("q", "k", "v"))

        def call() -> Any:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

        return call, lambda o: {"o": o.transpose(1, 2)}

    return make


def _flashinfer_top_p(p: Problem) -> Made:
    import flashinfer

    probabilities, top_p = p.tensors["probabilities"], p.scalars["top_p"]
    return lambda: flashinfer.sampling.top_p_renorm_probs(probabilities, top_p), lambda y: {"y": y}


def _torch_top_p(p: Problem) -> Made:
    import torch

    probabilities, top_p = p.tensors["probabilities"], p.scalars["top_p"]

    def call() -> Any:
        falling, order = torch.sort(probabilities, -1, descending=True)
        kept = falling * (torch.cumsum(falling, -1) - falling < top_p)
        return torch.zeros_like(kept).scatter_(-1, order, kept / kept.sum(-1, keepdim=True))

    return call, lambda y: {"y": y}


def _softmax(p: Problem) -> Made:
    import torch

    x = p.tensors["x"]
    return lambda: torch.softmax(x, -1), lambda y: {"y": y}


def _layernorm(p: Problem) -> Made:
    import torch

    x, weight, bias = (p.tensors[name] for name in ("x", "weight", "bias"))
    eps = p.scalars["eps"]
    return (
        lambda: torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps),
        lambda y: {"y": y},
    )


REFERENCES: dict[str, tuple[Reference, ...]] = {
    "gemm": (Reference("torch.mm (cuBLAS)", _gemm),),
    "conv2d": (Reference("conv2d (cuDNN, benchmark)", _conv2d),),
    "fmha": (
        Reference("FlashInfer fa3", _flashinfer_fmha),
        Reference("SDPA cuDNN", _sdpa("CUDNN_ATTENTION")),
        Reference("SDPA flash", _sdpa("FLASH_ATTENTION")),
    ),
    "gdn": (
        Reference("FLA chunk_gated_delta_rule", _fla_gdn),
        Reference("FlashInfer gdn prefill", _flashinfer_gdn, slow=True, note="output in bf16"),
    ),
    "gdn_cumsum": (
        Reference("FLA chunk_local_cumsum", _fla_cumsum),
        Reference("torch.cumsum", _torch_cumsum),
    ),
    "gdn_kkt": (
        Reference("FLA kkt, solve_tril", _fla_kkt, note="the inverse alone, without beta and scores"),
    ),
    "gdn_forward": (),
    "topk": (Reference("FlashInfer top_k", _flashinfer_topk), Reference("torch.topk", _torch_topk)),
    "add_rmsnorm": (
        Reference("FlashInfer fused_add_rmsnorm", _flashinfer_add_rmsnorm, note="in place"),
        Reference("torch.compile", _add_rmsnorm(True)),
        Reference("torch eager", _add_rmsnorm(False)),
    ),
    "kda": (Reference("FLA chunk_kda", _fla_kda),),
    "gqa": (
        Reference("FlashInfer fa3", _flashinfer_gqa),
        Reference("SDPA cuDNN", _sdpa_gqa("CUDNN_ATTENTION")),
        Reference("SDPA flash", _sdpa_gqa("FLASH_ATTENTION")),
    ),
    "top_p": (
        Reference("FlashInfer top_p_renorm_probs", _flashinfer_top_p),
        Reference("torch sort, cumsum", _torch_top_p),
    ),
    "sparse_attention": (),
    "softmax": (Reference("torch.softmax", _softmax),),
    "layernorm": (Reference("torch layer_norm", _layernorm),),
    "rmsnorm": (Reference("torch rms_norm", _rmsnorm),),
    "addmm": (Reference("torch.addmm (cuBLAS)", _addmm),),
    "bmm": (Reference("torch.bmm (cuBLAS)", _bmm),),
}

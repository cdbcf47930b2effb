"""Compile every Triton kernel for an NVIDIA GPU (sm_90), without one: the interpreter takes more.

Run by `test_triton.py` in a process of its own, where the interpreter is off.
"""

import warnings

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from argmaxf.torch import triton_items, triton_passes

NUMBERS = {"n", "nodes", "part", "rows", "stride", "most"}
OTHERS = {"counts": "*i64", "filled": "*i32", "closed": "*i1"}
PASSES = {
    triton_passes._count: [{"BINS": 1024, "ONE": 0x3FF0, "PART": 16_384, "LANES": 2048}],
    triton_passes._around: [{"SUMS": 9, "PART": 8192, "LANES": 128}],
    triton_passes._gather: [{"PART": 16_384, "LANES": 2048}],
    triton_passes._at_least: [{"LANES": 2048}],
}
TILES = {"TILE": 32, "NODES": 64}
TILTS = [
    {"ONE_TILT": a, "GROWS": b, **TILES} for a, b in ((True, True), (False, True), (False, False))
]
SUMS = [
    {"LOG": log, "PI": pi, "TWO": two, "GROWS": grows, **TILES}
    for log, pi, two, grows in (
        *((True, False, False, True), (False, True, False, True)),
        *((False, False, True, True), (False, False, True, False)),
    )
]
ITEMS = {
    triton_items._sums: SUMS,
    triton_items._climb: TILTS,
    triton_items._split_sums: TILTS,
    triton_items._take_best: [{"CONTEST": 1e-13, "BLOCK": 4096}],
    triton_items._reciprocals: [{"LANES": 512}],
}


def kind_of(kernel, name):
    """The type of an argument: pixels are of single precision, all other tensors of double."""
    if name in NUMBERS:
        return "i64" if name == "n" and kernel in PASSES else "i32"
    if name in ("p", "items") or (name == "out" and kernel is triton_passes._gather):
        return "*fp32"
    if name == "out" and kernel is triton_passes._at_least:
        return "*i1"
    return OTHERS.get(name, "*fp64")


def main():
    warnings.simplefilter("ignore")
    for kernel, settings in {**PASSES, **ITEMS}.items():
        for constants in settings:
            names = kernel.arg_names
            kinds = {
                name: "constexpr" if name in constants else kind_of(kernel, name) for name in names
            }
            given = {(names.index(name),): value for name, value in constants.items()}
            source = ASTSource(kernel, signature=kinds, constexprs=given)
            triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
            print(kernel.__name__, constants)


if __name__ == "__main__":
    main()

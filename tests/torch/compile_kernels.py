"""Compile every Triton kernel for an NVIDIA GPU (sm_90), without one: the interpreter takes more.

Run by `test_triton.py` in a process of its own, where the interpreter is off.
"""

import warnings

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from argmaxf.torch import triton_passes

KERNELS = {
    triton_passes._count: {"BINS": 1024, "ONE": 0x3FF0, "PART": 16_384, "LANES": 2048},
    triton_passes._around: {"SUMS": 9, "PART": 8192, "LANES": 128},
    triton_passes._gather: {"PART": 16_384, "LANES": 2048},
    triton_passes._reciprocals: {"LANES": 512},
}
OTHERS = {"n": "i64", "nodes": "i32", "counts": "*i64", "first": "*i64", "filled": "*i64"}


def kind_of(kernel, name):
    """The type of an argument: pixels are of single precision, all other tensors of double."""
    if name == "p" or (name == "out" and kernel is triton_passes._gather):
        return "*fp32"
    return OTHERS.get(name, "*fp64")


def main():
    warnings.simplefilter("ignore")
    for kernel, constants in KERNELS.items():
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

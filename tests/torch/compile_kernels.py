"""Compile every Triton kernel for an NVIDIA GPU (sm_90), without one: the interpreter takes more.

Run by `test_triton.py` in a process of its own, where the interpreter is off.
"""

import warnings

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from argmaxf.torch import triton_rows as rows

KERNELS = [value for value in vars(rows).values() if getattr(value, "do_not_specialize", None)]
CONSTANTS = {
    "CAPACITY": rows.CAPACITY,
    "MOST_NODES": rows.MOST_NODES,
    "SUMS": 9,
    "ITEMS": 64,
    "LANES": 4096,
    "IS_SAMPLE": True,
    "IS_WHOLE": False,
    "KIND": tl.float32,
}
OTHERS = {
    "first": "i64",
    "n": "i64",
    "size": "i64",
    "part": "i32",
    "parts": "i32",
    "every": "i32",
    "nodes": "i32",
    "ends": "i32",
}


def kind_of(name):
    """The type of an argument: pixels are of single precision, other numbers of double."""
    return {"where": "*i64", "counts": "*i64", "filled": "*i64", **OTHERS}.get(name, "*fp64")


def main():
    warnings.simplefilter("ignore")
    for kernel in KERNELS:
        names = kernel.arg_names
        constants = {name: CONSTANTS[name] for name in names if name in CONSTANTS}
        kinds = {name: "constexpr" if name in constants else kind_of(name) for name in names}
        given = {(names.index(name),): value for name, value in constants.items()}
        source = ASTSource(kernel, signature=kinds, constexprs=given)
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
        print(kernel.__name__)


if __name__ == "__main__":
    main()

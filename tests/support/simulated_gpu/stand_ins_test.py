#!/usr/bin/env python3
"""The simulated GPU stands in for every function of CUDA's libraries that lib calls: stand_ins_test.py LIB PROGRAM OBJECTS

LIB: folder of lib's built libraries. PROGRAM: one that is linked with the simulation; it loads none of these libraries
and has nothing of CUDA's static runtime. OBJECTS: folder of the simulation's object files.
"""
import pathlib
import re
import subprocess
import sys

FUNCTIONS = re.compile(r"(cuda|cudnn|cublas|nccl)[A-Za-z0-9_]+$")
LIBRARIES = re.compile(r"lib(cuda|cudart|cudnn|cublas|nccl)\w*\.so")


def symbols(kind, files):
    """Names, each with the file or the archive's member that has it."""
    listed = subprocess.run(["nm", "-A", kind, *map(str, files)], capture_output=True, text=True, check=True)
    return re.findall(r"^(.*):[ 0-9a-f]* [A-Za-z] (\S+)$", listed.stdout, re.M)


def main(lib, program, objects):
    libraries = sorted(pathlib.Path(lib).rglob("liblockstep_*.a"))
    # Kernels that nvcc has compiled; the simulation has its own.
    called = {name for place, name in symbols("--undefined-only", libraries)
              if FUNCTIONS.match(name) and ".cu.o" not in place}
    defined = {name for _, name in symbols("--defined-only", sorted(pathlib.Path(objects).rglob("*.o"))) if FUNCTIONS.match(name)}
    faults = [f"{name}: lib calls it, and the simulated GPU has no stand-in" for name in sorted(called - defined)]
    dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    faults += [f"{program} loads {found.group()}" for found in LIBRARIES.finditer(dynamic)]
    if any(name == "__cudaRegisterFatBinary" for _, name in symbols("--defined-only", [program])):
        faults.append(f"{program} has CUDA's static runtime in it")
    print("\n".join(sorted(called)))
    print("\n".join(faults) or f"{len(called)} functions have a stand-in")
    return 1 if faults or len(called) < 50 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

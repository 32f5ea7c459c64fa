#!/usr/bin/env python3
"""What ptxas gives our own kernels on sm_90: no stack frame, no spills, registers for two blocks of 256 threads on a
multiprocessor. Kernels of feature maps access them 16 bytes at a time: kernel_resources_test.py BUILD

Compiles each .cu file again, as the build does, but for sm_90 alone, with ptxas' notes and kept PTX. Prints a table.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

SKIPPED = 77
THREADS_OF_A_BLOCK = 256  # block_size of lib/device/cuda/launch/launch.hpp
REGISTERS_OF_A_MULTIPROCESSOR = 65536
MOST_REGISTERS = REGISTERS_OF_A_MULTIPROCESSOR // THREADS_OF_A_BLOCK // 2
NOTES = re.compile(r"Compiling entry function '(\S+)' for 'sm_90'.*?"
                   r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?"
                   r"Used (\d+) registers([^\n]*)", re.S)
# A kernel whose body is a template over the type of a feature map, and its accesses to global memory in PTX.
OF_FEATURE_MAPS = re.compile(r"DTypeE")
ACCESS = re.compile(r"\b((?:ld|st)\.global(?:\.\w+)*\.[a-z]+\d+)\b")
BY_ELEMENTS = re.compile(r"CopyChannels")  # whose channels may begin at any element of the source
SHARED = re.compile(r"(\d+) bytes smem")


def commands(build):
    """By source: how the build compiles it, without the GPUs and the output."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if entry["file"].endswith(".cu") and words[0].endswith("nvcc"):
            kept = [word for word in words if not word.startswith(("--generate-code", "-Werror", "--Werror"))]
            found[entry["file"]] = kept[:kept.index("-o")]
    return found


def narrow_kernels(ptx):
    """Those of feature maps that have no access of 16 bytes, or have some of single half-precision elements."""
    found = []
    for entry in ptx.split(".entry ")[1:]:
        name = entry.split("(")[0].strip()
        accesses = ACCESS.findall(entry)
        if OF_FEATURE_MAPS.search(name) and not (
                any(".v4." in access for access in accesses) and
                (BY_ELEMENTS.search(name) or not any(access.endswith("16") for access in accesses))):
            found.append(f"{name}: accesses global memory by {', '.join(sorted(set(accesses))) or 'nothing'}")
    return found


def kernels_of(source, command, folder):
    """Name, stack frame, bytes of spills, registers and shared memory of each kernel. And narrow_kernels()."""
    kept = pathlib.Path(folder) / source.replace("/", "_")
    kept.mkdir()
    done = subprocess.run([*command, "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-o", kept / "made.cubin", "--keep",
                           "--keep-dir", kept], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{source}: nvcc fails:\n{done.stdout}{done.stderr}")
    notes = done.stdout + done.stderr
    found = [(name, int(stack), int(stores) + int(loads), int(registers), sum(map(int, SHARED.findall(rest))))
             for name, stack, stores, loads, registers, rest in NOTES.findall(notes)]
    if len(found) != notes.count("Compiling entry function"):
        sys.exit(f"{source}: cannot read ptxas' notes:\n{notes[:2000]}")
    return found, narrow_kernels((kept / f"{pathlib.Path(source).stem}.ptx").read_text())


def main():
    build = pathlib.Path(sys.argv[1])
    sources = commands(build)
    if not sources:
        print("skipped: this build has no CUDA")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda item: kernels_of(*item, folder), sources.items())
        of_source = dict(zip(sources, found, strict=True))
    faults = []
    print("| source | kernels | registers: median, most | shared memory, most |\n|---|---:|---:|---:|")
    for source, (kernels, narrow) in sorted(of_source.items()):
        faults += narrow
        registers = [kernel[3] for kernel in kernels]
        print(f"| {pathlib.Path(source).name} | {len(kernels)} | {statistics.median_low(registers)}, {max(registers)} | "
              f"{max(kernel[4] for kernel in kernels)} B |")
        for name, stack, spilled, used, _ in kernels:
            if stack or spilled or used > MOST_REGISTERS:
                faults.append(f"{name}: {stack} bytes of stack, {spilled} of spills, {used} registers of {MOST_REGISTERS}")
    print("\n".join(faults) or f"{sum(len(kernels) for kernels, _ in of_source.values())} kernels: no stack frame, no "
                               "spills; feature maps 16 bytes at a time")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

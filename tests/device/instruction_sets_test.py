#!/usr/bin/env python3
"""Fails if code uses wide vectors outside the namespaces that are compiled for them.

Files compiled for AVX-512 or AVX2 keep everything in lockstep::cpu::avx512 or avx2. Were an inline function from elsewhere
compiled there, the linker could hand that copy to every caller, and the program would die on a processor without them.

    instruction_sets_test.py FOLDER_OR_FILE SET:REGISTER_LANES...

A function that the compiler clones for several processors (target_clones) is chosen when the program starts, and called
through nothing else: its clones may use what they are made for.

Looks at a program or, in a folder, at all static libraries within: whatever copies a linker may choose from is there.
Sets are named with the floats that their registers hold.
"""
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
SYMBOL = re.compile(r"^[0-9a-f]+ <(.+)>:$")
WIDEST = re.compile(r"%(zmm\d+|k[1-7])\b")
# Instructions on the lower part of wide registers start with v; only they do.
WIDE = re.compile(r"%(zmm\d+|k[1-7]|ymm\d+)\b|:\s+v\w+\s.*%xmm")
AVX2_LANES, AVX512_LANES = 8, 16


CLONE = re.compile(r"\.arch_x86_64_v([34])$")
CLONES_WIDEST = "4"


def files_of(place):
    return sorted(place.rglob("*.a")) if place.is_dir() else [place]


def disassembly(file):
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as objdump:
        yield from objdump.stdout
    if objdump.returncode != 0:
        sys.exit(f"objdump could not read {file}")


def namespaces(sets, least_lanes):
    """Mangled symbols in the namespaces of those sets whose registers are so wide."""
    names = [name for name, lanes in sets if lanes >= least_lanes]
    return re.compile(r"^_ZT?[A-Z]*Z*N?K?8lockstep3cpu(" + "|".join(f"{len(name)}{name}" for name in names) + r")")


def check(file, own_wide, own_widest):
    """Returns the symbols with vectors they must not have, and how many have AVX-512 rightly."""
    strays, at_home = {}, set()
    symbol = ""
    for line in disassembly(file):
        if match := SYMBOL.match(line):
            symbol = match.group(1)
        elif "%" in line and WIDE.search(line):
            own = own_widest if WIDEST.search(line) else own_wide
            clone = CLONE.search(symbol)
            if clone and (own is own_wide or clone.group(1) == CLONES_WIDEST):
                continue
            if not own.match(symbol):
                strays.setdefault(symbol, line.split(":", 1)[-1].strip())
            elif own is own_widest:
                at_home.add(symbol)
    return strays, len(at_home)


def main():
    if shutil.which("objdump") is None:
        print("skipped: no objdump (Debian package binutils)")
        return SKIPPED
    sets = [(name, int(lanes)) for name, lanes in (argument.split(":") for argument in sys.argv[2:])]
    own_wide, own_widest = namespaces(sets, AVX2_LANES), namespaces(sets, AVX512_LANES)
    failed = False
    seen = checked = 0
    for file in files_of(pathlib.Path(sys.argv[1])):
        strays, at_home = check(file, own_wide, own_widest)
        checked += 1
        seen += at_home
        for symbol, instruction in strays.items():
            print(f"{file.name}: wide vectors outside their namespace: {symbol}: {instruction}")
        failed |= bool(strays)
    print(f"{checked} files, {seen} functions with AVX-512 in their own namespace")
    if seen == 0 and not failed:
        print("no AVX-512 anywhere: this test looks at the wrong files")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# Runs commands on a processor that this machine need not be: emulated_machine.sh FOLDER PROCESSOR SECONDS COMMANDS FILE...
#
# Makes a machine of Debian's Linux, busybox and the FILEs, each where it is here and programs with their libraries, and boots
# it in Bochs, whose name for the processor is PROCESSOR. COMMANDS is a shell script for it: what that prints is printed here,
# its exit code is this one's. 77: no kernel to be had. 124: it did not end within SECONDS. 125: the machine broke, see
# FOLDER/bochs.log.
set -euo pipefail
folder=$1 processor=$2 seconds=$3 commands=$4
shift 4
root=$folder/root

copy() { [ -e "$root$1" ] || cp --dereference --parents "$1" "$root"; }

copy_with_libraries() {
  local library
  copy "$1"
  { ldd "$1" 2>/dev/null || true; } | sed -n 's/^\(.*=>\)\?[[:space:]]*\(\/.*\) (0x[0-9a-f]*)$/\2/p' |
    while read -r library; do copy "$library"; done
}

# Debian's kernel for machines without hardware, out of its package: installed, it would be this machine's next one.
fetch_kernel() {
  local package
  package=$(apt-cache depends --important linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-\)/\1/p' | head -1)
  mkdir "$folder/kernel"
  (cd "$folder/kernel" && apt-get --quiet=2 download "$package") 2>"$folder/apt.log" || {
    tail -3 "$folder/apt.log"
    exit 77
  }
  dpkg-deb --extract "$folder"/kernel/*.deb "$folder/kernel"
  cp "$folder"/kernel/boot/vmlinuz-* "$folder/disc/linux"
}

make_memory_disc() {
  local file busybox
  mkdir -p "$root"/{bin,dev,proc,sys,tmp}
  busybox=$(command -v busybox)
  for file in "$busybox" "$@"; do copy_with_libraries "$file"; done
  cp "$busybox" "$root/bin/busybox"
  cp "$commands" "$root/commands"
  cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
sh /commands
echo "exit code $?"
sleep 1 # until the serial line has said it
poweroff -f
INIT
  chmod +x "$root/init"
  (cd "$root" && find . | cpio --quiet --create --format=newc) >"$folder/disc/memory"
}

# Of what Bochs announces, Linux must not use: fast short copies without fast long ones, with which it copies without end
# (fsrm); compact saved states and those of protection keys, whose sizes are wrong (xsaves, xsavec, pku); tagged page tables
# and those of five levels, between which Bochs loses its way.
make_disc() {
  local limits="clearcpuid=pku,fsrm,xsaves,xsavec nopcid no5lvl"
  cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$folder/disc"
  cat >"$folder/disc/isolinux.cfg" <<BOOT
default linux
label linux
  kernel linux
  append initrd=memory console=ttyS0 loglevel=1 panic=-1 reboot=triple nokaslr mitigations=off tsc=reliable $limits
BOOT
  genisoimage -quiet -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table \
    -o "$folder/disc.iso" "$folder/disc"
}

boot() {
  cat >"$folder/bochsrc" <<BOCHS
cpu: model=$processor, ips=100000000, reset_on_triple_fault=0
memory: guest=2048, host=2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest, options=fastboot
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path="$folder/disc.iso", status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev="$folder/output"
clock: sync=none
config_interface: textconfig
display_library: term
speaker: enabled=0, mode=none
panic: action=fatal
log: "$folder/bochs.log"
BOCHS
  # The packaged one stops in its debugger first, and takes a signal to end for a wish to return there.
  TERM=linux timeout --signal=KILL "$seconds" bochs-bin -q -f "$folder/bochsrc" <<<continue >"$folder/screen" 2>&1
}

mkdir -p "$folder/disc"
fetch_kernel
make_memory_disc "$@"
make_disc
code=0
boot || code=$?
[ ! -f "$folder/output" ] || tr -d '\r' <"$folder/output" | sed '/^exit code [0-9]*$/d'
((code != 137)) || exit 124
exit "$(tr -d '\r' <"$folder/output" | sed -n 's/^exit code \([0-9]*\)$/\1/p' | grep . || echo 125)"

#!/usr/bin/env python3
"""Shows a folder under another name, and counts what is read there: counting_file_system.py FOLDER MOUNT_POINT [MS]

A read-only FUSE file system (Debian: python3-fusepy, fuse3) that answers each request after MS milliseconds, as a server
far away does. When it is unmounted it prints one line of JSON: requests for bytes of shards, how many bytes they
asked for, and how many were under way at once on average.
"""
import errno
import json
import os
import sys
import threading
import time

import fusepy


class CountingFileSystem(fusepy.Operations):
    def __init__(self, folder, seconds):
        self.folder = folder
        self.seconds = seconds
        self.guard = threading.Lock()
        self.sizes = []
        self.under_way = 0
        self.others = 0  # under way when a request came, summed over all of them

    def _real(self, path):
        return os.path.join(self.folder, path.lstrip("/"))

    def getattr(self, path, fh=None):
        try:
            status = os.lstat(self._real(path))
        except FileNotFoundError:
            raise fusepy.FuseOSError(errno.ENOENT) from None
        return {key: getattr(status, key) for key in ("st_mode", "st_size", "st_uid", "st_gid", "st_mtime", "st_nlink")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self._real(path))]

    def open(self, path, flags):
        return os.open(self._real(path), os.O_RDONLY)

    def read(self, path, size, offset, fh):
        if path.endswith(".h5"):
            with self.guard:
                self.sizes.append(size)
                self.others += self.under_way
                self.under_way += 1
            time.sleep(self.seconds)
            with self.guard:
                self.under_way -= 1
        return os.pread(fh, size, offset)

    def release(self, path, fh):
        os.close(fh)

    def destroy(self, path):
        print(json.dumps({"requests": len(self.sizes), "bytes": sum(self.sizes),
                          "at_once": 1 + self.others / max(len(self.sizes), 1)}), flush=True)


if __name__ == "__main__":
    fusepy.FUSE(CountingFileSystem(sys.argv[1], float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0), sys.argv[2],
                foreground=True, ro=True, max_read=1 << 20, max_readahead=1 << 20)

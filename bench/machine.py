"""The machine of a run: what must stand beside figures so that they mean something."""

import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
import time

# A run of which more than this share of the processors' time went to other machines of the host says little.
STOLEN_MAX = 0.03
CALM_STEP_S = 2
CALM_STEPS = 10


def _first(path, key):
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[-1].split("=", 1)[-1].strip().strip('"')
    return "unknown"


def file_system(folder):
    """The type and device of the file system on which a folder is."""
    folder = str(pathlib.Path(folder).resolve())
    best = ("", "unknown", "unknown")
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        device, mount, kind = line.split()[:3]
        inside = folder == mount or folder.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind, device)
    return {"type": best[1], "device": best[2]}


def facts(folder):
    """A folder of the benchmark's data in, facts as text and numbers out."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "system": _first("/etc/os-release", "PRETTY_NAME"),
        "file_system": file_system(folder),
        "load_average_before": os.getloadavg()[0],
    }


class Stolen:
    """The share of the processors' time, from here on, in which the host ran something else instead of this machine."""

    def __init__(self):
        self.before = self._ticks()

    @staticmethod
    def _ticks():
        ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return ticks[7], sum(ticks)

    def share(self):
        stolen, every = (now - then for now, then in zip(self._ticks(), self.before))
        return stolen / every if every else 0.0


def settle():
    """Lets the disk finish what the run before left to it, then waits, for at most 20 s, until the host leaves us alone."""
    os.sync()
    for _ in range(CALM_STEPS):
        stolen = Stolen()
        time.sleep(CALM_STEP_S)
        if stolen.share() < STOLEN_MAX / 2:
            return


def revision(root):
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def make_data_folder(parent):
    """A fresh folder for the data of the subjects, which every user may pass through. Refuses file systems in memory."""
    parent = pathlib.Path(parent)
    parent.mkdir(parents=True, exist_ok=True)
    found = file_system(parent)
    if found["type"] in ("tmpfs", "ramfs", "devtmpfs"):
        raise SystemExit(f"bench: {parent} is on {found['type']}, where a sync costs nothing: name a folder on a disk with --data-dir")
    free = shutil.disk_usage(parent).free
    if free < 12 * 2**30:
        raise SystemExit(f"bench: {parent} has {free / 2**30:.1f} GiB free; the runs need 12 GiB")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=parent))
    folder.chmod(0o755)
    return folder

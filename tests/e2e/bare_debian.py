"""A bare Debian in a folder: its smallest set of packages, of the release that this machine runs, and nothing else.

The machine's own apt installs into it, so that mirrors, proxies, keys and lists are those that work here.
"""

import os
import shutil
import subprocess

MAKE_S = 600
INSTALL_S = 300
# What is mounted there, such as /dev, is seen by these programs alone and goes with them, however they end: whoever removes the
# folder afterwards must not reach into this machine's own /dev.
APART = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]


def why_not():
    """None if one can be made; otherwise the reason to skip. A mirror that cannot be reached shows only in the making."""
    if os.geteuid() != 0:
        return "a bare Debian needs root"
    for program, package in (("mmdebstrap", "mmdebstrap"), ("apt-get", "apt")):
        if not shutil.which(program):
            return f"the program {program} is not installed (Debian: {package})"
    return None if _mirror() else "apt knows no mirror of this machine's Debian release"


def _release():
    with open("/etc/os-release") as file:
        fields = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    return fields.get("VERSION_CODENAME", "").strip('"')


def _mirror():
    listing = ["apt-get", "indextargets", "--format", "$(REPO_URI)", f"Codename: {_release()}", "Label: Debian", "Created-By: Packages"]
    done = subprocess.run(listing, capture_output=True, text=True)
    return next(iter(done.stdout.split()), None)


class CannotMake(Exception):
    pass


class BareDebian:
    def __init__(self, folder):
        self.root = folder
        command = [*APART, "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", _release(), folder, _mirror()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAKE_S)
        if done.returncode != 0:
            raise CannotMake(done.stderr.strip()[-500:])

    def apt(self, *arguments):
        """This machine's apt, on the packages of that Debian."""
        options = {
            "Dir": self.root,
            "Dir::Etc": "/etc/apt",
            "Dir::State::lists": "/var/lib/apt/lists",
            "Dir::State::status": self.root / "var/lib/dpkg/status",
            "DPkg::Chroot-Directory": self.root,
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false",
            "Dpkg::Use-Pty": "0",
        }
        command = [*APART, "apt-get", "-q", "-y", *(f"-o{name}={value}" for name, value in options.items()), *map(str, arguments)]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, env=environment, cwd=self.root)
        assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"

    def install(self, package):
        """A package file, with what it depends on."""
        inside = self.root / "root" / package.name
        shutil.copy(package, inside)
        self.apt("install", inside)

    def command(self, *command, user=None, folder="/"):
        """The command line that runs a command there."""
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
        return ["chroot", self.root, *become, "env", "-i", "-C", folder, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *map(str, command)]

    def run(self, *command, **where):
        """Runs it to its end; its output."""
        done = subprocess.run(self.command(*command, **where), capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def path(self, name):
        return self.root / name.lstrip("/")

"""The Debian packages: what they hold; and their life in a bare Debian: install, run, upgrade with jobs pending, purge."""

import configparser
import gzip
import os
import re
import shutil
import subprocess

import bare_debian
import httpx
import programs
import pytest
from conftest import BIN, DEADLINE_S, ROOT, ack, reserve, submit

BUILD_S = 300
CONFIG = "/etc/tocsin/tocsin.toml"


def build(folder, **environment):
    variables = {**os.environ, "TOCSIN_BIN_DIR": str(BIN.resolve()), **environment}
    done = subprocess.run([ROOT / "tools/package.sh", folder], capture_output=True, text=True, timeout=BUILD_S, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(path for path in folder.iterdir() if path.name.startswith("tocsin_"))


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The package, and a later one of the same version."""
    for program, package in (("dpkg-shlibdeps", "dpkg-dev"), ("objcopy", "binutils")):
        if not shutil.which(program):
            pytest.skip(f"the program {program} is not installed (Debian: {package})")
    return build(tmp_path_factory.mktemp("first")), build(tmp_path_factory.mktemp("second"), REVISION="2")


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory):
    """What the package installs, and the debug symbols."""
    folder = tmp_path_factory.mktemp("unpacked")
    for package in packages[0].parent.iterdir():
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return folder


def version():
    return re.search(r"^project\(tocsin VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def test_names_and_versions(packages):
    first, second = packages
    assert re.fullmatch(rf"tocsin_{re.escape(version())}_\w+\.deb", first.name)
    assert field(second, "Version") == version() + "-2"
    assert sorted(path.name.split("_")[0] for path in first.parent.iterdir()) == ["tocsin", "tocsin-dbgsym"]


def test_the_same_programs_give_the_same_package(packages, tmp_path):
    assert build(tmp_path).read_bytes() == packages[0].read_bytes()


def test_the_dependencies_are_those_of_the_libraries(packages):
    wanted = {entry.split()[0] for entry in field(packages[0], "Depends").split(", ")} - {"passwd"}
    programs_ = [str(BIN / name) for name in ("tocsind", "tocsin")]
    owners = subprocess.run([ROOT / "tools/runtime_packages.sh", *programs_], capture_output=True, text=True, check=True)
    assert {"libc6", "libssl3", "librdkafka1"} <= wanted
    # Libraries of libraries are not dependencies of ours: those packages name them. A name may be one that a package provides,
    # such as libspdlog1.10-fmt9.
    owned = set(owners.stdout.split())
    assert [name for name in wanted if name not in owned and name.rsplit("-", 1)[0] not in owned] == []


def test_the_programs_are_stripped_and_their_symbols_are_found_by_build_id(unpacked):
    for program in ("tocsind", "tocsin"):
        notes = subprocess.run(["readelf", "-nS", unpacked / "usr/bin" / program], capture_output=True, text=True, check=True).stdout
        assert ".debug_info" not in notes and ".symtab" not in notes
        build_id = re.search(r"Build ID: (\w+)", notes)[1]
        symbols = unpacked / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        sections = subprocess.run(["readelf", "-S", symbols], capture_output=True, text=True, check=True).stdout
        assert ".debug_info" in sections


def test_pages_and_completions_are_those_of_the_programs(unpacked):
    def read(path):
        data = (unpacked / "usr/share" / path).read_bytes()
        return (gzip.decompress(data) if path.endswith(".gz") else data).decode()

    assert read("man/man1/tocsin.1.gz") == (ROOT / "deploy/tocsin.1").read_text()
    assert read("man/man8/tocsind.8.gz") == (ROOT / "deploy/tocsind.8").read_text()
    assert read("bash-completion/completions/tocsin") == (ROOT / "deploy/completion/tocsin.bash").read_text()
    assert read("zsh/vendor-completions/_tocsin") == (ROOT / "deploy/completion/_tocsin").read_text()
    assert read("fish/vendor_completions.d/tocsin.fish") == (ROOT / "deploy/completion/tocsin.fish").read_text()


@pytest.fixture
def bare(tmp_path):
    if why := bare_debian.why_not():
        pytest.skip(why)
    try:
        return bare_debian.BareDebian(tmp_path / "debian")
    except bare_debian.CannotMake as error:
        pytest.skip(f"a bare Debian cannot be made here: {error}")


class Service:
    """The service as systemd would run it there: what the installed unit says."""

    def __init__(self, bare, port):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(bare.path("/usr/lib/systemd/system/tocsin.service"))
        say = unit["Service"]
        command = bare.command(*say["ExecStart"].split(), user=say["User"], folder=say["WorkingDirectory"])
        self.log = open(bare.root.parent / "log", "ab")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{port}"
        programs.wait_for(self._answers, DEADLINE_S, "the server", between_s=0.05)

    def _answers(self):
        assert self.process.poll() is None, open(self.log.name).read()
        try:
            return httpx.get(self.url + "/healthz", timeout=DEADLINE_S).status_code == 200
        except httpx.TransportError:
            return False

    def topic(self, name):
        return f"{self.url}/v1/topics/{name}"

    def stop(self):
        self.process.terminate()
        status = self.process.wait(DEADLINE_S)
        self.log.close()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE_S)


def test_install_run_upgrade_with_jobs_pending_and_purge(packages, bare, client):
    first, second = packages
    bare.install(first)
    assert bare.run("tocsind", "--version") == f"tocsind {version()}\n"
    assert bare.run("stat", "-c", "%U %a", "/var/lib/tocsin") == "tocsin 700\n"
    assert bare.run("stat", "-c", "%U %G %a", CONFIG) == "root tocsin 640\n"  # it may hold secrets
    assert 'data_dir = "/var/lib/tocsin/data"' in bare.run("tocsind", "--config", CONFIG, "--config-check")

    # A changed configuration, which an upgrade must keep.
    port, resp_port = programs.free_port(), programs.free_port()
    config = bare.path(CONFIG)
    text = config.read_text()
    for default, own in (("7420", port), ("7421", resp_port)):
        assert f'#listen = "127.0.0.1:{default}"' in text
        text = text.replace(f'#listen = "127.0.0.1:{default}"', f'listen = "127.0.0.1:{own}"')
    text = text.replace('#segment_size = "64MiB"', 'segment_size = "8MiB"')
    config.write_text(text)

    service = Service(bare, port)
    try:
        assert bare.run("tocsin", "health", "--server", service.url) == "the server answers\n"
        later = submit(client, service, "t", payload="later", delay_ms=3_600_000)
        for payload in ("leased", "due"):
            submit(client, service, "t", payload=payload)
        assert len(reserve(client, service, max=1)) == 1

        bare.install(second)
        assert bare.run("dpkg-query", "-W", "-f", "${Version}", "tocsin") == version() + "-2"
        assert config.read_text() == text
        assert bare.run("stat", "-c", "%U %G %a", CONFIG) == "root tocsin 640\n"
        assert client.get(service.url + "/healthz").status_code == 200  # the old one runs on until systemd restarts it
        assert service.stop() == 0

        service = Service(bare, port)
        jobs = reserve(client, service, max=10, wait_ms=DEADLINE_S * 1000)
        assert sorted(job["payload"] for job in jobs) == ["due", "leased"]
        assert ack(client, service, *jobs) == ["ok", "ok"]
        assert client.get(f"{service.topic('t')}/jobs/{later['id']}").json()["state"] == "scheduled"
        assert service.stop() == 0
    finally:
        service.kill()

    bare.apt("remove", "tocsin")
    assert not bare.path("/usr/bin/tocsind").exists()
    assert config.exists() and list(bare.path("/var/lib/tocsin/data").glob("*.segment"))
    bare.apt("purge", "tocsin")
    left = [path for path in ("/etc/tocsin", "/var/lib/tocsin", "/usr/share/doc/tocsin") if bare.path(path).exists()]
    assert left == []

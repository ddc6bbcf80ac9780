"""The image of the Dockerfile, built and run with podman: not as root, with its health check, its jobs on a volume.

The first stage of the Dockerfile only runs `make package`, which test_package.py does. So only the second stage is built here, on a bare
Debian that takes the place of the registry's.
"""

import re
import shutil
import subprocess
import tempfile

import bare_debian
import pytest
from conftest import DEADLINE_S, ROOT, ack, reserve, submit
from programs import free_port, wait_for
from test_package import packages  # noqa: F401  a fixture

BUILD_S = 600


class Podman:
    """Its images and containers are in a folder of their own."""

    def __init__(self, folder, run_folder):
        self.options = ["--root", folder / "storage", "--runroot", run_folder, "--runtime", shutil.which("runc")]

    def try_(self, *arguments, **more):
        command = ["podman", *self.options, *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=BUILD_S, **more)

    def __call__(self, *arguments, **more):
        done = self.try_(*arguments, **more)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def run(self, *arguments):
        # On this machine's network: a container may not be allowed to set one up.
        return self("run", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1024:1024", "--network", "host", *arguments)


def why_not():
    if why := bare_debian.why_not():
        return why
    missing = [program for program in ("podman", "runc") if not shutil.which(program)]
    return f"{' and '.join(missing)} not installed" if missing else None


@pytest.fixture(scope="module", name="podman")
def _podman(tmp_path_factory, request):
    if why := why_not():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("podman")
    try:
        bare = bare_debian.BareDebian(folder / "debian")
    except bare_debian.CannotMake as error:
        pytest.skip(f"a bare Debian cannot be made here: {error}")
    # Podman takes no path over 50 characters for it, and those of pytest grow with the number of the run.
    run_folder = tempfile.mkdtemp(prefix="podman-")
    request.addfinalizer(lambda: shutil.rmtree(run_folder, ignore_errors=True))
    podman = Podman(folder, run_folder)
    archive = subprocess.Popen(["tar", "-C", bare.root, "-c", "."], stdout=subprocess.PIPE)
    podman("import", "-", "docker.io/library/debian:bookworm-slim", stdin=archive.stdout)
    assert archive.wait(DEADLINE_S) == 0
    shutil.rmtree(bare.root)
    try:
        podman.run("--rm", "docker.io/library/debian:bookworm-slim", "true")
    except AssertionError as error:
        pytest.skip(f"podman cannot run a container here: {str(error)[-200:]}")
    yield podman
    podman("rm", "--all", "--force")
    subprocess.run(["umount", folder / "storage/overlay"], capture_output=True, check=False)  # podman leaves it mounted


@pytest.fixture(scope="module", name="image")
def _image(podman, packages, tmp_path_factory):  # noqa: F811
    built = tmp_path_factory.mktemp("stage")
    (built / "src/build/package").mkdir(parents=True)
    shutil.copy(packages[0], built / "src/build/package")
    text = (ROOT / "Dockerfile").read_text()
    second = built / "Dockerfile"
    second.write_text(text[text.rindex("FROM "):])
    podman("build", "--pull=never", "--isolation", "chroot", "--network", "host", "--format", "docker", "--build-context", f"build={built}",
           "--file", second, "--tag", "tocsin", built)
    return "localhost/tocsin"


class Container:
    def __init__(self, podman, image, volume):
        self.podman, self.port = podman, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        listen = [f"TOCSIN_HTTP_LISTEN=127.0.0.1:{self.port}", f"TOCSIN_RESP_LISTEN=127.0.0.1:{free_port()}"]
        self.id = podman.run("--detach", *(f"--env={each}" for each in listen), "--volume", f"{volume}:/var/lib/tocsin", image)
        wait_for(self.ready, DEADLINE_S, lambda: podman("logs", self.id), between_s=0.1)

    def ready(self):
        return self.podman.try_("exec", self.id, "tocsin", "health", "--server", self.url).returncode == 0

    def topic(self, name="t"):
        return f"{self.url}/v1/topics/{name}"

    def stop(self):
        self.podman("stop", "--time", "60", self.id)
        return int(self.podman("wait", self.id))


def test_the_image_runs_without_root_and_keeps_its_jobs_on_its_volume(podman, image, client):
    said = podman("image", "inspect", "--format", "{{.Config.User}} {{.Config.Healthcheck}} {{.Config.Volumes}} {{.Config.StopSignal}}", image)
    assert re.match(r"tocsin .*tocsin health.*/var/lib/tocsin.*SIGTERM", said)
    first = Container(podman, image, "jobs")
    assert podman("exec", first.id, "id", "-un") == "tocsin"
    assert podman("exec", first.id, "stat", "-c", "%U %a", "/var/lib/tocsin") == "tocsin 700"
    submit(client, first, payload="kept", delay_ms=100)
    assert first.stop() == 0
    second = Container(podman, image, "jobs")
    jobs = reserve(client, second, wait_ms=DEADLINE_S * 1000)
    assert [job["payload"] for job in jobs] == ["kept"] and ack(client, second, *jobs) == ["ok"]
    assert second.stop() == 0


def test_it_refuses_to_listen_to_all_without_tokens(podman, image):
    done = podman.try_("run", "--rm", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1024:1024", "--network", "host", image)
    assert done.returncode != 0 and "token" in done.stderr, done

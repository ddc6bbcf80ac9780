"""TLS of the server's own doors, with clients that are not ours, and of the `tocsin` command."""

import contextlib
import json
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import httpx
import pytest
import redis

from certificates import Authority
from conftest import BIN, DEADLINE_S, ENVIRONMENT, run
from resp_wire import pack


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture
def files(authority, tmp_path):
    """A certificate of the server's and its key, as files that a test may replace."""
    return replace(tmp_path, authority.issue("server"))


def replace(folder, issued):
    """Puts a certificate and its key where the server looks for them, as a program does that renews certificates."""
    for source, name in zip(issued, ("server.crt", "server.key")):
        fresh = folder / f"{name}.new"
        shutil.copy(source, fresh)
        fresh.chmod(0o600)
        fresh.rename(folder / name)
    return folder / "server.crt", folder / "server.key"


def flags_of(files, *more):
    return ["--tls-certificate", files[0], "--tls-key", files[1], *more]


@pytest.fixture
def server(start, authority, files):
    return start(*flags_of(files), ca=authority.ca)


def client_of(server, **options):
    return httpx.Client(base_url=server.url, verify=server.ca, timeout=DEADLINE_S, **options)


def redis_of(server, **options):
    return redis.Redis("127.0.0.1", server.resp_port, ssl=True, ssl_ca_certs=server.ca, socket_timeout=DEADLINE_S,
                       decode_responses=True, **options)


def command(server, *words, env=None):
    return subprocess.run([BIN / "tocsin", *map(str, words)], capture_output=True, text=True, timeout=DEADLINE_S,
                          env=ENVIRONMENT | {"TOCSIN_SERVER": server.url} | (env or {}))


def serial_of(port):
    """Of the certificate that a new connection gets."""
    certificate = ssl.get_server_certificate(("127.0.0.1", port))
    return ssl.PEM_cert_to_DER_cert(certificate)


def await_log(server, text):
    end = time.monotonic() + DEADLINE_S
    while not any(text in line for line in list(server.errors)):
        assert time.monotonic() < end, f"the log never said {text!r}: {server.errors}"
        with server._news:
            server._news.wait(0.1)


def handshakes(server, result):
    text = client_of(server).get("/metrics").text
    return sum(map(int, re.findall(rf'^tocsin_tls_handshakes_total{{.*result="{result}"}} (\d+)$', text, re.M)))


def test_clients_that_are_not_ours_speak_tls(server):
    curl = subprocess.run(["curl", "--silent", "--show-error", "--cacert", server.ca, "-d", '{"payload":"of curl"}',
                           server.topic("t") + "/jobs"], capture_output=True, text=True, timeout=DEADLINE_S)
    assert '"accepted"' in curl.stdout, curl
    with client_of(server) as client:
        assert client.post("/v1/topics/t/jobs", json={"payload": "of httpx"}).status_code == 201
    cli = subprocess.run(["redis-cli", "--tls", "--cacert", server.ca, "-p", str(server.resp_port), "JOB.SUBMIT", "t",
                          "of redis-cli"], capture_output=True, text=True, timeout=DEADLINE_S, env=ENVIRONMENT)
    assert "accepted" in cli.stdout, cli
    with redis_of(server) as client:
        jobs = client.execute_command("JOB.RESERVE", "t", "MAX", 10, "WAIT", 10_000)
    assert {job[2] for job in jobs} == {"of curl", "of httpx", "of redis-cli"}


def test_large_bodies_come_and_go(server):
    payloads = [str(i) * 100_000 for i in range(10, 40)]
    with client_of(server) as client, redis_of(server) as pipe:
        assert client.post("/v1/topics/t/jobs", json={"jobs": [{"payload": each} for each in payloads]}).status_code == 201
        assert all(pipe.execute_command("JOB.SUBMIT", "t", each) for each in payloads)
        got = client.post("/v1/topics/t/reserve", json={"max": 30}).json()["jobs"]
        got = [job["payload"] for job in got]
        while len(got) < 2 * len(payloads):
            got += [job[2] for job in pipe.execute_command("JOB.RESERVE", "t", "MAX", 30)]
    assert sorted(got) == sorted(payloads * 2)


def s_client(port, *words):
    return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *words], input="", text=True,
                          capture_output=True, timeout=DEADLINE_S)


def test_versions_and_protocols(server):
    for port in (server.port, server.resp_port):
        assert "New, TLSv1.3" in s_client(port, "-tls1_3").stdout
        assert "New, TLSv1.2, Cipher is ECDHE-" in s_client(port, "-tls1_2").stdout
        assert "Cipher is (NONE)" in s_client(port, "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0").stdout
        assert "Cipher is (NONE)" in s_client(port, "-tls1_2", "-cipher", "AES128-GCM-SHA256").stdout
    assert "ALPN protocol: http/1.1" in s_client(server.port, "-alpn", "h2,http/1.1").stdout
    assert "No ALPN negotiated" in s_client(server.resp_port, "-alpn", "h2").stdout


def test_a_client_in_clear_text_is_told_so(server):
    answer = httpx.get(server.url.replace("https", "http") + "/v1/stats")
    assert answer.status_code == 400 and "this port speaks TLS" in answer.json()["error"]["message"]
    with pytest.raises(redis.ResponseError, match="this port speaks TLS"):
        redis.Redis("127.0.0.1", server.resp_port).execute_command("PING")
    done = run("tocsin", "topics", "--server", server.url.replace("https", "http"))
    assert done.returncode == 2 and "https://" in done.stderr
    assert handshakes(server, "plain") == 3
    await_log(server, 'tls_refused from=127.0.0.1')


def test_a_client_of_tls_in_front_of_a_plain_port_is_closed_and_named(start):
    server = start()
    for port in (server.port, server.resp_port):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="x")
    await_log(server, "tls_on_plain_port")
    done = run("tocsin", "topics", "--server", server.url.replace("http", "https"))
    assert done.returncode == 3 and "does that port speak TLS?" in done.stderr, done


def test_a_door_may_stay_in_clear_text(start, authority, files):
    server = start(*flags_of(files, "--http-tls", "off"), ca=authority.ca)
    assert server.url.startswith("http://")
    assert httpx.get(server.url + "/readyz").status_code == 200
    assert redis_of(server).execute_command("PING")


def test_what_cannot_be_used_is_refused_at_the_start(authority, files, tmp_path):
    certificate, key = files
    expired = authority.issue("expired", days=-1)
    other = authority.issue("other")
    readable = tmp_path / "readable.key"
    shutil.copy(key, readable)
    readable.chmod(0o644)
    for certificate_of, key_of, says in [
        (expired[0], expired[1], f"tls.certificate: {expired[0]} expired at "),
        (certificate, other[1], f"tls.key: {other[1]} is not the key of the first certificate in {certificate}"),
        (certificate, tmp_path / "none", f"tls.key: cannot open {tmp_path / 'none'}: No such file"),
        (tmp_path / "none", key, f"tls.certificate: cannot read {tmp_path / 'none'}: No such file"),
        (certificate, readable, f"tls.key: {readable} has mode 0644: other users can reach it; do: chmod 600"),
        (key, key, f"tls.certificate: {key} has no certificate in PEM"),
        (certificate, certificate, "tls.key: "),
    ]:
        done = run("tocsind", "--data-dir", tmp_path / "data", "--http-listen", "127.0.0.1:0",
                   *flags_of((certificate_of, key_of)))
        assert done.returncode == 2 and says in done.stderr, (says, done)
    for words, says in [(["--tls-certificate", certificate], "tls.key is empty"),
                        (["--tls-client-ca", certificate], "tls.certificate is not"),
                        (flags_of(files, "--tls-client-auth", "optional"), "tls.client_ca is not")]:
        done = run("tocsind", "--data-dir", tmp_path / "data", *words)
        assert done.returncode == 2 and says in done.stderr, (says, done)


def test_a_new_certificate_is_used_without_dropping_connections(server, authority, tmp_path):
    first = serial_of(server.port)
    with client_of(server) as client, redis_of(server, single_connection_client=True) as pipe:
        assert client.get("/v1/stats").status_code == 200 and pipe.execute_command("CLIENT", "ID")
        number = pipe.execute_command("CLIENT", "ID")
        replace(tmp_path, authority.issue("renewed"))  # the server looks once a second
        await_log(server, "certificate read again")
        for port in (server.port, server.resp_port):
            end = time.monotonic() + DEADLINE_S
            while serial_of(port) == first:
                assert time.monotonic() < end
        assert client.get("/v1/stats").status_code == 200
        assert pipe.execute_command("CLIENT", "ID") == number

        second = serial_of(server.port)
        (tmp_path / "server.key").write_text("no key")
        server.process.send_signal(signal.SIGHUP)
        await_log(server, "the certificate that was read before stays in force")
        assert serial_of(server.port) == second

        replace(tmp_path, authority.issue("third"))
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + DEADLINE_S
        while serial_of(server.port) == second:
            assert time.monotonic() < end
        assert pipe.execute_command("CLIENT", "ID") == number


def test_a_certificate_that_expires_soon_is_told_of(start, authority, files):
    server = start(*flags_of(files), ca=authority.ca)
    await_log(server, "expires in 1 days")
    expires = float(re.search(r"^tocsin_tls_certificate_expires_seconds (\S+)$",
                              client_of(server).get("/metrics").text, re.M)[1])
    assert 86_400 < expires - time.time() <= 2 * 86_400


def test_the_cookie_of_the_dashboard_is_for_tls_alone(start, authority, files, tmp_path):
    tokens = tmp_path / "tokens"
    token = run("tocsin", "token", "create", "--file", tokens, "--name", "me", "--scope", "admin").stdout.strip()
    server = start(*flags_of(files, "--auth-token-file", tokens), ca=authority.ca)
    with client_of(server) as client:
        answer = client.post("/v1/session", json={"token": token}, headers={"Origin": server.url})
        assert answer.status_code == 200 and "; Secure" in answer.headers["set-cookie"]
        assert client.get("/v1/session").json()["name"] == "me"
        assert client.post("/v1/session", json={"token": token}, headers={"Origin": "https://evil.example"}).status_code == 403
        assert client.get("/").status_code == 200


@pytest.fixture
def guarded(start, authority, files, tmp_path):
    """`make(mode)`: a server whose clients have certificates: CN=worker may consume from shop.*, CN=nobody has no line."""
    tokens = tmp_path / "tokens"
    create = ["token", "create", "--file", tokens, "--name"]
    made = run("tocsin", *create, "worker", "--scope", "consume", "--certificate", "CN=worker", "--topic-prefix", "shop.")
    assert made.returncode == 0, made
    token = run("tocsin", *create, "me", "--scope", "admin").stdout.strip()

    def make(mode):
        flags = flags_of(files, "--tls-client-ca", authority.ca, "--tls-client-auth", mode, "--auth-token-file", tokens)
        server = start(*flags, ca=authority.ca, folder=tmp_path / mode)
        server.token = token
        return server

    return make


def status_of(server, topic, cert=None, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with client_of(server, cert=cert) as client:
        return client.post(f"/v1/topics/{topic}/reserve", json={}, headers=headers).status_code


def ask(server, *words, cert=None, auth=None):
    """The reply to a command, or its code."""
    options = {} if cert is None else {"ssl_certfile": str(cert[0]), "ssl_keyfile": str(cert[1])}
    with redis_of(server, **options) as client:
        try:
            if auth:
                client.execute_command("AUTH", auth)
            return client.execute_command(*words)
        except (redis.ResponseError, redis.AuthenticationError) as error:
            return str(error)


def test_a_certificate_is_an_identity_with_scopes(guarded, authority, tmp_path):
    server = guarded("required")
    worker, nobody = (tuple(str(file) for file in authority.issue(name)) for name in ("worker", "nobody"))
    with client_of(server, cert=worker, headers={"Authorization": f"Bearer {server.token}"}) as client:
        assert client.put("/v1/topics/shop.a", json={}).status_code == 201
        assert client.put("/v1/topics/bank.a", json={}).status_code == 201
    assert status_of(server, "shop.a", worker) == 200
    assert status_of(server, "bank.a", worker) == 403
    assert status_of(server, "shop.a", nobody) == 401
    assert status_of(server, "bank.a", nobody, server.token) == 200
    assert status_of(server, "shop.a", worker, "tocsin_mistyped") == 401
    assert ask(server, "JOB.RESERVE", "shop.a", cert=worker) == []
    assert "scope" in ask(server, "JOB.RESERVE", "bank.a", cert=worker)
    assert "CN=nobody" in ask(server, "JOB.RESERVE", "shop.a", cert=nobody)
    assert ask(server, "JOB.RESERVE", "bank.a", cert=nobody, auth=server.token) == []
    done = command(server, "reserve", "shop.a", "--ca", server.ca, "--cert", worker[0], "--cert-key", worker[1])
    assert done.returncode == 1 and "nothing is due" in done.stderr, done

    # A line that goes takes the rights of connections that are open.
    with client_of(server, cert=worker) as client:
        assert client.post("/v1/topics/shop.a/reserve", json={}).status_code == 200
        listed = run("tocsin", "token", "list", "--file", tmp_path / "tokens", "--json").stdout
        number = next(row["id"] for row in map(json.loads, listed.splitlines()) if row["certificate"] == "CN=worker")
        assert run("tocsin", "token", "revoke", "--file", tmp_path / "tokens", number).returncode == 0
        await_log(server, "access tokens read again")
        end = time.monotonic() + DEADLINE_S
        while client.post("/v1/topics/shop.a/reserve", json={}).status_code != 401:
            assert time.monotonic() < end


def test_a_subject_is_what_the_documented_command_prints(guarded, authority, tmp_path):
    server = guarded("required")
    page = (pathlib.Path(__file__).parents[2] / "docs/tls.md").read_text()
    options = re.search(r"-subject -nameopt (\S+)`", page)[1]
    cert = tuple(str(file) for file in authority.issue("Zürich, 2"))
    printed = subprocess.run(["openssl", "x509", "-in", cert[0], "-noout", "-subject", "-nameopt", options],
                             check=True, capture_output=True, text=True, timeout=DEADLINE_S).stdout
    made = run("tocsin", "token", "create", "--file", tmp_path / "tokens", "--name", "z", "--scope", "admin",
               "--certificate", printed.removeprefix("subject=").strip())
    assert made.returncode == 0, made
    await_log(server, "access tokens read again")
    assert status_of(server, "shop.z", cert) in (200, 404)


def test_a_client_certificate_is_required_or_optional(guarded, authority, tmp_path):
    stranger = tuple(str(file) for file in Authority(tmp_path / "strangers").issue("worker"))
    required, optional = guarded("required"), guarded("optional")
    for refused in ({"token": required.token}, {"cert": stranger}):
        with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
            status_of(required, "shop.a", **refused)
    with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
        status_of(optional, "shop.a", cert=stranger)
    assert status_of(optional, "shop.a") == 401
    assert status_of(optional, "shop.a", token=optional.token) == 200
    done = command(required, "topics", "--ca", required.ca)
    assert done.returncode == 3 and "--cert" in done.stderr, done
    done = command(required, "topics", "--ca", required.ca, "--cert", stranger[0], "--cert-key", stranger[1])
    assert done.returncode == 3 and "client certificate" in done.stderr, done


def test_the_command_checks_the_server(server, start, authority, tmp_path):
    assert command(server, "submit", "t", "x", "--ca", server.ca).returncode == 0
    assert command(server, "topics", env={"TOCSIN_CA": server.ca}).returncode == 0
    unknown = command(server, "topics")
    assert unknown.returncode == 3 and "--ca" in unknown.stderr, unknown
    insecure = command(server, "topics", "--insecure")
    assert insecure.returncode == 0 and "warning: --insecure" in insecure.stderr, insecure
    wrong = run("tocsin", "topics", "--server", f"https://localhost:{server.port}", "--ca", server.ca)
    assert wrong.returncode == 3 and "hostname mismatch" in wrong.stderr, wrong
    for words, says in [(["--ca", tmp_path / "none"], "--ca: "), (["--cert", server.ca], "--cert-key is missing")]:
        done = command(server, "topics", *words)
        assert done.returncode == 2 and says in done.stderr, done
    done = run("tocsin", "topics", "--server", "http://127.0.0.1:1", "--ca", server.ca)
    assert done.returncode == 2 and "--ca is for a --server that begins with https://" in done.stderr, done


def test_the_worker_takes_jobs_over_tls(server):
    assert command(server, "submit", "t", "of the worker", "--ca", server.ca).returncode == 0
    worker = command(server, "worker", "t", "--once", "--ca", server.ca, "--", "cat")
    assert worker.returncode == 0 and worker.stdout == "of the worker", worker


def test_a_server_that_stops_answers_first(server):
    """A reserve that waits is answered empty, an idle connection is closed, and both are told that nothing follows."""
    context = ssl.create_default_context(cafile=server.ca)
    with contextlib.ExitStack() as stack:
        def connect(port):
            plain = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
            return stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False))

        idle, waiting, resp = connect(server.port), connect(server.port), connect(server.resp_port)
        body = b'{"wait_ms":30000}'
        waiting.sendall(b"POST /v1/topics/t/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        resp.sendall(pack("JOB.RESERVE", "t", "WAIT", 30_000))
        with client_of(server) as client:
            client.put("/v1/topics/t", json={})
            end = time.monotonic() + DEADLINE_S
            while client.get("/metrics").text.count("_parked 1\n") < 2:
                assert time.monotonic() < end
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert idle.recv(1) == b""
        answer = b""
        while piece := waiting.recv(4096):
            answer += piece
        assert b'"jobs":[]' in answer
        assert resp.recv(100) in (b"*0\r\n", b"*-1\r\n")
        assert resp.recv(1) == b""
        stopping.join(DEADLINE_S)
    assert server.process.returncode == 0

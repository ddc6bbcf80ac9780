"""The programs in examples/outbox, against a real server and a real MariaDB."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import DEADLINE_S, ENVIRONMENT, ROOT, run
from mysql_server import PASSWORD, USER

DRIVER = pathlib.Path("/usr/share/java/mariadb-java-client.jar")  # Debian's libmariadb-java
PROGRAMS = {
    "orders.py": ["A-1 and A-2 are placed", "A-3 is rolled back", "A-1 is paid", "delivered: close A-2",
                  "A-1 paid, A-2 closed, nothing of A-3"],
    "Orders.java": ["A-1 and A-2 are placed", "A-3 is rolled back", "A-1 is paid", "delivered: close A-2",
                    "nothing else is delivered"],
}


def run_example(name, outbox, url):
    command = ["/usr/bin/python3", "-B"]
    if name.endswith(".java"):
        if not shutil.which("java") or not DRIVER.exists():
            pytest.skip("no java, or no MariaDB driver for it (Debian: default-jdk-headless, libmariadb-java)")
        command = ["java", "-cp", DRIVER]
    environment = {"TOCSIN_SERVER": url, "MYSQL_HOST": outbox.mysql.host, "MYSQL_PORT": str(outbox.mysql.port), "MYSQL_USER": USER,
                   "MYSQL_PASSWORD": PASSWORD, "MYSQL_DATABASE": outbox.database}
    return subprocess.run([*command, ROOT / "examples/outbox" / name], capture_output=True, text=True, timeout=3 * DEADLINE_S,
                          env=ENVIRONMENT | environment)


def test_every_example_is_here_and_in_the_readme():
    programs = {path.name for path in (ROOT / "examples/outbox").iterdir() if path.is_file()}
    assert programs == set(PROGRAMS)
    readme = (ROOT / "examples/README.md").read_text()
    assert [name for name in PROGRAMS if f"| [outbox/{name}](outbox/{name}) |" not in readme] == []
    assert os.access(ROOT / "examples/outbox/orders.py", os.X_OK)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_does_what_it_says(start, outbox, client, name):
    server = start(*outbox.flags())
    done = run_example(name, outbox, server.url)
    assert (done.returncode, done.stdout.splitlines()) == (0, PROGRAMS[name]), done.stdout + done.stderr
    assert client.get(server.url + "/v1/topics").json() == {"topics": []}, "it leaves something behind"
    assert outbox.ask("SELECT COUNT(*) FROM tocsin_outbox") == ((0,),)


def test_the_schema_of_the_documents_is_the_one_of_the_program():
    """Every column that docs/mysql.md names is in the SQL, and the other way round."""
    printed = run("tocsin", "mysql", "schema").stdout
    table = printed.split("CREATE TABLE IF NOT EXISTS tocsin_outbox (")[1].split("INDEX")[0]
    columns = {line.split()[0] for line in table.splitlines() if line.strip()}
    page = (ROOT / "docs/mysql.md").read_text()
    assert [column for column in columns if f"`{column}`" not in page] == []

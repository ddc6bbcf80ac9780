"""A real MariaDB for end-to-end tests: Debian's mariadbd with its data in a folder of its own, and what an application
does with it. The package's service is not used."""

import itertools
import os
import shutil
import subprocess

from programs import LOOPBACK, Program, free_port, wait_for

INSTALL_S = 120
DATABASE, USER, PASSWORD = "shop", "tocsin", "wire-9f2e-horse"
_numbers = itertools.count()


def why_not():
    """None where MariaDB can be run and used; otherwise the reason to skip."""
    for name in ("mariadbd", "mariadb-install-db"):
        if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin"):
            return f"the program {name} is not installed (Debian: mariadb-server)"
    try:
        import pymysql  # noqa: F401
    except ImportError:
        return "the Python module pymysql is not installed (Debian: python3-pymysql)"
    return None


class MySqlServer(Program):
    """Ready when the constructor returns. `authority` (certificates.py): it speaks TLS too."""

    def __init__(self, folder, authority=None):
        super().__init__([], folder)
        self.password_file = self.folder / "password"
        self.password_file.write_text(PASSWORD + "\n")
        self.password_file.chmod(0o600)
        self.authority = authority
        self.settings = self.folder / "my.cnf"
        self.arguments += [shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin"), f"--defaults-file={self.settings}"]
        self._configure()
        subprocess.run(["mariadb-install-db", f"--defaults-file={self.settings}", "--auth-root-authentication-method=normal",
                        "--skip-test-db"], check=True, capture_output=True, timeout=INSTALL_S)
        self.start_on_free_port()

    def _configure(self):
        self.port = free_port()
        lines = [
            "[mariadbd]",
            *(["user = root"] if os.geteuid() == 0 else []),
            f"datadir = {self.folder}/data",
            f"tmpdir = {self.folder}",
            f"socket = {self.folder}/socket",
            f"pid-file = {self.folder}/pid",
            f"bind-address = {LOOPBACK.host}",
            f"port = {self.port}",
            f"init-file = {self.folder}/init.sql",
            "skip-name-resolve",
            "innodb_buffer_pool_size = 64M",
            "innodb_log_file_size = 16M",
            "max_allowed_packet = 32M",
        ]
        if self.authority:
            certificate, key = self.authority.issue("mysql")
            lines += [f"ssl-ca = {self.authority.ca}", f"ssl-cert = {certificate}", f"ssl-key = {key}"]
        self.settings.write_text("\n".join([*lines, ""]))
        (self.folder / "init.sql").write_text(
            f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
            f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
        )

    def launch(self):
        self.log.write_text("")  # what an earlier run has said
        super().launch()

    def _ready(self):
        return "ready for connections" in self.output()

    def url(self, database=DATABASE, user=USER, scheme="mysql"):
        return f"{scheme}://{user}@{self.host}:{self.port}/{database}"

    def flags(self, database=DATABASE):
        return ["--outbox-url", self.url(database), "--outbox-password-file", self.password_file]

    def connect(self, database=DATABASE, **settings):
        """A connection of an application. Transactions end with commit() or rollback()."""
        import pymysql

        return pymysql.connect(host=self.host, port=self.port, user=USER, password=PASSWORD, database=database, charset="utf8mb4",
                               **settings)

    def ask(self, sql, *values, database=DATABASE):
        """Runs one statement in a transaction of its own; its rows."""
        with self.connect(database, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall()


class Outbox:
    """A database with an application's table and, once migrated, an outbox."""

    def __init__(self, mysql):
        self.mysql, self.database = mysql, f"shop{next(_numbers)}"

    def __enter__(self):
        self.mysql.ask(f"CREATE DATABASE {self.database}")
        self.ask("CREATE TABLE orders (id VARCHAR(64) PRIMARY KEY) ENGINE=InnoDB")
        return self

    def __exit__(self, *_):
        if not self.mysql.running:
            self.mysql.start()
        self.mysql.ask(f"DROP DATABASE {self.database}")

    def url(self, **parts):
        return self.mysql.url(self.database, **parts)

    def flags(self):
        return self.mysql.flags(self.database)

    def connect(self, **settings):
        return self.mysql.connect(self.database, **settings)

    def ask(self, sql, *values):
        return self.mysql.ask(sql, *values, database=self.database)

    def insert(self, **columns):
        """One row in a transaction of its own."""
        with self.connect() as connection:
            add(connection, **columns)
            connection.commit()

    def waiting(self):
        """How many rows are still to be picked up."""
        return self.ask("SELECT COUNT(*) FROM tocsin_outbox WHERE state = 0")[0][0]

    def refused(self):
        """(id, error) of the rows that were refused."""
        return list(self.ask("SELECT id, error FROM tocsin_outbox WHERE state = 1 ORDER BY id"))

    def await_empty(self, within_s=30):
        wait_for(lambda: self.waiting() == 0, within_s, lambda: f"an empty outbox, of which {self.waiting()} rows are left,")


def add(connection, **columns):
    """One row within the transaction that is under way."""
    names = ", ".join(columns)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO tocsin_outbox ({names}) VALUES ({', '.join(['%s'] * len(columns))})", list(columns.values()))


def add_many(connection, rows):
    """Rows of (topic, job_id, payload, delay_ms) within the transaction that is under way."""
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO tocsin_outbox (topic, job_id, payload, delay_ms) VALUES (%s, %s, %s, %s)", rows)

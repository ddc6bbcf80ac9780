#!/usr/bin/python3
"""Plants what check_sources.sh and check_comments.py forbid in a small tree, and proves that they see it, and nothing else."""

import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check_sources.sh")
WIDE = "x" * 100


class CheckSources(unittest.TestCase):
    def check(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("src", "tests", "bench", "tools"):
                (pathlib.Path(folder) / name).mkdir()
            (pathlib.Path(folder) / "CMakeLists.txt").write_text("project(tocsin VERSION 1.2.3 LANGUAGES CXX)\n")
            (pathlib.Path(folder) / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased (1.2.3)\n\n## 1.2.2\n")
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            done = subprocess.run([CHECK, folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(bool(done.returncode), bool(done.stdout), done)
        return done.stdout

    def assert_found(self, path, text, what):
        self.assertIn(what, self.check(path, text), text)

    def assert_fine(self, path, text):
        self.assertEqual(self.check(path, text), "", text)

    def test_long_files(self):
        self.assert_fine("src/core/a.cc", "\n" * 600)
        self.assert_found("src/core/a.cc", "\n" * 601, "src/core/a.cc   <- over 600 lines")

    def test_long_lua_functions(self):
        path = "src/storage/redis/scripts/a.lua"
        self.assert_fine(path, "local function f()\n" + "  x()\n" * 68 + "end\n")
        self.assert_found(path, "local function f()\n" + "  x()\n" * 69 + "end\n", "a.lua:1   <- a function over 70")
        self.assert_found(path, "x()\n" * 71, "a.lua:71   <- a function over 70")

    def test_sleeps_in_cpp(self):
        sleep = "  std::this_thread::sleep_for(1ms);\n"
        self.assert_fine("src/cli/import.cc", sleep)
        for path in ("src/core/a_test.cc", "src/net/socket_test_site.h", "src/core/test_node.h", "tests/real/ask.cc",
                     "src/spi/contract/store_amend.cc"):
            self.assert_found(path, sleep, f"{path}:1:")
        for other in ("  usleep(5);\n", "  ::poll(nullptr, 0, 5);\n"):
            self.assert_found("src/core/a_test.cc", other, "move a clock")
        self.assert_fine("src/core/a_test.cc", "  poll(&polled, 1, 5);\n  done.wait_for(lock, 5s, ready);\n")

    def test_sleeps_in_python(self):
        for line in ("time.sleep(1)", "    sleep(1)", "await asyncio.sleep(1)", "from time import sleep",
                     "threading.Event().wait(1)", "self.pause.wait(1)", "select.select([], [], [], 1)"):
            self.assert_found("tests/e2e/test_a.py", line + "\n", "tests/e2e/test_a.py:1:")
            self.assert_fine("tests/e2e/programs.py", line + "\n")
        self.assert_fine("tests/e2e/test_a.py", 'wait_for(ready)\nstopped.wait(1)\nrun("sleep 600")\nselect([fd], [], [], 1)\n')

    def test_version(self):
        self.assert_fine("CHANGELOG.md", "## 1.2.3 - 2027-01-01\n")
        self.assert_fine("CHANGELOG.md", "## [1.2.3]\n")
        self.assert_found("CHANGELOG.md", "## 1.2.4\n## 1.2.3\n", "must name version 1.2.3")
        self.assert_found("CHANGELOG.md", "## 11.2.3\n", "must name version 1.2.3")

    def test_comments_behind_code(self):
        self.assert_fine("src/core/a.h", "int a = 1;  // one\nint b = 2;  // two\n// three\nint c = 3;\n")
        self.assert_found("src/core/a.h", "int a = 1;  // one\n            // and more\n", "a.h:1: a comment behind code")
        self.assert_found("src/core/a.h", "int a =\n    1;  // one\n", "a.h:1: code broken in two")
        self.assert_fine("src/core/a.h", f'auto a_long_enough_name =\n    "{WIDE}";  // x\n')
        self.assert_fine("src/core/a.h", 'auto a = "http://x";\n               // not the column of a comment\n')

    def test_paragraphs(self):
        self.assert_found("src/core/a.h", f"// - {WIDE}\n// that\n//   goes on\n", "a.h:2: a few words alone")
        self.assert_fine("src/core/a.h", f"// - {WIDE}\n//   that.\n// - goes on\n")
        self.assert_found("src/core/a.h", f"// {WIDE} {WIDE}\n", "a.h:1: a comment beyond column 120")
        self.assert_fine("src/core/a.h", f'auto a = "{WIDE}{WIDE}";\n')


if __name__ == "__main__":
    unittest.main()

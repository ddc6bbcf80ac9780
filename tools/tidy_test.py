#!/usr/bin/python3
"""Checks which files tidy.py --changed chooses, in small repositories."""

import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import tidy


class Changed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patched = unittest.mock.patch.object(tidy, "ROOT", self.root)
        patched.start()
        self.addCleanup(patched.stop)
        tidy.includes_of.cache_clear()
        tidy.reached_from.cache_clear()

    def git(self, *arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        subprocess.run(["git", "-C", self.root, *identity, *arguments], check=True, capture_output=True)

    def write(self, *paths, text="\n"):
        for path in paths:
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def commit(self, *paths, text="\n"):
        self.write(*paths, text=text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")

    def chosen(self):
        entries = [{"file": str(file)} for file in sorted(self.root.glob("src/**/*.cc"))]
        return [pathlib.Path(entry["file"]).name for entry in tidy.only_changed(entries)]

    def test_without_a_repository_nothing_has_changed(self):
        self.write("src/a.cc")
        self.assertEqual(self.chosen(), [])

    def test_without_a_branch_the_last_commits_count_newest_first(self):
        self.git("init", "-q")
        self.commit("src/old.cc")
        for i in range(tidy.LAST_COMMITS):
            self.commit(f"src/{i}.cc", "README.md")
        self.assertEqual(self.chosen(), [f"{i}.cc" for i in reversed(range(tidy.LAST_COMMITS))])

    def test_the_first_commit_has_no_base(self):
        self.git("init", "-q")
        self.commit("src/a.cc")
        self.assertEqual(self.chosen(), [])
        self.write("src/a.cc", text="// not committed\n")
        self.assertEqual(self.chosen(), ["a.cc"])

    def test_a_branch_is_compared_with_the_main_one(self):
        self.git("init", "-q")
        self.commit("src/a.cc", "src/b.cc")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.commit("src/b.cc", text="// changed\n")
        self.write("src/new.cc")
        self.assertEqual(self.chosen(), ["new.cc", "b.cc"])

    def test_a_header_is_seen_through_a_source_file(self):
        self.git("init", "-q")
        self.commit("src/a.h", "src/a.cc", "src/only.h", "src/none.h")
        self.commit("src/b.cc", "src/c.cc", text='#include "only.h"\n')
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.commit("src/a.h", "src/only.h", "src/none.h", text="// changed\n")
        self.assertEqual(self.chosen(), ["a.cc", "b.cc"])


if __name__ == "__main__":
    unittest.main()

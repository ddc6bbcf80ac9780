#!/usr/bin/python3
"""Plants mistakes in a small tree of documents and proves that check_docs.py sees each of them, and nothing else."""

import pathlib
import tempfile
import unittest

import check_docs

README = "make run\nmake test\n"


class CheckDocs(unittest.TestCase):
    def check(self, pages):
        files = {"README.md": README, "src/core/service.h": "", "src/core/service_test.cc": "TEST(Service, NeverEarly)", **pages}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_docs.Documents(root, sorted(files)).problems())

    def assert_good(self, **pages):
        self.assertEqual(self.check({f"docs/{name}.md": text for name, text in pages.items()}), [])

    def assert_bad(self, page, text, what):
        found = self.check({page: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(page, found[0])
        self.assertIn(what, found[0])

    def test_the_readme(self):
        self.assert_bad("README.md", README + "\n" * 119, "121 lines")
        self.assert_bad("README.md", "make run\n" + "\n" * 30 + "make test\n", "make test")

    def test_links(self):
        self.assert_good(a="[b](b.md), [c](../README.md#x), [d](#e), [f](https://example.org)\n```\n[g](h)\n```\n", b="")
        self.assert_bad("docs/a.md", "[b](b.md)", "b.md leads nowhere")

    def test_names_of_files(self):
        self.assert_good(a="`src/core`, `src/core/`, `src/core/{service,service_test}.*`, `src/<folder>/service.h`, `service.h`")
        self.assert_good(a="`build/release/bin/x.sh`, `/etc/x.toml`, `x.h y`, `a.b`\n```\n`src/nothing`\n```\n")
        self.assert_bad("CONTRIBUTING.md", "see `src/core/gone.h`", "no src/core/gone.h")
        self.assert_bad("CONTRIBUTING.md", "see `src/core/{service,gone}.h`", "no src/core/gone.h")
        self.assert_bad("CONTRIBUTING.md", "see `src/<folder>/gone.h`", "no src/<folder>/gone.h")
        self.assert_bad("docs/a.md", "see `gone.cc`", "no file called gone.cc")

    def test_cells(self):
        cell = "x" * 121
        self.assert_bad("docs/a.md", f"| a | {cell} |", "docs/a.md:1: a cell of 121")
        self.assert_good(a=f"| {cell[1:]} | [{cell[1:]}](a.md) |\n```\n| {cell} |\n```\n")
        self.assert_good(a=f"<!-- x:begin -->\n| {cell} |\n<!-- x:end -->", cli=f"| {cell} |")

    def test_words(self):
        self.assert_bad("docs/a.md", "It begins\nanew.", 'docs/a.md:2: "anew": write "again"')
        self.assert_good(a="`anew`\n```\nanew\n```\n", cli="anew")

    def test_tests(self):
        self.assert_good(reliability="`Service.NeverEarly`, `NeverEarly`, `Never*`")
        self.assert_bad("docs/reliability.md", "`Service.NeverLate`", "no test Service.NeverLate")
        self.assert_bad("docs/reliability.md", "`test_that_is_gone`", "no test test_that_is_gone")

    def test_threads(self):
        source = {"src/core/a.cc": 'pthread_setname_np(pthread_self(), "tocsin-a");'}
        self.assertEqual(self.check({**source, "docs/architecture.md": "| `tocsin-a` | `src/core` |"}), [])
        self.assertEqual(len(self.check({**source, "docs/architecture.md": "`src/core`"})), 1)

    def test_folders(self):
        self.assert_good(architecture="`src/core/service.h`")
        self.assert_bad("docs/architecture.md", "", "the folder src/core has no row")


if __name__ == "__main__":
    unittest.main()

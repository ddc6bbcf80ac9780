#!/usr/bin/python3
"""Checks count_tests.py: what it counts, and that nothing which failed gets lost."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

COUNT = pathlib.Path(__file__).with_name("count_tests.py")
PASSED = '<testcase name="good" status="run"/>'
FAILED = '<testcase name="bad" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="away"><skipped message="/a/test.cc:7&#x0A;no broker here&#x0A;"/></testcase>'
SKIPPED_IN_CTEST = (
    '<testcase name="A.B" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
    "<system-out>[ RUN ]\n/a/test.cc:9: Skipped\nno namespaces here\n[  SKIPPED ]</system-out></testcase>"
)
LOST = '<testcase name="missing" status="notrun"/>'


class CountTest(unittest.TestCase):
    def count(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, cases in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(cases if name.endswith(".count") else f"<testsuite>{''.join(cases)}</testsuite>")
            done = subprocess.run([sys.executable, COUNT, folder], capture_output=True, text=True, check=False)
        *above, total = done.stdout.splitlines()
        return total, done.returncode, above

    def test_adds_up_reports_and_counts(self):
        files = {"a.xml": [PASSED, PASSED, SKIPPED, SKIPPED_IN_CTEST], "b.count": "3 0 0"}
        skips = ["skipped 1: no broker here", "skipped 1: no namespaces here"]
        self.assertEqual(self.count(files), ("5 passed, 0 failed, 2 skipped", 0, skips))

    def test_fails_for_a_failure_a_lost_test_a_broken_report_and_for_nothing(self):
        self.assertEqual(self.count({"a.xml": [PASSED, FAILED]})[:2], ("1 passed, 1 failed, 0 skipped", 1))
        self.assertEqual(self.count({"a.xml": [PASSED, LOST]})[:2], ("1 passed, 1 failed, 0 skipped", 1))
        self.assertEqual(self.count({"a.xml": [PASSED], "b.xml": ["<"]})[:2], ("1 passed, 1 failed, 0 skipped", 1))
        self.assertEqual(self.count({})[:2], ("0 passed, 0 failed, 0 skipped", 1))

    def test_counts_the_tests_of_a_program_in_its_place(self):
        program = '<testcase name="x_test" status="run"/>'
        own = {"unit.programs/x_test.xml": [PASSED, PASSED, SKIPPED]}
        self.assertEqual(self.count({"unit.xml": [program], **own})[:2], ("2 passed, 0 failed, 1 skipped", 0))
        own = {"unit.programs/x_test.xml": [PASSED, FAILED]}
        failed = '<testcase name="x_test" status="fail"><failure message=""/></testcase>'
        self.assertEqual(self.count({"unit.xml": [failed], **own})[:2], ("1 passed, 1 failed, 0 skipped", 1))

    def test_a_program_that_fails_after_its_tests_has_failed(self):
        failed = '<testcase name="x_test" status="fail"><failure message=""/></testcase>'
        own = {"unit.programs/x_test.xml": [PASSED]}
        self.assertEqual(self.count({"unit.xml": [failed], **own})[:2], ("1 passed, 1 failed, 0 skipped", 1))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""Plants violations in a small tree and proves that check_layers.py sees each of them, and nothing else."""

import pathlib
import tempfile
import unittest
import unittest.mock

import check_layers


class CheckLayers(unittest.TestCase):
    def check(self, path, include):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(f"#pragma once\n#include {include}\n")
            return list(check_layers.violations(pathlib.Path(folder)))

    def assert_allowed(self, path, include):
        self.assertEqual(self.check(path, include), [])

    def assert_forbidden(self, path, include, why):
        found = self.check(path, include)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"{path}:2: ", found[0])
        self.assertIn(why, found[0])

    def test_what_the_table_allows(self):
        self.assert_allowed("core/service.cc", '"spi/store.h"')
        self.assert_allowed("core/service.cc", '"core/slot.h"')
        self.assert_allowed("storage/journal/store.cc", '"storage/journal/wheel.h"')
        self.assert_allowed("storage/redis/store.cc", '"clients/redis/client.h"')
        self.assert_allowed("server/main.cc", '"storage/journal/store.h"')
        self.assert_allowed("frontend/http/jobs.cc", '"spi/store.h"')
        self.assert_allowed("base/log.cc", "<spdlog/spdlog.h>")
        self.assert_allowed("base/file.cc", "<sys/stat.h>")

    def test_upward_includes(self):
        self.assert_forbidden("base/id.h", '"model/job.h"', "base may include nothing; not model")
        self.assert_forbidden("model/job.h", '"core/service.h"', "not core")
        self.assert_forbidden("core/service.cc", '"storage/journal/store.h"', "not storage")
        self.assert_forbidden("frontend/http/jobs.cc", '"storage/journal/store.h"', "not storage")
        self.assert_forbidden("core/service.cc", '"server/main.h"', "nothing includes server")

    def test_siblings(self):
        self.assert_forbidden("storage/redis/store.cc", '"storage/journal/store.h"', "siblings")
        self.assert_forbidden("frontend/resp/a.cc", '"frontend/http/text.h"', "siblings")

    def test_libraries(self):
        self.assert_allowed("config/toml_file.cc", "<toml.hpp>")
        self.assert_forbidden("server/main.cc", "<toml.hpp>", "only config")
        self.assert_allowed("net/loop.cc", "<boost/asio/io_context.hpp>")
        self.assert_forbidden("core/service.cc", "<boost/asio/io_context.hpp>", "only")
        self.assert_forbidden("storage/redis/store.cc", "<hiredis/read.h>", "only clients/redis")
        self.assert_forbidden("base/id.cc", "<boost/json.hpp>", "base may include the standard library")
        self.assert_forbidden("core/service.cc", "<gtest/gtest.h>", "belong in tests")
        self.assert_allowed("core/service_test.cc", "<gtest/gtest.h>")
        self.assert_allowed("spi/contract/store_contract.h", "<gtest/gtest.h>")

    def test_real_servers_and_simulations_are_for_tests(self):
        self.assert_allowed("clients/redis/client_test.cc", '"real/redis_servers.h"')
        self.assert_allowed("metrics/scraper_test.cc", '"sim/manual_loop.h"')
        self.assert_forbidden("metrics/scraper.cc", '"sim/manual_loop.h"', "belongs in tests")
        self.assert_forbidden("clients/redis/client.cc", '"real/redis_servers.h"', "belongs in tests")
        self.assert_forbidden("server/main.cc", '"real/redis_servers.h"', "belongs in tests")

    def test_contracts_are_for_tests(self):
        self.assert_allowed("core/test_node.h", '"spi/contract/memory_store.h"')
        self.assert_forbidden("core/service.cc", '"spi/contract/memory_store.h"', "belong in tests")

    def test_tests_may_run_on_the_loop_of_the_server(self):
        self.assert_allowed("coordination/redis/coordinator_test.cc", '"net/asio_loop.h"')
        self.assert_forbidden("coordination/redis/coordinator.cc", '"net/asio_loop.h"', "not net")
        self.assert_forbidden("coordination/redis/coordinator_test.cc", '"net/listener.h"', "not net")

    def test_the_command_line_may_inspect_a_journal_but_no_more(self):
        self.assert_allowed("cli/journal.cc", '"storage/journal/inspect.h"')
        self.assert_forbidden("cli/journal.cc", '"storage/journal/store.h"', "not storage")

    def test_headers_are_named_from_src(self):
        self.assert_forbidden("core/service.cc", '"slot.h"', "by their path from src/")

    def test_unknown_folders(self):
        self.assertIn("the folder common is not in the table", self.check("common/util.h", "<string>")[0])

    def test_rows_that_nothing_uses(self):
        src = pathlib.Path(__file__).resolve().parent.parent / "src"
        self.assertEqual(list(check_layers.stale_rows(src)), [])
        with (
            unittest.mock.patch.dict(check_layers.LAYERS, {"core": {"common"}}),
            unittest.mock.patch.dict(check_layers.LIBRARIES, {"rocksdb/": {"storage/journal"}}),
            unittest.mock.patch.object(check_layers, "EXCEPTIONS", {("cli", "core/none.h")}),
        ):
            stale = "\n".join(check_layers.stale_rows(src))
        for name in ("folder common", "library rocksdb/", "header core/none.h"):
            self.assertIn(name, stale)


if __name__ == "__main__":
    unittest.main()

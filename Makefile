# Every target first installs the Debian packages that it needs and that are missing. The work is done in tools/.
.PHONY: help run cluster build package test torture torture-cluster turns bench bench-full format lint docs clean

help:
	@echo "make run      build the server and serve on the embedded store (ARGS=\"--http-listen ...\" for options)"
	@echo "make cluster  three nodes on a Redis Cluster and ZooKeeper, all on this machine, until Ctrl-C"
	@echo "make build    the programs, in build/release/bin/: tocsind (server) and tocsin (command line)"
	@echo "make package  the Debian packages, in build/package/, from the programs of make build (REVISION=2 for another build of a version)"
	@echo "make test     all tests: unit and contract (ASan, UBSan), short fuzzing, concurrency (TSan), end to end"
	@echo "make torture  kill -9, 200 times on each of two set-ups, among other faults too, and what else takes long (about 20 minutes)"
	@echo "make torture-cluster  kills, stops and cuts nodes, Redis and ZooKeeper under load (MINUTES=5 each of four, SEED=n)"
	@echo "make turns    how long a shard is kept by one handler, at most, under the loads that once held one up (3 minutes)"
	@echo "make bench    Tocsin and its peers side by side, in about eleven minutes; missing peers are installed"
	@echo "make bench-full  the same with every peer and size, medians of 3, in an hour and a half"
	@echo "make format   format the code"
	@echo "make lint     formatting, layers, sizes, clang-tidy"
	@echo "make docs     write the pages that are generated from tables"
	@echo "make clean    remove build/"

run: build
	@exec build/release/bin/tocsind $(ARGS)

cluster: build
	@tools/install.sh cluster
	@exec deploy/local-cluster.sh $(ARGS)

build:
	@tools/install.sh build
	@tools/build.sh release tocsind tocsin

package: build
	@tools/install.sh package
	@REVISION="$(REVISION)" tools/package.sh

test:
	@tools/install.sh build package test
	@tools/test.sh

torture:
	@tools/install.sh build test
	@tools/torture.sh

torture-cluster:
	@tools/install.sh build test
	@MINUTES="$(MINUTES)" SEED="$(SEED)" tools/torture_cluster.sh

turns:
	@tools/install.sh build test
	@tools/turns.sh

bench:
	@tools/install.sh build
	@tools/bench.sh short $(ARGS)

bench-full:
	@tools/install.sh build
	@tools/bench.sh full $(ARGS)

format:
	@tools/install.sh lint
	@tools/format.sh

lint:
	@tools/install.sh build lint
	@tools/lint.sh

docs: build
	@tools/generate_docs.sh

clean:
	rm -rf build

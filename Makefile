# make installs the requirements of a target into .venv/ first, and again only when pyproject.toml, the kernel's sources
# or the compiler change. `make demo` installs only kseg; other targets add their own requirements. Without a compiler,
# everything works on the kernel's Python twin.

PYTHON :=# the Python that makes .venv/; by default the first suitable one
VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
KERNEL := $(VENV)/kernel# a file with the name of the built kernel; kseg is installed
DEVELOPMENT := $(VENV)/development# a file: kseg and the libraries for tests and checks are installed
KERNEL_SOURCES := kseg/kernel/fast.pyx $(wildcard kseg/kernel/fast/*.pxi) kseg/kernel/carve.h kseg/kernel/crc.h kseg/kernel/ascii.h kseg/kernel/keyed.h \
    setup.py kseg/kernel/declarations.py $(wildcard kseg/kernel/*contract.py) kseg/kernel/entry_points.py kseg/formats/header_fields.py
PEERS := $(VENV)/peers# a file: libraries for comparisons are installed
DIST := $(VENV)/dist# a file: tools that check wheels are installed
BROWSER := $(VENV)/browser# a file: libraries that drive a browser are installed
SITE := $(VENV)/site# a file: libraries that make the site are installed
SPARK := $(VENV)/spark# a file: Spark and the libraries for its tests are installed
OLDER_SPARK := $(VENV)/spark-4.1/installed# a file: a Spark for the connectors of Delta and Iceberg
EMULATORS := $(VENV)/emulators# a file: the emulator of Azure's store is installed
CATALOGS := $(VENV)/catalogs# a file: pyiceberg's libraries for catalogs are installed
RELEASE := 4.3.1
TESTS :=
FUZZ :=# other options of tests/fuzz

# CI demands the compiled kernel by KSEG_KERNEL=fast; otherwise the tests use the built kernel. They start kseg hundreds
# of times, so Python keeps its compiled modules even if the environment forbids it.
PYTEST = PYTHONDONTWRITEBYTECODE= KSEG_KERNEL="$${KSEG_KERNEL:-$$(cat $(KERNEL))}" $(VENV_PYTHON) -m pytest
LOCAL := not kafka and not cluster and not spark and not go and not browser and not tmux and not stores and not lake and not disks
PATIENT := --timeout 3600 -o faulthandler_timeout=4000# brokers and clusters are slow

.PHONY: help demo demo-spark test test-asan test-install test-faults fuzz fuzz-serve load-serve lint check docs site test-kafka test-browser test-go \
    test-exhaustive test-one test-hours test-restore test-lake test-pipeline test-unwrap test-start test-spark test-cluster test-stores test-carve test-carve-live \
    bench bench-start bench-carve bench-spark bench-serve bench-restore golden build release test-release clean FORCE
.DELETE_ON_ERROR:

help: ## Print this list
	@echo "kseg reads, checks and repairs Apache Kafka's files on disk."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'make installs everything into $(VENV)/. You need Python 3.11 or later and a package index, and gcc or clang for speed.'

# --- what users see --------------------------------------------------------------------------------------------------

SAMPLE := golden/docs/test-1-0
DAMAGED := golden/damaged/210-wiped-batch
run = echo && echo '$$ kseg $(2)$(if $(3), | $(3))' && (cd $(1) && $(abspath $(VENV)/bin/kseg) $(2) $(if $(3),| $(3)))

demo: $(KERNEL) ## Install kseg, and dump a real segment, its index, and a damaged segment
	@echo 'A segment of the topic "test", as in the Kafka documentation ($(SAMPLE)):'
	@$(call run,$(SAMPLE),dump --print-data-log 00000000000000203000.log,head -8)
	@echo; echo 'Its offset index:'
	@$(call run,$(SAMPLE),dump 00000000000000203000.index,head -5)
	@echo; echo 'A segment with a hole instead of a batch ($(DAMAGED)): kseg also reads the batches after the hole.'
	@$(call run,$(DAMAGED),dump --shallow $(notdir $(wildcard $(DAMAGED)/*.log))) || true
	@echo; echo 'Next, paste these lines; README.md and docs/start/first-minutes.md continue from there:'
	@echo '  export PATH="$$PWD/$(VENV)/bin:$$PATH"'
	@echo '  cd golden'
	@echo '  kseg ls logs/4.3.1'
	@echo '  kseg help'

demo-spark: $(SPARK) ## Export a topic to Parquet by Spark on this machine, and show its table and its report
	@$(call run,golden/logs/4.3.1,spark-export --master 'local[2]' --topic compacted-txn --overwrite . $(abspath build)/demo-spark)
	@echo; echo 'The table (build/demo-spark/topic=compacted-txn), its first rows:'
	@$(VENV_PYTHON) tools/show_table.py build/demo-spark
	@echo; echo 'The report (build/demo-spark/_kseg/report.json):'
	@cat build/demo-spark/_kseg/report.json
	@echo; echo 'More: $(VENV)/bin/kseg spark-export --help, docs/how-to/spark.md'

# --- what developers use ---------------------------------------------------------------------------------------------

test: $(DEVELOPMENT) ## Run the tests, on both kernels; TESTS='-k words' chooses some
	@grep -q fast $(KERNEL) || $(call no_kernel)
	$(PYTEST) -n auto --dist worksteal $(TESTS)

# A copy of the sources with a kernel that AddressSanitizer and UBSan watch: each problem ends the process.
WATCHED := build/watched
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
watched = cd $(WATCHED) && PYTHONDONTWRITEBYTECODE= LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc KSEG_KERNEL=fast \
    $(abspath $(VENV_PYTHON))

$(WATCHED)-kernel: $(KERNEL) $(DEVELOPMENT) Makefile
	rm -rf $@ build/temp* && mkdir -p $@
	CFLAGS='$(SANITIZE) -fno-omit-frame-pointer -g -O1' LDFLAGS='$(SANITIZE)' \
	    $(VENV_PYTHON) -W ignore setup.py -q build_ext --force --build-lib $@ --build-temp $@

$(WATCHED): $(WATCHED)-kernel FORCE
	rm -rf $@ && mkdir $@
	cp -r kseg tests pyproject.toml README.md LICENSE NOTICE $@
	ln -s ../../golden ../../docs ../../tools $@
	rm -f $@/kseg/kernel/fast.*.so && cp $</kseg/kernel/fast.*.so $@/kseg/kernel/

test-asan: $(WATCHED) ## Run the golden files and the kernel's tests under AddressSanitizer and UBSan; needs gcc
	$(watched) -m pytest -n auto --dist worksteal tests/test_corpus.py tests/kernel tests/codecs tests/test_found.py -k 'not twin-' $(TESTS)

test-carve: $(DEVELOPMENT) ## Carve made images of 10 to 200 partitions and all kinds of blocks, and print the batches that came back
	$(VENV_PYTHON) -m tests.carve.table

test-carve-live: $(DEVELOPMENT) ## Delete a real broker's topics on ext4 and xfs, and carve them; needs root, Java, mkfs.xfs
	$(PYTEST) $(PATIENT) -m disks tests/live/test_carved_disks.py $(TESTS)

INSTALLS :=# other options of tools/try_installs.py
test-install: $(DIST) ## Build twice, then install into empty environments of each Python here, and test there; needs the network
	$(VENV_PYTHON) tools/try_installs.py $(INSTALLS)

SECONDS := 600
SEED :=
FOUND := $(CURDIR)/tests/found# directory of failing inputs, which the tests read again
fuzz: $(WATCHED) ## Read mutants of Kafka's files for SECONDS=600 under both sanitizers; SEED=… repeats a run; needs gcc
	$(watched) -m tests.fuzz run --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --found $(FOUND) $(FUZZ)

fuzz-serve: $(DEVELOPMENT) ## Send COUNT=1000000 mutated requests to `kseg serve`; SEED=… repeats a run
	$(VENV_PYTHON) -m tests.serve.mutated_requests $(or $(SEED),1) $(or $(COUNT),1000000)

load-serve: $(DEVELOPMENT) ## Measure `kseg serve` under load: 1,000 connects per second, 200 readers of a GiB, attacks
	$(VENV_PYTHON) -m tests.serve.load connects 60
	$(VENV_PYTHON) -m tests.serve.load readers 64
	$(VENV_PYTHON) -m tests.serve.load attacks 10

FAULT :=
test-faults: $(DEVELOPMENT) ## Put each fault of tests/faults/ into a copy, and check that a test fails; takes an hour; FAULT=… for one
	$(if $(FAULT),test -e build/faults/map.json || )$(VENV_PYTHON) -m tests.faults.run map
	$(VENV_PYTHON) -m tests.faults.run run $(FAULT)

lint: $(DEVELOPMENT) ## Check formatting, style and types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

check: lint test ## Run lint and test: both must be green before a commit

docs: $(DEVELOPMENT) ## Check that examples run and that generated pages are up to date
	$(VENV_PYTHON) tools/generate.py --check
	$(PYTEST) tests/test_docs.py tests/test_generate.py

site: $(SITE) ## Make the site from docs/ in build/site/: open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(VENV_PYTHON) -m mkdocs build -q

test-kafka: $(DEVELOPMENT) ## Run the tests, also tests that need Java and the real Kafka
	$(PYTEST) $(PATIENT) -m 'not spark and not cluster and not go and not browser and not tmux and not exhaustive and not stores and not lake and not disks' $(TESTS)

test-browser: $(BROWSER) site ## Run the tests that open reports and the site in Chromium, which must be installed
	$(PYTEST) -n auto tests/report tests/site tests/test_recordings.py -m browser $(TESTS)

test-one: $(DEVELOPMENT) ## Ask all commands the same questions in all ways, and compare with brokers; needs Java and Maven
	$(PYTEST) $(PATIENT) -m 'exhaustive or kafka' tests/cluster tests/live/test_one_answer.py tests/live/test_transactions.py $(TESTS)

test-exhaustive: $(DEVELOPMENT) ## Run the tests with all cases, also cases that `make test` skips; slow; TESTS=… for one file
	ALL_CASES=yes $(PYTEST) $(PATIENT) -n auto --dist worksteal -m '$(LOCAL)' $(TESTS)

HOURS := 200
test-hours: $(DEVELOPMENT) ## Export a busy broker's disks HOURS=200 times, every few seconds; SEED=…; needs Java and Maven
	HOURS=$(HOURS) SEED=$(SEED) $(PYTEST) $(PATIENT) -m kafka tests/live/test_hours.py

KILLS := 200
test-restore: $(DEVELOPMENT) ## Restore while runs, brokers and connections end KILLS=200 times; SEED=…; needs Java and Maven
	EXAMPLES=1500 $(PYTEST) $(PATIENT) --hypothesis-profile=search tests/restore
	KILLS=$(KILLS) SEED=$(SEED) $(PYTEST) $(PATIENT) -m kafka tests/live/test_restore.py tests/live/test_restore_kills.py \
	    tests/live/test_restore_cluster.py

UNWRAP :=# other options of tests/export/unwrap_runs.py
test-unwrap: $(DEVELOPMENT) $(OLDER_SPARK) ## Apply 100,000 change events in 50 runs, 10 of them killed, and compare with the database; needs Maven
	$(VENV_PYTHON) -m tests.export.unwrap_runs $(UNWRAP)

PIPELINE :=# other options of tests/export/pipeline.py
test-pipeline: $(DEVELOPMENT) ## Export ten topics every night of a month, with accidents, and compare the tables with a model
	$(VENV_PYTHON) -m tests.export.pipeline $(PIPELINE)

STEPS := 200
test-lake: $(DEVELOPMENT) ## Export growing logs into tables of all forms, STEPS=200 times, with kills; read them by others; SEED=…
	STEPS=$(STEPS) SEED=$(SEED) $(PYTEST) $(PATIENT) -m lake tests/export/test_lake.py

START :=# other options of tools/start_matrix.py
test-start: $(DEVELOPMENT) ## Start brokers of RELEASE=4.3.1 on damaged disks, and record what they do; needs Java and Maven
	$(VENV_PYTHON) tools/start_matrix.py --release $(RELEASE) $(START)

test-go: $(DEVELOPMENT) ## Read from `kseg serve` with franz-go and sarama; needs Go
	$(PYTEST) $(PATIENT) -m go tests/serve $(TESTS)

test-spark: $(SPARK) $(OLDER_SPARK) ## Run the tests of Spark's data source, and those that compare with its connector; needs Maven
	$(PYTEST) $(PATIENT) tests/spark -m spark $(TESTS)

test-cluster: $(SPARK) ## Run exports on a Spark cluster while its processes die, and from and to an object store
	$(PYTEST) $(PATIENT) tests/spark -m cluster $(TESTS)

test-stores: $(EMULATORS) $(CATALOGS) $(OLDER_SPARK) ## Run commands over object stores and catalogs here; needs Node.js, Maven, PostgreSQL
	$(PYTEST) -n auto --dist worksteal tests/stores tests/catalogs -m 'stores$(if $(wildcard $(SPARK)),, and not spark)' $(TESTS)

REPEAT := 3
bench: $(PEERS) ## Compare with the real tool and other readers, REPEAT=5 times; needs Java and Maven, see bench/README.md
	$(VENV_PYTHON) -m bench --repeat $(REPEAT)

bench-start: $(DEVELOPMENT) ## Count the instructions of kseg's start and of each import of `kseg dump`; valgrind if it is installed
	$(VENV_PYTHON) -m bench.start

bench-carve: $(DEVELOPMENT) ## Compare the phases of `kseg carve` with SHA-256 alone, on a made image of 200 partitions
	$(VENV_PYTHON) -m bench.carve

bench-spark: $(SPARK) ## Compare exports and queries with Spark's connector and with plain pyarrow; needs Java and Maven
	$(VENV_PYTHON) -m bench.spark

bench-serve: $(PEERS) ## Compare `kseg serve` with a real broker over the same GiB; needs Java, Maven and kcat
	$(VENV_PYTHON) -m bench.serve --repeat $(REPEAT)

bench-restore: $(PEERS) ## Compare `kseg restore` with Kafka's producer test on one broker; needs Java and Maven
	$(VENV_PYTHON) -m bench.restore --repeat $(REPEAT) --memory

golden: $(DEVELOPMENT) ## Add files and output of the broker and the tool of RELEASE=4.3.1; see tools/README.md
	rm -rf build/golden
	$(VENV_PYTHON) tools/make_golden.py --release $(RELEASE) --out build/golden
	$(VENV_PYTHON) tools/arrange_golden.py build/golden golden

build: $(DIST) ## Make dist/, the source distribution and a wheel, with the same bytes for the same commit
	$(VENV_PYTHON) tools/make_dist.py dist
	$(VENV_PYTHON) -m twine --no-color check --strict dist/*

release: $(DIST) ## Make build/release/: packages, a tarball with its own Python, licenses, checksums; needs Debian
	$(VENV_PYTHON) tools/make_release.py build/release
	$(VENV_PYTHON) -m twine --no-color check --strict build/release/*.whl build/release/kseg-?.?.?.tar.gz

test-release: release ## Make the release again, compare the bytes, and try each file in an empty Debian; needs root
	$(VENV_PYTHON) tools/make_release.py build/release-again
	cmp build/release/SHA256SUMS build/release-again/SHA256SUMS
	$(VENV_PYTHON) tools/try_release.py build/release

clean: ## Remove everything that make made, .venv/ included
	rm -rf $(VENV) build dist *.egg-info bench/data bench/jars
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f kseg/kernel/fast.c kseg/kernel/fast.*.so kseg/kernel/fast/declarations.pxi
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment -------------------------------------------------------------------------------------------------

# A file with the name of the Python that made .venv/. If PYTHON is another Python, or the named one is gone, make
# re-creates .venv/.
$(VENV)/interpreter: FORCE
	@wanted="$(if $(PYTHON),$$($(call identify,$(PYTHON))),$$(cat $@ 2>/dev/null))"; \
	test "$$wanted" && test "$$wanted" = "$$($(call identify,$(VENV_PYTHON)) 2>/dev/null)" && \
	    { test -e $@ || echo "$$wanted" >$@; } && exit; \
	for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3); do \
	    if $$python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Making $(VENV)/ with $$python"; \
	        $$python -m venv --clear $(VENV) && $(call identify,$$python) >$@; \
	        exit; \
	    fi; \
	done; \
	echo 'kseg needs Python 3.11 or later, with its venv module, on the PATH' >&2; exit 1

$(VENV)/builder: pyproject.toml $(VENV)/interpreter
	@echo 'Installing the build requirements of kseg'
	@$(VENV_PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' >$@.txt
	@$(VENV_PYTHON) -m pip install -q --disable-pip-version-check -r $@.txt
	@touch $@

$(VENV)/compiler: FORCE | $(VENV)/interpreter
	@echo '$(CC)' | cmp -s - $@ || echo '$(CC)' >$@

$(KERNEL): $(VENV)/builder $(VENV)/compiler $(KERNEL_SOURCES)
	@echo 'Installing kseg and building its kernel'
	@rm -f kseg/kernel/fast.*.so
	@PYTHONWARNINGS=ignore $(VENV_PYTHON) -m pip install -q --disable-pip-version-check --no-build-isolation --config-settings editable_mode=compat -e .
	@if $(VENV_PYTHON) -c 'from kseg.kernel.fast import NAME' 2>/dev/null; then \
	    echo fast >$@; \
	elif $(call compiles); then \
	    echo 'The compiler works, but the kernel could not be built. See why: $(VENV_PYTHON) -m pip install -v --no-build-isolation -e .' >&2; \
	    exit 1; \
	else \
	    echo twin >$@; $(call no_kernel); \
	fi

# Most modules of these packages are never imported; Python compiles the others on import.
INSTALL = $(VENV_PYTHON) -m pip install -q --no-compile

$(DEVELOPMENT): pyproject.toml $(VENV)/interpreter | $(KERNEL)
	@echo 'Installing the libraries for tests and checks'
	@$(VENV_PYTHON) -m pip install -q --disable-pip-version-check 'pip>=25.1'
	@$(INSTALL) --group dev
	@touch $@

$(PEERS): $(DEVELOPMENT)
	@echo 'Installing the libraries for comparisons'
	@$(INSTALL) --group bench
	@touch $@

$(DIST): $(DEVELOPMENT)
	@echo 'Installing the tools that check wheels'
	@$(INSTALL) --group dist
	@touch $@

$(BROWSER): $(DEVELOPMENT)
	@echo 'Installing the libraries that drive a browser'
	@$(INSTALL) --group browser
	@touch $@

$(SITE): $(DEVELOPMENT)
	@echo 'Installing the libraries that make the site'
	@$(INSTALL) --group site
	@touch $@

$(SPARK): $(DEVELOPMENT)
	@echo 'Installing Spark: some 700 MB'
	@PYTHONWARNINGS=ignore $(INSTALL) --no-build-isolation --config-settings editable_mode=compat \
	    -e '.[spark,delta]' --group spark
	@touch $@

$(OLDER_SPARK): $(DEVELOPMENT)
	@echo 'Installing Spark 4.1, which reads tables of Delta and Iceberg: some 500 MB'
	@rm -rf $(@D)
	@$(INSTALL) --target $(@D) 'pyspark==4.1.4'
	@touch $@

$(EMULATORS): $(DEVELOPMENT)
	@echo "Installing Microsoft's emulator of Azure's store: some 200 MB"
	@npm install --silent --no-fund --no-audit --no-save --prefix $(VENV)/azurite azurite@3.35.0
	@touch $@

$(CATALOGS): $(DEVELOPMENT)
	@echo "Installing pyiceberg's libraries for catalogs"
	@$(INSTALL) --group catalogs
	@touch $@

# An interpreter: its version and its place, which are the same in its environments.
identify = $(1) -c 'import sys; print(sys.version, sys.base_prefix)'

# The compiler that setuptools uses: CC of the environment, otherwise the compiler that built Python.
sysconfig = $$($(VENV_PYTHON) -c 'import sysconfig; print(sysconfig.$(1))')
compiles = echo '\#include <Python.h>' | \
    $${CC:-$(call sysconfig,get_config_var("CC"))} -I "$(call sysconfig,get_path("include"))" -x c -c -o /dev/null - 2>/dev/null

define no_kernel
{ echo '*********************************************************************************'; \
  echo '*  No working C compiler with Python.h: the kernel is not compiled.             *'; \
  echo '*  kseg runs on its Python twin (KSEG_KERNEL=twin): same output, but slower.    *'; \
  echo '*********************************************************************************'; } >&2
endef

# What a target needs is installed into .venv/ first, and again only when pyproject.toml, the kernel's sources or the
# compiler change: `make demo` installs kseg alone, the other targets what they need besides. Without a compiler
# everything works too, on the kernel's Python twin.

PYTHON :=# the Python that makes .venv/; if none is given, the first that serves
VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
KERNEL := $(VENV)/kernel# a file that names the kernel that could be built; kseg is installed then
DEVELOPMENT := $(VENV)/development# a file: what tests and checks need is installed, and kseg
KERNEL_SOURCES := kseg/kernel/fast.pyx $(wildcard kseg/kernel/fast/*.pxi) kseg/kernel/crc.h kseg/kernel/escape.h kseg/kernel/keyed.h \
    setup.py kseg/kernel/positions.py kseg/formats/header_fields.py
PEERS := $(VENV)/peers# a file: the libraries that kseg is compared with are installed
DIST := $(VENV)/dist# a file: what checks wheels is installed
BROWSER := $(VENV)/browser# a file: what drives a browser for the tests is installed
SITE := $(VENV)/site# a file: what makes the site is installed
SPARK := $(VENV)/spark# a file: Spark, and what its tests need, are installed
OLDER_SPARK := $(VENV)/spark-4.1/installed# a file: a Spark that the connectors of Delta and Iceberg are made for
EMULATORS := $(VENV)/emulators# a file: the emulator of Azure's store is installed
RELEASE := 4.3.1
TESTS :=
FUZZ :=# other options of tests/fuzz

# CI asks for the compiled kernel by KSEG_KERNEL=fast; else the tests take what could be built. They start kseg hundreds of
# times: its compiled modules are kept, whatever the environment says.
PYTEST = PYTHONDONTWRITEBYTECODE= KSEG_KERNEL="$${KSEG_KERNEL:-$$(cat $(KERNEL))}" $(VENV_PYTHON) -m pytest
LOCAL := not kafka and not cluster and not spark and not go and not browser and not tmux and not stores
PATIENT := --timeout 3600 -o faulthandler_timeout=4000# brokers and clusters take their time

.PHONY: help demo demo-spark test test-asan test-install test-faults fuzz fuzz-serve load-serve lint check docs site test-kafka test-browser test-go \
    test-exhaustive test-one test-hours test-start test-spark test-cluster test-stores \
    bench bench-spark bench-serve golden build clean FORCE
.DELETE_ON_ERROR:

help: ## Print this list
	@echo 'kseg reads the files that Apache Kafka leaves on disk.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Everything is installed into $(VENV)/ and nowhere else. Python 3.11 or later and a package index are needed; gcc or clang for speed.'

# --- what users see --------------------------------------------------------------------------------------------------

SAMPLE := golden/docs/test-1-0
DAMAGED := golden/damaged/210-wiped-batch
run = echo && echo '$$ kseg $(2)$(if $(3), | $(3))' && (cd $(1) && $(abspath $(VENV)/bin/kseg) $(2) $(if $(3),| $(3)))

demo: $(KERNEL) ## Set everything up and dump a real segment, its index, and a damaged segment
	@echo 'A segment of the topic "test", as the Kafka documentation shows it ($(SAMPLE)):'
	@$(call run,$(SAMPLE),dump --print-data-log 00000000000000203000.log,head -8)
	@echo; echo 'Its offset index:'
	@$(call run,$(SAMPLE),dump 00000000000000203000.index,head -5)
	@echo; echo 'A segment with a hole where a batch was ($(DAMAGED)): the batches after the hole are read too.'
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

test: $(DEVELOPMENT) ## Run the tests, on both kernels; TESTS='-k words' picks some
	@grep -q fast $(KERNEL) || $(call no_kernel)
	$(PYTEST) -n auto --dist worksteal $(TESTS)

# A copy of the sources with a kernel that AddressSanitizer and UBSan watch: what they find ends the process.
WATCHED := build/watched
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
watched = cd $(WATCHED) && PYTHONDONTWRITEBYTECODE= LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc KSEG_KERNEL=fast \
    $(abspath $(VENV_PYTHON))

$(WATCHED)-kernel: $(DEVELOPMENT) Makefile
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

INSTALLS :=# other options of tools/try_installs.py
test-install: $(DIST) ## Build twice, then install into empty environments of each Python here, and test there; needs the network
	$(VENV_PYTHON) tools/try_installs.py $(INSTALLS)

SECONDS := 600
SEED :=
FOUND := $(CURDIR)/tests/found# where finds are kept; those there are read again by the tests
fuzz: $(WATCHED) ## Read mutants of Kafka's files for SECONDS=600, SEED=… the same again; both sanitizers watch, needs gcc
	$(watched) -m tests.fuzz run --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --found $(FOUND) $(FUZZ)

fuzz-serve: $(DEVELOPMENT) ## Send `kseg serve` COUNT=1000000 mutated requests, SEED=… the same again
	$(VENV_PYTHON) -m tests.serve.mutated_requests $(or $(SEED),1) $(or $(COUNT),1000000)

load-serve: $(DEVELOPMENT) ## Load on `kseg serve`: 1,000 connects a second for a minute, 200 readers of a GiB, attacks; its memory
	$(VENV_PYTHON) -m tests.serve.load connects 60
	$(VENV_PYTHON) -m tests.serve.load readers 64
	$(VENV_PYTHON) -m tests.serve.load attacks 10

FAULT :=
test-faults: $(DEVELOPMENT) ## Put each fault of tests/faults/ into a copy, and see that a test fails; takes an hour. FAULT=… for one
	$(if $(FAULT),test -e build/faults/map.json || )$(VENV_PYTHON) -m tests.faults.run map
	$(VENV_PYTHON) -m tests.faults.run run $(FAULT)

lint: $(DEVELOPMENT) ## Check formatting, style and types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

check: lint test ## What must be green before a commit: lint and test

docs: $(DEVELOPMENT) ## Check that examples run and that generated pages are up to date
	$(VENV_PYTHON) tools/generate.py --check
	$(PYTEST) tests/test_docs.py tests/test_generate.py

site: $(SITE) ## Make the site from docs/ in build/site/: open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(VENV_PYTHON) -m mkdocs build -q

test-kafka: $(DEVELOPMENT) ## Run the tests that need Java and the real Kafka too
	$(PYTEST) $(PATIENT) -m 'not spark and not cluster and not go and not browser and not tmux and not exhaustive and not stores' $(TESTS)

test-browser: $(BROWSER) site ## Run the tests that open reports and the site in Chromium, which must be installed
	$(PYTEST) -n auto tests/report tests/site -m browser $(TESTS)

test-one: $(DEVELOPMENT) ## Ask all commands the same questions in all ways, and compare with brokers; needs Java and Maven
	$(PYTEST) $(PATIENT) -m 'exhaustive or kafka' tests/cluster tests/live/test_one_answer.py tests/live/test_transactions.py $(TESTS)

test-exhaustive: $(DEVELOPMENT) ## Run the tests with all cases of which `make test` takes some; takes long. TESTS=… for one file
	ALL_CASES=yes $(PYTEST) $(PATIENT) -n auto --dist worksteal -m '$(LOCAL)' $(TESTS)

HOURS := 200
test-hours: $(DEVELOPMENT) ## Export a busy broker's disks for HOURS=200 of seconds, SEED=…; needs Java and Maven
	HOURS=$(HOURS) SEED=$(SEED) $(PYTEST) $(PATIENT) -m kafka tests/live/test_hours.py

START :=# other options of tools/start_matrix.py
test-start: $(DEVELOPMENT) ## Start brokers of RELEASE=4.3.1 on damaged disks, and record what they do; needs Java and Maven
	$(VENV_PYTHON) tools/start_matrix.py --release $(RELEASE) $(START)

test-go: $(DEVELOPMENT) ## Read from `kseg serve` with franz-go and sarama; needs Go
	$(PYTEST) $(PATIENT) -m go tests/serve $(TESTS)

test-spark: $(SPARK) $(OLDER_SPARK) ## Run the tests of Spark's data source, and those that compare with its connector; needs Maven
	$(PYTEST) $(PATIENT) tests/spark -m spark $(TESTS)

test-cluster: $(SPARK) ## Run exports on a Spark cluster while its processes die, and from and to an object store
	$(PYTEST) $(PATIENT) tests/spark -m cluster $(TESTS)

test-stores: $(EMULATORS) ## Run commands over object stores on this machine, with each way to set them up; needs Node.js
	$(PYTEST) -n auto --dist worksteal tests/stores -m 'stores$(if $(wildcard $(SPARK)),, and not spark)' $(TESTS)

REPEAT := 3
bench: $(PEERS) ## Compare with the real tool and other readers, REPEAT=5 times; needs Java and Maven, see bench/README.md
	$(VENV_PYTHON) -m bench --repeat $(REPEAT)

bench-spark: $(SPARK) ## Compare exports and queries with Spark's connector and with plain pyarrow; needs Java and Maven
	$(VENV_PYTHON) -m bench.spark

bench-serve: $(PEERS) ## Compare `kseg serve` with a real broker over the same GiB; needs Java, Maven and kcat
	$(VENV_PYTHON) -m bench.serve --repeat $(REPEAT)

golden: $(DEVELOPMENT) ## Add what the broker and the tool of RELEASE=4.3.1 write and print; see tools/README.md
	rm -rf build/golden
	$(VENV_PYTHON) tools/make_golden.py --release $(RELEASE) --out build/golden
	$(VENV_PYTHON) tools/arrange_golden.py build/golden golden

build: $(DIST) ## Make dist/: the source distribution and a wheel, the same bytes from the same commit
	$(VENV_PYTHON) tools/make_dist.py dist
	$(VENV_PYTHON) -m twine --no-color check --strict dist/*

clean: ## Remove everything that make made, .venv/ included
	rm -rf $(VENV) build dist *.egg-info bench/data bench/jars
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f kseg/kernel/fast.c kseg/kernel/fast.*.so kseg/kernel/fast/positions.pxi
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment -------------------------------------------------------------------------------------------------

# A file that names what made .venv/, which is made again only where PYTHON asks for another one, or that one is gone.
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
	@echo 'Installing what builds kseg'
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

# Most modules of these packages are never imported: the others are compiled when they are.
INSTALL = $(VENV_PYTHON) -m pip install -q --no-compile

$(DEVELOPMENT): pyproject.toml $(VENV)/interpreter | $(KERNEL)
	@echo 'Installing what tests and checks need'
	@$(VENV_PYTHON) -m pip install -q --disable-pip-version-check 'pip>=25.1'
	@$(INSTALL) --group dev
	@touch $@

$(PEERS): $(DEVELOPMENT)
	@echo 'Installing what kseg is compared with'
	@$(INSTALL) --group bench
	@touch $@

$(DIST): $(DEVELOPMENT)
	@echo 'Installing what checks wheels'
	@$(INSTALL) --group dist
	@touch $@

$(BROWSER): $(DEVELOPMENT)
	@echo 'Installing what drives a browser'
	@$(INSTALL) --group browser
	@touch $@

$(SITE): $(DEVELOPMENT)
	@echo 'Installing what makes the site'
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

# An interpreter: its version and where it is installed, the same in an environment that it made.
identify = $(1) -c 'import sys; print(sys.version, sys.base_prefix)'

# The compiler that setuptools takes: CC of the environment, else the one that built Python.
sysconfig = $$($(VENV_PYTHON) -c 'import sysconfig; print(sysconfig.$(1))')
compiles = echo '\#include <Python.h>' | \
    $${CC:-$(call sysconfig,get_config_var("CC"))} -I "$(call sysconfig,get_path("include"))" -x c -c -o /dev/null - 2>/dev/null

define no_kernel
{ echo '*********************************************************************************'; \
  echo '*  No working C compiler with Python.h: the kernel is not compiled.             *'; \
  echo '*  kseg runs on its Python twin (KSEG_KERNEL=twin): all the same, but slower.   *'; \
  echo '*********************************************************************************'; } >&2
endef

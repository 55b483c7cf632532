# What a target needs is installed into .venv/ first, and again only when pyproject.toml, the kernel's sources or the
# compiler change. Without a compiler everything works too, on the kernel's Python twin.

VENV := .venv
PYTHON := $(VENV)/bin/python
KERNEL := $(VENV)/kernel# a file that names the kernel that could be built
SPARK := $(VENV)/spark# a file: Spark, and what its tests need, are installed
RELEASE := 4.3.1
TESTS :=

# CI asks for the compiled kernel by KSEG_KERNEL=fast; else the tests take what could be built.
PYTEST = KSEG_KERNEL="$${KSEG_KERNEL:-$$(cat $(KERNEL))}" $(PYTHON) -m pytest

.PHONY: help demo demo-spark test test-asan lint check docs test-kafka test-spark test-cluster bench bench-spark golden \
    build clean FORCE
.DELETE_ON_ERROR:

help: ## Print this list
	@echo 'kseg reads the files that Apache Kafka leaves on disk.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Everything is installed into $(VENV)/ and nowhere else. Python 3.11 or later is needed; gcc or clang for speed.'

# --- what users see --------------------------------------------------------------------------------------------------

SAMPLE := golden/docs/test-1-0
DAMAGED := golden/damaged/210-wiped-batch
run = echo && echo '$$ kseg $(2)$(if $(3), | $(3))' && (cd $(1) && $(abspath $(VENV)/bin/kseg) $(2) $(if $(3),| $(3)))

demo: $(KERNEL) ## Set everything up and dump a real segment, its index, and a damaged segment
	@echo 'A segment of the topic "test", as the Kafka documentation shows it ($(SAMPLE)):'
	@$(call run,$(SAMPLE),dump --print-data-log 00000000000000203000.log,head -8)
	@echo; echo 'Its offset index:'
	@$(call run,$(SAMPLE),dump 00000000000000203000.index,head -5)
	@echo; echo 'A segment with a hole where a batch was ($(DAMAGED)): what is behind the hole is read too.'
	@$(call run,$(DAMAGED),dump --shallow $(notdir $(wildcard $(DAMAGED)/*.log))) || true
	@echo; echo 'More: $(VENV)/bin/kseg dump --help, README.md'

demo-spark: $(SPARK) ## Export a topic to Parquet by Spark on this machine, and show its table and its report
	@$(call run,golden/logs/4.3.1,spark-export --master 'local[2]' --topic compacted-txn --overwrite . $(abspath build)/demo-spark)
	@echo; echo 'The table (build/demo-spark/topic=compacted-txn), its first rows:'
	@$(PYTHON) tools/show_table.py build/demo-spark
	@echo; echo 'The report (build/demo-spark/_kseg/report.json):'
	@cat build/demo-spark/_kseg/report.json
	@echo; echo 'More: $(VENV)/bin/kseg spark-export --help, docs/spark.md'

# --- what developers use ---------------------------------------------------------------------------------------------

test: $(KERNEL) ## Run the tests, on both kernels; TESTS='-k words' picks some
	@grep -q fast $(KERNEL) || $(call no_kernel)
	$(PYTEST) -n auto --dist loadfile $(TESTS)

test-asan: $(KERNEL) ## Run the golden files and the kernel's tests on a kernel that AddressSanitizer watches; needs gcc
	rm -rf build/asan && mkdir -p build/asan
	cp -r kseg tests pyproject.toml README.md LICENSE build/asan
	ln -s ../../golden ../../docs ../../tools build/asan
	rm -f build/asan/kseg/kernel/fast.*.so build/asan/kseg/kernel/fast.c
	cd build/asan && CFLAGS='-fsanitize=address -fno-omit-frame-pointer -g -O1' LDFLAGS=-fsanitize=address \
	    ../../$(PYTHON) -W ignore -c 'import setuptools; setuptools.setup()' -q build_ext --inplace
	cd build/asan && LD_PRELOAD=$$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	    ../../$(PYTHON) -m pytest tests/test_corpus.py tests/kernel tests/test_codecs.py -k 'not twin-'

lint: $(KERNEL) ## Check formatting, style and types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

check: lint test ## What must be green before a commit: lint and test

docs: $(KERNEL) ## Check that examples run and generated pages are up to date; write man pages to build/man/
	$(PYTHON) tools/make_docs.py --check
	$(PYTHON) tools/make_docs.py --man build/man
	$(PYTEST) tests/test_docs.py tests/test_make_docs.py

test-kafka: $(KERNEL) ## Run the tests that need Java and the real Kafka too
	$(PYTEST) -m 'kafka or not kafka and not cluster' $(TESTS)

test-spark: $(SPARK) ## Run the tests of Spark's data source, and those that compare with its connector; needs Maven
	$(PYTEST) tests/spark -m 'spark or kafka' $(TESTS)

test-cluster: $(SPARK) ## Run exports on a Spark cluster while its processes die, and from and to an object store
	$(PYTEST) tests/spark -m cluster $(TESTS)

bench: $(KERNEL) ## Compare with the real tool and other readers; needs Java and Maven, see bench/README.md
	$(PYTHON) -m bench

bench-spark: $(SPARK) ## Compare exports and queries with Spark's connector and with plain pyarrow; needs Java and Maven
	$(PYTHON) -m bench.spark

golden: $(KERNEL) ## Add what the broker and the tool of RELEASE=4.3.1 write and print; see tools/README.md
	rm -rf build/golden
	$(PYTHON) tools/make_golden.py --release $(RELEASE) --out build/golden
	$(PYTHON) tools/arrange_golden.py build/golden golden

build: $(KERNEL) ## Make dist/: the source distribution, and a wheel from it
	rm -rf build/lib* build/bdist* dist
	PYTHONWARNINGS=ignore $(PYTHON) -c 'from setuptools import build_meta; build_meta.build_sdist("dist")' >/dev/null
	PYTHONWARNINGS=ignore $(PYTHON) -m pip wheel -q --no-deps --no-build-isolation -w dist dist/*.tar.gz
	@ls dist

clean: ## Remove everything that make made, .venv/ included
	rm -rf $(VENV) build dist *.egg-info bench/data bench/jars
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f kseg/kernel/fast.c kseg/kernel/fast.*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment -------------------------------------------------------------------------------------------------

$(PYTHON):
	@for python in python3.11 python3.12 python3.13 python3; do \
	    if $$python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Making $(VENV)/ with $$python"; \
	        exec $$python -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo 'kseg needs Python 3.11 or later, with its venv module, on the PATH' >&2; exit 1

$(VENV)/dependencies: pyproject.toml | $(PYTHON)
	@echo 'Installing what kseg and its tests need'
	@$(PYTHON) -m pip install -q --disable-pip-version-check 'pip>=25.1'
	@$(PYTHON) -m pip install -q --group dev
	@touch $@

$(VENV)/compiler: FORCE | $(PYTHON)
	@echo '$(CC)' | cmp -s - $@ || echo '$(CC)' >$@

$(KERNEL): $(VENV)/dependencies $(VENV)/compiler kseg/kernel/fast.pyx kseg/kernel/crc.h
	@echo 'Installing kseg and building its kernel'
	@rm -f kseg/kernel/fast.*.so
	@PYTHONWARNINGS=ignore $(PYTHON) -m pip install -q --no-build-isolation --config-settings editable_mode=compat -e .
	@if $(PYTHON) -c 'import kseg.kernel.fast' 2>/dev/null; then \
	    echo fast >$@; \
	elif $(call compiles); then \
	    echo 'The compiler works, but the kernel could not be built. See why: $(PYTHON) -m pip install -v --no-build-isolation -e .' >&2; \
	    exit 1; \
	else \
	    echo twin >$@; $(call no_kernel); \
	fi

$(SPARK): $(KERNEL)
	@echo 'Installing Spark: some 700 MB'
	@PYTHONWARNINGS=ignore $(PYTHON) -m pip install -q --no-build-isolation --config-settings editable_mode=compat \
	    -e '.[spark,delta]' --group spark
	@touch $@

# The compiler that setuptools takes: CC of the environment, else the one that built Python.
sysconfig = $$($(PYTHON) -c 'import sysconfig; print(sysconfig.$(1))')
compiles = echo '\#include <Python.h>' | \
    $${CC:-$(call sysconfig,get_config_var("CC"))} -I "$(call sysconfig,get_path("include"))" -x c -c -o /dev/null - 2>/dev/null

define no_kernel
{ echo '*********************************************************************************'; \
  echo '*  No working C compiler with Python.h: the kernel is not compiled.             *'; \
  echo '*  kseg runs on its Python twin (KSEG_KERNEL=twin): all the same, but slower.   *'; \
  echo '*********************************************************************************'; } >&2
endef

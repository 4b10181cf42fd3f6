# Everything works from a fresh clone: the first target that needs it makes a virtual environment
# in .venv, with the package itself installed from the sources (editable). A .venv that is already
# there is used as it is. `make PYTHON=python3.12 venv` picks the interpreter.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest
FUZZ ?= 20000
# Tests run in so many processes, but for the few that measure times and have the machine alone; a
# file after the other, in the order of tests/conftest.py. One more than a small machine has cores,
# since tests wait, too: for processes that they start, and for the device.
JOBS ?= 3
# Arguments of the commands below, for instance `make bench ARGS=overhead`.
ARGS ?=
# PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair.
export ACS_CL_POCL_CPU ?= auto

.DEFAULT_GOAL := help
.PHONY: help venv test check lint signals alarms seeing fuzz traps sanitize instructions proofs wheels demo bench measure figures pictures stamp bundle clients drivers docs recipe clean

help:
	@echo "make venv    the virtual environment in $(VENV)"
	@echo "make test    style, types and all tests (EVERY=1: no product of parameters is sampled)"
	@echo "make check   style, types and the tests that need no device: soon done"
	@echo "make lint    style and types only"
	@echo "make signals  Ctrl-C at random moments, $(SIGNALS) for each call of each backend (SIGNALS=n)"
	@echo "make alarms  all tests under a watchdog of $(ALARM_S) s, which has to stay quiet (ALARM_S=s)"
	@echo "make seeing  hangs and bottlenecks that are planted, and a page, by Chromium (SEEING=file)"
	@echo "make fuzz    $(FUZZ) random programs (FUZZ=n)"
	@echo "make traps   hostile kernels in every form (TRAPS=file.json, ARGS=\"--device name\")"
	@echo "make proofs  $(PROOFS) random graphs, each proven, and planted faults (PROOFS=n)"
	@echo "make sanitize  the native core under AddressSanitizer, without a device and with one (FUZZ=n)"
	@echo "make instructions  what commands in bypass take, beside a plain queue, by Valgrind"
	@echo "make wheels  a wheel for each interpreter, tried in a fresh environment (PYTHONS=...)"
	@echo "make demo    the demo, with its picture"
	@echo "make bench   the benchmarks (ARGS=...)"
	@echo "make measure everything that docs/measurements.md shows (OUT=folder, ARGS=\"--within 900\")"
	@echo "make figures the tables of README and docs, from the results (NEW=\"file ...\" takes these in)"
	@echo "make pictures  the pictures of the guide, by Chromium"
	@echo "make stamp   the commit of these sources, for a machine without a checkout"
	@echo "make bundle  that and a wheel, to measure there (BUNDLE_PYTHON=python3.12)"
	@echo "make clients  tests of PyOpenCL and of packages on it, on acs.Queue (ARGS=name)"
	@echo "make drivers  the tests on Intel's runtime, Oclgrind, Rusticl and PoCL (ARGS=names)"
	@echo "make docs    the documents as a site, in build/site"
	@echo "make recipe  the recipe for conda-forge is rendered, and held against pyproject.toml"
	@echo "make clean   removes what the other targets made"

# A new installation is called for when pyproject.toml changes (dependencies, the mapping of
# folders), or the set of packages: the import hook of an editable installation remembers which
# modules were packages, and would go on looking for a module that has become one. The core is built
# in build/core, which test_wheel.py uses, too: only what has changed is compiled again.
PACKAGES := $(shell find acs_cl emu benchmarks kernels_cl -name __init__.py | LC_ALL=C sort | cksum)
STAMP := $(VENV)/.installed-$(firstword $(PACKAGES))

venv: $(STAMP)

CORE := acs_cl/_core
BUILD_TOOLS := "cmake>=3.18" "nanobind>=2.4" "ninja>=1.11" "scikit-build-core>=0.11"
# Without byte code every process compiles what it imports, and the tests start hundreds. Python keeps
# that of what it imports, so that pip need not make that of all packages first. Who wants none beside
# the sources has it in build.
ifneq ($(PYTHONDONTWRITEBYTECODE),)
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/bytecode
endif
$(STAMP): pyproject.toml $(wildcard $(CORE)/* $(CORE)/*/*)
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip --disable-pip-version-check install --quiet $(BUILD_TOOLS)
	$(RUN) -m pip --disable-pip-version-check install --quiet --no-build-isolation --no-compile \
	    --config-settings "build-dir=build/core/{wheel_tag}" --editable ".[pocl,dev]"
	rm -f $(VENV)/.installed-*
	touch $@

# Large products of parameters are sampled by the commit (tests/sampling.py), unless EVERY=1.
EVERY ?=
# Meanwhile Intel's runtime is fetched, for tests/test_drivers.py. Where it cannot be, that is said.
test: $(STAMP)
	PYTHONPATH=tests $(RUN) -m drivers.install Intel & \
	ACS_CL_EVERY=$(EVERY) $(PYTEST) -n $(JOBS) --dist loadfile --no-loadscope-reorder \
	    -m "not alone" $(ARGS); code=$$?; wait; exit $$code
	$(PYTEST) -m alone $$(grep -l "mark[.]alone" tests/test_*.py) $(ARGS) || test $$? -eq 5

# No driver is found while these run, so that none of them comes to need one.
PURE := quality house tests documents core_stub public_surface declare own_files epochs footprints native_queues \
    emu_engine emu_gpu emu_on_device emu_report emu_sources emu_timelines emu_trace emu_window_unit
check: $(STAMP)
	OCL_ICD_VENDORS=$(CURDIR)/build/none $(PYTEST) -n $(JOBS) --dist loadfile \
	    -m "not alone" -k "not example_that_runs" $(wildcard $(PURE:%=tests/test_%.py)) $(ARGS)

# Other drivers, in build/drivers: tests/drivers/install.py.
DRIVERS := PYTHONPATH=tests $(RUN) -m drivers

# By name, for instance ARGS="Intel Rusticl"; `make drivers ARGS='"at hand"'` is the device of the
# machine, and fetches nothing.
DRIVERS_OUT ?= benchmarks/results/drivers
drivers: $(STAMP)
	$(DRIVERS) --out $(DRIVERS_OUT) $(ARGS)

lint: $(STAMP)
	$(PYTEST) tests/test_quality.py tests/test_house.py $(ARGS)

SIGNALS ?= 200
SIGNALS_JSON ?= build/signals.json
signals: $(STAMP)
	mkdir -p $(dir $(SIGNALS_JSON))
	$(RUN) tests/interrupts.py --signals $(SIGNALS) --out $(SIGNALS_JSON) $(ARGS)

# Kernels of other programs on a busy machine may last longer than that: the outcome tells the load.
ALARM_S ?= 10
ALARMS ?= benchmarks/results/alarms.json
alarms: $(STAMP)
	$(RUN) tests/alarms --out $(ALARMS) --seconds $(ALARM_S) $(ARGS)

SEEING ?= build/seeing.json
seeing: $(STAMP)
	$(RUN) tests/seeing.py --out $(SEEING)

fuzz: $(STAMP)
	ACS_CL_FUZZ=$(FUZZ) $(PYTEST) -s -k "random or word_by_word" tests/test_random_programs.py \
	    tests/test_core.py tests/test_native_path.py
	$(RUN) tests/random_batches.py --programs $(FUZZ) --kernels $$(($(FUZZ) / 20)) $(ARGS)

PROOFS ?= 10000
PROOFS_JSON ?= build/proofs.json
proofs: $(STAMP)
	$(RUN) tests/proofs.py --graphs $(PROOFS) --json $(PROOFS_JSON) $(ARGS)

# All of them, each in a program of its own, in every form; `make test` has a short form, and holds
# what every launch says against the bytes that were measured here. What was cut off goes on with
# ARGS=--continue, as long as the library's sources are the same.
TRAPS ?= benchmarks/results/traps-pocl.json
traps: $(STAMP)
	$(RUN) tests/traps --out $(TRAPS) $(ARGS)

# Python itself is not built that way: what it never frees is not reported, and the sanitizer's
# library has to come first. It hides where PoCL's loader lies from PoCL. Programs that tests start
# have this core, too. It takes ten times as long, so tests of times have no place here.
SANITIZED := build/sanitize
SANELY = ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=tests \
    LD_LIBRARY_PATH="$$($(RUN) -c 'import os, pyopencl; print(os.path.dirname(pyopencl.__file__) + "/.libs")')" \
    LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libstdc++.so)"
SANE_PROGRAMS := band_launches bands bypass bypass_commands core_replays counts_on_lanes decisions \
    declared_kernels errors finalizers graph known_calls loops many memory misuse \
    native_path_on_lanes new_sizes offsets poison prediction queue random_launches random_programs \
    sections series signals spawn threads told tracked_calls tracked_kernels \
    tracked_transfers values
SANITIZED_FUZZ ?= 400
sanitize: $(STAMP)
	cmake -S $(CORE) -B $(SANITIZED) -DACS_CL_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
	    -DPython_EXECUTABLE=$(abspath $(RUN)) \
	    -Dnanobind_DIR="$$($(RUN) -m nanobind --cmake_dir)"
	cmake --build $(SANITIZED)
	$(SANELY) ACS_CL_FUZZ=$(SANITIZED_FUZZ) $(PYTEST) -p sanitized --noconftest -k "core or native or table" \
	    tests/test_core.py tests/test_hazards.py tests/test_footprints.py tests/test_native_queues.py tests/test_table.py $(ARGS)
	$(SANELY) $(PYTEST) -p sanitized -n $(JOBS) --dist loadfile $(SANE_PROGRAMS:%=tests/test_%.py) $(ARGS)

INSTRUCTIONS ?= benchmarks/results/instructions-pocl.json
instructions: $(STAMP)
	$(RUN) tests/instructions.py --out $(INSTRUCTIONS) $(ARGS)

# Without PYTHONS, python3.10 to python3.13 where they are at hand.
PYTHONS ?=
wheels: $(STAMP)
	$(RUN) tests/wheels.py $(PYTHONS)

demo: $(STAMP)
	$(VENV)/bin/acs-cl demo $(ARGS)

bench: $(STAMP)
	$(RUN) -m acs_cl.benchmarks run $(ARGS)

# Everything that docs/measurements.md shows, on a quiet machine; then `make figures NEW="..."`.
OUT ?= build/measured
measure: $(STAMP)
	$(RUN) -m acs_cl.benchmarks everything --out $(OUT) $(ARGS)

# `make figures NEW="a.json b.json"`, and ARGS=--several-commits where parts stay as they are.
figures: $(STAMP)
	$(RUN) -m acs_cl.benchmarks $(if $(NEW),merge $(NEW),report) $(ARGS)

pictures: $(STAMP)
	PYTHONPATH=tests $(RUN) tests/pictures.py

stamp: $(STAMP)
	mkdir -p build
	$(RUN) -m acs_cl.benchmarks stamp > build/stamp
	cat build/stamp

# What a machine without a checkout and a network needs of ours; its own interpreter builds it.
BUNDLE := build/bundle
bundle: stamp
	rm -rf $(BUNDLE)
	mkdir -p $(BUNDLE)
	$(PYTHON) packaging/profiled.py $(BUNDLE_PYTHON) $(BUNDLE)
	cp build/stamp $(BUNDLE)
	ls $(BUNDLE)
BUNDLE_PYTHON ?= $(PYTHON)

# Fetched by pip into a virtual environment of their own, in build/clients.
clients:
	$(PYTHON) tests/clients.py $(ARGS)

# Strict: a broken link fails, and a page that the navigation does not have.
SITE := $(VENV)/.site
$(SITE): $(STAMP)
	$(RUN) -m pip --disable-pip-version-check install --quiet "acs_cl[docs]"
	touch $@

docs: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet --strict -f docs/site/mkdocs.yml
	@echo build/site/index.html

recipe: $(STAMP)
	$(RUN) -m pip --disable-pip-version-check install --quiet "py-rattler-build>=0.73"
	$(PYTEST) tests/test_packaging.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

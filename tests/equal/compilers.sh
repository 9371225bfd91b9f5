#!/bin/sh
# Builds the library with every compiler here, without and with optimisation, and requires all
# builds to print the same line of hashes (fingerprint.c).
#   compilers.sh SOURCE BUILD CHECKPOINTS
# Build folders are made below BUILD and kept, so that a second run compiles only what changed.
set -u

source=$1 build=$2 checkpoints=$3
rows=72 # deep40: past the window, past top-k, past the candidate pool
expected= first= passed=0 failed=0

for compiler in gcc clang; do
    if ! command -v "$compiler" >/dev/null; then
        echo "skipped: no $compiler here"
        continue
    fi
    for level in -O0 -O3; do
        folder=$build/$compiler$level
        line=
        if cmake -S "$source" -B "$folder" -G Ninja --log-level=ERROR -DCMAKE_BUILD_TYPE=None \
            -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS="$level" >"$build/log" &&
            cmake --build "$folder" --target fingerprint >>"$build/log" 2>&1; then
            line=$("$folder/tests/equal/fingerprint" "$checkpoints" "$rows") || line=
        else
            cat "$build/log"
        fi
        echo "$compiler $level: ${line:-failed}"
        [ -n "$first" ] || { first="$compiler $level" expected=$line; }
        if [ -n "$line" ] && [ "$line" = "$expected" ]; then
            passed=$((passed + 1))
        else
            echo "differs from $first" >&2
            failed=$((failed + 1))
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

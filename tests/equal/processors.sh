#!/bin/sh
# Requires another processor's build of fingerprint.c to print the lines that this machine's own prints.
#   processors.sh SOURCE BUILD CHECKPOINTS LEVEL COMMAND...
# COMMAND runs the other build, under an emulator.  All of its kernel levels compute the first rows, those
# of LEVEL the whole prompt.  BUILD holds this machine's build and is kept.
set -u

source=$1 build=$2 checkpoints=$3 level=$4
shift 4
passed=0 failed=0

mkdir -p "$build"
if ! cmake -S "$source" -B "$build" -G Ninja --log-level=ERROR >"$build/log" ||
    ! cmake --build "$build" --target fingerprint >>"$build/log" 2>&1; then
    cat "$build/log"
    exit 1
fi
for run in 72 "520 $level"; do # 72: past the window, past top-k, past the candidate pool
    expected=$("$build/tests/equal/fingerprint" "$checkpoints" "${run% *}") || expected=failed
    # shellcheck disable=SC2086 # two words
    found=$("$@" "$checkpoints" $run) || found=failed
    echo "here:    $expected"
    echo "there:   $found"
    if [ "$found" = "$expected" ] && [ "$found" != failed ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

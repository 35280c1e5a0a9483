#!/usr/bin/env bash
# Builds the runtime library and its C tests with $CC (default cc), plainly and under the sanitizers, and runs them all. The three
# variants run beside each other; what each says is printed in one piece.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
csrc=$here/../../csrc
cc=${CC:-cc}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

flags=(-std=gnu11 -O2 -g -Wall -Wextra -Werror -ffp-contract=off -pthread -I "$csrc/include")

run_variant() {
    local variant=$1 passed=0 failed=0 name
    shift
    if ! "$cc" "${flags[@]}" "$@" -fPIC -shared -o "$build/lib$variant.so" "$csrc"/src/*/*.c; then
        echo "FAIL [$variant] the library does not build"
        echo "0 1" >"$build/$variant.counts"
        return
    fi
    for name in regions deps execute sim sim_front sim_exec sim_calendar sim_rules streams marks channel fresh window calendar queues \
        wall programs run sanitize sanitize_memory prints finite matmul moves ranks; do
        local program=$build/$variant-$name report=$build/$variant-$name.txt status=0
        if ! "$cc" "${flags[@]}" "$@" -o "$program" "$here/test_$name.c" "$build/lib$variant.so" "-Wl,-rpath,$build"; then
            echo "FAIL [$variant] test_$name does not build"
            failed=$((failed + 1))
            continue
        fi
        timeout 300 "$program" >"$report" 2>&1 || status=$?
        sed "s/^\(ok  \|FAIL\) /\1 [$variant] $name: /" "$report"
        passed=$((passed + $(grep -c '^ok ' "$report")))
        local n_failed
        n_failed=$(grep -c '^FAIL ' "$report")
        if [ "$status" -ne 0 ] && [ "$n_failed" -eq 0 ]; then
            echo "FAIL [$variant] $name: ended with status $status"
            n_failed=1
        fi
        failed=$((failed + n_failed))
    done
    echo "$passed $failed" >"$build/$variant.counts"
}

run_variant plain >"$build/plain.out" 2>&1 &
run_variant address -fsanitize=address,undefined -fno-sanitize-recover=undefined -DPTO_TEST_SLOW >"$build/address.out" 2>&1 &
run_variant thread -fsanitize=thread -DPTO_TEST_SLOW >"$build/thread.out" 2>&1 &
wait
passed=0 failed=0
for variant in plain address thread; do
    cat "$build/$variant.out"
    read -r n_passed n_failed <"$build/$variant.counts" || n_passed=0 n_failed=1      # it ended early
    passed=$((passed + n_passed)) failed=$((failed + n_failed))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

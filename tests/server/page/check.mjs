/* Tests by name, one after the other; the last line is "N passed, N failed". */

const tests = [];

export function test(name, run) {
  tests.push([name, run]);
}

/* Runs those whose names `wanted` has, all if it is empty; sets the exit status. */
export async function runTests(wanted = []) {
  let passed = 0;
  let failed = 0;
  for (const [name, run] of tests) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    try {
      await run();
      passed += 1;
      console.log(`ok   ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}\n${error.stack}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}

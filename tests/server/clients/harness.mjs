// Cases that run one after the other; the exit status says whether all went well.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";

export const [modules, base, key] = process.argv.slice(2);

/** A package of the folder that was given, which is not on Node.js's own path. */
export async function load(name) {
  const require = createRequire(pathToFileURL(modules + "/"));
  return import(pathToFileURL(require.resolve(name)));
}

export async function run(cases) {
  for (const [name, check] of Object.entries(cases)) {
    try {
      await check();
      console.log(`ok   ${name}`);
    } catch (fault) {
      console.log(`FAIL ${name}: ${fault.stack ?? fault}`);
      process.exitCode = 1;
    }
  }
}

/** What the call is refused with. */
export async function refusal(call) {
  try {
    await call();
  } catch (fault) {
    return fault;
  }
  assert.fail("it was not refused");
}

export { assert };

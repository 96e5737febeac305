import { enableCompileCache, registerHooks } from "node:module"
import process from "node:process"

/**
 * Makes loading modules cheaper, but where files are watched.
 *
 * - What Node compiled in one run is there in the next. Only here: programs that tests start compile as they would elsewhere.
 * - Vitest gives the URL of a test file the time, so that it can be loaded again. Node keeps compiled code by URL: a time would
 *   add a copy with every run, which no other run finds.
 * - What is imported by a path is where the path says: Vitest need not be told of it.
 */

const isInstalled = Symbol.for("palimpsest/test/testModules")

if (process.env["VITEST_MODE"] !== "WATCH" && !(isInstalled in globalThis)) {
  Object.assign(globalThis, { [isInstalled]: true })
  enableCompileCache("node_modules/.vitest-cache/compiled")
  registerHooks({
    resolve: (specifier, context, next) => {
      const { parentURL } = context
      if (parentURL !== undefined && /^\.\.?\/.*\.ts$/.test(specifier) && !parentURL.includes("/node_modules/")) {
        return { url: new URL(specifier, parentURL).href, shortCircuit: true }
      }
      const resolved = next(specifier, context)
      return { ...resolved, url: resolved.url.replace(/\?vitest=\d+$/, "") }
    }
  })
}

import { assert, it } from "@effect/vitest"
import { listenFailure } from "../../../src/cli/flags/ListenAddress.ts"
import { listenError } from "../../../src/services/platform/ListenError.ts"

const of = (code: string) => listenError({ host: "127.0.0.1", port: 80 }, Object.assign(new Error(code), { code }))

it.each([
  ["EADDRINUSE", "127.0.0.1:80: the port is in use; choose another with --port"],
  ["EACCES", "127.0.0.1:80: this user may not use the port; choose one above 1023 with --port"],
  ["EADDRNOTAVAIL", "127.0.0.1:80: it cannot be used (EADDRNOTAVAIL); choose another with --host"]
])("a server that cannot listen %s: says why, and which flag helps", (code, message) => {
  assert.strictEqual(listenFailure(of(code)).message, message)
})

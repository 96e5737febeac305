/**
 * Your own store for the bytes that leave the window, tested with the contract suite. A SessionStore is implemented and
 * tested in the same way, with `SessionStoreContract`.
 *
 *   node own-store.ts        (or: node --test own-store.ts)
 *
 * The rows stand for a table of a database. It prints:
 *
 *   ▶ a table
 *     ✔ names bytes by their SHA-256 in base32, without storing them …
 */
import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import { describe, it } from "node:test"
import { Content, Session } from "palimpsest"
import { TempStoreContract } from "palimpsest/testing"

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

/** Base32 in lower case without padding; a handle is the beginning of it. */
const base32 = (bytes: Uint8Array): string => {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("")
  return (bits.match(/.{1,5}/g) ?? []).map((five) => alphabet[Number.parseInt(five.padEnd(5, "0"), 2)]).join("")
}

const hash = (bytes: Uint8Array | string) =>
  Effect.sync(() => {
    const own = typeof bytes === "string" ? Content.encodeText(bytes) : bytes
    return Content.Hash.make(base32(createHash("sha256").update(own).digest()))
  })

const missing = (name: string) => new Session.TempStoreError({ reason: new Session.BlobMissing({ name }) })

/** Two layers over the same rows stand for one store before and after a restart. */
const table = (rows: Map<string, Uint8Array>) =>
  Layer.succeed(Session.TempStore, {
    hash,
    put: (bytes) =>
      Effect.map(hash(bytes), (name) => {
        rows.set(name, Uint8Array.from(bytes))
        return name
      }),
    get: (name) =>
      Effect.suspend(() => {
        const bytes = rows.get(name)
        return bytes === undefined ? Effect.fail(missing(name)) : Effect.succeed(Uint8Array.from(bytes))
      }),
    resolve: (handle) =>
      Effect.suspend(() => {
        const names = [...rows.keys()].filter((name) => name.startsWith(handle.slice(2)))
        const [name, another] = names
        if (name === undefined) return Effect.fail(missing(handle))
        return another === undefined
          ? Effect.succeed(Content.Hash.make(name))
          : Effect.fail(new Session.TempStoreError({ reason: new Session.HandleAmbiguous({ name: handle }) }))
      })
  })

TempStoreContract.tempStoreContract(
  { describe, it },
  { name: "a table", make: Effect.sync(() => table(new Map())), runs: 20 }
)

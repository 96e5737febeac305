import { Effect, Layer, Scope } from "effect"
import { KeyValueStore } from "effect/persistence"
import { Handle, handleOf, Hash } from "../../../src/domain/content/Handle.ts"
import * as KeyValueSessionBacking from "../../../src/layers/session/KeyValueSessionBacking.ts"
import { sessionBackingContract } from "../../../src/layers/testing/SessionBackingContract.ts"
import { tempStoreContract } from "../../../src/layers/testing/TempStoreContract.ts"
import { SessionBacking, type SessionOwner } from "../../../src/services/session/SessionBacking.ts"
import { hash } from "../../../src/services/session/Sha256.ts"
import { BlobMissing, TempStore, TempStoreError } from "../../../src/services/session/TempStore.ts"
import { firstFailure } from "../../support/contracts.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The contract suites notice mistakes: each of these services has one, and each fails a test of its suite. */

type Store = TempStore["Service"]
type Blobs = Map<string, Uint8Array>
const storeOver = (blobs: Blobs): Store =>
  TempStore.fromBlobs({
    put: (name, bytes) => Effect.sync(() => blobs.set(name, bytes)),
    get: (name) => Effect.sync(() => blobs.get(name)),
    find: (prefix) => Effect.sync(() => [...blobs.keys()].filter((name) => name.startsWith(prefix)))
  })
const missing = (name: string) => Effect.fail(new TempStoreError({ reason: new BlobMissing({ name }) }))
const firstOf = (blobs: Blobs, prefix: string) =>
  Effect.suspend(() => {
    const found = [...blobs.keys()].find((name) => name.startsWith(prefix))
    return found === undefined ? missing(prefix) : Effect.succeed(Hash.make(found))
  })

/** Mistakes of a TempStore, by what differs from one without. */
const storeMutants: Readonly<Record<string, (blobs: Blobs, good: Store) => Partial<Store>>> = {
  "a missing blob is an empty one": (_, { get }) => ({
    get: (name) => Effect.orElseSucceed(get(name), () => new Uint8Array())
  }),
  "a missing blob dies": (_, { get }) => ({ get: (name) => Effect.orDie(get(name)) }),
  "keeps the caller's array": (blobs, good) => ({
    put: (bytes) => Effect.tap(good.hash(bytes), (name) => Effect.sync(() => blobs.set(name, bytes)))
  }),
  "gives its own array": (blobs, { get }) => ({
    get: (name) => Effect.map(get(name), (bytes) => blobs.get(name) ?? bytes)
  }),
  "stores text": (blobs, good) => ({
    put: (bytes) =>
      Effect.tap(good.hash(bytes), (name) =>
        Effect.sync(() => blobs.set(name, new TextEncoder().encode(new TextDecoder().decode(bytes))))
      )
  }),
  "resolves by the first character": (blobs) => ({ resolve: (handle) => firstOf(blobs, handle.slice(2, 3)) }),
  "resolves by ten characters of a longer handle": (_, { resolve }) => ({
    resolve: (handle) => resolve(Handle.make(handle.slice(0, 12)))
  }),
  "takes the first of two": (blobs) => ({ resolve: (handle) => firstOf(blobs, handle.slice(2)) }),
  "names a long text by its beginning": (_, good) => ({
    hash: (bytes) => good.hash(typeof bytes === "string" ? bytes.slice(0, 100) : bytes)
  }),
  "has another hash": (_, good) => ({
    hash: (bytes) => Effect.flatMap(good.hash(bytes), (name) => hash(`salt ${name}`))
  }),
  "fails when bytes are put again": (blobs, good) => ({
    put: (bytes) => Effect.flatMap(good.hash(bytes), (name) => (blobs.has(name) ? missing(name) : good.put(bytes)))
  }),
  "does not check": (blobs) => ({
    get: (name) =>
      Effect.suspend(() => {
        const bytes = blobs.get(name)
        return bytes === undefined ? missing(name) : Effect.succeed(Uint8Array.from(bytes))
      })
  }),
  "drops empty content": (_, good) => ({ put: (bytes) => (bytes.length === 0 ? good.hash(bytes) : good.put(bytes)) }),
  "stores what it hashes": (_, good) => ({
    hash: (bytes) => (typeof bytes === "string" ? good.hash(bytes) : good.put(bytes).pipe(Effect.orDie))
  }),
  "trusts a hash that it is given": (blobs, good) => ({
    put: (bytes: Uint8Array, claimed?: Hash) =>
      claimed === undefined
        ? good.put(bytes)
        : Effect.sync(() => {
            blobs.set(claimed, Uint8Array.from(bytes))
            return claimed
          })
  })
}

const storeFailure = (mutate: (blobs: Blobs, good: Store) => Partial<Store>, isDurable = true) =>
  firstFailure((functions) => {
    let last: Blobs = new Map()
    tempStoreContract(functions, {
      name: "mutant",
      runs: 20,
      make: Effect.sync(() => {
        const blobs: Blobs = new Map()
        last = blobs
        const made = (kept: Blobs) =>
          Layer.sync(TempStore, () => ({ ...storeOver(kept), ...mutate(kept, storeOver(kept)) }))
        return isDurable ? made(blobs) : Layer.unwrap(Effect.sync(() => made(new Map())))
      }),
      damage: (name) => Effect.sync(() => last.set(name, new Uint8Array([1, 2, 3])))
    })
  })

describe("the suite of a TempStore", () => {
  it("passes one without a mistake", async () => assert.isUndefined(await storeFailure(() => ({}))))
  it("notices one that forgets", async () => assert.isDefined(await storeFailure(() => ({}), false)))
  for (const [mistake, mutate] of Object.entries(storeMutants)) {
    it(`notices one that ${mistake}`, async () => assert.isDefined(await storeFailure(mutate)))
  }
})

type Backing = SessionBacking["Service"]

/** Mistakes of a SessionBacking. */
const backingMutants: Readonly<Record<string, (good: Backing) => Partial<Backing>>> = {
  "lets an earlier owner append": (good) => {
    const newest = new Map<string, SessionOwner>()
    return {
      own: (id, takeOver) => Effect.tap(good.own(id, takeOver), (owner) => Effect.sync(() => newest.set(id, owner))),
      append: (owner, line, head) => good.append(newest.get(owner.session) ?? owner, line, head)
    }
  },
  "refuses a line that is there": (good) => ({
    append: (owner, line, head) =>
      Effect.flatMap(good.read(owner.session, line.sequence, line.sequence + 1), (there) =>
        there.length > 0 ? good.append(owner, { ...line, text: `${line.text} ` }, head) : good.append(owner, line, head)
      )
  }),
  "leaves gaps": (good) => ({
    append: (owner, line, head) => Effect.ignore(good.append(owner, line, head)).pipe(Effect.andThen(Effect.void))
  }),
  "reads one line too many": (good) => ({ read: (id, from, to) => good.read(id, from, to + 1) }),
  "gives the first checkpoint": (good) => ({
    lastCheckpoint: (id) =>
      Effect.map(good.read(id, 1, 1_000), (lines) => lines.find(({ isCheckpoint }) => isCheckpoint)?.sequence)
  }),
  "keeps the blobs of a deleted session": (good) => {
    const kept = new Map<string, Uint8Array>()
    return {
      putBlob: (id, name, bytes) =>
        Effect.tap(good.putBlob(id, name, bytes), () =>
          Effect.sync(() => kept.set(`${id}/${name}`, Uint8Array.from(bytes)))
        ),
      getBlob: (id, name) => Effect.sync(() => kept.get(`${id}/${name}`))
    }
  },
  "is never released": (good) => ({
    create: (id, head, lines) =>
      good.create(id, head, lines).pipe(Effect.provideServiceEffect(Scope.Scope, Scope.make())),
    own: (id, takeOver) => good.own(id, takeOver).pipe(Effect.provideServiceEffect(Scope.Scope, Scope.make()))
  }),
  "creates over another": (good) => ({
    create: (id, head, lines) =>
      Effect.catch(good.create(id, head, lines), () => Effect.succeed({ session: id, epoch: 1 }))
  }),
  "deletes a session in use": (good) => ({
    remove: (id) => Effect.andThen(Effect.ignore(Effect.scoped(good.own(id, true))), good.remove(id))
  }),
  "has no lock": (good) => ({ own: (id) => good.own(id, true) }),
  "keeps the first head": (good) => ({ append: (owner, line) => good.append(owner, line) }),
  "shares blobs": (good) => ({
    putBlob: (_, name, bytes) => good.putBlob("all", name, bytes),
    getBlob: (_, name) => good.getBlob("all", name),
    findBlobs: (_, prefix) => good.findBlobs("all", prefix)
  }),
  "ignores the prefix": (good) => ({ findBlobs: (id) => good.findBlobs(id, "") }),
  "renames what is not there": (good) => ({ rename: (id, title) => Effect.ignore(good.rename(id, title)) }),
  "lists all for one": (good) => ({ list: () => good.list() }),
  "has no times": (good) => ({
    list: (id) => Effect.map(good.list(id), (rows) => rows.map((row) => ({ ...row, updatedAt: 0 })))
  }),
  "has no sizes": (good) => ({
    list: (id) => Effect.map(good.list(id), (rows) => rows.map((row) => ({ ...row, bytes: 0 })))
  }),
  "loses titles": (good) => ({
    list: (id) => Effect.map(good.list(id), (rows) => rows.map((row) => ({ ...row, title: undefined })))
  }),
  "does not say who holds": (good) => ({
    list: (id) => Effect.map(good.list(id), (rows) => rows.map((row) => ({ ...row, holder: undefined })))
  }),
  "has one epoch": (good) => ({
    own: (id, takeOver) => Effect.map(good.own(id, takeOver), (owner) => ({ ...owner, epoch: 1 }))
  }),
  "loses characters": (good) => ({
    append: (owner, line, head) => good.append(owner, { ...line, text: line.text.replaceAll("\u2028", " ") }, head)
  }),
  "has no ids": () => ({ ids: Effect.succeed([]) }),
  "deletes what is not there": (good) => ({ remove: (id) => Effect.ignore(good.remove(id)) }),
  "keeps the caller's array": (good) => {
    const kept = new Map<string, Uint8Array>()
    return {
      putBlob: (id, name, bytes) =>
        Effect.tap(good.putBlob(id, name, bytes), () => Effect.sync(() => kept.set(`${id}/${name}`, bytes))),
      getBlob: (id, name) => Effect.map(good.getBlob(id, name), (found) => found && kept.get(`${id}/${name}`))
    }
  }
}

const backingFailure = (mutate: (good: Backing) => Partial<Backing>) =>
  firstFailure((functions) =>
    sessionBackingContract(functions, {
      name: "mutant",
      make: Effect.succeed(
        Layer.effect(
          SessionBacking,
          Effect.map(SessionBacking, (good) => ({ ...good, ...mutate(good) }))
        ).pipe(Layer.provide(KeyValueSessionBacking.make()), Layer.provide(Layer.fresh(KeyValueStore.layerMemory)))
      )
    })
  )

describe("the suite of a SessionBacking", () => {
  it("passes one without a mistake", async () => assert.isUndefined(await backingFailure(() => ({}))))
  for (const [mistake, mutate] of Object.entries(backingMutants)) {
    it(`notices one that ${mistake}`, async () => assert.isDefined(await backingFailure(mutate)))
  }
})

it("names the twins by one handle", () => {
  const [one, two] = ["text d9794ce4b8de8", "text a9e0d8e521c8c"].map((text) => handleOf(Effect.runSync(hash(text))))
  assert.strictEqual(one, two)
})

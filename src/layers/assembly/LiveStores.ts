/** Opens the session store that the environment or the settings name, with its driver. */

import { Config, Context, Effect, FileSystem, Layer, Option, type Path, Scope } from "effect"
import { homedir } from "node:os"
import { parseStoreAddress, type StoreAddress, storeAddressForms } from "../../domain/session/StoreAddress.ts"
import { StoresFiles } from "../../services/session/SessionFiles.ts"
import {
  SessionStore,
  type SessionStoreError,
  sessionUnavailable,
  StoreOpener
} from "../../services/session/SessionStore.ts"
import type { BlobFolder } from "../../services/session/TempStore.ts"
import { Settings } from "../../services/settings/Settings.ts"
import { homeFolder, recordFile } from "../platform/HomeFolder.ts"
import * as FileSessionStore from "../session/FileSessionStore.ts"
import { FileStats, statFiles } from "../session/SessionCatalogue.ts"
import { withSessionErrors } from "../session/SessionStoreErrors.ts"

type Store = SessionStore["Service"]

const openError = (message: string) => sessionUnavailable("open the store", message)

const addressFrom = (source: string, text: string) => {
  const address = parseStoreAddress(text, homedir())
  return address === undefined
    ? Effect.fail(openError(`${source} names no session store; expected ${storeAddressForms}`))
    : Effect.succeed(address)
}

/** The address of the store: the one in `PALIMPSEST_STORE` or the setting `store`, else files in the home folder. */
export const storeAddress = Effect.gen(function* () {
  const settings = yield* Settings
  const variable = yield* Config.option(Config.NonEmptyString("PALIMPSEST_STORE")).pipe(
    Effect.orElseSucceed(Option.none)
  )
  if (Option.isSome(variable)) return yield* addressFrom("PALIMPSEST_STORE", variable.value)
  // With settings that cannot be read, the sessions may be anywhere: those of another store are not shown in their place.
  const { settings: effective } = yield* Effect.mapError(settings.read, ({ message }) => openError(message))
  return yield* addressFrom("the setting store", effective.store ?? "files")
})

/** The layer of a store, whose driver is loaded only here. */
const layerAt = Effect.fnUntraced(function* (address: StoreAddress, files: Layer.Layer<SessionStore>) {
  switch (address._tag) {
    case "Files":
      return files
    case "Sqlite":
      return (yield* Effect.promise(() => import("../session/SqliteSessionStore.ts"))).layer(address.file)
    case "Postgres":
      return (yield* Effect.promise(() => import("../session/PostgresSessionStore.ts"))).layer(address.url)
  }
})

/**
 * A store that is opened when it is first used, so that commands without sessions do not wait for a database. `forget`: deletes what else is kept of a
 * deleted session.
 */
const opensLater = (
  open: Effect.Effect<Store, SessionStoreError>,
  forget: (id: string) => Effect.Effect<void, SessionStoreError>
): Store => ({
  create: (started) => Effect.flatMap(open, (store) => store.create(started)),
  add: (events) => Effect.flatMap(open, (store) => store.add(events)),
  open: (id, options) => Effect.flatMap(open, (store) => store.open(id, options)),
  events: (id) => Effect.flatMap(open, (store) => store.events(id)),
  blobs: (id) => Effect.flatMap(open, (store) => store.blobs(id)),
  list: Effect.flatMap(open, (store) => store.list),
  summaries: Effect.flatMap(open, (store) => store.summaries),
  summary: (id) => Effect.flatMap(open, (store) => store.summary(id)),
  rename: (id, title) => Effect.flatMap(open, (store) => store.rename(id, title)),
  remove: (id) =>
    Effect.andThen(
      Effect.flatMap(open, (store) => store.remove(id)),
      forget(id)
    )
})

const stores = Effect.gen(function* () {
  const context = yield* Effect.context<BlobFolder | FileSystem.FileSystem | Path.Path>()
  const settings = yield* Settings
  const home = yield* homeFolder
  const layerScope = yield* Effect.scope
  const filesOf = (folder: string | undefined) =>
    FileSessionStore.layer(folder ?? `${home}/sessions`).pipe(
      Layer.provide(Layer.succeed(FileStats, statFiles)),
      Layer.provide(Layer.succeedContext(context))
    )
  const openAt = (address: StoreAddress) =>
    layerAt(address, filesOf(address._tag === "Files" ? address.folder : undefined)).pipe(
      Effect.flatMap(Layer.build),
      Effect.map(Context.get(SessionStore))
    )
  const address = yield* Effect.cached(Effect.provideService(storeAddress, Settings, settings))
  const opened = yield* Effect.cached(
    address.pipe(Effect.flatMap(openAt), Effect.provideService(Scope.Scope, layerScope))
  )
  const fs = yield* FileSystem.FileSystem
  // What clients of a server set for the session.
  const forget = (id: string) => withSessionErrors("remove", id)(fs.remove(recordFile(home, id), { force: true }))
  return Context.mergeAll(
    Context.make(SessionStore, opensLater(opened, forget)),
    Context.make(StoreOpener, {
      open: (text) => Effect.flatMap(addressFrom("--to", text), openAt)
    }),
    Context.make(
      StoresFiles,
      Effect.match(address, { onSuccess: ({ _tag }) => _tag === "Files", onFailure: () => false })
    )
  )
})

/** The session store that `PALIMPSEST_STORE` or the setting `store` names, else files of the home folder. */
export const layer = Layer.effectContext(stores)

import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { writeSync } from "node:fs"
import { text } from "../../src/domain/content/Content.ts"
import * as FileKnownHooks from "../../src/layers/hooks/FileKnownHooks.ts"
import * as FileMemory from "../../src/layers/memory/FileMemory.ts"
import * as FileSessionStore from "../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../src/layers/session/FileTempStore.ts"
import * as FileSettings from "../../src/layers/settings/FileSettings.ts"
import * as FileCalibrations from "../../src/layers/tokens/FileCalibrations.ts"
import * as FileTrust from "../../src/layers/workspace/FileTrust.ts"
import { Memory } from "../../src/services/memory/Memory.ts"
import { EnvFiles } from "../../src/services/platform/Environment.ts"
import { SessionStore } from "../../src/services/session/SessionStore.ts"
import { Settings } from "../../src/services/settings/Settings.ts"
import { Calibrations } from "../../src/services/tokens/Calibrations.ts"
import { Trust } from "../../src/services/workspace/Trust.ts"

/**
 * What many processes change at once, each thing by its own service over the same files: to be used in one process, or run as
 * `writer.ts <folder> <kind> <name> <count>`, which says on stdout what was acknowledged, a line each.
 */

export const kinds = ["trust", "setting", "grant", "fact", "project", "hooks", "calibration", "session", "add"] as const
export type Kind = (typeof kinds)[number]

const env = Layer.succeed(EnvFiles, { file: undefined, variables: {}, hidden: [], untrusted: [], notices: [] })

/** All that is changed, over the files of a folder that has `home` and `work` in it. */
export const layersOf = (folder: string) =>
  Layer.fresh(
    Layer.mergeAll(
      FileTrust.layer(`${folder}/home/trusted-folders.json`, { environment: {}, user: `${folder}/user` }),
      FileSettings.layer(`${folder}/home`, () => Effect.succeed("trusted")).pipe(Layer.provide(env)),
      FileMemory.layer({
        home: `${folder}/home`,
        geminiHome: `${folder}/user/.gemini`,
        extensions: [],
        root: `${folder}/work`,
        isTrusted: () => Effect.succeed(true)
      }),
      FileCalibrations.layer(`${folder}/home/calibrations.json`),
      FileSessionStore.layer(`${folder}/home/sessions`).pipe(Layer.provide(FileTempStore.folders))
    ).pipe(Layer.provideMerge(NodeServices.layer))
  )

/** One change that is acknowledged when it is done. Names are letters and digits. */
export const write = (
  folder: string,
  kind: Kind,
  name: string
): Effect.Effect<unknown, unknown, Layer.Success<ReturnType<typeof layersOf>>> => {
  switch (kind) {
    case "trust":
      // A folder that is gone may be forgotten, but not trusted.
      return Trust.use((_) => _.set(`${folder}/work/${name}`, "untrusted"))
    case "setting":
      return Settings.use((_) => _.set("home", ["models", name], { window: 1_000 }))
    case "grant":
      return Settings.use((_) => _.allow([`run ${name}`]))
    case "fact":
    case "project": {
      const scope = kind === "fact" ? "global" : "project"
      return Memory.use((_) => Effect.flatMap(_.plan(`Remember ${name} well`, scope), _.save))
    }
    case "hooks":
      return FileKnownHooks.noteHooks(`${folder}/home/known-hooks.json`, `/work/${name}`, [
        {
          source: "workspace",
          event: "AfterTool",
          matcher: undefined,
          sequential: false,
          command: name,
          name: undefined,
          description: undefined,
          timeout: undefined,
          env: {}
        }
      ])
    case "calibration":
      // Another model each: what is lost is missing.
      return Calibrations.use((_) => _.observe(name, [text("some words of a request")], 9))
    case "session":
      return Effect.scoped(
        SessionStore.use((_) => _.create({ _tag: "Started", version: 2, session: name, at: 1, estimator: "x" }))
      )
    case "add":
      return SessionStore.use((_) =>
        _.add([{ _tag: "Started", version: 1, session: `added-${name}`, at: 1, estimator: "x" }])
      )
  }
}

const [, script, folder, kind, name, count] = process.argv
const isKind = (given: string | undefined): given is Kind => kinds.some((each) => each === given)

if (script === import.meta.filename && folder !== undefined && isKind(kind)) {
  const all = Effect.forEach(
    Array.from({ length: Number(count) }, (_, index) => `${name}x${index}`),
    (each) => Effect.tap(write(folder, kind, each), () => Effect.sync(() => writeSync(1, `${each}\n`))),
    { discard: true }
  )
  await Effect.runPromise(Effect.provide(all, layersOf(folder)))
}

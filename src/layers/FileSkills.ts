import { ByteSize, Effect, FileSystem, Layer, Path, type PlatformError, Result } from "effect"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { parseSkill, type SkillFile, skillFile } from "../domain/Skill.ts"
import { type ActiveSkill, type KnownSkills, type Skill, Skills } from "../services/Skills.ts"
import * as NoFollow from "./NoFollow.ts"

/** A folder that may hold skills, one folder each. */
export interface SkillFolder {
  readonly folder: string
  /** It is the person's own: nobody is asked whether it is trusted. */
  readonly isOwn: boolean
}

/**
 * Where skills lie, the folder that counts most first: of two with one name the earlier counts. The person's own come before
 * those of the workspace, as agents do (spec 9): a folder of somebody else's does not take their place.
 */
export const folders = (workspace: string, home: string): Effect.Effect<ReadonlyArray<SkillFolder>, never, Path.Path> =>
  Effect.map(Path.Path, (path) => {
    const both = (base: string) => [
      path.resolve(base, ".palimpsest", "skills"),
      path.resolve(base, ".gemini", "skills")
    ]
    const own = both(home)
    const shared = both(workspace).filter((folder) => !own.includes(folder))
    return [...own.map((folder) => ({ folder, isOwn: true })), ...shared.map((folder) => ({ folder, isOwn: false }))]
  })

/** No instructions are that long; a log or a device in their place is not read. */
const mostBytes = ByteSize.mebibytes(1)
/** Files of a skill's folder that are listed, and how deep it is looked into. */
const mostFiles = 200
const deepest = 8
/** Folders whose files nobody means. */
const skipped = new Set(["node_modules", ".git"])

/** Also where a file stands in the place of a folder. */
const isNotThere = ({ reason }: PlatformError.PlatformError) =>
  reason._tag === "NotFound" || reason._tag === "BadResource"

interface Found {
  readonly skill: Skill
  readonly file: SkillFile
}

/**
 * The skills in these folders. They are looked for when somebody asks; a broken one stops no other. One that is not the
 * person's own counts only if the folders that it really lies in are trusted: a link may lead to another.
 */
export const layer = (
  places: ReadonlyArray<SkillFolder>,
  isTrusted: (folder: string) => Effect.Effect<boolean>
): Layer.Layer<Skills, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Skills,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { files } = yield* NoFollow.make
      const safe = files(fs)

      const elsewhere = (file: string, real: string) =>
        `${file}: it lies in ${real}, which is not trusted; it was left out`

      /** A folder's skill; a text: why it has none that can be used; undefined: it is no skill. */
      const read = Effect.fnUntraced(
        function* (folder: string, isOwn: boolean) {
          const file = path.join(folder, skillFile)
          const place = isOwn ? file : yield* fs.realPath(file)
          if (!isOwn) {
            for (const real of new Set([yield* fs.realPath(folder), path.dirname(place)])) {
              if (!(yield* isTrusted(real))) return elsewhere(file, real)
            }
          }
          // What was asked about is what is read.
          const opened = isOwn ? fs : safe
          const { size, type } = yield* opened.stat(place)
          if (type !== "File") return `${file}: expected a file`
          if (ByteSize.isGreaterThan(size, mostBytes)) return `${file}: expected at most 1 MiB`
          const parsed = parseSkill(yield* opened.readFileString(place))
          if (Result.isFailure(parsed)) return `${file}: ${parsed.failure}`
          const { description, name } = parsed.success
          return { skill: { name, description, folder }, file: parsed.success }
        },
        (work, folder): Effect.Effect<Found | string | undefined> =>
          work.pipe(
            Effect.catchIf(isNotThere, () => Effect.undefined),
            Effect.catch((error) => Effect.succeed(`${path.join(folder, skillFile)}: ${diskTrouble(error)}`))
          )
      )

      const inside = Effect.fnUntraced(function* ({ folder: place, isOwn }: SkillFolder) {
        const real = isOwn ? undefined : yield* Effect.orElseSucceed(fs.realPath(place), () => undefined)
        if (real !== undefined && !(yield* isTrusted(real))) return [elsewhere(place, real)]
        const names = yield* fs.readDirectory(place).pipe(
          Effect.catchIf(isNotThere, () => Effect.succeed([])),
          Effect.catch((error) => Effect.succeed(`${place}: ${diskTrouble(error)}`))
        )
        if (typeof names === "string") return [names]
        return yield* Effect.forEach(names.toSorted(), (name) => read(path.join(place, name), isOwn), {
          concurrency: 8
        })
      })

      const find = Effect.gen(function* () {
        const found = (yield* Effect.forEach(places, inside)).flat()
        const skills = new Map<string, Found>()
        for (const one of found) {
          if (typeof one === "object" && !skills.has(one.skill.name)) skills.set(one.skill.name, one)
        }
        return { skills, notices: found.filter((one) => typeof one === "string") }
      })

      /** Files below a folder, one level after the other, so that what is left out lies deepest. */
      const filesOf = Effect.fnUntraced(function* (folder: string) {
        const files: Array<string> = []
        let level: ReadonlyArray<string> = [""]
        for (let depth = 0; depth < deepest && level.length > 0 && files.length <= mostFiles; depth += 1) {
          const next: Array<string> = []
          for (const below of level) {
            const names = yield* fs
              .readDirectory(path.join(folder, below))
              .pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))
            for (const name of names.toSorted()) {
              if (files.length > mostFiles) break
              const here = below === "" ? name : `${below}/${name}`
              const place = path.join(folder, here)
              // Links are not followed: they may lead round in circles, or anywhere.
              const type = yield* fs.lstat(place).pipe(
                Effect.map((info) => info.type),
                Effect.orElseSucceed(() => undefined)
              )
              if (type === "File" && here !== skillFile) files.push(here)
              if (type === "Directory" && !skipped.has(name)) next.push(here)
            }
          }
          level = next
        }
        return { files: files.slice(0, mostFiles), hasMore: files.length > mostFiles }
      })

      return {
        all: Effect.map(find, ({ notices, skills }): KnownSkills => ({
          notices,
          skills: [...skills.values()].map(({ skill }) => skill).toSorted((a, b) => (a.name < b.name ? -1 : 1))
        })).pipe(Effect.withSpan("Skills.all")),
        load: Effect.fn("Skills.load")(function* (name): Effect.fn.Return<ActiveSkill | undefined> {
          const found = (yield* find).skills.get(name)
          if (found === undefined) return undefined
          const { file, skill } = found
          return { ...skill, instructions: file.instructions, ...(yield* filesOf(skill.folder)) }
        })
      }
    })
  )

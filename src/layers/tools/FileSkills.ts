import { ByteSize, Effect, FileSystem, Layer, Path, type PlatformError, Result } from "effect"
import { parseSkill, type SkillFile, skillFile } from "../../domain/agent/Skill.ts"
import type { UnusableFile } from "../../domain/agent/UnusableFile.ts"
import { diskErrorText, isMissingPath } from "../../domain/text/DiskErrors.ts"
import { type ActiveSkill, type Skill, Skills } from "../../services/tools/Skills.ts"
import * as NoFollow from "../platform/NoFollow.ts"

/** Reads skills from folders of the user and of the workspace. */

/** A folder that contains skills, one folder each. */
interface SkillFolder {
  readonly folder: string
  /** Whether the folder is the user's own and needs no trust. */
  readonly isOwn: boolean
}

/**
 * Returns the skill folders, in order of precedence: of two skills with one name the earlier counts. The user's folders come before
 * those of the workspace, as with agents, so a foreign folder cannot replace the user's skills.
 */
export const skillFolders = (workspace: string, home: string) =>
  Effect.map(Path.Path, (path) => {
    const both = (base: string) => [
      path.resolve(base, ".palimpsest", "skills"),
      path.resolve(base, ".gemini", "skills")
    ]
    const own = both(home)
    const shared = both(workspace).filter((folder) => !own.includes(folder))
    return [...own.map((folder) => ({ folder, isOwn: true })), ...shared.map((folder) => ({ folder, isOwn: false }))]
  })

/** Maximum size of a skill. Instructions are never larger; a log or a device in their place is not read. */
const maxSkillBytes = ByteSize.mebibytes(1)
/** Maximum number of listed files of a skill's folder, and maximum depth of the listing. */
const maxListedFiles = 200
const maxFolderDepth = 8
/** Folders whose files are never listed. */
const skippedFolders = new Set(["node_modules", ".git"])

const unusable = (file: string, reason: UnusableFile["reason"]): UnusableFile => ({
  file,
  reason
})

/** The folders of skills, and how they are read. */
interface SkillShelf {
  readonly fs: FileSystem.FileSystem
  /** A file system that follows no links. */
  readonly safe: FileSystem.FileSystem
  readonly path: Path.Path
  readonly places: ReadonlyArray<SkillFolder>
  readonly isTrusted: (folder: string) => Effect.Effect<boolean>
}

const elsewhere = (file: string, real: string) => unusable(file, { _tag: "Untrusted", folder: real })
const unreadable = (file: string, error: PlatformError.PlatformError) =>
  unusable(file, { _tag: "Unreadable", detail: diskErrorText(error) })

/** Reads a folder's skill. Undefined when the folder is no skill. */
const read = Effect.fnUntraced(
  function* ({ fs, isTrusted, path, safe }: SkillShelf, folder: string, isOwn: boolean) {
    const file = path.join(folder, skillFile)
    const place = isOwn ? file : yield* fs.realPath(file)
    if (!isOwn) {
      for (const real of new Set([yield* fs.realPath(folder), path.dirname(place)])) {
        if (!(yield* isTrusted(real))) return elsewhere(file, real)
      }
    }
    // Reads exactly the file whose trust was checked.
    const opened = isOwn ? fs : safe
    const { size, type } = yield* opened.stat(place)
    if (type !== "File") return unusable(file, { _tag: "NoFile" })
    if (ByteSize.isGreaterThan(size, maxSkillBytes)) return unusable(file, { _tag: "TooLarge" })
    const parsed = parseSkill(yield* opened.readFileString(place))
    if (Result.isFailure(parsed)) return unusable(file, { _tag: "InvalidSkill", problem: parsed.failure })
    const { description, name } = parsed.success
    return { skill: { name, description, folder }, file: parsed.success }
  },
  (work, { path }, folder) =>
    work.pipe(
      Effect.catchIf(isMissingPath, () => Effect.undefined),
      Effect.catch((error) => Effect.succeed(unreadable(path.join(folder, skillFile), error)))
    )
)

/** Reads the skills of one folder. */
const inside = Effect.fnUntraced(function* (shelf: SkillShelf, { folder: place, isOwn }: SkillFolder) {
  const { fs, isTrusted, path } = shelf
  const real = isOwn ? undefined : yield* Effect.orElseSucceed(fs.realPath(place), () => undefined)
  if (real !== undefined && !(yield* isTrusted(real))) return [elsewhere(place, real)]
  const names = yield* fs.readDirectory(place).pipe(
    Effect.catchIf(isMissingPath, () => Effect.succeed([])),
    Effect.result
  )
  if (Result.isFailure(names)) return [unreadable(place, names.failure)]
  return yield* Effect.forEach(names.success.toSorted(), (name) => read(shelf, path.join(place, name), isOwn), {
    concurrency: 8
  })
})

/** All skills by name, and what cannot be used. */
const find = Effect.fnUntraced(function* (shelf: SkillShelf) {
  const found = (yield* Effect.forEach(shelf.places, (place) => inside(shelf, place))).flat()
  const skills = new Map<string, { readonly skill: Skill; readonly file: SkillFile }>()
  for (const one of found) {
    if (one !== undefined && "skill" in one && !skills.has(one.skill.name)) skills.set(one.skill.name, one)
  }
  return { skills, problems: found.filter((one) => one !== undefined && "reason" in one) }
})

/** Lists the files below a folder level by level, so that the deepest ones are left out first. */
const filesOf = Effect.fnUntraced(function* ({ fs, path }: SkillShelf, folder: string) {
  const files: Array<string> = []
  let level: ReadonlyArray<string> = [""]
  for (let depth = 0; depth < maxFolderDepth && level.length > 0 && files.length <= maxListedFiles; depth += 1) {
    const next: Array<string> = []
    for (const below of level) {
      const names = yield* fs
        .readDirectory(path.join(folder, below))
        .pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))
      for (const name of names.toSorted()) {
        if (files.length > maxListedFiles) break
        const here = below === "" ? name : `${below}/${name}`
        const place = path.join(folder, here)
        // Does not follow links: they may form cycles or lead anywhere.
        const type = yield* fs.lstat(place).pipe(
          Effect.map((info) => info.type),
          Effect.orElseSucceed(() => undefined)
        )
        if (type === "File" && here !== skillFile) files.push(here)
        if (type === "Directory" && !skippedFolders.has(name)) next.push(here)
      }
    }
    level = next
  }
  return { files: files.slice(0, maxListedFiles), hasMore: files.length > maxListedFiles }
})

const all = Effect.fn("Skills.all")(function* (shelf: SkillShelf) {
  const { problems, skills } = yield* find(shelf)
  return {
    problems,
    skills: [...skills.values()].map(({ skill }) => skill).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }
})

const load = Effect.fn("Skills.load")(function* (shelf: SkillShelf, name: string) {
  const found = (yield* find(shelf)).skills.get(name)
  if (found === undefined) return undefined
  const { file, skill } = found
  return { ...skill, instructions: file.instructions, ...(yield* filesOf(shelf, skill.folder)) } satisfies ActiveSkill
})

/**
 * The skills in these folders. They are read on request; a broken one does not affect the others. A skill outside the user's own
 * folders counts only if the folders that really contain it are trusted, because a link may lead to another folder.
 */
export const layer = (places: ReadonlyArray<SkillFolder>, isTrusted: (folder: string) => Effect.Effect<boolean>) =>
  Layer.effect(
    Skills,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { files } = yield* NoFollow.make
      const shelf: SkillShelf = { fs, safe: files(fs), path: yield* Path.Path, places, isTrusted }
      return { all: all(shelf), load: (name) => load(shelf, name) }
    })
  )

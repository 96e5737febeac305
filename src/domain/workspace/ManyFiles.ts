/** Which files are read when many are asked for at once. */

import type { FileKind } from "./FileKind.ts"

/** Files and folders that are left out by default. */
export const defaultExcludes = [
  ..."node_modules .git bower_components .svn .hg .vscode .idea dist build coverage __pycache__"
    .split(" ")
    .map((folder) => `**/${folder}/**`),
  "**/*.{zip,tar,gz,bz2,xz,7z,rar,jar,war,exe,dll,so,dylib,class,o,a,bin,dat,wasm,pyc,pyo}",
  "**/*.{doc,docx,xls,xlsx,ppt,pptx,odt,ods,odp}",
  "**/.DS_Store",
  "**/.env"
]

/** Maximum bytes read at once, so that a pattern that matches everything ends. */
export const maxTotalBytes = 20 * 1_024 * 1_024

/** Maximum number of files read at once: even small files take time. */
export const maxFiles = 2_000

/** Whether a path looks like a glob pattern. A file may still have that name. */
export const isPattern = (text: string): boolean => /[*?[\]{}]/.test(text)

/** Whether a pattern names such files explicitly, by extension or by name. */
export const asksFor = (pattern: string, base: string, ending: string): boolean => {
  const lower = pattern.toLowerCase()
  const name = ending === "" ? base : base.slice(0, -ending.length)
  return (ending !== "" && lower.includes(ending.toLowerCase())) || lower.includes(name.toLowerCase())
}

/** Returns why a file of this kind is skipped. Undefined: it is read. */
export const skipReason = (kind: FileKind, isAskedFor: boolean): string | undefined =>
  kind._tag === "Binary"
    ? "binary"
    : kind._tag === "Media" && !isAskedFor
      ? `${kind.what}, not requested by name`
      : undefined

/** A file that was not read, and why. */
export interface Skipped {
  readonly file: string
  readonly why: string
}

const maxNamedFiles = { read: 10, skipped: 5 }

/** Returns a few lines for the user on which files were read and which were not. */
export const summary = (read: ReadonlyArray<string>, skipped: ReadonlyArray<Skipped>): string => {
  const more = (all: number, shown: number) => (all > shown ? [`… and ${all - shown} more`] : [])
  return [
    `${read.length} ${read.length === 1 ? "file" : "files"} read`,
    ...read.slice(0, maxNamedFiles.read),
    ...more(read.length, maxNamedFiles.read),
    ...(skipped.length === 0 ? [] : [`${skipped.length} skipped`]),
    ...skipped.slice(0, maxNamedFiles.skipped).map(({ file, why }) => `${file}: ${why}`),
    ...more(skipped.length, maxNamedFiles.skipped)
  ].join("\n")
}

/** Images that are pasted or dropped into the editor: a message refers to each with an `@`, which sends it. */

import { Option } from "effect"
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { leadsOut } from "../../domain/text/WorkspacePath.ts"
import { formatReference } from "../../domain/workspace/AtReference.ts"

const imageEnding = /\.(?:png|jpe?g|gif|webp|heic|heif)$/i
/** A larger file cannot be sent. */
const maxImageBytes = 20 * 1_024 * 1_024
/** Older copies are deleted; images that were sent are stored in their session. */
const maxCopyMillis = 7 * 24 * 60 * 60 * 1_000

/** The path that a pasted text names when it is an image: as a shell quotes it, as an address, or as it is. */
export const imagePath = (pasted: string): string | undefined => {
  const text = pasted.trim()
  if (text === "" || text.includes("\n") || text.length > 4_096) return undefined
  const quoted = /^(["'])(.*)\1$/.exec(text)?.[2]
  const name = quoted ?? (text.startsWith("file://") ? text : text.replace(/\\(.)/g, "$1"))
  if (!imageEnding.test(name)) return undefined
  if (name.startsWith("file://")) return Option.getOrUndefined(Option.liftThrowable(fileURLToPath)(name))
  return name.startsWith("/") || /^[a-z]:[\\/]/i.test(name) ? name : undefined
}

const removeOld = (folder: string) => {
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name)
    if (Date.now() - statSync(file).mtimeMs > maxCopyMillis) rmSync(file, { force: true })
  }
}

/** Keeps an image where tools may read it, and returns the reference to it. */
export const keep = (folder: string, bytes: Uint8Array, ending: string): string | undefined => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  removeOld(folder)
  const name = createHash("sha256").update(bytes).digest("hex").slice(0, 12)
  const file = path.join(folder, `${name}${ending.toLowerCase()}`)
  writeFileSync(file, bytes, { mode: 0o600 })
  return formatReference(file)
}

const referenceTo = (file: string, folder: string): string | undefined => {
  const info = statSync(file)
  if (!info.isFile() || info.size > maxImageBytes) return undefined
  const inside = path.relative(process.cwd(), file)
  return leadsOut(inside) || path.isAbsolute(inside)
    ? keep(folder, readFileSync(file), path.extname(file))
    : formatReference(inside)
}

/** Returns the reference to the image that a pasted text names; any other text unchanged. `folder` takes copies of images from outside. */
export const withReference = (text: string, folder: string): string => {
  const file = imagePath(text)
  if (file === undefined) return text
  const reference = Option.getOrUndefined(Option.liftThrowable(referenceTo)(file, folder))
  return reference === undefined ? text : `${reference} `
}

/**
 * Node's services, with paths resolved by the system, appends without the thread pool, and
 * folders that are made or refused in bounded time (MakeFolders.ts). The layer of platform-node stats every folder of a path separately,
 * one after the other, each in a trip through the thread pool.
 */

import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, PlatformError, Predicate } from "effect"
import { fstatSync, realpath, writeSync } from "node:fs"
import { errorText } from "../../domain/text/ErrorText.ts"
import { failed } from "./CheckedPaths.ts"
import { infoOf } from "./DescriptorPaths.ts"
import { makingFolders } from "./MakeFolders.ts"

// Files that are appended to, such as the log of a session. A small write only copies bytes into the memory of the system, and the state of an
// open file is there already: both take microseconds, and a trip through the thread pool takes ten times as long. A sync waits for
// the disk and stays in the pool.

/** Writes up to this size are made at once. */
const maxDirectBytes = 64 * 1024

const attempt = <A>(method: string, work: () => A) =>
  Effect.try({
    try: work,
    catch: (cause) => failed(method, "", cause instanceof Error ? cause : new Error(String(cause)))
  })

/** Writes all bytes at the end. Throws when the disk takes only a part of them. */
const writeAllSync = (descriptor: number, bytes: Uint8Array): void => {
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at)
}

/** Returns a file that was opened for appending, with small writes and its state without the thread pool. */
const direct = (file: FileSystem.File): FileSystem.File => {
  const descriptor = Predicate.hasProperty(file, "fd") ? file.fd : undefined
  // Writing to a pipe or a device may wait.
  if (typeof descriptor !== "number" || !fstatSync(descriptor).isFile()) return file
  const isDirect = (bytes: Uint8Array) => bytes.length <= maxDirectBytes
  return {
    [FileSystem.FileTypeId]: FileSystem.FileTypeId,
    stat: attempt("stat", () => infoOf(descriptor)),
    seek: (offset, from) => file.seek(offset, from),
    sync: file.sync,
    read: (buffer, options) => file.read(buffer, options),
    readAlloc: (size, options) => file.readAlloc(size, options),
    truncate: (length) => file.truncate(length),
    write: (bytes) => (isDirect(bytes) ? attempt("write", () => writeSync(descriptor, bytes)) : file.write(bytes)),
    writeAll: (bytes) =>
      isDirect(bytes) ? attempt("writeAll", () => writeAllSync(descriptor, bytes)) : file.writeAll(bytes)
  }
}

const realPath = Effect.effectify(
  realpath.native,
  (error, [place]) => failed("realPath", String(place), error),
  (error) =>
    PlatformError.badArgument({
      module: "FileSystem",
      method: "realPath",
      description: errorText(error)
    })
)

/** The services of Node that a program needs. */
export const layer: Layer.Layer<NodeServices.NodeServices> = Layer.effect(
  FileSystem.FileSystem,
  Effect.map(FileSystem.FileSystem, (fs) => ({
    ...fs,
    makeDirectory: makingFolders(fs),
    realPath: (place) => realPath(place),
    open: (place, options) =>
      options?.flag === "a" ? Effect.map(fs.open(place, options), direct) : fs.open(place, options)
  }))
).pipe(Layer.provideMerge(NodeServices.layer))

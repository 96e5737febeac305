/**
 * The parts of the program: scripts whose compiled code can be cached in a file of ours. Node's own cache holds only what was
 * compiled at the first run's start, depends on the user and the folder, and does not exist in Node 20. The package holds no caches, because they would be four fifths of
 * it: the first run of a command takes about 0.1 s more, and writes one to the user's folder.
 */
const [fs, path, vm, zlib] = ["node:fs", "node:path", "node:vm", "node:zlib"].map((name) =>
  process.getBuiltinModule(name)
)

/** Whether nobody but this user can have written a file. A cache is code. */
const isPrivate = (file) => {
  const { getuid } = process
  if (getuid === undefined) return true
  return [file, path.dirname(file)].every((place) => {
    const { mode, uid } = fs.statSync(place)
    return uid === getuid() && (mode & 0o022) === 0
  })
}

/**
 * Reads a cache: a line with the checksum of the rest, one for each part with its name and size, an empty line, and V8's data one
 * after another. V8 checks its version and the length of the source, not the data. Returns undefined when there is none or it is
 * broken.
 */
const readCache = (file, isOwn) => {
  try {
    if (isOwn && !isPrivate(file)) return undefined
    const bytes = fs.readFileSync(file)
    const start = bytes.indexOf("\n") + 1
    if (Number(bytes.latin1Slice(0, start)) !== zlib.crc32(bytes.subarray(start))) return undefined
    const end = bytes.indexOf("\n\n")
    const codes = new Map()
    let at = end + 2
    for (const line of bytes.latin1Slice(start, end).split("\n")) {
      const [name, size] = line.split(" ")
      codes.set(name, bytes.subarray(at, at + Number(size)))
      at += Number(size)
    }
    return codes
  } catch {
    return undefined
  }
}

/** The name that marks the cache of a run that failed: it has not seen all that the command does. */
const unfinished = "unfinished"

/** Builds of which no cache was written for this long are gone, or next to unused. */
const maxAgeMillis = 30 * 24 * 3_600_000

/** Removes the caches of old builds. */
const removeOld = (folder) => {
  for (const name of fs.readdirSync(path.dirname(folder))) {
    const place = path.join(path.dirname(folder), name)
    if (/^[\da-f]{16}$/.test(name) && place !== folder && Date.now() - fs.statSync(place).mtimeMs > maxAgeMillis) {
      fs.rmSync(place, { recursive: true, force: true })
    }
  }
}

/** Writes a cache by renaming a new file into place. Without permission, there is no cache. */
const writeCache = (file, parts) => {
  const fresh = `${file}.${process.pid}.tmp`
  const sizes = parts.map(([name, code]) => `${name} ${code.length}`)
  const rest = Buffer.concat([Buffer.from(`${sizes.join("\n")}\n\n`), ...parts.map(([, code]) => code)])
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    try {
      fs.writeFileSync(fresh, Buffer.concat([Buffer.from(`${zlib.crc32(rest)}\n`), rest]), { flag: "wx", mode: 0o600 })
      fs.renameSync(fresh, file)
    } finally {
      fs.rmSync(fresh, { force: true })
    }
    removeOld(path.dirname(path.dirname(file)))
  } catch {
    // The next run tries again.
  }
}

/**
 * Returns a function that loads a part of `folder` by its name. Compiled code comes from the first of the cache files that exists.
 * When V8 refuses it or a part is missing, the first file is written as the process ends, with all functions that have run. Code that V8
 * accepted stays as it is, because a long run would add functions that most runs only load. What a
 * run that failed wrote is used, and written again by the next that ends well. `isSignalled`: to be stopped by a signal, or with the terminal, is to end well.
 * V8 refuses code that it compiled with other flags: `whileCompiling` runs work with the usual ones.
 */
export const partsIn = (folder, { caches = [], isSignalled = false, meta, whileCompiling = (work) => work() }) => {
  let cache
  for (const [at, file] of caches.entries()) cache ??= readCache(file, at === 0)
  const isFinished = cache?.has(unfinished) !== true
  let isComplete = isFinished
  const scripts = new Map()
  const loaded = new Map()
  const late = new Map()
  const load = (name) => {
    const known = loaded.get(name)
    if (known !== undefined) return known
    const filename = path.join(folder, name)
    const script = whileCompiling(
      () => new vm.Script(fs.readFileSync(filename, "latin1"), { filename, cachedData: cache?.get(name) })
    )
    isComplete &&= script.cachedDataRejected === false
    scripts.set(name, script)
    const exports = {}
    loaded.set(name, exports)
    late.set(name, script.runInThisContext()(load, exports, meta))
    return exports
  }
  // Exports that are computed at their first use are functions to other parts, and values here.
  load.all = (name) => {
    const exports = load(name)
    const all = { ...exports }
    for (const key of late.get(name)) Object.defineProperty(all, key, { get: exports[key], enumerable: true })
    return all
  }
  const [own] = caches
  if (own === undefined) return load
  process.on("exit", (code) => {
    const isWell = code === 0 || (isSignalled && [129, 130, 143].includes(code))
    // Another signal ends a process in the middle of things.
    if (isComplete || (!isWell && (code > 2 || cache !== undefined))) return
    const isKept = isFinished && [...scripts.values()].every((script) => script.cachedDataRejected !== true)
    const codes = new Map(isKept ? cache : [])
    whileCompiling(() => {
      for (const [name, script] of scripts) if (!codes.has(name)) codes.set(name, script.createCachedData())
    })
    if (!isWell) codes.set(unfinished, Buffer.alloc(0))
    writeCache(own, [...codes])
  })
  return load
}

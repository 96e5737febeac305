import { spawnSync } from "node:child_process"
import { chmodSync, statfsSync, writeFileSync } from "node:fs"
import { mkdtemp, readdir, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"

/** Linux keeps this folder in memory. Tests wait for the disk thousands of times, and cannot tell the difference. */
const memory = "/dev/shm"
/** The largest files of the tests, many times over. */
const enough = 4 * 1024 * 1024 * 1024

/** In containers it may be small, and may not allow starting programs. */
const isUsable = async (): Promise<boolean> => {
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (bavail * bsize < enough) return false
    const folder = await mkdtemp(path.join(memory, "pal-try-"))
    const program = path.join(folder, "program")
    writeFileSync(program, "#!/bin/sh\n")
    chmodSync(program, 0o755)
    const { status } = spawnSync(program)
    await rm(folder, { recursive: true })
    return status === 0
  } catch {
    return false
  }
}

/** Removes the folder of a run that was killed: its process number is in the folder's name, and an hour has passed. */
const clear = async (parent: string): Promise<void> => {
  for (const name of await readdir(parent)) {
    const [, pid] = /^pal-test-(\d+)-/.exec(name) ?? []
    if (pid === undefined || isRunning(Number(pid))) continue
    const folder = path.join(parent, name)
    const age = await stat(folder).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0
    )
    if (age > 3_600_000) await rm(folder, { recursive: true, force: true }).catch(() => {})
  }
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** The variable of processes that are given an environment of their own: without compiled code, starting the program takes twice the processor's time. */
export const sharedCode = { PALIMPSEST_CODE_CACHE: process.env["PALIMPSEST_CODE_CACHE"] ?? "" }

/**
 * One folder for all files that tests write, removed when the run ends. Tests find it as PALIMPSEST_TEST_FOLDER, and the
 * programs they start put their temporary files there too.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const own = process.env["TMPDIR"]
  const parent = (own === undefined || own === "") && (await isUsable()) ? memory : tmpdir()
  await clear(parent)
  const folder = await mkdtemp(path.join(parent, `pal-test-${process.pid}-`))
  process.env["PALIMPSEST_TEST_FOLDER"] = folder
  process.env["TMPDIR"] = folder
  // The first run of a command in the built program saves what Node compiled; later runs of any test start faster.
  process.env["PALIMPSEST_CODE_CACHE"] = path.join(folder, "code")
  return () => rm(folder, { recursive: true, force: true, maxRetries: 3 })
}

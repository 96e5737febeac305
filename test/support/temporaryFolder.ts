import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"

/** One folder for all that tests write to disk, removed when the run is over. Tests find it as PALIMPSEST_TEST_FOLDER. */
export default async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(path.join(tmpdir(), "palimpsest-test-"))
  process.env["PALIMPSEST_TEST_FOLDER"] = folder
  return () => rm(folder, { recursive: true, force: true })
}

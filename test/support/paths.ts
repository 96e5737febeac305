import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import process from "node:process"

/** The root folder of the project. */
export const root = path.resolve(import.meta.dirname, "../..")

/** A new folder for what a test writes. It is removed when the run ends. */
export const newFolder = (prefix = "test-"): string =>
  mkdtempSync(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), prefix))

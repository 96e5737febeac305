/** `npm run build`: the command line as one file, dist/palimpsest.mjs, for Node 20 and newer. */
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

/** Builds the bundle at `file`. Whoever runs an older one meanwhile keeps it: the new one is renamed into place. */
export const build = async (file = path.join(root, "dist", "palimpsest.mjs")) => {
  const { version } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8"))
  const bundle = await rolldown({
    input: path.join(root, "src", "cli", "main.ts"),
    platform: "node",
    transform: { target: "node20", define: { PALIMPSEST_VERSION: JSON.stringify(version) } }
  })
  const { output } = await bundle.generate({
    format: "esm",
    codeSplitting: false,
    // Half the time to read and compile; names stay in messages because none of ours depends on a function's name.
    minify: true,
    comments: { legal: false },
    banner: "#!/usr/bin/env node"
  })
  await bundle.close()
  await mkdir(path.dirname(file), { recursive: true })
  const fresh = `${file}.${process.pid}.tmp`
  try {
    await writeFile(fresh, output[0].code)
    await chmod(fresh, 0o755)
    await rename(fresh, file)
  } finally {
    await rm(fresh, { force: true })
  }
  return file
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = await build(process.argv[2])
  console.error(`built ${path.relative(process.cwd(), file)}`)
}

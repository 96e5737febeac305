import { readdirSync } from "node:fs"
import path from "node:path"
import process from "node:process"
import { Readable } from "node:stream"
import { pathToFileURL } from "node:url"
import { partsIn } from "../../scripts/parts.mjs"

/**
 * Runs the built program again and again in one process, one run after the other: each has arguments, variables, a folder and standard
 * input of its own, and is told back as it would have ended. What a start costs is paid once.
 */

const [, , bundle = ""] = process.argv
const parts = path.join(path.dirname(bundle), "parts")
const [build = ""] = readdirSync(parts)
const meta = {
  url: pathToFileURL(bundle).href,
  dirname: path.join(parts, build),
  /** @param {string} name */
  import: (name) => import(name)
}
const { exit } = process
const keptListeners = process.eventNames().flatMap((name) => process.listeners(name))

let loadedFor
let main

const bytesOf = (stream) => {
  const pieces = []
  stream.removeAllListeners("error")
  stream.write = (piece, ...rest) => {
    pieces.push(Buffer.from(piece))
    const [callback] = rest.filter((one) => typeof one === "function")
    if (callback !== undefined) process.nextTick(callback)
    return true
  }
  return () => Buffer.concat(pieces)
}

process.on("message", ({ args, cwd, env, input }) => {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  process.argv = [process.execPath, bundle, ...args]
  Object.defineProperty(process, "stdin", { configurable: true, value: Readable.from([Buffer.from(input)]) })
  const [stdout, stderr] = [bytesOf(process.stdout), bytesOf(process.stderr)]
  process.exit = (status) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "exit"]) {
      for (const listener of process.listeners(name)) {
        if (!keptListeners.includes(listener)) process.off(name, listener)
      }
    }
    process.send({ status, stdout: stdout(), stderr: String(stderr()) })
  }
  // The program reads variables once: others need another copy of its modules.
  const variables = JSON.stringify(env)
  if (main === undefined || loadedFor !== variables) {
    loadedFor = variables
    main = partsIn(meta.dirname, { meta }).all("main.js").main
  }
  main()
})
process.on("disconnect", () => exit(0))

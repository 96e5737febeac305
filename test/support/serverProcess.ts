import { type ChildProcess, spawn } from "node:child_process"
import { sharedCode } from "./temporaryFolder.ts"

/** The built server as a process, which can be killed. */

/** A server that takes requests. */
export interface ServerProcess {
  readonly child: ChildProcess
  readonly url: string
  readonly token: string
  /** What it has written to stderr. */
  readonly errors: () => string
}

/** Starts a server on this home with the model at this address, and waits until it takes requests. */
export const startProcess = (
  bundle: string,
  {
    args,
    env = {},
    home,
    model
  }: {
    readonly args: ReadonlyArray<string>
    readonly env?: Readonly<Record<string, string>>
    readonly home: string
    readonly model: string
  }
): Promise<ServerProcess> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bundle, "serve", "--port", "0", "--json", ...args], {
      cwd: home,
      env: {
        PATH: process.env["PATH"] ?? "",
        ...sharedCode,
        PALIMPSEST_HOME: home,
        GEMINI_API_KEY: "AIza-not-a-real-key",
        GOOGLE_GEMINI_BASE_URL: model,
        ...env
      }
    })
    let errors = ""
    child.stderr.on("data", (data) => (errors += String(data)))
    child.stdout.once("data", (data) => resolve({ child, errors: () => errors, ...JSON.parse(String(data)) }))
    child.once("exit", () => reject(new Error(`the server did not start: ${errors}`)))
  })

/** Asks a server about its sessions. */
export const askProcess = (
  { token, url }: ServerProcess,
  method: string,
  place: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {}
): Promise<Response> =>
  fetch(`${url}/v1/sessions${place}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })

/** Ends a process with a signal, and waits for its end. */
export const ended = ({ child }: ServerProcess, signal: NodeJS.Signals): Promise<number | null> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve(child.exitCode)
    child.once("exit", (code) => resolve(code))
    child.kill(signal)
  })

import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { packageFolder, packages } from "../test/peers/install.ts"

/** Other agents' programs, where `npm run test:peers` has installed them, against a local server that speaks Google's API. */

/** How a peer is started for one headless prompt. */
export interface Peer {
  readonly name: string
  readonly script: string
  /** Its tool that reads a file, and the name of that tool's parameter for the path. */
  readonly reads: readonly [tool: string, path: string]
  /** Writes its settings into a home folder; returns what follows the script, and the environment. */
  readonly asks: (
    prompt: string,
    url: string,
    home: string
  ) => { readonly args: ReadonlyArray<string>; readonly env: Readonly<Record<string, string>> }
}

const put = (folder: string, name: string, value: unknown): void => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), JSON.stringify(value))
}

const pi: Peer = {
  name: `Pi ${packages["@mariozechner/pi-coding-agent"]}`,
  script: join(packageFolder("@mariozechner/pi-coding-agent"), "dist", "cli.js"),
  reads: ["read", "path"],
  asks: (prompt, url, home) => {
    const model = { id: "local", input: ["text"], contextWindow: 100_000_000, maxTokens: 8_000 }
    put(join(home, "agent"), "models.json", {
      providers: { local: { baseUrl: `${url}/v1beta`, api: "google-generative-ai", apiKey: "none", models: [model] } }
    })
    const session = join(home, "session.jsonl")
    return {
      args: ["--provider", "local", "--model", "local", "--session", session, "-p", prompt],
      env: { HOME: home, PI_CODING_AGENT_DIR: join(home, "agent"), PI_OFFLINE: "1", PI_TELEMETRY: "0" }
    }
  }
}

const gemini: Peer = {
  name: `Gemini CLI ${packages["@google/gemini-cli"]}`,
  script: join(packageFolder("@google/gemini-cli"), "bundle", "gemini.js"),
  reads: ["read_file", "file_path"],
  asks: (prompt, url, home) => {
    put(join(home, ".gemini"), "settings.json", {
      general: { disableAutoUpdate: true, disableUpdateNag: true },
      privacy: { usageStatisticsEnabled: false },
      security: { auth: { selectedType: "gemini-api-key" } },
      model: { name: "gemini-2.5-flash", disableLoopDetection: true, skipNextSpeakerCheck: true }
    })
    return {
      args: ["--skip-trust", "--prompt", prompt],
      env: { HOME: home, GEMINI_CLI_HOME: home, GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: url }
    }
  }
}

/** The peers that are installed. */
export const peers: ReadonlyArray<Peer> = [pi, gemini].filter(({ script }) => existsSync(script))

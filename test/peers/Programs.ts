import { spawn } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import type { FakeProviders, ModelRequest } from "./FakeProviders.ts"
import { packageFolder } from "./install.ts"

/** The programs of other agents, each resuming a session file with one more prompt, in a home of its own. */

/** How a run ended. */
export interface Ran {
  readonly requests: ReadonlyArray<ModelRequest>
  readonly status: number | string
  /** What it printed, for a person who looks into a failure. */
  readonly output: string
  /** Hosts beyond the local server that it tried to reach. */
  readonly refused: ReadonlyArray<string>
}

/** What a run has beyond what every run has. */
export interface Extra {
  /** Where the models are, if not at the server. */
  readonly models?: string
  readonly env?: Readonly<Record<string, string>>
  /** Arguments before the others. */
  readonly args?: ReadonlyArray<string>
  /** Commands for Pi, which then runs by its protocol and without a prompt. */
  readonly input?: string
  /** Settings of Gemini CLI. */
  readonly settings?: Readonly<Record<string, unknown>>
}

/** One program. */
export interface Program {
  readonly name: "claude" | "codex" | "gemini" | "pi"
  /** Name and version, as it is printed. */
  readonly title: string
  /** Goes on with a session file; without one, begins a session. */
  readonly resume: (
    file: string | undefined,
    prompt: string,
    home: string,
    server: FakeProviders,
    extra?: Extra
  ) => Promise<Ran>
}

/** Each program is given this long; the slowest takes about ten seconds on a quiet machine. */
const timeLimit = 240_000

interface Command {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** What it reads. It is not closed before the program has printed `ends`. */
  readonly input?: string
  readonly ends?: string
}

const key = "not-checked"

/** Runs a command, in its own process group, so that what it starts ends with it. */
const run = ({ args, cwd, ends, env, file, input }: Command, server: FakeProviders): Promise<Ran> =>
  new Promise((resolve) => {
    mkdirSync(cwd, { recursive: true })
    server.taken()
    server.refused()
    const { PATH = "", SystemRoot = "" } = process.env
    const child = spawn(file, args, {
      cwd,
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
      env: {
        PATH: `${path.dirname(process.execPath)}${path.delimiter}${PATH}`,
        ...(SystemRoot === "" ? {} : { SystemRoot }),
        // Whatever is not the local server is refused there.
        HTTP_PROXY: server.url,
        HTTPS_PROXY: server.url,
        NO_PROXY: "127.0.0.1,localhost",
        CI: "1",
        NO_COLOR: "1",
        TERM: "dumb",
        ...env
      }
    })
    const output: Array<Buffer> = []
    let ending: string | undefined
    const kill = (): void => {
      const { pid } = child
      if (pid === undefined) return
      if (process.platform === "win32") child.kill("SIGKILL")
      else process.kill(-pid, "SIGKILL")
    }
    const timer = setTimeout(() => {
      ending = `no end in ${timeLimit / 1000} s`
      kill()
    }, timeLimit)
    const end = (status: number | string): void => {
      clearTimeout(timer)
      resolve({
        requests: server.taken(),
        status: ending ?? status,
        output: Buffer.concat(output).toString("utf8"),
        refused: server.refused()
      })
    }
    if (input === undefined) child.stdin.end()
    else child.stdin.write(input)
    child.stdout.on("data", (chunk: Buffer) => {
      output.push(chunk)
      if (ends !== undefined && chunk.includes(ends)) child.stdin.end()
    })
    child.stderr.on("data", (chunk: Buffer) => output.push(chunk))
    child.on("error", (error) => end(error.message))
    child.on("close", (code, signal) => end(code ?? signal ?? "no status"))
  })

const write = (file: string, text: string | Buffer): void => {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const textOf = (file: string | undefined): string => (file === undefined ? "" : readFileSync(file, "utf8"))

/** The value of a key in the first line that has it, as our own writers spell it. */
const valueIn = (text: string, name: string): string => new RegExp(`"${name}":"([^"]+)"`).exec(text)?.[1] ?? ""

const lastModel = (text: string): string =>
  Array.from(text.matchAll(/"model":"(claude-[^"]+)"/g)).at(-1)?.[1] ?? "claude-sonnet-4-5-20250929"

const claude: Program = {
  name: "claude",
  title: "Claude Code 2.1.332",
  resume: (file, prompt, home, server, { args = [], env = {}, models = server.url } = {}) => {
    const cwd = path.join(home, "work")
    const config = path.join(home, "config")
    const text = textOf(file)
    const session = valueIn(text, "sessionId")
    if (file !== undefined) {
      write(path.join(config, "projects", cwd.replaceAll(/[^a-zA-Z0-9]/g, "-"), `${session}.jsonl`), text)
    }
    const wrapper = path.join(packageFolder("@anthropic-ai/claude-code"), "cli-wrapper.cjs")
    return run(
      {
        file: process.execPath,
        args: [wrapper, "--print", ...args, ...(file === undefined ? [] : ["--resume", session]), prompt],
        cwd,
        env: {
          HOME: home,
          USERPROFILE: home,
          CLAUDE_CONFIG_DIR: config,
          ANTHROPIC_BASE_URL: models,
          ANTHROPIC_API_KEY: key,
          // Claude Code gives a model only its own thoughts back.
          ANTHROPIC_MODEL: lastModel(text),
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          DISABLE_AUTOUPDATER: "1",
          DISABLE_TELEMETRY: "1",
          DISABLE_ERROR_REPORTING: "1",
          ...env
        }
      },
      server
    )
  }
}

const codex: Program = {
  name: "codex",
  title: "Codex 0.171.0",
  resume: (file, prompt, home, server, { args = [], env = {}, models = server.url } = {}) => {
    const text = textOf(file)
    const session = valueIn(text, "id")
    const at = "2026-01-01T00-00-00"
    const config = path.join(home, "codex")
    if (file !== undefined) {
      write(path.join(config, "sessions", "2026", "01", "01", `rollout-${at}-${session}.jsonl`), text)
    }
    write(
      path.join(config, "config.toml"),
      [
        'model = "gpt-5"',
        'model_provider = "local"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[model_providers.local]",
        'name = "local"',
        `base_url = "${models}/v1"`,
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
        ""
      ].join("\n")
    )
    const script = path.join(packageFolder("@openai/codex"), "bin", "codex.js")
    return run(
      {
        file: process.execPath,
        args: [
          script,
          "exec",
          ...args,
          ...(file === undefined ? ["--skip-git-repo-check"] : ["resume", "--skip-git-repo-check", session]),
          prompt
        ],
        cwd: path.join(home, "work"),
        env: { HOME: home, USERPROFILE: home, CODEX_HOME: config, OPENAI_API_KEY: key, ...env }
      },
      server
    )
  }
}

const gemini: Program = {
  name: "gemini",
  title: "Gemini CLI 0.61.0",
  resume: (file, prompt, home, server, { args = [], env = {}, models = server.url, settings = {} } = {}) => {
    const cwd = path.join(home, "work")
    const config = path.join(home, ".gemini")
    const text = textOf(file)
    const session = valueIn(text, "sessionId")
    const folder = path.join(config, "tmp", "work")
    write(path.join(config, "projects.json"), JSON.stringify({ projects: { [cwd]: "work" } }))
    write(path.join(folder, ".project_root"), cwd)
    if (file !== undefined) {
      write(path.join(folder, "chats", `session-2026-01-01T00-00-${session.slice(0, 8)}${path.extname(file)}`), text)
    }
    write(
      path.join(config, "settings.json"),
      JSON.stringify({
        general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        security: { auth: { selectedType: "gemini-api-key" } },
        model: { name: "gemini-2.5-pro" },
        ...settings
      })
    )
    const script = path.join(packageFolder("@google/gemini-cli"), "bundle", "gemini.js")
    return run(
      {
        file: process.execPath,
        args: [
          script,
          "--skip-trust",
          ...args,
          ...(file === undefined ? [] : ["--resume", session]),
          "--prompt",
          prompt
        ],
        cwd,
        env: {
          HOME: home,
          USERPROFILE: home,
          GEMINI_CLI_HOME: home,
          GOOGLE_GEMINI_BASE_URL: models,
          GEMINI_API_KEY: key,
          ...env
        }
      },
      server
    )
  }
}

const pi: Program = {
  name: "pi",
  title: "Pi 0.73.1",
  resume: (file, prompt, home, server, { env = {}, input, models = server.url } = {}) => {
    const session = path.join(home, "session.jsonl")
    const agent = path.join(home, "agent")
    const cwd = path.join(home, "work")
    // Pi resumes a session only where its folder still is; the recorded one is on somebody else's machine.
    const [header = "", ...entries] = textOf(file).split("\n")
    if (file !== undefined) {
      write(
        session,
        [header.replace(/"cwd":"(?:[^"\\]|\\.)*"/, () => `"cwd":${JSON.stringify(cwd)}`), ...entries].join("\n")
      )
    }
    const model = { id: "local", input: ["text", "image"], contextWindow: 1_000_000, maxTokens: 8_000 }
    write(
      path.join(agent, "models.json"),
      JSON.stringify({
        providers: { local: { baseUrl: models, api: "anthropic-messages", apiKey: key, models: [model] } }
      })
    )
    const script = path.join(packageFolder("@mariozechner/pi-coding-agent"), "dist", "cli.js")
    return run(
      {
        file: process.execPath,
        args: [
          script,
          "--provider",
          "local",
          "--model",
          "local",
          "--session",
          session,
          ...(input === undefined ? ["-p", prompt] : ["--mode", "rpc"])
        ],
        cwd,
        env: { HOME: home, USERPROFILE: home, PI_CODING_AGENT_DIR: agent, PI_OFFLINE: "1", PI_TELEMETRY: "0", ...env },
        ...(input === undefined ? {} : { input, ends: '"command":"compact"' })
      },
      server
    )
  }
}

/** opencode takes a document into its database, and goes on there. It does not open files. */
export const opencode: Omit<Program, "name"> & { readonly name: "opencode" } = {
  name: "opencode",
  title: "opencode 1.18.33",
  resume: async (file, prompt, home, server, { args = [], env = {}, models = server.url } = {}) => {
    const local = {
      npm: "@ai-sdk/anthropic",
      name: "local",
      options: { baseURL: `${models}/v1`, apiKey: key },
      models: { local: { name: "local", limit: { context: 1_000_000, output: 8_000 } } }
    }
    const configuration = { autoupdate: false, share: "disabled", small_model: "local/local", provider: { local } }
    write(path.join(home, ".config", "opencode", "opencode.json"), JSON.stringify(configuration))
    const platform = process.platform === "win32" ? "windows" : process.platform
    const binary = path.join(packageFolder(`opencode-${platform}-${process.arch}`), "bin", "opencode")
    const about = {
      file: process.platform === "win32" ? `${binary}.exe` : binary,
      cwd: path.join(home, "work"),
      env: {
        HOME: home,
        USERPROFILE: home,
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        ...env
      }
    }
    if (file !== undefined) {
      const taken = await run({ ...about, args: ["import", file] }, server)
      if (taken.status !== 0) return taken
    }
    const session = file === undefined ? [] : ["--session", path.basename(file, ".json")]
    return run({ ...about, args: ["run", ...args, "--model", "local/local", ...session, prompt] }, server)
  }
}

/** The programs that open session files, in the order of the table. */
export const programs: ReadonlyArray<Program> = [pi, gemini, claude, codex]

import { seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"
import { revealing } from "./secrets.ts"

/**
 * More than a hundred secrets in odd places of a session of Claude Code: pieces of private keys as tools print them, numbers as passwords,
 * names of files, and records beside the conversation. All are made from a seed and valid nowhere; they are put together here so
 * that no scanner finds one in this file.
 */

/** A secret and where it stands. */
export interface OddSecret {
  readonly place: string
  /** What must not be shown: the lines of a key, or the one value. */
  readonly values: ReadonlyArray<string>
}

/** A session with secrets, as the files that Claude Code keeps. */
export interface OddSession {
  readonly id: string
  /** The lines of the session's file, and after them a line that is half written. */
  readonly text: string
  /** The lines of a subagent's file. */
  readonly subagent: string
  /** A large output beside the session: the name and content of its file. */
  readonly output: { readonly name: string; readonly text: string }
  /** The value of an environment variable of the process that redacts. */
  readonly variable: string
  readonly secrets: ReadonlyArray<OddSecret>
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const digits = "0123456789"
const base64 = `${letters}${digits}+/`
const dashes = "-----"
const fence = "```"

const begin = (kind: string): string => `${dashes}BEGIN ${kind}${dashes}`
const end = (kind: string): string => `${dashes}END ${kind}${dashes}`
const privateKey = ["PRIVATE", "KEY"].join(" ")
const rsa = `RSA ${privateKey}`
const ec = `EC ${privateKey}`
const openssh = `OPENSSH ${privateKey}`
const pgp = `PGP ${privateKey} BLOCK`

type Json = Readonly<Record<string, unknown>>

/** Makes the session. The same seed makes the same one. */
export const oddSession = (seed = 8): OddSession => {
  const next = seededRandom(seed)
  const of = (alphabet: string, length: number): string =>
    Array.from({ length }, () => alphabet.charAt(Math.floor(next() * alphabet.length))).join("")
  const secrets: Array<OddSecret> = []
  const add = (place: string, ...values: ReadonlyArray<string>): void => void secrets.push({ place, values })
  const one = (place: string, value: string): string => {
    add(place, value)
    return value
  }
  const token = (place: string): string => one(place, `${"gh"}p_${of(letters + digits, 36)}`)
  const word = (place: string): string => one(place, `${of(letters.slice(26), 6)}${of(digits, 3)}${of(letters, 3)}`)
  const number = (place: string): string => one(place, `7${of(digits, 7)}`)
  /** The lines of a key: whole ones, and the last, which is shorter. */
  const key = (place: string, lines = 3, width = 64): ReadonlyArray<string> => {
    const made = [...Array.from({ length: lines }, () => of(base64, width)), `${of(base64, 26)}==`]
    add(place, ...made)
    return made
  }
  /** Lines from the middle of a key. */
  const middle = (place: string, lines = 3, width = 64): ReadonlyArray<string> => {
    const made = Array.from({ length: lines }, () => of(base64, width))
    add(place, ...made)
    return made
  }
  const tail = (place: string, kind = privateKey, width = 64): ReadonlyArray<string> => [
    ...key(place, 3, width),
    end(kind)
  ]
  const whole = (place: string, kind = privateKey, width = 64): ReadonlyArray<string> => [
    begin(kind),
    ...tail(place, kind, width)
  ]

  const id = "0dd5ec2e-0000-4000-8000-000000000001"
  const records: Array<Json> = []
  let parent: string | null = null
  const record = (fields: Json, isOfConversation = true): void => {
    const count = records.length
    const uuid = `00000000-0000-4000-8000-${String(count).padStart(12, "0")}`
    const at = new Date(1_796_000_000_000 + count * 1_000).toISOString()
    const frame = { parentUuid: parent, isSidechain: false, userType: "external", cwd: "/w", version: "2.1.39", uuid }
    records.push({ ...(isOfConversation ? frame : {}), sessionId: id, timestamp: at, ...fields })
    if (isOfConversation) parent = uuid
  }
  const user = (content: unknown, fields: Json = {}) =>
    record({ type: "user", message: { role: "user", content }, ...fields })
  const answer = (content: ReadonlyArray<Json>) =>
    record({
      type: "assistant",
      message: {
        id: `msg_${records.length}`,
        type: "message",
        role: "assistant",
        model: "claude-sonnet-4-5",
        content,
        stop_reason: null,
        usage: { input_tokens: 10, output_tokens: 10 }
      }
    })
  const tool = (name: string, input: Json, result: unknown, fields: Json = {}, more: Json = {}) => {
    const call = `toolu_${String(records.length).padStart(6, "0")}`
    answer([{ type: "tool_use", id: call, name, input }])
    user([{ type: "tool_result", tool_use_id: call, content: result, ...more }], fields)
  }
  const prints = (command: string, lines: ReadonlyArray<string>, glue = "\n") =>
    tool("Bash", { command }, lines.join(glue))

  user("Show me how the keys of this machine are kept.")

  // Private keys, and pieces of them.
  prints("cat key.pem", whole("a whole key"))
  prints("tail -4 key.pem", tail("a key without its head"))
  prints("tail -4 rsa.pem", tail("an RSA key without its head", rsa))
  prints("tail -4 ec.pem", tail("an EC key without its head", ec))
  prints("tail -4 id_ed25519", tail("an OpenSSH key without its head", openssh, 70))
  prints("cat legacy.pem", [
    begin(rsa),
    "Proc-Type: 4,ENCRYPTED",
    `DEK-Info: AES-256-CBC,${of("0123456789ABCDEF", 32)}`,
    "",
    ...key("an encrypted key without its end")
  ])
  prints("tail -5 secret.asc", [...key("a PGP key without its head"), `=${of(base64, 4)}`, end(pgp)])
  prints("head -7 secret.asc", [
    begin(pgp),
    "Version: GnuPG v2",
    "Comment: mine",
    "",
    ...key("a PGP key without its end")
  ])
  prints("head -3 split.pem", [begin(privateKey), ...middle("the first half of a key", 2)])
  prints("tail -5 split.pem", tail("the second half of a key, in the next result"))
  prints("sed -n 4,7p key.pem", middle("lines from the middle of a key"))
  prints("sed -n 3,5p id_ed25519", middle("lines from the middle of an OpenSSH key", 3, 70))
  prints("sed -n 9p key.pem", middle("one line from the middle of a key", 1))
  prints("dd if=key.pem bs=1 skip=300 count=210", [
    ...middle("a middle that begins and ends within lines", 1, 33),
    ...middle("whole lines of such a middle"),
    ...middle("the end of such a middle", 1, 27)
  ])
  prints("tail -c 200 key.pem", [of(base64, 12), ...tail("a tail that begins within a line")])
  const numbered = (lines: ReadonlyArray<string>, from: number, sign: string, width = 0) =>
    lines.map((line, at) => `${String(from + at).padStart(width)}${sign}${line}`)
  prints("cat -n key.pem | tail -4", numbered(tail("a tail with numbers of lines"), 24, "\t", 6))
  tool(
    "Read",
    { file_path: "/w/key.pem", offset: 24 },
    numbered(tail("a tail as an agent reads it"), 24, "→", 6).join("\n")
  )
  prints("grep -n '' key.pem | tail -4", numbered(tail("a tail as grep prints it"), 24, ":"))
  prints(
    "grep -r '' keys | tail -4",
    tail("a tail with the name of its file").map((line) => `keys/server.pem:${line}`)
  )
  prints(
    "cat mail.txt",
    tail("a quoted tail").map((line) => `> ${line}`)
  )
  prints(
    "git show",
    tail("an added tail").map((line) => `+${line}`)
  )
  prints(
    "git show HEAD~1",
    tail("a removed tail").map((line) => `-${line}`)
  )
  prints(
    "tail -4 secret.yaml",
    tail("an indented tail").map((line) => `    ${line}`)
  )
  prints("type key.pem", tail("a tail with the line ends of Windows"), "\r\n")
  prints("tail -c 300 account.json", [...tail("a tail with escaped line ends"), '","client_id":"1"}'], "\\n")
  prints("tail -c 300 state.json", [...tail("a tail with twice escaped line ends"), ""], "\\\\n")
  prints("tail -3 Keys.java", [...tail("a tail joined of strings").map((line) => `      "${line}\\n" +`), '      "";'])
  prints("jq .lines account.json", [JSON.stringify(whole("a key as a list of lines"), undefined, 2)])
  prints("env | tail -1", tail("a tail on one line"), " ")
  prints(
    "cat keys.txt",
    tail("a tail with colours").map((line) => `\u001b[32m${line}\u001b[0m`)
  )
  prints("puttygen key.ppk -O private -o -", [
    "PuTTY-User-Key-File-3: ssh-rsa",
    "Encryption: none",
    "Comment: mine",
    "Public-Lines: 1",
    of(base64, 64),
    "Private-Lines: 4",
    ...key("a PuTTY key"),
    `Private-MAC: ${of("0123456789abcdef", 64)}`
  ])
  prints("cat old.ppk", [
    "PuTTY-User-Key-File-2: ssh-dss",
    "Encryption: aes256-cbc",
    "Comment: mine",
    "Public-Lines: 1",
    of(base64, 64),
    "Private-Lines: 4",
    ...key("an older PuTTY key"),
    `Private-MAC: ${of("0123456789abcdef", 40)}`
  ])
  prints("tail -5 key.ppk", [...key("a PuTTY key without its head"), `Private-MAC: ${of("0123456789abcdef", 64)}`])
  prints("sed -n '6,9p' key.ppk", ["Private-Lines: 14", ...middle("a PuTTY key without its end")])
  const ssh2 = `SSH2 ENCRYPTED ${privateKey}`
  prints("cat id.ssh2", [
    `---- BEGIN ${ssh2} ----`,
    'Comment: "rsa-key"',
    ...key("a key of ssh.com", 3, 70),
    `---- END ${ssh2} ----`
  ])
  prints("tail -4 id.ssh2", [...key("a key of ssh.com without its head", 3, 70), `---- END ${ssh2} ----`])
  const encoded = (kind: string, place: string): string => {
    const lines = Array.from({ length: 3 }, () => of(base64, 64))
    const text = btoa([begin(kind), ...lines, end(kind)].join("\n"))
    add(place, text.slice(60))
    return text
  }
  prints("base64 -w0 key.pem", [encoded(privateKey, "a key in base64")])
  prints("base64 -w0 rsa.pem", [encoded(rsa, "an RSA key in base64")])
  const url = (length: number) => of(`${letters}${digits}_-`, length)
  const jwk = { kty: "EC", crv: "P-256", x: url(43), y: url(43), d: one("a key as a JSON Web Key", url(43)) }
  prints("cat key.jwk", [JSON.stringify(jwk)])
  tool(
    "mcp__keys__import",
    { key: { kty: "OKP", crv: "Ed25519", x: url(43), d: one("a key in arguments", url(43)) } },
    "ok"
  )
  prints("cat key.xml", [
    `<RSAKeyValue><Modulus>${of(base64, 172)}</Modulus><D>${one("a key as XML", of(base64, 172))}</D></RSAKeyValue>`
  ])
  const bytes = Array.from({ length: 3 }, () => Array.from({ length: 15 }, () => of("0123456789abcdef", 2)).join(":"))
  add("a key as OpenSSL explains it", ...bytes)
  prints("openssl rsa -text -noout -in rsa.pem", ["privateExponent:", ...bytes.map((line) => `    ${line}:`)])
  tool("Write", { file_path: "/w/copy.pem", content: `${tail("a tail that was written").join("\n")}\n` }, "ok")
  const old = middle("lines that an edit replaced").join("\n")
  tool(
    "Edit",
    { file_path: "/w/key.pem", old_string: old, new_string: tail("a tail that an edit wrote").join("\n") },
    "ok",
    {
      toolUseResult: {
        filePath: "/w/key.pem",
        structuredPatch: [{ oldStart: 1, lines: middle("lines of a patch").map((line) => `+${line}`) }]
      }
    }
  )
  user(`This is all of it that I have:\n${tail("a tail that the user pasted").join("\n")}`)
  answer([
    { type: "text", text: `It ends so:\n\n${fence}\n${tail("a tail in the model's words").join("\n")}\n${fence}\n` }
  ])
  answer([
    { type: "thinking", thinking: `I saw ${tail("a tail in a thought").join("\n")}`, signature: of(base64, 300) }
  ])
  prints(`cat > key.pem <<EOF\n${tail("a tail in a command").join("\n")}\nEOF`, ["done"])

  // Passwords that are numbers.
  tool("mcp__db__connect", { host: "db", password: Number(number("a number in arguments")) }, "connected")
  tool(
    "mcp__db__connect",
    { login: { user: "ann", password: Number(number("a number within an object")) } },
    "connected"
  )
  prints("cat db.json", [`{\n  "user": "ann",\n  "password": ${number("a number in JSON that was printed")}\n}`])
  tool(
    "mcp__http__post",
    { body: JSON.stringify({ user: "ann", password: Number(number("a number in JSON within a string")) }) },
    "ok"
  )
  tool("mcp__safe__open", { pin: Number(number("a number that is a PIN")) }, "open")
  prints("cat card.yaml", [`card: main\npin: ${number("a PIN in YAML")}`])
  tool("mcp__safe__open", { passcode: Number(number("a passcode")), otp: Number(number("a one-time code")) }, "open")
  tool(
    "mcp__db__seed",
    { passwords: [Number(number("a number in a list")), Number(number("another in the list"))] },
    "ok"
  )
  tool("mcp__db__seed", { passwords: [word("a word in a list"), word("another word in the list")] }, "ok")
  tool("mcp__db__info", {}, "ok", {
    toolUseResult: { db: { db_password: Number(number("a number in a result's record")) } }
  })
  prints("cat .env", [`DB_PASSWORD=${number("a number in an environment")}`])

  // Names of files and of other things.
  prints(`cat /w/backup-${token("a path in a command")}.txt`, ["empty"])
  tool("Read", { file_path: `/w/${token("a path in arguments")}/notes.md` }, "empty", {
    toolUseResult: {
      type: "text",
      file: { filePath: `/w/${token("a path in a result's record")}/notes.md`, content: "" }
    }
  })
  record(
    {
      type: "file-history-snapshot",
      messageId: "m1",
      snapshot: { messageId: "m1", trackedFileBackups: { [`/w/${token("a path that is a key")}.md`]: { version: 1 } } }
    },
    false
  )
  record({ type: "system", subtype: "local_command", content: "ok", gitBranch: `fix/${token("the name of a branch")}` })
  tool(`mcp__x__${token("the name of a tool")}`, {}, "ok")
  tool("mcp__kv__set", { [token("the name of an argument")]: 1 }, "ok")
  user([
    { type: "text", text: "See the file." },
    {
      type: "document",
      title: `${token("the name of a document")}.pdf`,
      source: { type: "text", media_type: "text/plain", data: "x" }
    }
  ])

  // Records beside the conversation.
  record({ type: "ai-title", aiTitle: `Rotate ${token("a title")}` }, false)
  record({ type: "summary", summary: `Rotated ${token("a summary")}`, leafUuid: "x" }, false)
  record({ type: "last-prompt", lastPrompt: `Rotate ${token("the last prompt")}` }, false)
  record({ type: "queue-operation", operation: "enqueue", content: `and ${token("a queued message")} too` }, false)
  record({ type: "system", subtype: "local_command", content: `<stdout>${token("the output of a command")}</stdout>` })
  record({
    type: "progress",
    data: { type: "hook_progress", hookEvent: "Stop", command: `notify --token ${token("the command of a hook")}` },
    toolUseID: "x"
  })
  record({ type: "attachment", attachment: { type: "hook_success", stdout: `used ${token("what a hook printed")}` } })
  tool("Bash", { command: "deploy" }, `denied for ${token("an error")}`, {}, { is_error: true })
  tool("Bash", { command: "deploy" }, "", {
    toolUseResult: { stdout: "", stderr: `denied: ${token("the other output")}` }
  })

  // Other forms of the same.
  const known = token("a value that base64 hides elsewhere")
  prints("echo $T", [known])
  prints("printf %s $T | base64", [one("the base64 of a value", btoa(known))])
  prints("cat page.html", [`<a data-x="{&quot;password&quot;:&quot;${word("a value between entities")}&quot;}">`])
  prints("cat query.log", [`GET /x?api_key%3D${one("a value of an encoded query", of(letters + digits, 40))}%26y=1`])
  prints("cat hidden.txt", [`pass\u200bword: ${word("a name with hidden characters")}`])
  prints("ls --color", [`\u001b[1mDB_PASSWORD\u001b[0m=\u001b[33m${word("a value with colours")}\u001b[0m`])
  prints("curl -v https://example.com", [
    `> Authorization: Bearer ${one("a header", of(letters + digits, 40))}`,
    `< Set-Cookie: session=${"ey"}JhbGciOiJIUzI1NiJ9.${one("a cookie", of(letters + digits, 60))}.${of(letters, 43)}; Path=/`
  ])
  prints("cat ~/.docker/config.json", [
    `{"auths":{"r.example.com":{"auth":"${one("the login of a registry", `${of(letters + digits, 34)}==`)}"}}}`
  ])
  prints("cat ~/.npmrc", [
    `//r.example.com/:_authToken=${one("a token of npm", `${"np"}m_${of(letters + digits, 36)}`)}`
  ])
  prints("cat ~/.netrc", [`machine example.com login ann password ${word("a password of .netrc")}`])
  prints("cat ~/.pgpass", [`db:5432:shop:ann:${word("a password of .pgpass")}`])
  prints("git remote -v", [`origin https://ann:${word("a password in an address")}@git.example.com/a.git`])
  prints("kubectl get secret db -o yaml", [
    `data:\n  password: ${one("a value of a cluster", btoa(of(letters + digits, 18)))}`
  ])
  prints("cat app.tf", [`password = <<EOT\n${word("a value below its name")}\nEOT`])
  prints("cat app.json", [`{"name":"DB_PASSWORD","value":"${word("a value apart from its name")}"}`])
  prints("cat app.ini", [`[db]\nuser = ann\npassword = "${word("a quoted value")}"`])
  prints("history", [`  101  sshpass -p '${word("a password of a command")}' ssh ann@host`])
  const later = one("a value that stands alone later", `${of(letters + digits, 20)}9aZ`)
  prints("cat .env.local", [`SERVICE_SECRET=${later}`])
  answer([{ type: "text", text: `I send ${later} as it is.` }])
  const variable = one("a value of the environment", `harbour ${of(letters.slice(26), 9)} 42`)
  answer([{ type: "text", text: `The variable is ${variable}, in base64 ${btoa(`x:${variable}`)}.` }])
  answer([{ type: "text", text: "That is all." }])

  const unicode = token("a value in escapes")
  const escaped = `{"type":"summary","summary":"\\u0067${unicode.slice(1)}","leafUuid":"y"}`
  const torn = `{"type":"user","message":{"role":"user","content":"half ${token("a line that is half written")}`
  const lines = [...records.map((fields) => JSON.stringify(fields)), escaped]
  const child = (at: number, type: string, message: Json) =>
    JSON.stringify({
      parentUuid: at === 0 ? null : `00000000-0000-4000-9000-${String(at - 1).padStart(12, "0")}`,
      isSidechain: true,
      agentId: "a0dd5ec",
      sessionId: id,
      type,
      message,
      uuid: `00000000-0000-4000-9000-${String(at).padStart(12, "0")}`,
      timestamp: new Date(1_796_000_000_000 + at).toISOString()
    })
  return {
    id,
    text: `${lines.join("\n")}\n${torn}`,
    subagent: `${child(0, "user", { role: "user", content: `Use ${token("a subagent's prompt")}` })}\n`,
    output: {
      name: `toolu_${token("the name of a file")}.txt`,
      text: `${"a line of the build\n".repeat(10)}${tail("a tail in a large output").join("\n")}\n`
    },
    variable,
    secrets
  }
}

/** The places of the secrets that a text shows. */
export const survivors = (text: string, secrets: ReadonlyArray<OddSecret>): ReadonlyArray<string> => {
  const isShown = revealing(text)
  return secrets.filter(({ values }) => values.some(isShown)).map(({ place }) => place)
}

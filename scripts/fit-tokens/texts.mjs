import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { gunzipSync } from "node:zlib"

/**
 * Gathers texts of many classes for `fit.mjs`: sources, manuals and translated messages of the installed packages (missing ones are
 * skipped), prose written for this project, and texts generated from seeds: hashes, logs, JSON, emoji, tool output. Texts for
 * fitting and held-out texts come from different packages or different templates.
 *
 *     node scripts/fit-tokens/texts.mjs <folder>
 *
 * One file: a list of generators that share one random source.
 */

const folder = process.argv[2]
if (folder === undefined) throw new Error("usage: texts.mjs <folder>")
const root = join(import.meta.dirname, "..", "..")
for (const split of ["train", "held"]) rmSync(join(folder, split), { recursive: true, force: true })

const numbers = new Map()
const put = (split, name, text, label = "made") => {
  if (text.length < 300) return
  const place = join(folder, split, name)
  mkdirSync(place, { recursive: true })
  const number = (numbers.get(place) ?? 0) + 1
  numbers.set(place, number)
  const safe = label.replaceAll(/[^\w.-]/gu, "_").slice(-40)
  writeFileSync(join(place, `${String(number).padStart(4, "0")}-${safe}.txt`), text)
}

/** Numbers, choices and bytes derived from a seed. */
const random = (seed) => {
  let drawn = 0
  const bytes = (length) => {
    const parts = []
    for (let have = 0; have < length; have += 32)
      parts.push(
        createHash("sha256")
          .update(`${seed}:${(drawn += 1)}`)
          .digest()
      )
    return Buffer.concat(parts).subarray(0, length)
  }
  const share = () => bytes(4).readUInt32BE() / 2 ** 32
  const whole = (least, most) => least + Math.floor(share() * (most - least + 1))
  const pick = (values) => values[whole(0, values.length - 1)]
  const hex = (length) =>
    bytes(Math.ceil(length / 2))
      .toString("hex")
      .slice(0, length)
  const uuid = () => hex(32).replace(/(.{8})(.{4}).(.{3}).(.{3})(.{12})/u, "$1-$2-4$3-a$4-$5")
  return { bytes, share, whole, pick, hex, uuid }
}
const many = (count, make) => Array.from({ length: count }, (_, i) => make(i))

// --- installed packages --------------------------------------------------------------------------------------------------------

const output = (command, args) => {
  try {
    return execFileSync(command, args, { encoding: "utf8", maxBuffer: 2 ** 30, stdio: ["ignore", "pipe", "ignore"] })
  } catch {
    return ""
  }
}
const python = output("python3", ["-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"]).trim()
const site = output("python3", ["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]).trim()
const rust = join(output("rustc", ["--print", "sysroot"]).trim(), "share", "doc", "rust", "html")
const modules = join(root, "node_modules")
const global = output("npm", ["root", "-g"]).trim()
const java = (() => {
  const zip = output("find", ["/usr/lib/jvm", "-name", "src.zip", "-size", "+1M"]).split("\n")[0] ?? ""
  const place = join(folder, "java")
  if (zip !== "" && !existsSync(place)) output("unzip", ["-q", zip, "-d", place])
  return place
})()

const walk = function* (place) {
  let entries = []
  try {
    entries = readdirSync(place, { withFileTypes: true })
  } catch {
    return
  }
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(place, entry.name)
    if (entry.isDirectory()) yield* walk(path)
    else if (entry.isFile()) yield path
  }
}

const strict = new TextDecoder("utf-8", { fatal: true })
const read = (path) => {
  try {
    const bytes = readFileSync(path)
    return strict.decode(path.endsWith(".gz") ? gunzipSync(bytes) : bytes)
  } catch {
    return ""
  }
}

const shuffle = ({ whole }, values) => {
  for (let i = values.length - 1; i > 0; i -= 1) {
    const j = whole(0, i)
    ;[values[i], values[j]] = [values[j], values[i]]
  }
  return values
}

/** A piece of each of up to `most` files. */
const files = (split, name, places, pattern, { most = 60, size = 12_000, map = (text) => text } = {}) => {
  const dice = random(`${split} ${name} ${places.join(" ")}`)
  let taken = 0
  for (const path of shuffle(
    dice,
    places.flatMap((place) => [...walk(place)].filter((each) => pattern.test(each)))
  )) {
    if (taken >= most) return
    const text = map(read(path), path)
    if (text.length < 1_500) continue
    const at = text.length > size ? dice.whole(0, text.length - size) : 0
    const line = text.indexOf("\n", at)
    put(split, name, text.slice(at > 0 && line > 0 && line < at + 2_000 ? line + 1 : at).slice(0, size), basename(path))
    taken += 1
  }
}

const named = { lt: "<", gt: ">", quot: '"', amp: "&" }
const strip = (text) =>
  text
    .replaceAll(/<(script|style)[\s\S]*?<\/\1>/gu, "")
    .replaceAll(/<[^>]+>/gu, "")
    .replaceAll(/&#x([0-9a-f]+);/giu, (_, code) => String.fromCodePoint(Number.parseInt(code, 16)))
    .replaceAll(/&#(\d+);/gu, (_, code) => String.fromCodePoint(Number(code)))
    .replaceAll(/&(lt|gt|quot|amp);/gu, (_, name) => named[name])
    .replaceAll(/\n{3,}/gu, "\n\n")
const rustSource = (text) =>
  strip(
    text.replace(/[\s\S]*?<pre class="rust">/u, "").replaceAll(/<a href=#\d+ id=\d+ data-nosnippet>\d+<\/a>/gu, "")
  ).trim()
const bookPage = (text) =>
  strip(
    text
      .replace(/[\s\S]*?<main>/u, "")
      .replace(/<\/main>[\s\S]*/u, "")
      .replaceAll(/<pre>[\s\S]*?<\/pre>/gu, "")
  )
const manual = (text) =>
  text
    .split("\n")
    .filter((line) => !/^[.'](\\"|[A-Z]{1,2}\s*$|TH|if|ie|el|de|so|ta|ne|sp)/u.test(line))
    .map((line) =>
      line
        .replace(/^\.[A-Za-z]+\s*/u, "")
        .replaceAll(/\\f[A-Z]|\\f\([A-Z]{2}|\\&|\\\|/gu, "")
        .replaceAll(String.raw`\-`, "-")
        .replaceAll(String.raw`\(aq`, "'")
    )
    .join("\n")

/** Translated program messages, in random order. */
const messages = (split, name, language, programs, { least = 60, most = 30, size = 8_000 } = {}) => {
  const all = programs
    .map((program) => `/usr/share/locale/${language}/LC_MESSAGES/${program}.mo`)
    .filter((path) => existsSync(path))
    .flatMap((path) => output("msgunfmt", ["--no-wrap", path]).split("\n\n").slice(1))
    .map((block) =>
      (block.split("\nmsgstr")[1] ?? "")
        .split("\n")
        .map((line) => /"(.*)"$/u.exec(line)?.[1] ?? "")
        .join("")
        .replaceAll(String.raw`\n`, "\n")
        .replaceAll(String.raw`\"`, '"')
        .replaceAll(String.raw`\t`, "\t")
    )
    .filter((message) => message.length >= least)
  let text = ""
  let made = 0
  for (const message of shuffle(random(`${split} ${name}`), all)) {
    text += message.endsWith("\n") ? message : `${message}\n`
    if (text.length < size) continue
    put(split, name, text, language)
    text = ""
    if ((made += 1) >= most) return
  }
  if (made === 0 && text.length > 2_000) put(split, name, text, language)
}

const sources = () => {
  const py = (...names) => names.map((name) => join(python, name))
  const packages = (...names) => names.map((name) => join(site, name))
  const own = (...names) => names.map((name) => join(modules, name))
  files(
    "train",
    "python",
    py("asyncio", "email", "json", "http", "test", "unittest", "concurrent", "xml", "idlelib", "logging"),
    /\.py$/u,
    { most: 90 }
  )
  files("train", "python", packages("flask", "requests", "pydantic", "networkx", "moto"), /\.py$/u)
  files("held", "python", packages("sympy", "trio", "awscli", "werkzeug", "hypothesis", "scipy", "docker"), /\.py$/u, {
    most: 80
  })
  files("train", "ts", own("effect/src"), /\.ts$/u, { most: 70 })
  files("train", "ts", own("@types/node", "@google/genai", "@vitest"), /\.d\.ts$/u, { most: 40 })
  files("held", "ts", [join(root, "src/domain"), join(root, "src/layers"), join(root, "test")], /\.ts$/u, { most: 40 })
  files("held", "dts", [...own("vitest", "rolldown", "playwright-core"), global], /\.d\.ts$/u, { most: 40 })
  files("train", "js", [join(global, "npm")], /\.js$/u, { most: 80 })
  files("train", "js", own("d3-array", "d3-scale", "d3-geo", "chai", "protobufjs"), /\.js$/u, { most: 40 })
  files(
    "held",
    "js",
    own("linkedom", "@observablehq", "htmlparser2", "google-auth-library", "gaxios", "ws", "d3-hierarchy"),
    /\.js$/u
  )
  files("train", "rust", [join(rust, "src/core"), join(rust, "src/std")], /\.rs\.html$/u, { most: 90, map: rustSource })
  files("held", "rust", [join(rust, "src/alloc"), join(rust, "src/test")], /\.rs\.html$/u, {
    most: 40,
    map: rustSource
  })
  const code = /(?<!_[a-z]{2}|_[A-Z]{2})\.java$/u
  files(
    "train",
    "java",
    ["java.base/java/util", "java.base/java/net", "jdk.compiler/com"].map((name) => join(java, name)),
    code
  )
  files(
    "held",
    "java",
    ["java.desktop/javax", "java.net.http", "java.sql"].map((name) => join(java, name)),
    code,
    { most: 40 }
  )
  const c = /\.(h|c|cc|cpp|hpp|tcc)$/u
  files(
    "train",
    "c",
    ["/usr/include/linux", "/usr/include/glib-2.0", "/usr/include/c++", "/usr/include/postgresql"],
    c,
    { most: 70 }
  )
  files("held", "c", ["/usr/src", "/usr/include/X11", "/usr/include/openssl", "/usr/share/doc", join(site, "numpy")], c)
  files("train", "perl", ["/usr/share/perl/5.36.0", "/usr/share/perl5/Debian"], /\.(pm|pl)$/u, { most: 30 })
  files("held", "perl", ["/usr/share/automake-1.16", "/usr/share/perl5/Dpkg"], /\.(pm|pl)$/u, { most: 15 })
  const script = (text) => (/^#! ?\/bin\/(ba)?sh|complete -F/mu.test(text) ? text : "")
  files(
    "train",
    "shell",
    ["/usr/share/bash-completion", "/usr/lib/git-core", "/etc/init.d", "/usr/share/debconf"],
    /(\.sh|\/[a-z-]+)$/u,
    { most: 40, size: 8_000, map: script }
  )
  files(
    "held",
    "shell",
    ["/usr/share/doc", "/usr/share/autoconf", "/usr/share/initramfs-tools", "/usr/bin"],
    /(\.sh|\/[a-z-]+)$/u,
    { most: 25, size: 8_000, map: script }
  )
  files("train", "css", ["/usr/share", python], /\.css$/u, { most: 25, size: 8_000 })
  files("held", "css", [rust, modules], /\.css$/u, { most: 15, size: 8_000 })
  files("train", "html", ["/usr/share/doc", join(rust, "core")], /\.html$/u, { most: 40, size: 8_000 })
  files("held", "html", [join(rust, "cargo"), join(rust, "nomicon")], /\.html$/u, { most: 25, size: 8_000 })
  files(
    "train",
    "xml",
    ["/usr/share/mime", "/usr/share/xml", "/usr/share/dbus-1", "/usr/share/polkit-1", "/usr/share/maven-repo"],
    /\.(xml|pom|policy)$/u,
    { most: 30, size: 8_000 }
  )
  files("train", "sql", ["/usr/share/postgresql", python], /\.sql$/u, { most: 20, size: 8_000 })
  files("train", "yaml", ["/usr/lib/google-cloud-sdk/lib/surface"], /\.ya?ml$/u, { most: 30, size: 8_000 })
  files("held", "yaml", [modules, python], /\.ya?ml$/u, { most: 20, size: 8_000 })
  files("train", "php", ["/usr"], /\.php$/u, { most: 20, size: 8_000 })
  files("train", "vim", ["/usr/share/vim/vim90/autoload", "/usr/share/vim/vim90/indent"], /\.vim$/u, {
    most: 20,
    size: 8_000
  })
  files("held", "go", ["/usr/share/doc"], /\.go$/u)
  files("train", "json", ["/usr/share", global, "/usr/lib/google-cloud-sdk", join(site, "botocore")], /\.json$/u, {
    most: 70,
    size: 10_000
  })
  files("held", "json", [modules, join(site, "cfnlint"), join(site, "samtranslator")], /\.json$/u, {
    most: 50,
    size: 10_000
  })
  files("train", "log", ["/var/log"], /\.log(\.\d)?$/u, { most: 20, size: 10_000 })
  const page = { most: 40, size: 8_000 }
  files("train", "english", ["/usr/share/doc"], /(README|NEWS|FAQ|changelog|TODO|\.txt|\.md)(\.gz)?$/u, {
    most: 90,
    size: 8_000
  })
  files("train", "english", [join(rust, "book"), join(rust, "reference")], /\.html$/u, { ...page, map: strip })
  files("train", "english", ["/usr/share/man/man1", "/usr/share/man/man7"], /\.gz$/u, {
    ...page,
    most: 60,
    map: manual
  })
  files("train", "english", ["/usr/share/common-licenses"], /./u, { ...page, most: 10 })
  files("held", "english", [join(rust, "nomicon"), join(rust, "edition-guide"), join(rust, "rustc")], /\.html$/u, {
    ...page,
    most: 30,
    map: strip
  })
  files("held", "english", [modules, global], /\.md$/iu, { ...page, most: 60 })
  files("held", "english", ["/usr/share/man/man5", "/usr/share/man/man8"], /\.gz$/u, { ...page, most: 30, map: manual })
  const git = output("git", [
    "-C",
    root,
    "log",
    "-p",
    "--no-color",
    "--",
    "src/cli",
    "src/services",
    "README.md",
    "bench"
  ])
  const dice = random("diff")
  if (git.length > 200_000)
    for (const at of many(40, () => dice.whole(0, git.length - 12_000)))
      put("train", "diff", git.slice(at, at + 12_000), "git")
  files("held", "diff", ["/usr", python], /\.(diff|patch)$/u, { most: 40, size: 8_000 })
}

const languages = () => {
  const main = {
    german: "de",
    french: "fr",
    spanish: "es",
    russian: "ru",
    chinese: "zh_CN",
    japanese: "ja",
    korean: "ko"
  }
  const others = {
    traditional: "zh_TW",
    italian: "it",
    portuguese: "pt_BR",
    polish: "pl",
    turkish: "tr",
    czech: "cs",
    ukrainian: "uk",
    vietnamese: "vi",
    swedish: "sv",
    dutch: "nl",
    hungarian: "hu",
    finnish: "fi"
  }
  for (const [name, code] of Object.entries({ ...main, ...others })) {
    const man = (...sections) => sections.map((section) => `/usr/share/man/${code}/man${section}`)
    const first = name in main
    files("train", name, man(1, 8), /\.gz$/u, { most: first ? 40 : 8, size: 8_000, map: manual })
    messages("train", name, code, ["git", "dpkg", "gnupg2", "bash", "libc", "apt"], { most: first ? 30 : 6 })
    files("held", name, man(3, 5, 7), /\.gz$/u, { most: 20, size: 8_000, map: manual })
    messages("held", name, code, ["postgres-15", "wget", "aptitude", "gettext-tools"], { most: 10 })
  }
  for (const [name, code] of Object.entries({ chinese: "zh", japanese: "ja", korean: "ko", spanish: "es" }))
    files("train", name, [join(rust, "rust-by-example", code)], /(?<!print)\.html$/u, {
      most: 50,
      size: 8_000,
      map: bookPage
    })
  const few = {
    arabic: "ar",
    hebrew: "he",
    greek: "el",
    hindi: "hi",
    thai: "th",
    persian: "fa",
    bengali: "bn",
    tamil: "ta",
    georgian: "ka",
    armenian: "hy"
  }
  for (const [name, code] of Object.entries(few)) {
    messages(
      "train",
      name,
      code,
      [
        "gtk20-properties",
        "gtk30-properties",
        "gtk30",
        "xkeyboard-config",
        "glib20",
        "gtk20",
        "libc",
        "dpkg",
        "apt",
        "gnupg2",
        "coreutils",
        "bash"
      ],
      { least: 24, most: 25, size: 6_000 }
    )
    messages(
      "held",
      name,
      code,
      [
        "system-config-printer",
        "wget",
        "util-linux",
        "shared-mime-info",
        "libgnutls30",
        "gettext-tools",
        "grep",
        "sed",
        "tar"
      ],
      { least: 20, most: 10, size: 6_000 }
    )
  }
  files("held", "tutor", ["/usr/share/vim/vim90/tutor"], /tutor\.(zh_cn|zh_tw|ja|ko|ru|de|fr|es|el|it|pl)\.utf-8$/u, {
    size: 8_000
  })
  files("held", "catalog", ["/usr/lib/systemd/catalog"], /\.(zh_CN|zh_TW|ru|de|fr|ko|pl|it)\.catalog$/u, {
    size: 8_000
  })
  const prose = join(import.meta.dirname, "prose")
  for (const file of readdirSync(prose)
    .filter((name) => name.endsWith(".txt"))
    .toSorted())
    put("train", `prose-${file.split("-")[0]}`, read(join(prose, file)), file)
}

// --- generated texts ---------------------------------------------------------------------------------------------------------

const nouns =
  "server client request user order payment session cache queue worker database index shard node cluster token account message thread config module package service gateway router handler stream socket buffer event metric trace span record batch job task schedule retry timeout error warning failure connection pool memory disk file path query update insert delete select commit".split(
    " "
  )
const inLines = (text, length) => `${text.match(new RegExp(`.{1,${length}}`, "gsu")).join("\n")}\n`

const encodings = (split, dice) => {
  const { bytes, hex, pick, uuid, whole } = dice
  const length = whole(1_500, 5_000)
  put(split, "hex-lower", hex(length))
  put(split, "hex-upper", hex(length).toUpperCase())
  put(split, "hex-lines", inLines(hex(length), pick([32, 40, 64])))
  put(split, "hex-spaced", hex(length).match(/../gu).join(" "))
  put(split, "hex-spaced", hex(length).toUpperCase().match(/../gu).join(" "))
  put(split, "hex-spaced", inLines(hex(length).match(/.{4}/gu).join(" "), 40))
  const dump = (row) => {
    const line = bytes(16)
    const shown = [...line].map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("")
    return `${(row * 16).toString(16).padStart(8, "0")}: ${line.toString("hex").match(/..../gu).join(" ")}  ${shown}`
  }
  put(split, "hex-spaced", many(60, dump).join("\n"))
  put(split, "hex-spaced", many(60, () => `0x${hex(pick([2, 4, 8]))}`).join(", "))
  put(split, "hex-list", many(60, () => hex(pick([7, 40, 64, 32]))).join("\n"))
  put(split, "hex-list", many(40, () => `${hex(64)}  ${pick(nouns)}-${whole(1, 99)}.tar.gz`).join("\n"))
  put(split, "uuids", many(80, uuid).join(split === "held" ? "\n" : pick(["\n", ", ", " "])))
  put(split, "base64", bytes(length).toString("base64"))
  put(split, "base64-lines", inLines(bytes(length).toString("base64"), 76))
  put(split, "base64-lines", inLines(bytes(length).toString("base64"), 64))
  put(split, "base64-url", bytes(length).toString("base64url"))
  const base64 = (text, form = "base64") => Buffer.from(text).toString(form)
  put(split, "base64-text", base64(many(length / 6, () => pick(nouns)).join(" ")))
  put(
    split,
    "base64-text",
    base64(JSON.stringify(many(length / 60, () => ({ id: whole(1, 9_999), name: pick(nouns), at: uuid() }))))
  )
  const claims = () => ({ sub: uuid(), name: pick(nouns), iat: whole(1.6e9, 1.8e9), scope: "read write" })
  const signed = () =>
    `${base64(JSON.stringify({ alg: "RS256", typ: "JWT", kid: hex(12) }), "base64url")}.${base64(JSON.stringify(claims()), "base64url")}.${bytes(64).toString("base64url")}`
  put(split, "base64-url", many(12, signed).join("\n"))
}

const emojiRanges = [
  [0x1f600, 0x1f64f],
  [0x1f300, 0x1f321],
  [0x1f330, 0x1f393],
  [0x1f3a0, 0x1f3ca],
  [0x1f400, 0x1f4fd],
  [0x1f680, 0x1f6c5],
  [0x1f910, 0x1f93e],
  [0x1f940, 0x1f9ff],
  [0x1fa70, 0x1fa74],
  [0x1fa80, 0x1fa86]
]
const anyEmoji = emojiRanges.flatMap(([first, last]) => many(last - first + 1, (i) => String.fromCodePoint(first + i)))
const signs = [
  ..."☀☁☂☃☎☑☔☕☘☝☠☢☣☪☮☯☸☹♀♂♈♉♊♋♌♍♎♏♐♑♒♓♟♠♣♥♦♨♻♾♿⚒⚓⚔⚕⚖⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛎⛏⛑⛓⛔⛩⛪⛰⛱⛲⛳⛴⛵⛷⛸⛹⛺⛽✂✅✈✉✊✋✌✍✏✒✔✖✝✡✨✳✴❄❇❌❎❓❔❕❗❣❤➕➖➗➡➰⬅⬆⬇⬛⬜⭐⭕"
]
const commonEmoji = [
  ..."😀😂😊😍😎😢😭😡👍👎👏🙏💪🔥🎉🚀💡📝📦🐛🔧🔨🔒🔑📊📈📉🗑🔍🎯🏆🤖🧪🧹💥🌍🌟💬📌📎📅⏰🤔🙌👀💯🥳😅😴🤷🎂🍕🍺🚗🏠🐶🐱"
]
const popularEmoji = [
  ..."😀😁😂🤣😊😇🙂😉😍🥰😘😋😎🤩🥳😏😒😞😔😟😕😣😖😫😩🥺😢😭😤😠😡🤯😳😱😨😰🤗🤔🤫😶😐😑😬🙄😴🤤😷🤮💩👻👽👋👌👍👎👊👏🙌🙏💪👀👉👈👆👇💕💔💖💙💚💛💜🖤💯💥🔥⭐🌟✨🎉🎊🎁🏆🚀💡📌📝📈🔒🔑✅❌❗❓➡⬇"
]
const tones = many(5, (i) => String.fromCodePoint(0x1f3fb + i))
const people = [..."👨👩🧑👦👧👶👴👵"]
const hands = [..."👍👎👏🙏💪👋🤚🖐✋🖖👌🤏✌🤞🤟🤘🤙👈👉👆👇☝👊🤛🤜🙌👐🤲"]
const trades = ["⚕️", "⚖️", "✈️", "🌾", "🍳", "🎓", "🎤", "🎨", "🏫", "🏭", "💻", "💼", "🔧", "🔬", "🚀", "🚒"]
const countries =
  "DE FR US GB JP CN KR RU BR IN IT ES CA AU MX NL SE NO FI PL UA TR SA EG ZA AR CL CH AT BE PT GR IE DK IS EU NZ IL TH VN ID NG KE PE".split(
    " "
  )
const emoji = ({ pick, share, whole }, style) => {
  const joined = "\u200d"
  const makers = {
    plain: () =>
      share() < 0.6 ? pick(commonEmoji) : share() < 0.7 ? pick(anyEmoji) : pick(signs) + pick(["", "\ufe0f"]),
    zwj: () =>
      pick([
        () => many(whole(2, 4), () => pick(people)).join(joined),
        () => pick(people) + pick(["", pick(tones)]) + joined + pick(trades),
        () => pick(["🏳️‍🌈", "🏴‍☠️", "❤️‍🔥", "👁️‍🗨️", "🧑‍🤝‍🧑"])
      ])(),
    tones: () => pick(hands) + pick(tones),
    popular: () =>
      pick([
        () => pick(popularEmoji),
        () => pick(popularEmoji),
        () => pick(["❤️", "✔️", "⚠️", "☀️", "▶️"]),
        () => `${whole(0, 9)}\ufe0f\u20e3`
      ])(),
    flags: () =>
      [...pick(countries)].map((letter) => String.fromCodePoint(0x1f1e6 + letter.charCodeAt(0) - 65)).join("")
  }
  return makers[style === "mixed" ? pick(["plain", "popular", "zwj", "tones", "flags"]) : style]()
}
const emojis = (split, dice, round) => {
  for (const style of ["plain", "popular", "zwj", "tones", "flags", "mixed"])
    put(split, `emoji-${style}`, many(300, () => emoji(dice, style)).join([" ", "", "\n"][round % 3]))
  const line = () =>
    `${dice.pick(["-", "*", "##", ""])} ${emoji(dice, "mixed")} ${many(dice.whole(2, 9), () => dice.pick(nouns)).join(" ")}${dice.share() < 0.3 ? ` ${emoji(dice, "popular")}` : ""}`
  put(split, "emoji-text", many(80, line).join("\n"))
}

const data = (split, { hex, pick, share, uuid, whole }, round) => {
  const time = () => new Date(whole(1.5e12, 1.8e12)).toISOString()
  const figure = () =>
    pick([
      () => share() * 100,
      () => Number((share() * 1_000).toFixed(2)),
      () => (share() - 0.5) * 1e-5,
      () => share() * 360 - 180,
      () => Number(share().toFixed(4)),
      () => whole(0, 1e6)
    ])()
  const kinds = [
    () => ({ id: uuid(), value: figure(), hash: hex(pick([32, 40, 64])), [pick(nouns)]: figure(), ok: share() < 0.5 }),
    () => ({
      traceId: hex(32),
      spanId: hex(16),
      duration: whole(1, 99_999),
      attributes: { [`${pick(nouns)}.${pick(nouns)}`]: pick(nouns), "http.status_code": pick([200, 404, 500]) }
    }),
    () => ({
      _id: hex(24),
      createdAt: time(),
      price: Number((share() * 100).toFixed(2)),
      items: many(whole(1, 4), () => ({ sku: hex(8).toUpperCase(), qty: whole(1, 20) }))
    }),
    () => [share(), share() * 100, whole(0, 1_000)],
    () => ({
      userId: whole(1, 1e6),
      first_name: pick(nouns),
      email: `${pick(nouns)}@${pick(nouns)}.com`,
      coordinates: [share() * 90, share() * 180]
    })
  ]
  const heldKind = () => ({
    uid: uuid(),
    lat: share() * 180 - 90,
    lng: share() * 360 - 180,
    sha: hex(40),
    tags: [pick(nouns), pick(nouns)],
    score: figure(),
    active: share() < 0.5,
    parent: null,
    ts: whole(1.6e12, 1.8e12)
  })
  const records = many(30, split === "held" ? heldKind : pick(kinds))
  put(split, "json-minified", JSON.stringify(records))
  put(split, "json-minified", records.map((record) => JSON.stringify(record)).join("\n"))
  put(split, "json-pretty", JSON.stringify(records, null, split === "held" ? 2 : pick([2, 4, 2, "\t"])))
  put(
    split,
    "floats",
    JSON.stringify(many(300, () => share() * (round % 2 === 1 ? 1 : 100) - (round % 3 === 0 ? 0 : 50)))
  )
  put(
    split,
    "csv",
    many(100, () => [whole(1, 1e5), pick(nouns), figure(), time().slice(0, 10), share() < 0.5].join(",")).join("\n")
  )
}

const logs = (split, { hex, pick, uuid, whole }) => {
  const ip = () => `${whole(1, 255)}.${whole(0, 255)}.${whole(0, 255)}.${whole(1, 254)}`
  const iso = () => new Date(whole(1.5e12, 1.8e12)).toISOString()
  const level = () => pick(["INFO", "DEBUG", "WARN", "ERROR", "TRACE"])
  const month = () => pick("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" "))
  const two = (least, most) => String(whole(least, most)).padStart(2, "0")
  const clock = () => `${two(0, 23)}:${two(0, 59)}:${two(0, 59)}`
  const words = (least, most) => many(whole(least, most), () => pick(nouns)).join(" ")
  const path = () =>
    `/${many(whole(1, 4), () => pick(nouns)).join("/")}${pick(["", `/${whole(1, 9_999)}`, `/${uuid()}`, `?page=${whole(1, 99)}`])}`
  const styles =
    split === "held"
      ? [
          () =>
            `${iso()} [${level()}] [req-${hex(8)}] ${pick(nouns)}.${pick(nouns)}: ${words(3, 7)} in ${whole(1, 999)}ms from ${ip()}`,
          () =>
            `${month()} ${whole(1, 28)} ${clock()} host-${whole(1, 20)} kernel: [${whole(1, 99_999)}.${whole(100_000, 999_999)}] ${words(2, 6)} 0x${hex(8)}`,
          () =>
            JSON.stringify({
              level: level().toLowerCase(),
              time: iso(),
              msg: words(2, 6),
              trace_id: hex(32),
              ip: ip(),
              ms: whole(1, 900)
            }),
          () =>
            `E${two(10, 12)}${two(1, 28)} ${clock()}.${whole(100_000, 999_999)}    ${whole(1, 99)} ${pick(nouns)}.go:${whole(1, 900)}] ${words(3, 8)}`
        ]
      : [
          () => `${iso()} ${level()} ${pick(nouns)} - ${words(3, 8)} id=${uuid()} took ${whole(1, 5_000)}ms`,
          () =>
            `${ip()} - - [${whole(10, 28)}/${month()}/2025:${clock()} +0000] "${pick(["GET", "POST", "PUT"])} ${path()} HTTP/1.1" ${pick([200, 304, 404, 500])} ${whole(100, 99_999)} "-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${whole(90, 130)}.0.0.0 Safari/537.36"`,
          () =>
            `${month()} ${whole(1, 28)} ${clock()} ${pick(nouns)} ${pick(["sshd", "systemd", "cron", "nginx", "dockerd"])}[${whole(100, 99_999)}]: ${words(3, 8)} ${ip()} port ${whole(1_024, 65_535)}`,
          () =>
            `[${iso().slice(0, 19).replace("T", " ")}] [${level().toLowerCase()}] ${whole(1, 999)}#${whole(1, 99)}: *${whole(1, 99_999)} ${words(3, 8)}, client: ${ip()}, request: "${path()}"`,
          () =>
            `${whole(2020, 2026)}/${two(1, 12)}/${two(1, 28)} ${clock()} ${pick(nouns)}.go:${whole(1, 900)}: ${words(3, 8)}`,
          () =>
            `level=${level().toLowerCase()} ts=${iso()} caller=${pick(nouns)}.go:${whole(1, 400)} msg="${words(3, 7)}" ${pick(nouns)}=${whole(1, 9_999)} addr=${ip()}:${whole(80, 9_999)}`,
          () => `  at ${pick(nouns)}.${pick(nouns)} (${path()}.js:${whole(1, 999)}:${whole(1, 99)})`,
          () =>
            `${clock()}.${whole(100, 999)} [worker-${whole(1, 16)}] ${level()}  com.example.${pick(nouns)}.${pick(nouns)} - ${words(3, 8)} [${hex(16)}]`
        ]
  for (const style of styles) put(split, "logs", many(50, style).join("\n"))
  put(split, "logs", many(60, () => pick(styles)()).join("\n"))
}

const tables = (split, { pick, whole }) => {
  const run = (character, least, most) => character.repeat(whole(least, most))
  const words = () => many(whole(2, 6), () => pick(nouns)).join(" ")
  put(split, "rules", many(60, () => run(pick([..."=-*#_~.+─━═"]), 3, 100)).join("\n"))
  put(
    split,
    "rules",
    many(30, () => `${run(pick([..."=-*#"]), 10, 80)}\n${words()}\n${run(pick([..."=-─"]), 10, 80)}\n`).join("\n")
  )
  const widths = [whole(6, 24), whole(6, 24), whole(4, 14)]
  const row = (edge) =>
    `${edge}${[pick(nouns), pick(nouns), whole(0, 9_999)].map((cell, i) => ` ${String(cell).padEnd(widths[i])} `).join(edge)}${edge}`
  const border = ([left, middle, right, line]) =>
    left + widths.map((width) => line.repeat(width + 2)).join(middle) + right
  put(
    split,
    "tables",
    [border("┌┬┐─"), row("│"), border("├┼┤─"), ...many(25, () => row("│")), border("└┴┘─")].join("\n")
  )
  put(split, "tables", [border("+++-"), ...many(25, () => row("|"))].join("\n"))
  put(
    split,
    "tables",
    [
      "| name | kind | size |",
      "|---|---|---:|",
      ...many(25, () => `| ${pick(nouns)} | ${pick(nouns)} | ${whole(0, 9_999)} |`)
    ].join("\n")
  )
  put(
    split,
    "tables",
    many(
      40,
      () => `${"│   ".repeat(whole(0, 4))}${pick(["├── ", "└── "])}${pick(nouns)}${pick([".ts", ".py", "", ".md"])}`
    ).join("\n")
  )
}

/** Runs of one character, random letters, and characters that are rare elsewhere. */
const oddities = (split, dice, round) => {
  const { pick, share, whole } = dice
  const lengths = () => pick([2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32, 40, 60, 64, 72, 80, 100, 120])
  const all = [..."!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~─━═█░▓·•"]
  for (const mark of all.filter((_, i) => i % 3 === round % 3))
    put(
      split,
      "runs",
      many(
        30,
        () => `${pick(["", "", "# ", "x ", "  "])}${mark.repeat(lengths())}${pick(["", "", ` ${pick(nouns)}`])}`
      ).join("\n")
    )
  put(split, "runs", many(12, () => pick(all).repeat(whole(100, 700))).join("\n"))
  put(split, "runs", many(20, () => `${pick(nouns)}${"\r\n".repeat(whole(1, 60))}`).join(""))
  put(split, "runs", "\r\n".repeat(whole(300, 900)))
  const of = (alphabet, least, most) => many(whole(least, most), () => pick([...alphabet])).join("")
  const small = "abcdefghijklmnopqrstuvwxyz"
  put(
    split,
    "repeats",
    many(40, () => pick([...small, ...small.toUpperCase(), "0", "7"]).repeat(whole(5, 120))).join(pick(["\n", " "]))
  )
  put(split, "repeats", many(4, () => pick([...small]).repeat(whole(500, 1_500))).join("\n"))
  for (const alphabet of [
    small,
    small.toUpperCase(),
    "ACGT",
    `${small.toUpperCase()}234567`,
    `${small}0123456789`,
    `${small}${small.toUpperCase()}123456789`
  ]) {
    put(split, "jumbles", of(alphabet, 1_500, 3_000))
    put(split, "jumbles", many(150, () => of(alphabet, 3, 26)).join(pick([" ", "\n", ","])))
  }
  const codes = (first, last, count) =>
    many(count, () => String.fromCodePoint(whole(first, last)) + (share() < 0.12 ? " " : "")).join("")
  for (const [first, last] of [
    [0xff10, 0xff5a],
    [0xff66, 0xff9f],
    [0x2801, 0x28ff],
    [0xe000, 0xe0ff],
    [0x1f00, 0x1fff],
    [0x2070, 0x218f],
    [0x2200, 0x22ff],
    [0x1d400, 0x1d7ff],
    [0x4e00, 0x9fff],
    [0xac00, 0xd7a3],
    [0x3041, 0x3096],
    [0x30a1, 0x30fa]
  ])
    put(split, "rare", codes(first, last, 400))
  put(
    split,
    "rare",
    many(
      300,
      () =>
        String.fromCodePoint(pick([0, 1, 7, 8, 11, 12, 27, 27, 27, 127])) + pick(["", "[0m", "[32m", pick(nouns), "\n"])
    ).join("")
  )
  put(
    split,
    "percent",
    many(30, () =>
      encodeURIComponent(pick(["東京都", "привет мир", "naïve café", "a b&c=d/e", "文件 名称.txt", "größe"]))
    ).join(pick(["\n", "&", "/"]))
  )
  const shout = () => many(whole(1, 4), () => pick(nouns).toUpperCase()).join("_")
  put(
    split,
    "constants",
    many(80, () =>
      pick([
        `${shout()}=${whole(0, 9_999)}`,
        `#define ${shout()} ${whole(0, 99)}`,
        `${shout()},`,
        `process.env.${shout()}`,
        `export ${shout()}="${pick(nouns)}"`
      ])
    ).join("\n")
  )
  const latin =
    "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua enim ad minim veniam quis nostrud exercitation ullamco laboris nisi aliquip ex ea commodo consequat duis aute irure in reprehenderit voluptate velit esse cillum eu fugiat nulla pariatur excepteur sint occaecat cupidatat non proident sunt culpa qui officia deserunt mollit anim id est laborum".split(
      " "
    )
  put(
    split,
    "latin",
    many(40, () => {
      const line = many(whole(4, 14), () => pick(latin)).join(" ")
      return `${line.charAt(0).toUpperCase()}${line.slice(1)}${pick([".", ".", ",", "?"])}`
    }).join(" ")
  )
}

// --- output of agents' tools ---------------------------------------------------------------------------------------------------

const projects =
  "apps billing web client server api core shared utils components hooks deps build config scripts tests docs lib internal pkg cmd services workers mobile admin dashboard auth checkout search notifications orders infra migrations models views controllers phoenix oban ecto tesla finch bandit credo lodash zustand radix prisma drizzle vite tokio serde axum rayon clap tonic gorm chi viper cobra zap sidekiq puma rspec devise celery redis kombu fastapi uvicorn alembic sqlx".split(
    " "
  )
const users = {
  train: "alice dev jsmith ubuntu karl nina runner app root mweber tanaka build".split(" "),
  held: "marcus pgarcia worker yuki li vagrant".split(" ")
}
const homes =
  "/home/% /Users/% /home/%/projects /Users/%/code /home/%/work /workspace /srv/% ~/src . src /home/%/Documents/dev /Users/%/Developer".split(
    " "
  )
const trees = {
  train: [
    join(global, "npm"),
    join(site, "flask"),
    join(site, "networkx"),
    join(site, "pydantic"),
    join(modules, "effect"),
    "/usr/share/perl",
    "/usr/include",
    "/usr/share/doc",
    join(java, "java.base"),
    join(java, "jdk.compiler"),
    "/etc"
  ],
  held: [
    join(root, "src"),
    join(root, "test"),
    join(site, "sympy"),
    join(site, "trio"),
    join(site, "botocore"),
    join(java, "java.desktop"),
    "/usr/share/vim",
    join(modules, "linkedom"),
    "/var/lib"
  ]
}
const listed = {
  train: ["/usr/bin", "/etc", "/usr/lib", "/usr/share", "/var/log", "/usr/share/doc", "/usr/include"],
  held: [
    "/usr/sbin",
    "/usr/share/man/man8",
    "/var/lib",
    "/usr/lib/jvm",
    python,
    join(root, "src/domain"),
    "/usr/share/vim/vim90"
  ]
}

const tools = (split, dice, round) => {
  const { hex, pick, share, whole } = dice
  const tree = pick(trees[split])
  const all = [...walk(tree)]
  if (all.length < 5) return
  const user = pick(users[split])
  const project = pick(projects) + pick(["", `-${pick(projects)}`, `_${pick(projects)}`])
  const base = round % 4 === 0 ? tree : `${pick(homes).replace("%", user)}/${project}`
  const moved = (path) => base + path.slice(tree.length)
  const from = whole(0, Math.max(0, all.length - 120))
  put(
    split,
    "tool-paths",
    `${(share() < 0.5 ? all.slice(from, from + 90) : many(60, () => pick(all))).map(moved).join("\n")}\n`
  )
  const ends = [
    "mix.exs",
    "package.json",
    "index.ts",
    "mod.rs",
    "main.go",
    "Cargo.toml",
    "README.md",
    ".py",
    "_test.go",
    ".test.tsx",
    "_controller.ex",
    "_spec.rb",
    "__init__.py"
  ]
  const end = () => pick(ends).replace(/^(?=[._](?!_))/u, () => pick(projects))
  put(
    split,
    "tool-paths",
    many(
      60,
      () =>
        `${base}/${pick("deps src apps packages crates lib app internal node_modules test vendor".split(" "))}/${pick(projects)}${pick(["", `_${pick(projects)}`, `-${pick(projects)}`])}/${end()}`
    ).join("\n")
  )
  const texts = shuffle(
    dice,
    all.filter((path) => /\.(ts|js|py|java|h|pm|rs|json|md|txt|ex)$/u.test(path))
  ).slice(0, 25)
  texts.slice(0, 2).forEach((path) => {
    const lines = read(path).slice(0, 200_000).split("\n")
    const at = whole(0, Math.max(0, lines.length - 150))
    put(
      split,
      "tool-numbered",
      lines
        .slice(at, at + 150)
        .map((line, i) => `${String(at + i + 1).padStart(6)}${pick(["\t", "→"])}${line}`)
        .join("\n")
    )
    put(split, "tool-json", JSON.stringify({ file_path: moved(path), content: lines.slice(at, at + 100).join("\n") }))
    put(
      split,
      "tool-json",
      JSON.stringify({
        file_path: moved(path),
        old_string: lines.slice(at, at + 20).join("\n"),
        new_string: lines.slice(at, at + 24).join("\n")
      })
    )
  })
  const word = pick(["return", "import", "error", "self", "class", "const", "name", "get", "test"])
  const found = texts.flatMap((path) =>
    read(path)
      .slice(0, 100_000)
      .split("\n")
      .flatMap((line, i) =>
        line.includes(word) && line.length < 160 && share() < 0.15 ? [`${moved(path)}:${i + 1}:${line}`] : []
      )
  )
  if (found.length > 8) put(split, "tool-grep", found.slice(0, 80).join("\n"))
  put(
    split,
    "tool-ls",
    output("ls", ["-la", pick(listed[split])])
      .split("\n")
      .slice(whole(1, 40))
      .slice(0, 60)
      .join("\n")
      .replaceAll("root", user)
  )
  const title = () =>
    many(whole(3, 9), () =>
      pick([
        ...projects,
        ..."how to use guide getting started with the of in for introduction reference tutorial best practices library framework GitHub Documentation Blog Forum".split(
          " "
        )
      ])
    )
      .map((each) => (share() < 0.6 ? each.charAt(0).toUpperCase() + each.slice(1) : each))
      .join(" ")
  const part = () =>
    pick(projects) +
    pick([
      "",
      `-${pick(projects)}`,
      `-${pick(["guide", "with", "and", "for"])}-${pick(projects)}`,
      `/${whole(1, 2_025)}`
    ])
  const url = () =>
    `https://${pick(["", "www.", "docs.", "blog.", "github.com/"])}${pick(projects)}${pick(["", `-${pick(projects)}`, pick(projects)])}.${pick(["com", "org", "io", "dev", "net"])}/${many(whole(1, 4), part).join("/")}${pick(["", "", ".html", `?id=${whole(1, 99_999)}`, `#${pick(projects)}`, `/${whole(1_000, 99_999)}`])}`
  put(
    split,
    "tool-urls",
    round % 2 === 1
      ? JSON.stringify(many(30, () => ({ title: title(), url: url() })))
      : many(40, () => pick([`- [${title()}](${url()})`, url(), `${title()}: ${url()}`])).join("\n")
  )
  const subject = () =>
    pick(["fix", "feat", "chore", "refactor", "docs", "test", "Add", "Remove", "Update"]) +
    pick([": ", `(${pick(projects)}): `, " "]) +
    many(whole(2, 7), () => pick(projects)).join(" ")
  put(split, "tool-git", many(50, () => `${hex(7)} ${subject()}${pick(["", ` (#${whole(1, 9_999)})`])}`).join("\n"))
  put(
    split,
    "tool-git",
    many(
      20,
      () =>
        `commit ${hex(40)}\nAuthor: ${pick(["Anna Miller", "Ben Schmidt", "Carla Garcia", "Dmitri Ivanov", "Eve Chen"])} <${pick(users[split])}@${pick(["example.com", "users.noreply.github.com"])}>\nDate:   ${pick(["Mon", "Tue", "Fri"])} ${pick(["Jan", "Mar", "Oct"])} ${whole(1, 28)} ${whole(10, 23)}:${whole(10, 59)}:${whole(10, 59)} 202${whole(1, 6)} +0${whole(0, 9)}00\n\n    ${subject()}\n`
    ).join("\n")
  )
  put(
    split,
    "tool-git",
    `On branch ${pick(projects)}\nChanges not staged for commit:\n${many(30, () => `${pick(["\tmodified:   ", "\tnew file:   ", "\tdeleted:    ", " M ", "?? "])}${pick(projects)}/${pick(projects)}.${pick(["ts", "py", "go", "rs", "ex"])}`).join("\n")}\n\n ${many(15, () => `${pick(projects)}/${pick(projects)}.ts | ${whole(1, 300)} ${"+".repeat(whole(1, 30))}${"-".repeat(whole(0, 20))}`).join("\n ")}`
  )
}

/** Sources in other forms: indented further, with tabs, with CR LF, within JSON. */
const reshaped = (split) => {
  for (const name of ["ts", "js", "python", "rust", "java", "c"]) {
    const place = join(folder, split, name)
    if (!existsSync(place)) continue
    readdirSync(place)
      .toSorted()
      .slice(0, split === "train" ? 12 : 6)
      .forEach((file, i) => {
        const text = read(join(place, file)).replaceAll("\r", "")
        const deeper = (by) => (line) => (line === "" ? line : by + line)
        const tabbed = text.replaceAll(/^ {2,}/gmu, (blanks) =>
          "\t".repeat(Math.ceil(blanks.length / (name === "ts" || name === "js" ? 2 : 4)))
        )
        const lines = tabbed.split("\n")
        put(
          split,
          "tool-json",
          JSON.stringify({
            path: `src/${basename(file)}`,
            content: (i % 2 === 0 ? lines : text.split("\n")).slice(20, 90).join("\n")
          })
        )
        put(
          split,
          "tool-json",
          JSON.stringify({
            path: `${dirname(place)}/${name}/x`,
            oldText: lines.slice(5, 25).join("\n"),
            newText: lines.slice(5, 30).join("\n")
          })
        )
        if (i >= 8) return
        put(
          split,
          "indented",
          text
            .split("\n")
            .map(deeper(" ".repeat([8, 16, 24, 40, 12, 20, 60, 32][i])))
            .join("\n")
        )
        put(split, "crlf", text.replaceAll("\n", "\r\n"))
        put(split, "crlf", tabbed.replaceAll("\n", "\r\n"))
        put(split, "tabs", tabbed)
        put(split, "tabs", lines.map(deeper("\t".repeat([3, 5, 8, 12][i % 4]))).join("\n"))
      })
  }
}

sources()
languages()
for (const split of ["train", "held"]) {
  const dice = random(split)
  for (let round = 0; round < (split === "train" ? 12 : 6); round += 1) {
    encodings(split, dice)
    emojis(split, dice, round)
    data(split, dice, round)
    logs(split, dice)
    tables(split, dice)
    oddities(split, dice, round)
  }
  for (let round = 0; round < (split === "train" ? 40 : 15); round += 1) tools(split, dice, round)
  reshaped(split)
}
for (const split of ["train", "held"]) {
  const names = readdirSync(join(folder, split))
  console.log(
    `${split}: ${names.length} classes, ${names.reduce((sum, name) => sum + readdirSync(join(folder, split, name)).length, 0)} texts`
  )
}

/**
 * Text that cannot pass for ours: what would open or close an element of a snapshot or of a message of the runtime, or be
 * read as the runtime's mark, in any spelling that a model may read so (other brackets and letters that look alike, blanks
 * and characters without width in between, entities). `protect` writes the character that would open it as XML writes it;
 * `unprotect` gives the text back.
 */

/** Elements that the runtime writes, and those of other agents and models that would give a text another voice. */
const elements: ReadonlyArray<string> = [
  "state_snapshot",
  "scratchpad",
  "user_words",
  "overall_goal",
  "active_constraints",
  "key_knowledge",
  "artifact_trail",
  "file_system_state",
  "recent_actions",
  "task_state",
  "current_plan",
  "session_context",
  "hook_context",
  "system",
  "system_reminder",
  "system_instruction",
  "system_instructions",
  "system_prompt",
  "system_message",
  "environment_context",
  "user_instructions",
  "user_prompt_submit_hook",
  "task_notification",
  "command_name",
  "command_message",
  "command_args",
  "local_command_stdout",
  "local_command_stderr"
]

/** A name may be written with anything that parts words, or with nothing. */
const elementName = new RegExp(
  `^/?(?:${elements.map((name) => name.replaceAll("_", "[-_ ]*")).join("|")})(?![a-z0-9_])`
)
/** The names as they are written, whatever follows that no name holds. */
const exactName = new RegExp(`\\s*(?:/\\s*)?(?:${elements.join("|")})\\b`, "iy")
const markName = /^\/?palimpsest ?:/

/** What looks like `<`, and like `[`. */
const angles = "<＜﹤‹〈〈⟨❬❮❰⟪˂ᐸ≺⪡⦑⧼"
const brackets = "\\[［⁅⟦〚【〖〔❲⦋﹝⦗⟬"
const opener = new RegExp(`[${angles}${brackets}]|&(?:amp;)*(?:lt|lsqb|lbrack|#0*\\d{1,7}|#x0*[0-9a-f]{1,6});?`, "giu")
const isAngle = new RegExp(`[${angles}]`, "u")
const isOpener = new RegExp(`^[${angles}${brackets}]$`, "u")

/** Letters that look like Latin ones and are not made of them (those `normalize` finds). */
const alike: Readonly<Record<string, string>> = Object.fromEntries(
  (
    [
      ["a", "аαɑᴀꭺ"],
      ["b", "ьвʙβ"],
      ["c", "сϲᴄⅽ"],
      ["d", "ԁᴅժ"],
      ["e", "еεєҽᴇеꬲ"],
      ["f", "ꜰẝ"],
      ["g", "ɡցɢ"],
      ["h", "һհʜн"],
      ["i", "іιıɪɩ"],
      ["j", "јϳᴊ"],
      ["k", "кκᴋ"],
      ["l", "ʟⅼӏ"],
      ["m", "мᴍ"],
      ["n", "пոηɴ"],
      ["o", "оοօσᴏ"],
      ["p", "рρᴘ"],
      ["q", "ԛզ"],
      ["r", "гʀᴦ"],
      ["s", "ѕꜱʂ"],
      ["t", "тτᴛ"],
      ["u", "υսᴜʋ"],
      ["v", "ѵνᴠ"],
      ["w", "ԝωᴡա"],
      ["x", "хχ"],
      ["y", "уγʏ"],
      ["z", "ᴢ"],
      ["/", "⁄∕╱⧸"],
      [":", "∶ː꞉׃"],
      ["-", "‐‑‒–—−"]
    ] as const
  ).flatMap(([plain, others]) => [...others].map((other) => [other, plain]))
)

const unseen = /[\p{M}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu
/** Letters that are read at most: more than the longest name has. */
const mostLetters = 40

/** What a reader may take a character for: plain small letters and signs, a blank, or nothing. */
const readAs = (character: string): string => {
  let read = ""
  for (const each of character.normalize("NFKD").replace(unseen, "").toLowerCase()) {
    read += /\s/u.test(each) ? " " : (alike[each] ?? each)
  }
  return read
}

/** What a reader may take for a name at this place. It ends before anything that no name holds. */
const nameAt = (text: string, from: number): string => {
  let name = ""
  for (let at = from; at < text.length && name.length < mostLetters;) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0)
    at += character.length
    const read = /[\s\p{Cc}]/u.test(character) ? " " : readAs(character)
    if (!/^[-a-z0-9_ /:]*$/.test(read)) break
    // However much white space there is, it counts as one blank, and in front of a name as none.
    name += read === " " && (name === "" || name === "/" || name.endsWith(" ")) ? "" : read
    if (name.endsWith(":")) break
  }
  return name
}

/** Whether what stands behind an opening character makes it one of ours. */
const opens = (text: string, found: string, at: number): boolean => {
  const from = at + found.length
  const name = nameAt(text, from)
  const isEntity = found.startsWith("&")
  if ((isEntity || !isAngle.test(found)) && markName.test(name)) return true
  if (!isEntity && !isAngle.test(found)) return false
  exactName.lastIndex = from
  return elementName.test(name) || exactName.test(text)
}

/** The text with what could open something of ours written as `escape` says. All else in it stays as it is. */
export const escapedBy = (text: string, escape: (found: string) => string): string =>
  text.replace(opener, (found, at: number) => (opens(text, found, at) ? escape(found) : found))

/** The text with whatever could open something of ours escaped. */
export const protect = (text: string): string =>
  escapedBy(text, (found) => {
    if (found.startsWith("&")) return `&amp;${found.slice(1)}`
    return found === "<" ? "&lt;" : `&#x${(found.codePointAt(0) ?? 0).toString(16)};`
  })

/** The text that `protect` was given. */
export const unprotect = (text: string): string =>
  text.replace(opener, (found, at: number) => {
    if (!found.startsWith("&") || !opens(text, found, at)) return found
    if (found.startsWith("&amp;")) return `&${found.slice(5)}`
    if (found === "&lt;") return "<"
    const code = /^&#x([0-9a-f]{1,6});$/.exec(found)?.[1]
    const character = code === undefined ? "" : characterOf(Number.parseInt(code, 16))
    return isOpener.test(character) ? character : found
  })

const characterOf = (code: number): string => (code > 0x10ffff ? "" : String.fromCodePoint(code))

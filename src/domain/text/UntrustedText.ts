/**
 * Escapes untrusted text so that it cannot pass for text of the runtime. Escaped is what would open or close an element of a
 * snapshot or of a runtime message, or read as the runtime's mark, in any spelling that a model may read that way (look-alike
 * brackets and letters, blanks and zero-width characters in between, entities). `protect` writes the opening character as an XML
 * entity; `unprotect` restores the text.
 */

import { visibleBlock, visibleLine } from "./InvisibleCharacters.ts"

/** Elements that the runtime writes, and elements of other agents and models that would give a text another role. */
const elements: ReadonlyArray<string> =
  `state_snapshot scratchpad user_words overall_goal active_constraints key_knowledge artifact_trail
  file_system_state recent_actions task_state current_plan session_context hook_context web_page system
  system_reminder system_instruction system_instructions system_prompt system_message environment_context
  user_instructions user_prompt_submit_hook task_notification command_name command_message command_args
  local_command_stdout local_command_stderr human assistant developer tool_result tool_results function_result
  function_results function_call function_calls im_start im_end`.split(/\s+/)
/** Roles that are also types and elements in ordinary code (`List<User>`). Escaped only as model tokens: `<|user|>`. */
const tokens: ReadonlyArray<string> = [...elements, "user", "model", "tool", "instructions"]

/** Maps the lower-case letters that `readAs` returns so that look-alikes become equal. */
const folded = (name: string): string => name.replace(/[i1]/g, "l").replace(/0/g, "o")
/** Returns a pattern for a name with any separators at any position, or none. */
const pattern = (name: string): string => [...folded(name).replaceAll("_", "")].join("[ _]{0,3}")
/** Letters by which most names are told apart; every name has more. */
const tellingLetters = 4
/** Returns a function that tells whether a text begins with one of these names. */
const beginsWithAny = (names: ReadonlyArray<string>) => {
  const beginnings = new Set(names.map((name) => folded(name).replaceAll("_", "").slice(0, tellingLetters)))
  const whole = new RegExp(`^[ _]{0,3}(?:${names.map(pattern).join("|")})(?![a-z0-9_])`)
  return (text: string): boolean =>
    beginnings.has(text.replace(/[ _]+/g, "").slice(0, tellingLetters)) && whole.test(text)
}
const isElementName = beginsWithAny(elements)
const isTokenName = beginsWithAny(tokens)
/** The names exactly as written, followed by a character that cannot be part of a name. */
const exactName = new RegExp(`\\s*(?:/\\s*)?(?:${elements.join("|")})\\b`, "iy")
const markName = new RegExp(`^[ _]{0,3}${pattern("palimpsest")}[ _]{0,3}:`)

/** Characters that look like `<`, and those that look like `[` or another bracket around a mark. */
const angles = "<＜﹤‹\\u2329〈⟨❬❮❰⟪˂ᐸᐊᚲ𝈶≺⪡⦑⧼《«⦃≤⩽≮≪⋖⩹⪕⊰◁⦉⦓"
const brackets = "\\[［⁅⟦〚【〖〔❲⦋﹝⦗⟬({（｛﹙﹛「『〘｢❨❴"
const entities = "lt|nvlt|ltcir|lang|langle|lsaquo|laquo|lsqb|lbrack|lpar|lcub|lbrace"
const opener = new RegExp(`[${angles}${brackets}]|&(?:amp;)*(?:${entities}|#0*\\d{1,7}|#x0*[0-9a-f]{1,6});?`, "giu")
const isAngle = new RegExp(`[${angles}]`, "u")
const isOpener = new RegExp(`^[${angles}${brackets}]$`, "u")

/**
 * Letters that look like Latin ones and do not decompose into them (`normalize` handles those): Unicode's confusables for the
 * letters of our names, and a few more. One letter represents all that look like `l`.
 */
const lookalikes: Readonly<Record<string, string>> = Object.fromEntries(
  (
    [
      ["a", "аαɑᴀꭺ⍺ᗅꓮ𖽀𐊠⍶ẚ"],
      ["b", "ьвʙβƅꮟᖯꞵᏼᗷꓐ𐊂𐊡𐌁ɓƃбƀҍѣ"],
      ["c", "сςᴄⲥꮯ𐐽🝌ꓚ𐊢𐌂𐔜ȼҫ"],
      ["d", "ԁᴅժꮷᑯꓒꭰᗞᗪꓓɗɖƌđð"],
      ["e", "еεєҽᴇꬲ℮ⴹꭼꓰ𑣆𑣎𐊆ɇҿɛ"],
      ["f", "ꜰẝꬵꞙք𝈓ϝᖴꓝ𑣂𐊇𐊥𐔥ƒᵮ"],
      ["g", "ɡցɢᶃƍԍꮐᏻꓖɠǥ"],
      ["h", "һհʜнꮒⲏꮋᕼꓧ𐋏ɦꚕᏺⱨңħћӊӈ"],
      ["j", "јϳᴊʝꭻᒍꓙɉ"],
      ["k", "кκᴋⲕꮶᛕꓗ𐔘ƙⱪқꝁҟ"],
      ["l", "іιıɪɩʟӏ⍳ꙇꭵ𑣃⍸ɨᵻᵼ⏽│ǀⲓⵏᛁꓲ𖼨𐊊𐌉𝈪ⳑꮮᒪꓡ𖼖𑣒𐑃𐔦łɭƚɫ"],
      ["m", "мᴍμϻⲙꮇᗰᛖꓟ𐊰𐌑ӎ𑜀ɱᵯ"],
      ["n", "пոηɴռⲛꓠ𐔓𐆎ɳƞɲᵰ"],
      ["o", "оοօσᴏᴑꬽⲟჿഠဝ𐓪𑣈𑣗𐐬ⵔዐଠꓳ𑣕𐊒𐊫𐔖øꬾⵁɵꝋөѳꮎꮻ⍬𝈚🜔θⴱꭴတ"],
      ["p", "рρᴘ⍴ⲣꮲᑭꓑ𐊕ƥᵽ"],
      ["q", "ԛզգⵕʠ"],
      ["r", "гʀᴦꭇꭈⲅꮁ𝈖ꭱꮢ𐓜ᖇꓣ𖼵ɽɼɍғᵲ"],
      ["s", "ѕꜱʂƽꮪ𑣁𐑈տꮥꓢ𖼺𐊖ᵴƨ"],
      ["t", "тτᴛ🝨ⲧꭲꓔ𖼊𑣜𐊗𐊱𐌕ƭ⍡ⱦʈҭŧᵵ"],
      ["u", "υսᴜʋꞟꭎꭒ𐓶𑣘ሀᑌꓴ𖽂ᵾꮜʉ"],
      ["v", "ѵνᴠ𑜆ꮩ𑣀𝈍ⴸᐯꛟꓦ𖼈𐔝𐆗🜈"],
      ["w", "ԝωᴡաɯѡ𑜊𑜎𑜏ꮃꮤꓪѽ𑓅ꝡ"],
      ["x", "хχᕁᕽ᙭╳ꭓⲭⵝᚷꓫ𐊐𐊴𐌗𐔧ҳ𐆖"],
      ["y", "уγʏɣᶌỿꭚүყⲩꭹꮍꓬ𖽃𑣄𐊲ƴɏұ"],
      ["z", "ᴢꮓζꓜ𑣉ʐƶȥᵶ"],
      ["l", "i1"],
      ["o", "0"],
      [":", "∶ː꞉׃︰։˸⁚܃፡﹕"],
      [" ", "/⁄∕╱⧸\\-‐‑‒–—−.·*`!?\"'‿⁀,"]
    ] as const
  ).flatMap(([plain, others]) => [...others].map((other) => [other, plain]))
)

const unseenCharacters = /[\p{M}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu
/** Maximum number of letters read: more than the longest name has, with any separators. */
const maxNameLetters = 60

/** Maps squared, circled and flag letters, which `normalize` does not handle. */
const framed = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  const first = [0x1f150, 0x1f170, 0x1f1e6].find((from) => code >= from && code < from + 26)
  return first === undefined ? character : String.fromCodePoint(code - first + 97)
}

/** Returns what a reader may take a character for: a lower-case letter, a sign, a blank, or nothing. */
const readAs = (character: string): string => {
  const letter = lookalikes[character]
  if (letter !== undefined) return letter
  let read = ""
  for (const each of framed(character).normalize("NFKD").replace(unseenCharacters, "").toLowerCase()) {
    read += /\s/u.test(each) ? " " : (lookalikes[each] ?? each)
  }
  return read
}

/** What ASCII characters are read as, by their code: most names consist of them. */
const asciiReads: ReadonlyArray<string> = Array.from({ length: 128 }, (_, code) => readAs(String.fromCharCode(code)))

/** Whether a name that begins with this ASCII character is not the mark: it is read neither as blank nor as the mark's first letter. */
const beginsNoMark: ReadonlyArray<boolean> = asciiReads.map((read, code) => code !== 0x7c && !/^[ _p]?$/.test(read))

const plainName = /^[a-z0-9_ :]*$/

/** Reads the name that a reader may see at this offset. It ends before the first character that no name contains. */
const nameAt = (text: string, from: number): string => {
  let name = ""
  for (let at = from; at < text.length && name.length < maxNameLetters;) {
    const code = text.codePointAt(at) ?? 0
    const character = String.fromCodePoint(code)
    at += character.length
    // A bar counts as a letter only within a name, not before it or at its end.
    const isBar = character === "|" && name !== "" && /^[\p{L}\p{N}]/u.test(text.slice(at, at + 2))
    const read = isBar
      ? "l"
      : character === "|" || /[\s\p{Cc}]/u.test(character)
        ? " "
        : (asciiReads[code] ?? readAs(character))
    if (!plainName.test(read)) break
    // Any separators between two letters count as one blank; before a name they count as none.
    name += read === " " && (name === "" || /[ _]$/.test(name)) ? "" : read
    if (name.endsWith(":")) break
  }
  return name
}

/** Returns whether the text after an opening character makes it one of ours. */
const opens = (text: string, opening: string, at: number): boolean => {
  const from = at + opening.length
  const isEntity = opening.startsWith("&")
  // Most brackets stand before another name.
  if (!isEntity && beginsNoMark[text.charCodeAt(from)] === true && !isAngle.test(opening)) return false
  const name = nameAt(text, from)
  if ((isEntity || !isAngle.test(opening)) && markName.test(name)) return true
  if (!isEntity && !isAngle.test(opening)) return false
  if (isElementName(name)) return true
  if (text[from] === "|") return isTokenName(name)
  exactName.lastIndex = from
  if (exactName.test(text)) return true
  // An XML namespace prefix.
  const space = /^\/?[a-z][\w.-]{0,15}:(?!:)/i.exec(text.slice(from, from + 20))?.[0]
  return space !== undefined && isElementName(nameAt(text, from + space.length))
}

/** Applies `escape` to every character that could open one of our elements. All other text stays as it is. */
export const escapeOpeners = (text: string, escape: (found: string) => string): string =>
  text.replace(opener, (found, at: number) => (opens(text, found, at) ? escape(found) : found))

/** Caches escaped texts, because a snapshot is written at several sizes and most of its statements recur. */
const escapedTexts = new Map<string, string>()
/** Characters of the cached texts, and how many there may be. */
let escapedChars = 0
const maxEscapedChars = 500_000

/** Escapes every character that could open one of our elements. */
export const protect = (text: string): string => {
  const cached = escapedTexts.get(text)
  if (cached !== undefined) return cached
  const escaped = escapeOpeners(text, (found) => {
    if (found.startsWith("&")) return `&amp;${found.slice(1)}`
    return found === "<" ? "&lt;" : `&#x${(found.codePointAt(0) ?? 0).toString(16)};`
  })
  if (escapedChars + text.length > maxEscapedChars) {
    escapedTexts.clear()
    escapedChars = 0
  }
  if (text.length <= maxEscapedChars) {
    escapedTexts.set(text, escaped)
    escapedChars += text.length
  }
  return escaped
}

/** Restores the text that was passed to `protect`. */
export const unprotect = (text: string): string =>
  text.includes("&") ? text.replace(opener, (found, at: number) => restored(text, found, at)) : text

/** Returns the character that an entity stands for where it could open one of our elements; anything else as it is. */
const restored = (text: string, found: string, at: number): string => {
  if (!found.startsWith("&") || !opens(text, found, at)) return found
  if (found.startsWith("&amp;")) return `&${found.slice(5)}`
  if (found === "&lt;") return "<"
  const code = /^&#x([0-9a-f]{1,6});$/.exec(found)?.[1]
  const character = code === undefined ? "" : characterOf(Number.parseInt(code, 16))
  return isOpener.test(character) ? character : found
}

const characterOf = (code: number): string => (code > 0x10ffff ? "" : String.fromCodePoint(code))

/**
 * Returns untrusted text (from a tool, a model, a hook, or a file name) as one line to quote: a name, a path, a reason. Every
 * character is visible, and nothing in it can pass for the runtime.
 */
export const untrustedLine = (text: string): string => protect(visibleLine(text))

/** Like `untrustedLine`, for a text of several lines; keeps line breaks. */
export const untrustedBlock = (text: string): string => protect(visibleBlock(text))

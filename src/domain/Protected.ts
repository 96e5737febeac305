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
  "web_page",
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
  "local_command_stderr",
  "human",
  "assistant",
  "developer",
  "tool_result",
  "tool_results",
  "function_result",
  "function_results",
  "function_call",
  "function_calls",
  "im_start",
  "im_end"
]
/** Voices that ordinary code has as types and elements (`List<User>`): ours only as tokens of a model, `<|user|>`. */
const tokens: ReadonlyArray<string> = [...elements, "user", "model", "tool", "instructions"]

/** Small letters as `readAs` gives them: what looks alike is one. */
const folded = (name: string): string => name.replace(/[i1]/g, "l").replace(/0/g, "o")
/** A name may be written with anything that parts words, anywhere in it, or with nothing. */
const pattern = (name: string): string => [...folded(name).replaceAll("_", "")].join("[ _]{0,3}")
const named = (names: ReadonlyArray<string>) => new RegExp(`^[ _]{0,3}(?:${names.map(pattern).join("|")})(?![a-z0-9_])`)
const elementName = named(elements)
const tokenName = named(tokens)
/** The names as they are written, whatever follows that no name holds. */
const exactName = new RegExp(`\\s*(?:/\\s*)?(?:${elements.join("|")})\\b`, "iy")
const markName = new RegExp(`^[ _]{0,3}${pattern("palimpsest")}[ _]{0,3}:`)

/** What looks like `<`, and like `[` or another bracket that a mark may stand in. */
const angles = "<＜﹤‹\\u2329〈⟨❬❮❰⟪˂ᐸᐊᚲ𝈶≺⪡⦑⧼《«⦃≤⩽≮≪⋖⩹⪕⊰◁⦉⦓"
const brackets = "\\[［⁅⟦〚【〖〔❲⦋﹝⦗⟬({（｛﹙﹛「『〘｢❨❴"
const entities = "lt|nvlt|ltcir|lang|langle|lsaquo|laquo|lsqb|lbrack|lpar|lcub|lbrace"
const opener = new RegExp(`[${angles}${brackets}]|&(?:amp;)*(?:${entities}|#0*\\d{1,7}|#x0*[0-9a-f]{1,6});?`, "giu")
const isAngle = new RegExp(`[${angles}]`, "u")
const isOpener = new RegExp(`^[${angles}${brackets}]$`, "u")

/**
 * Letters that look like Latin ones and are not made of them (those `normalize` finds): what Unicode's list of confusables
 * has for the letters of our names, and a few more. One letter stands for all that look like `l`.
 */
const alike: Readonly<Record<string, string>> = Object.fromEntries(
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

const unseen = /[\p{M}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu
/** Letters that are read at most: more than the longest name has, however it is parted. */
const mostLetters = 60

/** Letters in squares and circles, and those of flags, that `normalize` does not know. */
const framed = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  const first = [0x1f150, 0x1f170, 0x1f1e6].find((from) => code >= from && code < from + 26)
  return first === undefined ? character : String.fromCodePoint(code - first + 97)
}

/** What a reader may take a character for: plain small letters and signs, a blank, or nothing. */
const readAs = (character: string): string => {
  const known = alike[character]
  if (known !== undefined) return known
  let read = ""
  for (const each of framed(character).normalize("NFKD").replace(unseen, "").toLowerCase()) {
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
    // A bar is a letter within a name, and none in front of it or at its end.
    const isBar = character === "|" && name !== "" && /^[\p{L}\p{N}]/u.test(text.slice(at, at + 2))
    const read = isBar ? "l" : character === "|" || /[\s\p{Cc}]/u.test(character) ? " " : readAs(character)
    if (!/^[a-z0-9_ :]*$/.test(read)) break
    // However much parts two letters, it counts as one blank, and in front of a name as none.
    name += read === " " && (name === "" || /[ _]$/.test(name)) ? "" : read
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
  if (elementName.test(name)) return true
  if (text[from] === "|") return tokenName.test(name)
  exactName.lastIndex = from
  if (exactName.test(text)) return true
  // In a namespace of XML.
  const space = /^\/?[a-z][\w.-]{0,15}:(?!:)/i.exec(text.slice(from, from + 20))?.[0]
  return space !== undefined && elementName.test(nameAt(text, from + space.length))
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

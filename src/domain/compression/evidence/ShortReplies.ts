/** What a short reply of the user answers: its words alone ("yes", "option 2") say nothing to somebody who does not see the question. */

/** A number answers such a question, and names no option. */
const asksAmount =
  /\b(?:how (?:many|much|long|often)|what [^.?\n]{0,80} in (?:(?:milli)?seconds|minutes|hours|days)|wie ?viele?|wie (?:lange|oft)|combien|cuánt[oa]s?|quant[ioe]|сколько)\b[^?]*\?[^?]{0,120}$/iu

/** Longer replies say themselves what they are about. */
const maxReply = { words: 12, chars: 120 }
/** How much of the agent's text before a reply is searched. */
const maxSearchedChars = 6_000
const maxAskedChars = 240

const name = String.raw`(?:\d{1,2}|[A-Da-d])`
const separator = String.raw`\s*(?:,?\s*(?:and|und|et)\s|[,&+、\uff0c和と])\s*#?`
const names = String.raw`#?(${name}(?:${separator}${name})*)`
const separators = new RegExp(`(?:${separator})`, "iu")
/** The name of an option in a sentence, where the sentence does not go on to say something else of it. */
const choice = new RegExp(
  String.raw`(?:(?<![\p{L}])(?:op(?:ti|ci)[oó]n(?:en|es|s)?|opzione|opção|вариант|choices?|variant[es]?|approach(?:es)?|solutions?|alternatives?|numbers?|nummer|items?|go with|with|do|tackle|fix|take|nimm)\s*|#)${names}(?=\s*(?:[.,،;:!)…–—\n]|$)|\s+(?:please|bitte|first|then|now|sounds|looks|is (?:good|best|fine|better)|makes sense))`,
  "giu"
)
const bareChoice = new RegExp(
  String.raw`^[^\p{L}\p{N}]*(?:option\s*|选|選|第)?${names}(?:番目?|号)?(?:\s+(?:please|bitte))?[^\p{L}\p{N}]*$`,
  "iu"
)
/** The name with which a reply begins: "A is fine". A list answers several questions. */
const firstName = /^(?:[Oo]ption )?(\d{1,2}|[A-D])(?:[.):](?=\s)(?![^]*\n *\d+[.)])|\s+(?:is|looks|sounds|works)\b)/
const ordinals = ["first", "second", "third", "fourth"]
const ordinal = new RegExp(`\\b(?:the )?(${ordinals.join("|")}) (?:one|option|approach|choice|variant)\\b`, "gi")

/** Returns a reply with "the second one" as "option 2". */
const numbered = (reply: string): string =>
  reply.replace(ordinal, (_, word: string) => `option ${ordinals.indexOf(word.toLowerCase()) + 1}`)

/** A small letter in a sentence is a word: "do a first pass". */
const hasWord = (found: string): boolean => /\b[a-d]\b/.test(found) && !/^option\b/i.test(found)

/** Returns the names of the options that a reply names. */
const namesIn = (words: string): ReadonlyArray<string> => {
  const found =
    bareChoice.exec(words) ?? firstName.exec(words) ?? [...words.matchAll(choice)].find(([whole]) => !hasWord(whole))
  return found?.[1]?.split(separators) ?? []
}

const lineOf = (text: string): string =>
  text
    .replace(/\*\*|`{3}\w*|^\s*(?:#+|[-*>])\s+/gm, "")
    .replace(/\s+/g, " ")
    .trim()

const clipped = (text: string): string =>
  text.length <= maxAskedChars ? text : `${text.slice(0, maxAskedChars).replace(/\s+\S*$/, "")}…`

const optionStart =
  /^[ \t]*(?:[-*] +|#+ +|\*\*)*(?:option|approach|choice|variant|solution)? ?#?(?:\d{1,2}|[A-D])[.):*]/im

/** Returns the line or the row of a text that names an option, with what follows a mere heading. */
const optionIn = (text: string, name: string): string | undefined => {
  const form = new RegExp(
    `^[ \\t]*(?:\\| *)?(?:[-*] +)?(?:#+ +)?(?:\\*\\*)?(?:(?:option|approach|choice|variant|solution|task|issue|step)s? *)?#?${name}(?:\\*\\*)?(?:[.):]|\\*\\*| [-–—(]| *\\|)`,
    "gim"
  )
  const found = [...text.matchAll(form)].at(-1)
  if (found === undefined) return undefined
  const [first = "", next = ""] = text.slice(found.index).split("\n")
  if (/^\s*\|/.test(first)) return lineOf(first.replaceAll("|", " "))
  const line = lineOf(first)
  return line.length >= 60 || next.trim() === "" || optionStart.test(next)
    ? line
    : `${line.replace(/:$/, "")}: ${lineOf(next)}`
}

/** Code, tables and rules: no words of a question. */
const insertions = /^ *(```|~~~)[^\n]*\n[^]*?(?:\n *\1[^\n]*|(?![^]))|^[ \t]*(?:\|.*\||[-*_=]{3,})[ \t]*$/gm
/** A question mark that ends a sentence, and none of code. */
const asks = /[?\uff1f؟](?=["'”’»)\]_*!]*(?:\s|\P{ASCII}|$))/u

/** Returns the end of a text whose last paragraph asks something. */
const questionIn = (text: string): string | undefined => {
  const words = text.replace(insertions, "\n").trim()
  const last = words.split(/\n\s*\n/).at(-1) ?? ""
  if (!asks.test(last.replace(/`[^`]*`/g, ""))) return undefined
  const line = lineOf(words)
  return line.length <= maxAskedChars ? line : `…${line.slice(-maxAskedChars).replace(/^\S*\s/, "")}`
}

/** Whether a reply is longer than one that only answers, or asks back. */
const saysMore = (words: string): boolean =>
  words.length > maxReply.chars ||
  words.split(/\s+/, maxReply.words + 1).length > maxReply.words ||
  /[?\uff1f؟]/.test(words)

/**
 * Returns what a reply answers, in the agent's words: the options that it names, else the question. `before`: what the agent said last.
 * Undefined where nothing was asked, or the reply says more than an answer.
 */
export const askedBefore = (reply: string, before: string): string | undefined => {
  const words = numbered(reply.trim())
  if (words === "" || before === "" || saysMore(words)) return undefined
  const text = before.slice(-maxSearchedChars)
  const optionNames = namesIn(words)
  const options = optionNames.flatMap((each) => optionIn(text, each) ?? [])
  const question = questionIn(text)
  const isChoice = options.length > 0 && options.length === optionNames.length && !asksAmount.test(text)
  const asked = isChoice ? options.join(" · ") : question
  return asked === undefined ? undefined : clipped(asked)
}

const interjections = String.raw`(?:uh+|oh|ah+|hm+|well|cool|great|perfect|thanks?)`
const yes = String.raw`(?:yes|ok(?:ay)?|yep|yup|yeah|lgtm|sgtm|go (?:ahead|for it)|please do|y|go|sure|fine|agreed?|i agree|sounds good|looks (?:good|right)|do (?:it|that)|let'?s (?:do (?:it|that|this)|go)|correct|exactly|absolutely|definitely|of course|ja|genau|gerne?|klar|jawohl|natürlich|einverstanden|mach (?:das|es)|oui|ouais|d'accord|bien sûr|vas-y|sí|si|vale|claro|adelante|sì|va bene|certo|sim|да|давай|хорошо|конечно|tak|evet|네|예|はい|ええ|好|好的|是的|可以|没问题|نعم|أيوه|تمام|موافق|👍\p{EMod}?|✅|(?:implement|execute|carry out|start|begin|proceed|continue)(?: with)?(?: (?:it|that|this|(?:the|this) plan))?)`
const courtesy = String.raw`(?:please|thanks|thank you|bitte|danke|merci|s'il te plaît|por favor|gracias|grazie|per favore|пожалуйста|お願いします|now|then|too|as well|(?:the|this) plan|that|(?:looks|sounds|is) (?:good|great|right|fine|perfect)(?: to me)?)`
const wordEnd = String.raw`(?![\p{L}\p{N}_'’-])`
const assent = new RegExp(String.raw`(?<![\p{L}\p{N}])${yes}${wordEnd}`, "iu")
/** Words that agree with a plan as it is: what else a reply says may change the plan. */
const agreeing = new RegExp(String.raw`(?<![\p{L}\p{N}])(?:${yes}|${courtesy}|${interjections})${wordEnd}`, "giu")
/** The words of Codex's menu. */
const menuWords = /^[^\p{L}\p{N}]*(?:implement the plan|实现此方案)[^\p{L}\p{N}]*$/iu

/** Whether a reply lets the agent carry out the plan that it proposed, and says nothing else. */
export const accepts = (reply: string): boolean => {
  const words = reply.trim()
  if (menuWords.test(words)) return true
  return !saysMore(words) && assent.test(words) && !/[\p{L}\p{N}]/u.test(words.replace(agreeing, ""))
}

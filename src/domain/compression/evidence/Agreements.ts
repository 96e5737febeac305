/** What the user settled with a short reply: its words alone ("yes", "option 2") say nothing to somebody who does not see the question. */

/** How a reply settled something. */
export type Settlement = "agreed to" | "declined" | "chose"

/** A reply of the user with what it settled, in the agent's words. */
export interface Settled {
  readonly how: Settlement
  readonly what: string
}

const assent =
  /^\W*(?:(?:uh+|oh|ah+|hm+|ok(?:ay)?|well|cool|great|perfect|thanks?)\W+)*(?:yes|yep|yup|yeah|ok(?:ay)?|sure|agreed?|i agree|sounds good|looks (?:good|right)|lgtm|go (?:ahead|for it)|do (?:it|that)|please do|let'?s (?:do (?:it|that|this)|go)|correct|exactly|absolutely|definitely|ja|genau|oui|sí|si|はい|好的?|是的)(?![\w-])/i
/** "Okay" before a longer text of its own is no answer. */
const opening = /^\W*ok(?:ay)?\b(?!\W+(?:yes|sure|go|do|let'?s go|cool|great|sounds))/i
const maxOpeningWords = 6
const denial = /^\W*(?:(?:uh+|oh|hm+|ok(?:ay)?|well)\W+)*(?:no|nope|nah|don'?t|nein|non)\b/i
const choice =
  /\b(?:options?|choices?|variants?|approach(?:es)?|solutions?|alternatives?|numbers?|items?|go with|with|do|tackle|fix|for|#)\s*#?(\d{1,2}|[A-Da-d])\b(?:\s*(?:,|and|&|\+)\s*#?(\d{1,2}|[A-D])\b)?/
const bareChoice = /^\W*(?:option\s*)?(\d{1,2}|[a-dA-D])\W*$/i

/** Longer replies say themselves what they settle. */
const maxReplyWords = 30
/** How much of the agent's text before a reply is searched. */
const maxSearchedChars = 6_000
const maxProposalChars = 240

const lineOf = (text: string): string =>
  text
    .replace(/\*\*|`{3}\w*|^\s*(?:#+|[-*>])\s+/gm, "")
    .replace(/\s+/g, " ")
    .trim()

const clipped = (text: string): string =>
  text.length <= maxProposalChars ? text : `${text.slice(0, maxProposalChars).replace(/\s+\S*$/, "")}…`

const optionStart = /^\s*(?:[-*] +|#+ +|\*\*)*(?:option|approach|choice|variant|solution)? ?#?(?:\d{1,2}|[A-D])[.):*]/i

/** Returns the line of a text that names an option, with what follows a mere heading. */
const optionIn = (text: string, name: string): string | undefined => {
  const form = new RegExp(
    `^[ \\t]*(?:[-*] +)?(?:#+ +)?(?:\\*\\*)?(?:(?:option|approach|choice|variant|solution|task|issue|step)s? *)?#?${name}(?:\\*\\*)?(?:[.):]|\\*\\*| [-–—(])`,
    "gim"
  )
  const found = [...text.matchAll(form)].at(-1)
  if (found === undefined) return undefined
  const [first = "", next = ""] = text.slice(found.index).split("\n")
  const line = lineOf(first)
  return line.length >= 60 || next.trim() === "" || optionStart.test(next)
    ? line
    : `${line.replace(/:$/, "")}: ${lineOf(next)}`
}

/** Code, tables and rules between the sentences of a text. */
const insertions = /^ *(```|~~~)[^\n]*\n[^]*?(?:\n *\1[^\n]*|(?![^]))|^[ \t]*(?:\|.*\||[-*_=]{3,})[ \t]*$/gm

/** A question that "yes" does not answer. */
const openQuestion = /^(?:and |so |but )?(?:which|what|how|where|why|who|when)\b(?! (?:about|if)\b)/i

/** A shorter question says nothing without what it points at. */
const minOwnChars = 46

/** A question about what stands before it. */
const pointing = /\b(?:this|that|it|these|those|them|which|right|proceed|continue|complete|next)\b/i

/** Returns the question with which a text ends, and what it points at. */
const questionIn = (text: string): string | undefined => {
  const paragraphs = text
    .replace(insertions, "\n")
    .split(/\n\s*\n/)
    .filter((each) => lineOf(each) !== "")
  const last = lineOf(paragraphs.at(-1) ?? "")
  const question = /(?:^|[.!?:)] )([^.!?]*(?:\.\S[^.!?]*)*\?)[^?]{0,120}$/.exec(last)?.[1]?.trim()
  if (question === undefined || openQuestion.test(question)) return undefined
  if (question.length >= 60 && !/\b(?:this|that|these|those)\b/i.test(question)) return question
  if (!pointing.test(question)) return question
  const said = last.slice(0, last.indexOf(question)).trim() || lineOf(paragraphs.at(-2) ?? "")
  // What a colon announced was code or a table.
  const before = said.endsWith(":") ? "" : said
  if (before === "" && question.length < minOwnChars) return undefined
  const room = Math.max(0, maxProposalChars - question.length - 1)
  return before === ""
    ? question
    : `${before.length > room ? `…${before.slice(-room).replace(/^\S*\s/, "")}` : before} ${question}`
}

/**
 * Returns what a reply settled. `before`: what the agent said last. Undefined where the reply settles nothing, or where nothing was
 * asked.
 */
export const settledBy = (reply: string, before: string): Settled | undefined => {
  const words = reply.trim()
  const count = words.split(/\s+/, maxReplyWords + 1).length
  if (before === "" || count > maxReplyWords || words.endsWith("?")) return undefined
  const text = before.slice(-maxSearchedChars)
  const names = (bareChoice.exec(words) ?? choice.exec(words))?.slice(1).filter((name) => name !== undefined) ?? []
  const options = names.flatMap((name) => optionIn(text, name) ?? [])
  if (options.length > 0) return { how: "chose", what: clipped(options.join(" · ")) }
  const isOpening = count > maxOpeningWords && opening.test(words)
  const how = denial.test(words) ? "declined" : assent.test(words) && !isOpening ? "agreed to" : undefined
  const question = how === undefined ? undefined : questionIn(text)
  return how === undefined || question === undefined ? undefined : { how, what: clipped(question) }
}

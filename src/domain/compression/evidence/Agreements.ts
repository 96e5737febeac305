/** What the user settled with a short reply: its words alone ("yes", "option 2") say nothing to somebody who does not see the question. */

/** How a reply settled something. */
export type Settlement = "agreed to" | "declined" | "chose"

/** A reply of the user with what it settled, in the agent's words. */
export interface Settled {
  readonly how: Settlement
  readonly what: string
}

/** The end of a word, in any script. */
const wordEnd = String.raw`(?![\p{L}\p{N}_'’-])`

const interjections = String.raw`(?:uh+|oh|ah+|hm+|ok(?:ay)?|well|cool|great|perfect|thanks?)`

/** Words that agree whatever follows, unless the rest has a reservation. */
const yes = String.raw`(?:yes|yep|yup|yeah|lgtm|sgtm|go (?:ahead|for it)|please do|ja|oui|ouais|sí|sì|sim|да|давай|tak|evet|네|예|はい|ええ|好|好的|是的|可以|没问题|نعم|أيوه|تمام|موافق)`
/** Words that also begin other sentences: they agree where a sign or the end follows. */
const yesAlone = String.raw`(?:y|ok(?:ay)?|go(?!\.\w|:)|sure|fine|agreed?|i agree|sounds good|looks (?:good|right)|do (?:it|that)|let'?s (?:do (?:it|that|this)|go)|correct|exactly|absolutely|definitely|of course|genau|gerne?|klar|jawohl|natürlich|einverstanden|mach (?:das|es)|d'accord|bien sûr|vas-y|si|vale|claro|adelante|va bene|certo|хорошо|конечно|👍\p{EMod}?|✅)`
const courtesy = String.raw`(?:please|thanks|thank you|bitte|gerne|danke|merci|s'il te plaît|por favor|gracias|grazie|per favore|пожалуйста|お願いします|now|then|too|as well)`

/** The end of a sentence or a pause in it, but no hyphen of a word ("no-op", "go-live"). */
const pause = String.raw`(?=\s*(?:[.,،;:!)…–—、。\uff0c\uff01\n]|$)|\s+-|-(?![\p{L}\p{N}]))`

const lead = String.raw`^[^\p{L}\p{N}👍✅]*(?:${interjections}[^\p{L}\p{N}]+)*`
const assent = new RegExp(
  `${lead}(?:${yes}${wordEnd}|${yesAlone}(?:${pause}|\\s+(?=${interjections}|${yes}|${yesAlone}|${courtesy})))`,
  "iu"
)
/** "Okay" before a longer text of its own is no answer. */
const opening = /^\W*ok(?:ay)?\b(?!\W+(?:yes|sure|go|do|let'?s go|cool|great|sounds))/i
const maxOpeningWords = 6
const denial = new RegExp(
  `${lead}(?:(?:no|n|nope|nah|nein|nö|nee|nej|non|não|нет|nie|hayır|아니요|아니오|いいえ|不|不要|不用|不行|لا)(?:${pause}|\\s+(?:don'?t|do not|not|thanks|thank you|please|leave|keep|let'?s|i|we|nicht|danke|merci|gracias|grazie|спасибо)${wordEnd})|(?:please )?don'?t(?: (?:do (?:it|that|this)|please))?(?=\\s*(?:[.,;:!]|$))|не надо|auf keinen fall|lieber nicht)`,
  "iu"
)
/** Words after "no" with which the user wants it nevertheless. */
const nevertheless =
  /(?<![\p{L}'’])(?:(?<!(?:don'?t|not) )(?:yes|yep|yeah|go (?:ahead|for it)|do it|please do)|doch|ja|oui|sí|да)(?![\p{L}'’-])/iu

/** Words with which a reply takes back, postpones or bounds what it says. */
const reservation =
  /(?<![\p{L}])(?:but|except|not|no|nope|cannot|\p{L}+n['’]t|dont|never|nevermind|stop|wait|hold (?:on|off)|instead|unless|later|tomorrow|though|however|rather|different(?:ly)?|maybe|perhaps|unsure|skip|cancel|without|ignore|avoid|drop|forget|remove|exclude|reject|leave out|neither|bad|worse|wrong|fails?|what i (?:feared|meant)|aber|nicht|nein|kein\p{L}*|erst|später|statt|stattdessen|außer|sondern|warte|ohne|vielleicht|mais|pas|sauf|plus tard|d['’]abord|attends|plutôt|sans|peut-être|pero|excepto|espera|después|sin|quizás|ma|però|dopo|tranne|aspetta|senza|mas|não|exceto|depois|sem|но|не|нет|кроме|потом|без|nie|ale|ama|fakat|و?لكن|إلا|باستثناء|بدون|دون|بدلا|ليس|لا|انتظر|لاحقا|غدا)(?![\p{L}])|[不别但没]|でも|ただ|ない|けど|しかし|하지만|아니/iu
/** Words that bound an agreement, and not a choice. */
const condition =
  /(?<![\p{L}])(?:first|only|if|after|before|until|zuerst|nur|wenn|seulement|si|primero|solo|se|prima|сначала|если|فقط|أولا|إذا|قبل|بعد)(?![\p{L}])|[先等]/iu
/** What a reservation may say and be none. */
const noReservation = /没问题|\bno (?:problem|worries|objections?)\b|\bwhy not\b/giu

const name = String.raw`(?:\d{1,2}|[A-Da-d])`
const separator = String.raw`\s*(?:,?\s*(?:and|und|et)\s|[,&+、\uff0c和と])\s*#?`
const names = String.raw`#?(${name}(?:${separator}${name})*)`
const separators = new RegExp(`(?:${separator})`, "iu")
/** The name of an option in a sentence, where the sentence does not go on to say something else of it. */
const choice = new RegExp(
  String.raw`(?:(?<![\p{L}])(?:op(?:ti|ci)[oó]n(?:en|es|s)?|opzione|opção|вариант|choices?|variant[es]?|approach(?:es)?|solutions?|alternatives?|numbers?|nummer|items?|go with|with|do|tackle|fix|take|nimm)\s*|#)${names}(?=\s*(?:[.,،;:!)…–—\n]|$)|\s+(?:please|bitte|first|then|now|sounds|looks|is (?:good|best|fine|better)|makes sense))`,
  "iu"
)
const bareChoice = new RegExp(
  String.raw`^[^\p{L}\p{N}]*(?:option\s*|选|選|第)?${names}(?:番目?|号)?(?:\s+(?:please|bitte))?[^\p{L}\p{N}]*$`,
  "iu"
)
const ordinals = ["first", "second", "third", "fourth"]
const ordinal = new RegExp(`\\b(?:the )?(${ordinals.join("|")}) (?:one|option|approach|choice|variant)\\b`, "gi")

/** Returns a reply with "the second one" as "option 2". */
const numbered = (reply: string): string =>
  reply.replace(ordinal, (_, word: string) => `option ${ordinals.indexOf(word.toLowerCase()) + 1}`)

/** A number answers such a question, and chooses nothing. */
const asksAmount =
  /\b(?:how (?:many|much|long|often)|wie ?viele?|wie (?:lange|oft)|combien|cuánt[oa]s?|quant[ioe]|сколько)\b[^?]*\?[^?]{0,120}$/iu

/** Longer replies say themselves what they settle. */
const maxReplyWords = 30
const maxReplyChars = 300
/** How much of the agent's text before a reply is searched. */
const maxSearchedChars = 6_000
const maxProposalChars = 240

const lineOf = (text: string): string =>
  text
    .replace(/\*\*|`{3}\w*|^\s*(?:#+|[-*>])\s+/gm, "")
    .replace(/\s+/g, " ")
    .trim()

const clippedProposal = (text: string): string =>
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
const openQuestion =
  /^(?:and |so |but )?(?:which|what|how|where|why|who|when|welche[nrsm]?|was|wie|wo|warum|wann|quel(?:le)?s?|comment|pourquoi|cuál(?:es)?|qué|cómo|quale|come|أي|ما|ماذا|كيف|أين|لماذا|متى)(?!\p{L})(?! (?:about|if|wäre es)\b)|^do you (?:know|remember)\b|, (?:or|oder|ou)(?! not\b) | أم |\bor (?:do|should|would|shall|rather|just|keep|leave)\b/iu

/** A shorter question says nothing without what it points at. */
const minOwnChars = 46

/** A question about what stands before it. */
const pointing =
  /\b(?:this|that|it|these|those|them|which|right|proceed|continue|complete|next|go ahead)\b|^(?:shall|should|may|can) (?:I|we)\?$/i

/** Returns the question with which a text ends, and what it points at. */
const questionIn = (text: string): string | undefined => {
  const paragraphs = text
    .replace(insertions, "\n")
    .split(/\n\s*\n/)
    .filter((each) => lineOf(each) !== "")
  const last = lineOf(paragraphs.at(-1) ?? "")
  const question =
    /(?:^|[.!?؟:)] |[。\uff01\uff1a])([^.!?؟。\uff01\uff1f]*(?:\.\S[^.!?؟。\uff01\uff1f]*)*[?؟\uff1f])[^?؟\uff1f]{0,120}$/
      .exec(last)?.[1]
      ?.trim()
  if (question === undefined || openQuestion.test(question)) return undefined
  if (question.length >= 60 && !/\b(?:this|that|these|those)\b/i.test(question)) return question
  const isPointing = pointing.test(question)
  if (!isPointing && question.length >= minOwnChars) return question
  const said = last.slice(0, last.indexOf(question)).trim() || lineOf(paragraphs.at(-2) ?? "")
  // What a colon announced was code or a table.
  const before = said.endsWith(":") ? "" : said
  if (before === "" && isPointing && question.length < minOwnChars) return undefined
  const room = Math.max(0, maxProposalChars - question.length - 1)
  return before === ""
    ? question
    : `${before.length > room ? `…${before.slice(-room).replace(/^\S*\s/, "")}` : before} ${question}`
}

/** Tells whether a reply of some words says yes or no without a reservation. */
const answerOf = (words: string, count: number): Settlement | undefined => {
  const said = words.replace(noReservation, "")
  if (denial.test(said)) return nevertheless.test(said) ? undefined : "declined"
  const yes = assent.exec(words)?.[0]
  if (yes === undefined || (count > maxOpeningWords && opening.test(words))) return undefined
  const rest = words.slice(yes.length).replace(noReservation, "")
  return reservation.test(rest) || condition.test(rest) ? undefined : "agreed to"
}

/** Whether a reply is longer than one that only settles something, or asks back. */
const saysMore = (words: string, count: number): boolean =>
  count > maxReplyWords || words.length > maxReplyChars || /[?\uff1f؟]/.test(words)

const countOf = (words: string): number => words.split(/\s+/, maxReplyWords + 1).length

/** The words of Codex's menu. */
const menuWords = /^[^\p{L}\p{N}]*(?:implement the plan|实现此方案)[^\p{L}\p{N}]*$/iu

/** Words that agree with a plan as it is: what else a reply says may change the plan. */
const agreeing = new RegExp(
  String.raw`(?<![\p{L}\p{N}])(?:${yes}|${yesAlone}|${courtesy}|${interjections}|(?:implement|execute|carry out|start|begin|proceed|continue)(?: with)?(?: (?:it|that|this|(?:the|this) plan))?|(?:the|this) plan|that|(?:looks|sounds|is) (?:good|great|right|fine|perfect)(?: to me)?)${wordEnd}`,
  "giu"
)

/** Whether a reply lets the agent carry out the plan that it proposed, and says nothing else. */
export const accepts = (reply: string): boolean => {
  const words = reply.trim()
  if (menuWords.test(words)) return true
  const count = countOf(words)
  if (saysMore(words, count) || answerOf(words, count) !== "agreed to") return false
  return !/[\p{L}\p{N}]/u.test(words.replace(noReservation, "").replace(agreeing, ""))
}

/**
 * Returns what a reply settled. `before`: what the agent said last. Undefined where the reply settles nothing, or where nothing was
 * asked.
 */
export const settledBy = (reply: string, before: string): Settled | undefined => {
  const words = numbered(reply.trim())
  const count = countOf(words)
  if (before === "" || saysMore(words, count)) return undefined
  const text = before.slice(-maxSearchedChars)
  const named = (bareChoice.exec(words) ?? choice.exec(words))?.[1]?.split(separators) ?? []
  const options = named.flatMap((each) => optionIn(text, each) ?? [])
  if (options.length > 0) {
    return options.length < named.length || reservation.test(words) || asksAmount.test(text)
      ? undefined
      : { how: "chose", what: clippedProposal(options.join(" · ")) }
  }
  const how = answerOf(words, count)
  const question = how === undefined ? undefined : questionIn(text)
  return how === undefined || question === undefined ? undefined : { how, what: clippedProposal(question) }
}

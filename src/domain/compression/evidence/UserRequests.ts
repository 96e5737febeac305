/** What the user wrote: the requests of a conversation, the constraints in them, and a witness of exact words. */

import { type Content, isText, type Part, withOutput } from "../../content/Content.ts"
import type { Handle } from "../../content/Handle.ts"
import type { Entry, EntryId } from "../../conversation/Conversation.ts"
import {
  distinctiveSecrets,
  markStart,
  maxDistinctiveSecrets,
  redact,
  type Secret,
  strongSecrets
} from "../../text/Redaction.ts"
import { questionBefore, questionOf, userReply } from "../../transcripts/voice/ResultVoice.ts"
import { spokenText, voicesOf } from "../../transcripts/voice/Voice.ts"
import type { UserWords } from "../Snapshot.ts"

/** An exact span of a text part, from character `start` to `end`. */
export interface Span {
  readonly entry: EntryId
  readonly part: number
  readonly start: number
  readonly end: number
  readonly text: string
  readonly handle: Handle | undefined
  /** When it was written, in milliseconds since 1970. */
  readonly at?: number | undefined
  /** The question that it answers, empty where it is not known. Absent: it is a request. */
  readonly question?: string
}

/**
 * Returns the user's requests in a message: the spans that the user wrote, without commands to the program. `callOf`: the call that a
 * part answers.
 */
export const requestSpans = (entry: Entry, callOf: (part: number) => Part | undefined = () => undefined): Array<Span> =>
  voicesOf(entry).flatMap((voices, at) => {
    const part = entry.content.parts[at]
    const text = voices.length === 0 ? "" : spokenText(part)
    const reply = voices.length > 0 && part !== undefined ? userReply(part) : undefined
    return voices.flatMap(({ end, speaker, start }) => {
      const words = text.slice(start, end)
      const question =
        reply === undefined
          ? ""
          : questionOf(callOf(at)?.functionCall?.args, text, start) || questionBefore(text, start)
      // What the user says with a refusal is a request, unless it answers a question.
      const isAnswer = reply !== undefined && (reply.refusedBy === undefined || question !== "")
      return speaker !== "user" || /^[/?]\S*$/.test(words)
        ? []
        : [
            {
              entry: entry.id,
              part: at,
              start,
              end,
              text: words,
              handle: entry.handles[at],
              at: entry.at,
              ...(isAnswer ? { question } : {})
            }
          ]
    })
  })

/** "It must be the cache": a guess, where nothing stands before it that must be so. */
const guess = String.raw`(?<=^\P{L}*|\b(?:que|che|isso|eso|questo) )(?:deve (?:ser|essere)|debe ser)\b`

/** Words that constrain in any sentence. */
const limiting = new RegExp(
  String.raw`\b(?:must(?:n't)?|never|don'?t|do not|shall(?: not)?|should(?:n'?t)?|make sure|ensure|prefer|have to|has to|not allowed|forbidden|no longer|at (?:most|least)` +
    "|nicht|niemals|immer|muss|nur|d[au]rf(?:st|en)?|jamais|toujours|doit|uniquement|interdit|nunca|siempre|sempre|jangan|harus|wajib|dilarang" +
    String.raw`|(?!${guess})(?:debes?|deve[ms]?))\b|(?<![\p{L}])(?:n[ãa]o (?:use|usar|mexa|mexer|altere|mude|apague|remova|crie|fa[çc]a|toque|pode)|no (?:uses|usar|toques|cambies|borres|hagas|modifiques)|нельзя|никогда|всегда|обязательно|только(?! что(?![\p{L}]))|не (?:надо|нужно|[а-яё]+(?:[аяую]й|йте)))(?![\p{L}])` +
    String.raw`|必须|(?<!要)不要(?![紧緊])|不得|禁止|只能|务必|请勿|切勿|不可以|必ず|てはいけ|ないこと(?![\p{L}])|ないで(?:ください|下さい|くれ|(?=[。！\s]|$))` +
    String.raw`|てはなりません|なければな|厳禁|絶対(?!パス)|반드시|절대(?! ?경로)|금지(?!어)|지 ?마(?:세|십|시|라|요|(?![\p{L}]))|지 ?말(?:[아고라자게도며]| 것)|면 안 ?(?:되|됩|돼)`,
  "iu"
)
/** Words that constrain, and describe as well: "it always returns 0". */
const limitingOrTelling = /\b(?:always|only|without|avoid|instead of|keep|required?)\b/i
/** Whom a sentence addresses, or what it begins with, when it is no description. */
const addressing = /^\W*(?:always|avoid|keep|use)\b|\b(?:I|I'd|we|we'd|let'?s|us|you|please|want|need|my|our)\b/i
/** A sentence of at most this many words is taken for a rule, a longer one for a description. */
const maxTerseWords = 12

/** A question in which something is asked for, not whether something is so: "Could you make sure that …?" */
const asking = /^(?:\W|and\b|but\b|also\b|so\b|then\b|ok\b)*(?:can|could|will|would) (?:you|we)\b|\bplease\b/i

const isConstraining = (text: string): boolean =>
  (!/[?\uFF1F]$/.test(text) || asking.test(text)) &&
  (limiting.test(text) ||
    (limitingOrTelling.test(text) && (addressing.test(text) || text.split(/\s+/).length <= maxTerseWords)))

/** Matches a sentence. A full stop ends it only before white space, so `src/a.ts` stays whole. */
export const sentence = /(?:[^\n.!?。！？]|(?<![.!?])[.!?]+(?![\s.!?]|$))+(?:[.!?]+(?=\s|$)|[。！？]+|\n|$)/g

/** Lines that are no sentences of a person: stack traces, listings, code, the output of programs. */
const pasted =
  /^\s*(?:at\s+\S+[\s(]|File "|\d+\s*[:|→]|[│|>+]|\$\s|#{1,6}\s*$|[\w.]*(?:Error|Exception)\b|error(?:\[\w+\])?:|warning:|\[\w+\]\s|\S+\.\w+:\d+)|[{};]\s*$|^\s{4,}\S/

/** Shorter sentences say nothing; those of scripts that write a word in a character or two say as much in fewer. */
const minChars = (text: string): number =>
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(text) ? 4 : 8

/** Longer sentences are text that was pasted. */
const maxConstraintChars = 600

/** Blocks between fences: what stands there is quoted. */
const fenced = /^ *(```|~~~)[^\n]*\n[^]*?(?:\n *\1|(?![^]))/gm

/** Returns the sentences of a request that constrain how the work is done. */
export const constraintsIn = (span: Span): ReadonlyArray<Span> => {
  // Of the same length, so that places stay.
  const start = span.text.slice(0, 50_000)
  const own = /```|~~~/.test(start) ? start.replace(fenced, (block) => block.replace(/[^\n]/g, " ")) : start
  return [...own.matchAll(sentence)].flatMap((match) => {
    const piece = match[0]
    const text = piece.trim()
    if (text.length < minChars(text) || text.length > maxConstraintChars || text.endsWith(":")) return []
    if (!isConstraining(text) || pasted.test(piece)) return []
    const at = span.start + match.index + (piece.length - piece.trimStart().length)
    return [{ ...span, start: at, end: at + text.length, text }]
  })
}

/** Tells whether the user wrote these words in that entry. */
export type UserWordsWitness = (words: UserWords) => boolean

/** Whether these words stand in what the user wrote in a message. */
const isSaid = (content: Content, words: string): boolean =>
  voicesOf({ content }).some((voices, at) => {
    const text = voices.length === 0 ? "" : spokenText(content.parts[at])
    return voices.some(({ end, speaker, start }) => speaker === "user" && text.slice(start, end).includes(words))
  })

/** Makes a witness from these entries. Secrets are removed first, because quotations are made without them. */
export const witnessOf = (entries: ReadonlyArray<Entry>, secrets: ReadonlyArray<Secret> = []): UserWordsWitness => {
  const strong = strongSecrets(distinctiveSecrets(secrets, maxDistinctiveSecrets.everywhere))
  const clean = (part: Part): Part =>
    isText(part)
      ? { ...part, text: redact(part.text, strong) }
      : userReply(part) === undefined
        ? part
        : withOutput(part, redact(spokenText(part), strong))
  let byId: ReadonlyMap<string, Entry> | undefined
  return ({ entry, text }) => {
    byId ??= new Map(entries.map((known) => [known.id, known]))
    const known = byId.get(entry)
    if (known?.content.role !== "user" || known.author !== undefined) return false
    const { content } = known
    return (
      isSaid(content, text) ||
      (text.includes(markStart) && isSaid({ ...content, parts: content.parts.map(clean) }, text))
    )
  }
}

import path from "node:path"
import process from "node:process"
import { attacked, attacks } from "./hostileModel.ts"

/** `npm run attack [-- WORD]`: runs every attack (or those with the word in their name) on the program in `dist`, and prints a table. */

const root = path.dirname(path.dirname(import.meta.dirname))
const bundle = process.env["PALIMPSEST_BUNDLE"] ?? path.join(root, "dist", "palimpsest.mjs")
const [word = ""] = process.argv.slice(2)

let isHit = false
console.log("attack                                   hits   seconds  peak MB  sent MB")
for (const attack of attacks.filter(({ name }) => name.includes(word))) {
  const { hits, name, peak, seconds, sent, stderr } = await attacked(attack, bundle)
  isHit ||= hits.length > 0
  const numbers = [
    String(hits.length).padStart(4),
    seconds.toFixed(1).padStart(9),
    String(peak).padStart(8),
    (sent / 1e6).toFixed(1).padStart(8)
  ]
  console.log(`${name.padEnd(40)} ${numbers.join(" ")}`)
  for (const hit of hits) console.log(`    ${hit}`)
  if (process.env["SHOW"] !== undefined) console.log(`    > ${stderr.trim().slice(0, 600)}`)
}
process.exitCode = isHit ? 1 : 0

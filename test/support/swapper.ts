import { spawn } from "node:child_process"
import { once } from "node:events"
import { programOf } from "./machine.ts"

/** Exchanges two folders repeatedly. */
export type Pair = readonly [one: string, other: string]

/** `renameat2(RENAME_EXCHANGE)`: neither name is ever missing. Without it, three renames. */
const python = `
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
pairs = list(zip(sys.argv[2::2], sys.argv[3::2]))
pause = float(sys.argv[1]) / 1000
def exchange(one, other):
    if not hasattr(libc, "renameat2"):
        os.rename(one, one + ".away"); os.rename(other, one); os.rename(one + ".away", other)
    elif libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) != 0: raise OSError(ctypes.get_errno())
swaps = 0
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent and not os.path.exists(sys.argv[2] + ".stop"):
    for one, other in pairs:
        exchange(one, other)
        swaps += 1
    end = time.perf_counter() + pause
    while time.perf_counter() < end: pass
if swaps % (2 * len(pairs)):
    for one, other in pairs: exchange(one, other)
print(swaps, flush=True)
`

const node = `
const fs = require("node:fs")
const [pause, ...names] = process.argv.slice(1)
const pairs = []
for (let i = 0; i < names.length; i += 2) pairs.push([names[i], names[i + 1]])
const exchange = (one, other) => {
  fs.renameSync(one, one + ".away")
  fs.renameSync(other, one)
  fs.renameSync(one + ".away", other)
}
let swaps = 0
console.log("ready")
const parent = process.ppid
while (process.ppid === parent && !fs.existsSync(names[0] + ".stop")) {
  for (const [one, other] of pairs) {
    exchange(one, other)
    swaps += 1
  }
  const end = performance.now() + Number(pause)
  while (performance.now() < end);
}
if (swaps % (2 * pairs.length)) for (const [one, other] of pairs) exchange(one, other)
console.log(swaps)
`

/** Exchanges the pairs at an interval in milliseconds until a file `.stop` appears beside the first; then prints how often. */
export const swapper = async (
  pairs: ReadonlyArray<Pair>,
  pause: number
): Promise<{ readonly swaps: Promise<number> }> => {
  const interpreter = programOf("Python")
  const args = [String(pause), ...pairs.flat()]
  const child =
    interpreter === undefined
      ? spawn(process.execPath, ["-e", node, ...args], { stdio: ["ignore", "pipe", "inherit"] })
      : spawn(interpreter, ["-c", python, ...args], { stdio: ["ignore", "pipe", "inherit"] })
  let said = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
  const ended = once(child, "close")
  while (!said.includes("\n") && child.exitCode === null) await new Promise((resume) => setTimeout(resume, 5))
  return { swaps: ended.then(() => Number(said.trim().split("\n").at(-1))) }
}

/** Finds passwords in addresses, in lists of logins, in the arguments of programs, and after the word for one in other languages. */

import type { Finding } from "./Finding.ts"
import { matchAt } from "./MatchAt.ts"
import { hasDigitAndLetter, isRandom } from "./RandomText.ts"
import { fileName, formed, isPlaceholder } from "./SecretValues.ts"

/** The end of user and password before a host. */
const userInfo = /([^\s/:@"'`<>\\]{0,128}):((?:[^\s/@"'`<>\\]|@(?=[^\s/@"'`<>\\]{0,128}@)){1,256})@(?=[\w[.$-])/y
const tokenInfo = /([A-Za-z0-9_-]{20,256})@(?=[\w.-]+)/y
/** Files that list hosts with ports, users and passwords (`.pgpass`). */
const pgPass = /:(?:5432|5433|6432|\*):([^\s:<]{1,64}):([^\s:<]{1,64}):([^\s:<]{1,256})(?=\s|$|<|\\n)/y
const curlUser =
  /(?:\s|["'])(?:-[fgikLnsSvO]{0,6}u|--user|--proxy-user|-U)(?:\\{0,7}["'],\s{0,8}|[ =]{0,4})(?:'\\{1,4}''|\\{0,7}["'])?[^\s:"'`@$\\<]{1,64}:[^\s"'`\\<]{1,128}/y
const combinedUser = /^-[fgikLnsSvO]{1,6}u[ ]/
const webProgram =
  /(?:\b|\\[nrt])(?:curl|wget|https?|xh|aria2c|ab|svn|restic|rclone|smbclient|mosquitto_(?:pub|sub)|lftp)\b/
const shortPassword =
  /(?:\s|["'])-[pPa](?:\\{0,7}["'],\s{0,8}|[ ]?)(?:'\\{1,4}''|\\{0,7}["'])?([^\s"'`\\<-][^\s"'`\\<]{2,127})/y
const passProgram =
  /(?:\b|\\[nrt])(sshpass|docker|podman|redis-cli|unzip|7z|az|oc|mongo\w{0,8}|mysql\w{0,8}|mariadb\w{0,8})\b/

/** The word for a password in languages whose letters no name of a program has, or in several words, and the value that it has in a sentence. */
const loginInWords =
  /(?:密码|密碼|口令|パスワード|비밀번호|암호|пароль|contraseña|mot de passe|\bsenha|wachtwoord|hasło)["'`*_]{0,2}[ \t]{0,4}(?:[:=]|是|为|為|は|는|은|\b(?:est|es|is|to)(?= )|é(?= ))[ \t]{0,4}["'`“「]?([!-~]{6,128})/giu
/** A way to store a password. */
const algorithm = /^(?:sha|md|aes|argon|pbkdf|bcrypt)-?\d*/i

const each = (text: string, from: number, to: number, mark: string, visit: (at: number) => void): void => {
  const part = text.slice(from, Math.min(text.length, to + mark.length - 1))
  for (let at = part.indexOf(mark); at >= 0; at = part.indexOf(mark, at + mark.length)) visit(from + at)
}

/** Returns the user and password, or the token, before a host. */
const userAt = (text: string, at: number): Finding | undefined => {
  const end = matchAt(userInfo, text, at)
  if (end >= 0) {
    const start = at + text.slice(at, end).indexOf(":") + 1
    const value = text.slice(start, end - 1)
    return isPlaceholder(value, true) || /^(?:pass|pw|pwd)$/i.test(value)
      ? undefined
      : { start, end: end - 1, kind: "password" }
  }
  const token = matchAt(tokenInfo, text, at)
  return token >= 0 && isRandom(text.slice(at, token - 1))
    ? { start: at, end: token - 1, kind: "credentials" }
    : undefined
}

const pgPassAt = (text: string, at: number): Finding | undefined => {
  const end = matchAt(pgPass, text, at)
  if (end < 0) return undefined
  const start = at + text.slice(at, end).lastIndexOf(":") + 1
  return isPlaceholder(text.slice(start, end), true) ? undefined : { start, end, kind: "password" }
}

/** Returns the password after a single-letter flag, if the program takes a password there. */
const flagAt = (text: string, at: number): Finding | undefined => {
  const letter = text.charAt(at + 2)
  const isUser = letter !== "p" && letter !== "P" && letter !== "a"
  const end = matchAt(isUser ? curlUser : shortPassword, text, at)
  if (end < 0) return undefined
  const line = text.slice(Math.max(0, at - 200), at)
  const before = line.slice(line.lastIndexOf("\n") + 1)
  const whole = text.slice(at, end)
  if (isUser) {
    const start = at + whole.lastIndexOf(":") + 1
    return !webProgram.test(before) || isPlaceholder(text.slice(start, end), true)
      ? undefined
      : { start, end, kind: "password" }
  }
  const program = passProgram.exec(before)?.[1]
  if (program === undefined) return undefined
  const isGlued = /^[\s"']-[pPa][^\s"']/.test(whole)
  const takes =
    program.startsWith("mysql") || program.startsWith("mariadb")
      ? letter === "p" && isGlued
      : program === "redis-cli"
        ? letter === "a"
        : program === "docker" || program === "podman"
          ? letter === "p" && !isGlued && /\blogin\b/.test(before)
          : letter !== "a" && (!isGlued || program === "7z" || program === "unzip" || program === "sshpass")
  const value = /[^\s"'`\\]+$/.exec(isGlued ? whole.slice(3) : whole)?.[0] ?? ""
  return !takes || value === "" || isPlaceholder(value, true) || /^[\d:]+$/.test(value)
    ? undefined
    : { start: end - value.length, end, kind: "password" }
}

/** Finds names and passwords of logins between two places, and adds them to the findings. */
export const findLogins = (text: string, from: number, to: number, findings: Array<Finding>): void => {
  let done = from
  const add = (finding: Finding | undefined) => {
    if (finding === undefined) return
    findings.push(finding)
    done = finding.end
  }
  each(text, from, to, ":", (at) => {
    if (at < done) return
    const next = text.charAt(at + 1)
    if (next === "/" && text.charAt(at + 2) === "/") add(userAt(text, at + 3))
    else if (next === "%" && /^%2F%2F/i.test(text.slice(at + 1, at + 7))) add(userAt(text, at + 7))
    else if (next === "5" || next === "6" || next === "*") add(pgPassAt(text, at))
  })
  for (const { 0: whole, 1: said = "", index } of text.slice(from, to + 256).matchAll(loginInWords)) {
    const value = said.replace(/["'`.,:;!?)]+$/, "")
    const start = from + index + whole.length - said.length
    const isOther = [formed, fileName, algorithm].some((form) => form.test(value)) || isPlaceholder(value, false)
    if (value.length >= 6 && hasDigitAndLetter(value) && !isOther)
      findings.push({ start, end: start + value.length, kind: "password" })
  }
  done = from
  each(text, from, to, "-", (at) => {
    const before = text.charAt(at - 1)
    if (at < done || (before !== " " && before !== '"' && before !== "'" && before !== "\n")) return
    const next = text.charAt(at + 1)
    if (next === "u" || next === "U" || next === "p" || next === "P" || next === "a") add(flagAt(text, at - 1))
    else if (combinedUser.test(text.slice(at, at + 9))) add(flagAt(text, at - 1))
    else if (next === "-" && /^--(?:proxy-)?user\b/.test(text.slice(at, at + 13))) add(flagAt(text, at - 1))
  })
}
